// SPDX-License-Identifier: Apache-2.0
// The same pictures in other formats, by the npm package sharp (libvips), which is installed where this is copied to.
//	node pictures.mjs FROM TO COUNT		of so many PNGs below FROM: WebP and JPEG
import { mkdirSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import sharp from "sharp";

const [from, to, count] = process.argv.slice(2);
const all = readdirSync(from, { recursive: true }).filter((f) => f.endsWith(".png")).sort();
const step = Math.max(1, Math.floor(all.length / Number(count)));
mkdirSync(to, { recursive: true });
for (let i = 0; i < all.length; i += step) {
	const picture = () => sharp(join(from, all[i]));
	const name = `${i}-${basename(all[i], ".png")}`;
	const lossless = (i / step) % 2 === 0;
	await picture().webp({ lossless }).toFile(join(to, `${name}.webp`));
	await picture().flatten({ background: "#ffffff" }).jpeg({ progressive: lossless }).toFile(join(to, `${name}.jpg`));
}
