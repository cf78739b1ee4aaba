// SPDX-License-Identifier: Apache-2.0
// The npm package `openai`, unmodified, asks a real server of models; EXPECTED is what that server said to who asked it
// directly. A refusal first: of a portal with another key.
import OpenAI from "openai";

let failed = 0;
const check = async (what, act) => {
	try {
		console.log(`ok   ${what}: ${await act()}`);
	} catch (e) {
		failed++;
		console.log(`FAIL ${what}: ${e.stack}`);
	}
};
const equal = (a, b) => {
	if (JSON.stringify(a) !== JSON.stringify(b)) throw new Error(`${JSON.stringify(a)} is not ${JSON.stringify(b)}`);
	return JSON.stringify(a);
};
const expected = JSON.parse(process.env.EXPECTED);
const request = { messages: [{ role: "user", content: "hello" }], max_tokens: 48, temperature: 0, seed: 1 };
const openai = new OpenAI({ maxRetries: 0 });
const chat = (model, more = {}) => openai.chat.completions.create({ ...request, model, ...more });
const refusal = async (model) => {
	try {
		await chat(model);
	} catch (e) {
		return [e.constructor.name, e.status, e.type];
	}
	throw new Error("no error");
};

await check("another key", async () => equal(await refusal("keyless"), ["AuthenticationError", 401, "authentication_error"]));
await check("a completion", async () => {
	const r = await chat("tiny");
	equal([r.usage.prompt_tokens, r.usage.completion_tokens], expected.tokens);
	return equal([r.choices[0].finish_reason, r.choices[0].message.content], ["length", expected.text]);
});
await check("a stream", async () => {
	let text = "", chunks = 0, finish, usage;
	for await (const c of await chat("tiny", { stream: true, stream_options: { include_usage: true } })) {
		text += c.choices[0]?.delta?.content ?? "";
		finish ??= c.choices[0]?.finish_reason ?? undefined;
		usage = c.usage ?? usage;
		chunks++;
	}
	if (chunks < 20) throw new Error(`${chunks} chunks`);
	equal([usage.prompt_tokens, usage.completion_tokens], expected.tokens);
	return `${chunks} chunks, ` + equal([finish, text], ["length", expected.text]);
});
await check("words that end it", async () => {
	const r = await chat("tiny", { stop: [expected.text.slice(10, 14)] });
	return equal([r.choices[0].finish_reason, expected.text.startsWith(r.choices[0].message.content)], ["stop", true]);
});
await check("abort in a stream", async () => {
	const stream = await chat("tiny", { stream: true, max_tokens: 3000 });
	let n = 0;
	for await (const c of stream) if (++n === 10) stream.controller.abort();
	return n >= 10 && n < 3000 ? "aborted" : equal(n, 10);
});
await check("and an answer after it", async () => equal((await chat("tiny")).choices[0].message.content, expected.text));
console.log(`${failed} failed`);
process.exit(failed ? 1 : 0);
