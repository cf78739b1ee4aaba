// SPDX-License-Identifier: Apache-2.0
const test = require("node:test");
const assert = require("node:assert");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const zlib = require("node:zlib");
const { execFile } = require("node:child_process");
const { promisify } = require("node:util");
const { Worker } = require("node:worker_threads");
const { words, built } = require("words");
const { count } = require("count");

test("the two dependencies", () => {
	assert.strictEqual(count(words("a b, a – ä")).get("a"), 2);
	assert.strictEqual(built(), "words");
});

test("a command of a dependency", async () => {
	const { stdout } = await promisify(execFile)("count-words", ["package.json"]);
	assert.match(stdout, /^package.json \d+\n$/);
});

test("files in the temporary directory", async () => {
	const dir = await fs.promises.mkdtemp(path.join(os.tmpdir(), "report-"));
	const file = path.join(dir, "x.gz");
	const text = "wall ".repeat(100000);
	await fs.promises.writeFile(file, zlib.gzipSync(text));
	assert.strictEqual(zlib.gunzipSync(await fs.promises.readFile(file)).toString(), text);
	await fs.promises.rm(dir, { recursive: true });
});

test("a file that changes is seen", async () => {
	const dir = await fs.promises.mkdtemp(path.join(os.tmpdir(), "report-"));
	const seen = new Promise((resolve) => {
		const watcher = fs.watch(dir, () => resolve(watcher.close()));
	});
	await fs.promises.writeFile(path.join(dir, "new"), "");
	await seen;
	await fs.promises.rm(dir, { recursive: true });
});

test("four workers", async () => {
	const code = `require("worker_threads").parentPort.postMessage(
		Array.from({ length: 1e5 }, (_, i) => i).reduce((a, b) => a + b))`;
	const sums = await Promise.all([1, 2, 3, 4].map(() => new Promise((resolve, reject) =>
		new Worker(code, { eval: true }).on("message", resolve).on("error", reject))));
	assert.deepStrictEqual(sums, Array(4).fill(4999950000));
});
