// SPDX-License-Identifier: Apache-2.0
// The npm package `@google/genai`, unmodified and configured by nothing but its own variables: an answer, a stream,
// thoughts, a chat with a tool whose call goes back with its signature, a schema, a count of tokens, models, a 429, an
// abort, and what is refused. A line for each.
import { GoogleGenAI } from "@google/genai";

let failed = 0;
const check = async (what, act) => {
	try {
		console.log(`ok   gemini: ${what}: ${await act()}`);
	} catch (e) {
		failed++;
		console.log(`FAIL gemini: ${what}: ${e.stack}`);
	}
};
const equal = (a, b) => {
	if (JSON.stringify(a) !== JSON.stringify(b)) throw new Error(`${JSON.stringify(a)} is not ${JSON.stringify(b)}`);
	return JSON.stringify(a);
};
const model = process.env.MODEL_GEMINI;
const ai = new GoogleGenAI({});
const ask = (contents, config = {}) => ai.models.generateContent({ model, contents, config });
const declaration = { name: "weather", description: "the weather of a city", parametersJsonSchema: {
	type: "object", properties: { city: { type: "string" } } } };

if (!process.env.NO_RULES) for (const [what, config] of [["a search", { tools: [{ googleSearch: {} }] }],
	["a cache", { cachedContent: "cachedContents/x" }]])
	await check(`${what} is refused`, async () => {
		try {
			await ask("hello", config);
		} catch (e) {
			return equal([e.name, e.status, e.message.includes("LYCH-BROKER-003")], ["ApiError", 400, true]);
		}
		throw new Error("no error");
	});
await check("an answer", async () => equal((await ask("hello there")).text, "you said: hello there"));
await check("usage", async () => equal((await ask("hello")).usageMetadata.promptTokenCount, 12));
await check("a schema and settings", async () => equal((await ask("hello", { temperature: 0.5, topK: 3, seed: 7,
	systemInstruction: "be brief", stopSequences: ["x"], responseMimeType: "application/json",
	responseJsonSchema: { type: "object" }, safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT",
		threshold: "BLOCK_ONLY_HIGH" }] })).text, "you said: hello"));
await check("a picture", async () => equal((await ask([{ role: "user", parts: [{ text: "look" },
	{ inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } }] }])).text, "you said: look"));
await check("a stream with thoughts", async () => {
	let text = "", thoughts = "", chunks = 0;
	for await (const c of await ai.models.generateContentStream({ model, contents: "a stream, please",
		config: { thinkingConfig: { includeThoughts: true } } })) {
		for (const p of c.candidates[0].content.parts) if (p.thought) thoughts += p.text; else text += p.text;
		chunks++;
	}
	if (chunks < 8) throw new Error(`${chunks} chunks`);
	return equal([text, thoughts], ["you said: a stream, please", "thinking it over, a stream, please"]);
});
for (const streamed of [false, true])
	await check(`a tool in a chat${streamed ? ", streamed" : ""}`, async () => {
		const chat = ai.chats.create({ model, config: { tools: [{ functionDeclarations: [declaration] }] } });
		const message = "what is the weather?";
		let calls;
		if (streamed) {
			for await (const c of await chat.sendMessageStream({ message })) calls = calls ?? c.functionCalls;
		} else {
			calls = (await chat.sendMessage({ message })).functionCalls;
		}
		equal([calls[0].name, calls[0].args], ["weather", { city: "Trier" }]);
		// the SDK keeps the turn as it came, with the call's id and signature
		const last = await chat.sendMessage({ message: [{ functionResponse: { id: calls[0].id, name: calls[0].name,
			response: { output: "rain" } } }] });
		return equal(last.text, 'the tool said {"output": "rain"}');
	});
await check("a count of tokens", async () => equal(typeof (await ai.models.countTokens({ model, contents: "hello" })).totalTokens,
	"number"));
if (!process.env.NO_RULES) {
	await check("one model", async () => equal((await ai.models.get({ model })).name, `models/${model}`));
	await check("models", async () => {
		const names = [];
		for await (const m of await ai.models.list()) names.push(m.name);
		return equal(names, [`models/${model}`]);
	});
}
await check("a 429", async () => {
	try {
		await ask("busy");
	} catch (e) {
		return equal([e.name, e.status, JSON.parse(e.message).error.status], ["ApiError", 429, "RESOURCE_EXHAUSTED"]);
	}
	throw new Error("no error");
});
await check("abort in a stream", async () => {
	const stop = new AbortController();
	let n = 0;
	try {
		for await (const c of await ai.models.generateContentStream({ model, contents: "endless",
			config: { abortSignal: stop.signal } })) if (++n === 10) stop.abort();
	} catch (e) {
		return equal([n >= 10, e.name], [true, "AbortError"]);
	}
	throw new Error("no abort");
});
console.log(`${failed} failed`);
process.exit(failed ? 1 : 0);
