// SPDX-License-Identifier: Apache-2.0
const test = require("node:test");
const assert = require("node:assert");
const http = require("node:http");
const net = require("node:net");
const dns = require("node:dns/promises");
const { words } = require("words");

const listen = (server, ...where) => new Promise((resolve, reject) =>
	server.on("error", reject).listen(...where, () => resolve(server.address())));

test("a server and fetch", async () => {
	const server = http.createServer((request, answer) => {
		let body = "";
		request.on("data", (d) => (body += d));
		request.on("end", () => answer.end(JSON.stringify(words(body))));
	});
	const { port } = await listen(server, 0, "127.0.0.1");
	const answer = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: "one two" });
	assert.deepStrictEqual(await answer.json(), ["one", "two"]);
	server.closeAllConnections();
	server.close();
});

test("localhost is a name", async () => {
	const { address } = await dns.lookup("localhost");
	assert.ok(["127.0.0.1", "::1"].includes(address), address);
});

test("a unix socket", async () => {
	const server = net.createServer((peer) => peer.end("hello"));
	await listen(server, "test.sock");
	let text = "";
	for await (const data of net.connect("test.sock")) text += data;
	assert.strictEqual(text, "hello");
	server.close();
});
