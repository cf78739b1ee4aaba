// SPDX-License-Identifier: Apache-2.0
// `@google/genai`.
import { GoogleGenAI } from "@google/genai";
import { PARAMETERS, SCHEMA, done, model } from "./calls.mjs";

// the SDK tries again only where it is told to
const ai = new GoogleGenAI({ httpOptions: { retryOptions: { attempts: 3 } } });
const ask = (contents, config = {}) => ai.models.generateContent({ model: model.google, contents, config });

async function turns(text, more = {}) {
	const chat = ai.chats.create({ model: model.google, config: { tools: [{ functionDeclarations: [{ name: "step",
		parametersJsonSchema: PARAMETERS }] }], ...more } });
	let message = text, thoughts = 0;
	for (;;) {
		let said = "", calls = [];
		for await (const c of await chat.sendMessageStream({ message })) {
			for (const p of c.candidates[0].content?.parts ?? []) {
				if (p.thought) thoughts++;
				else said += p.text ?? "";
			}
			calls.push(...c.functionCalls ?? []);
		}
		if (!calls.length) return { text: said, thoughts };
		message = calls.map(({ id, name, args }) => ({ functionResponse: { id, name, response: { output: done(args) } } }));
	}
}

export const genai = {
	completion: async (text) => (await ask(text)).text,
	stream: async (text) => {
		const parts = [];
		for await (const c of await ai.models.generateContentStream({ model: model.google, contents: text })) if (c.text) parts.push(c.text);
		return parts;
	},
	tools: async (text) => (await turns(text)).text,
	structured: async (text) => JSON.parse((await ask(text, { responseMimeType: "application/json", responseJsonSchema: SCHEMA })).text),
	images: async (text, png) => (await ask([{ role: "user", parts: [{ text }, { inlineData: { mimeType: "image/png", data: png } }] }])).text,
	thinking: (text) => turns(text, { thinkingConfig: { includeThoughts: true } }),
	count: async (text) => (await ai.models.countTokens({ model: model.google, contents: text })).totalTokens,
	abort: async (text) => {
		const stop = new AbortController();
		let n = 0;
		try {
			for await (const c of await ai.models.generateContentStream({ model: model.google, contents: text,
				config: { abortSignal: stop.signal } })) if (++n === 10) stop.abort();
		} catch (e) {
			if (e.name !== "AbortError") throw e;
		}
		return n;
	},
	limited: async (text) => (await ask(text)).text,
};
