// SPDX-License-Identifier: Apache-2.0
// The npm packages `openai` and `@anthropic-ai/sdk`, unmodified and configured by nothing but their own
// variables: an answer, a stream, a tool, a 429 that passes, one that does not, and an abort; the Responses API,
// embeddings, a count of tokens and one model. A line for each.
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";

let failed = 0;
let begun = 0;
const check = async (what, act) => {
	begun++;
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
const user = (content) => [{ role: "user", content }];
const model = { openai: process.env.MODEL_OPENAI, anthropic: process.env.MODEL_ANTHROPIC };
const id = `${process.pid}-${Date.now()}`;

const openai = new OpenAI();
const chat = (content, more = {}, options = {}) =>
	openai.chat.completions.create({ model: model.openai, messages: user(content), ...more }, options);

await check("openai: an answer", async () =>
	equal((await chat("hello there")).choices[0].message.content, "you said: hello there"));
await check("openai: usage", async () => equal((await chat("hello")).usage.prompt_tokens, 12));
await check("openai: a stream", async () => {
	let text = "", chunks = 0;
	for await (const c of await chat("a stream, please", { stream: true })) {
		text += c.choices[0]?.delta?.content ?? "";
		chunks++;
	}
	if (chunks < 5) throw new Error(`${chunks} chunks`);
	return equal(text, "you said: a stream, please");
});
await check("openai: a tool", async () => {
	const tools = [{ type: "function", function: { name: "weather", parameters: {
		type: "object", properties: { city: { type: "string" } } } } }];
	const first = await chat("what is the weather?", { tools });
	const call = first.choices[0].message.tool_calls[0];
	equal([call.function.name, JSON.parse(call.function.arguments)], ["weather", { city: "Trier" }]);
	const second = await openai.chat.completions.create({ model: model.openai, tools, messages: [
		...user("what is the weather?"), first.choices[0].message,
		{ role: "tool", tool_call_id: call.id, content: "rain" }] });
	return equal(second.choices[0].message.content, "the tool said rain");
});
await check("openai: a 429 that passes", async () =>
	equal((await chat(`once o${id}`)).choices[0].message.content, `you said: once o${id}`));
await check("openai: a 429 that stays", async () => {
	try {
		await chat("busy", {}, { maxRetries: 0 });
	} catch (e) {
		return equal([e.constructor.name, e.status, e.headers.get("retry-after")], ["RateLimitError", 429, "1"]);
	}
	throw new Error("no error");
});
await check("openai: abort in a stream", async () => {
	const stream = await chat("endless", { stream: true });
	let n = 0;
	for await (const c of stream) if (++n === 10) stream.controller.abort();
	return n >= 10 ? "aborted" : equal(n, 10);
});
if (!process.env.NO_ECHO) await check("openai: nothing of the key comes back", async () => {
	const text = (await chat("echo")).choices[0].message.content;
	let streamed = "";
	for await (const c of await chat("echo", { stream: true })) streamed += c.choices[0]?.delta?.content ?? "";
	console.log(`echo ${text}\necho ${streamed}`);
	return "shown for the judge";
});

// The Responses API, embeddings and one model. Twice what is refused on purpose: an SDK shows it as it is.
const respond = (input, more = {}) => openai.responses.create({ model: model.openai, input, ...more });
if (!process.env.NO_RULES) for (const [what, more] of [["store", { store: true }], ["a search", { tools: [{ type: "web_search" }] }]])
	await check(`openai: ${what} is refused`, async () => {
		try {
			await respond("hello", more);
		} catch (e) {
			return equal([e.constructor.name, e.status, e.code], ["BadRequestError", 400, "LYCH-BROKER-003"]);
		}
		throw new Error("no error");
	});
await check("openai: a response", async () => equal((await respond("hello there")).output_text, "you said: hello there"));
await check("openai: a response as a stream", async () => {
	let text = "", deltas = 0;
	const stream = openai.responses.stream({ model: model.openai, input: "a stream, please" });
	for await (const e of stream) if (e.type === "response.output_text.delta") {
		text += e.delta;
		deltas++;
	}
	if (deltas < 5) throw new Error(`${deltas} deltas`);
	equal(text, (await stream.finalResponse()).output_text);
	return equal(text, "you said: a stream, please");
});
for (const streamed of [false, true])
	await check(`openai: a tool of a response${streamed ? ", streamed" : ""}`, async () => {
		const more = { store: false, include: ["reasoning.encrypted_content"], tools: [{ type: "function", name: "weather",
			strict: true, parameters: { type: "object", properties: { city: { type: "string" } } } }] };
		const input = [{ role: "user", content: "what is the weather?" }];
		const first = streamed
			? await openai.responses.stream({ model: model.openai, input, ...more }).finalResponse()
			: await respond(input, more);
		const call = first.output.find((item) => item.type === "function_call");
		equal([call.name, JSON.parse(call.arguments)], ["weather", { city: "Trier" }]);
		// what came goes back as it came, but for what the SDK itself has put there
		const output = first.output.map(({ parsed_arguments, ...item }) => item);
		const second = await respond([...input, ...output,
			{ type: "function_call_output", call_id: call.call_id, output: "rain" }], more);
		return equal(second.output_text, "the tool said rain");
	});
await check("openai: embeddings", async () =>
	equal((await openai.embeddings.create({ model: model.openai, input: ["a", "b"] })).data.map((d) => [...d.embedding]),
		[[0.5, -1, 0.25], [0.5, -1, 0.25]]));
await check("openai: one model", async () => equal((await openai.models.retrieve(model.openai)).object, "model"));

const anthropic = new Anthropic();
const say = (content, more = {}, options = {}) =>
	anthropic.messages.create({ model: model.anthropic, max_tokens: 64, messages: user(content), ...more }, options);

await check("anthropic: an answer", async () =>
	equal((await say("hello there")).content[0].text, "you said: hello there"));
await check("anthropic: a stream", async () => {
	const stream = anthropic.messages.stream({ model: model.anthropic, max_tokens: 64, messages: user("a stream, please") });
	let parts = 0;
	stream.on("text", () => parts++);
	const message = await stream.finalMessage();
	if (parts < 5) throw new Error(`${parts} parts`);
	return equal(message.content[0].text, "you said: a stream, please");
});
await check("anthropic: a tool", async () => {
	const tools = [{ name: "weather", input_schema: { type: "object", properties: { city: { type: "string" } } } }];
	const first = await say("what is the weather?", { tools });
	const call = first.content[0];
	equal([first.stop_reason, call.name, call.input], ["tool_use", "weather", { city: "Trier" }]);
	const second = await anthropic.messages.create({ model: model.anthropic, max_tokens: 64, tools, messages: [
		...user("what is the weather?"), { role: "assistant", content: first.content },
		{ role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "rain" }] }] });
	return equal(second.content[0].text, "the tool said rain");
});
// It asks for a conversation that the server holds, is told that there is none, and sends all of it.
await check("anthropic: a tool runner", async () => {
	const tools = [{ name: "weather", input_schema: { type: "object", properties: { city: { type: "string" } } },
		parse: (input) => input, run: (input) => `rain in ${input.city}` }];
	const last = await anthropic.beta.messages.toolRunner({ model: model.anthropic, max_tokens: 64, tools,
		messages: user("what is the weather?") });
	return equal(last.content[0].text, "the tool said rain in Trier");
});
await check("anthropic: a count of tokens", async () => equal(typeof (await anthropic.messages.countTokens({
	model: model.anthropic, messages: user("hello") })).input_tokens, "number"));
