// Some 3 GiB of it, up to 160 MiB at a time alive.
let kept = [];
for (let i = 0; i < 400000; i++) {
	kept.push(new Array(1000).fill(i));
	if (kept.length > 20000) kept = [];
}
console.log("garbage made");