await check("anthropic: a beta that is no name", async () => {
	try {
		await say("hello", {}, { headers: { "anthropic-beta": "a b" }, maxRetries: 0 });
	} catch (e) {
		return equal([e.constructor.name, e.status, e.error.error.code], ["BadRequestError", 400, "LYCH-BROKER-002"]);
	}
	throw new Error("no error");
});
await check("anthropic: betas and a version", async () => {
	const r = await anthropic.beta.messages.create({ model: model.anthropic, max_tokens: 64, messages: user("with betas"),
		betas: ["context-1m-2025-08-07", "token-counting-2024-11-01"] }, { headers: { "anthropic-version": "2023-01-01" } });
	return equal(r.content[0].text, "you said: with betas");
});
await check("anthropic: a 429 that passes", async () =>
	equal((await say(`once a${id}`)).content[0].text, `you said: once a${id}`));
await check("anthropic: a 429 that stays", async () => {
	try {
		await say("busy", {}, { maxRetries: 0 });
	} catch (e) {
		return equal([e.constructor.name, e.status, e.headers.get("retry-after")], ["RateLimitError", 429, "1"]);
	}
	throw new Error("no error");
});
if (!process.env.NO_ECHO) await check("anthropic: nothing of the key comes back", async () => {
	const text = (await say("echo")).content[0].text;
	const message = await anthropic.messages.stream({ model: model.anthropic, max_tokens: 64, messages: user("echo") }).finalMessage();
	console.log(`echo ${text}\necho ${message.content[0].text}`);
	return "shown for the judge";
});
await check("anthropic: abort in a stream", async () => {
	const stream = anthropic.messages.stream({ model: model.anthropic, max_tokens: 64, messages: user("endless") });
	let n = 0;
	stream.on("text", () => { if (++n === 10) stream.abort(); });
	try {
		await stream.done();
	} catch (e) {
		return equal(e.constructor.name, "APIUserAbortError");
	}
	throw new Error("no abort");
});
console.log(`${begun} cases`);
console.log(`${failed} failed`);
process.exit(failed ? 1 : 0);
