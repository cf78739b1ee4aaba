// SPDX-License-Identifier: Apache-2.0
// `ai` with its three providers. OpenAI's speaks Responses by default: the conversation is not stored, so it is told so.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import * as ai from "ai";
import { PARAMETERS, SCHEMA, TURNS, done, model } from "./calls.mjs";

const { Output, embed, generateText, jsonSchema, streamText, tool } = ai;
const steps = (ai.isStepCount ?? ai.stepCountIs)(TURNS + 5);
const base = process.env.GOOGLE_GEMINI_BASE_URL;
const openai = createOpenAI();
const anthropic = createAnthropic();
const google = createGoogleGenerativeAI({ baseURL: `${base}/v1beta`, apiKey: process.env.GEMINI_API_KEY });

function client(model, embedding, providerOptions, thinking) {
	const tools = { step: tool({ description: "takes a step", inputSchema: jsonSchema(PARAMETERS), execute: async (input) => done(input) }) };
	const ask = (prompt, more) => generateText({ model, prompt, providerOptions, ...more });
	const c = {
		completion: async (text) => (await ask(text)).text,
		stream: async (text) => {
			const parts = [];
			for await (const part of streamText({ model, prompt: text, providerOptions }).textStream) parts.push(part);
			return parts;
		},
		tools: async (text) => (await ask(text, { tools, stopWhen: steps })).text,
		structured: async (text) => (await ask(text, { output: Output.object({ schema: jsonSchema(SCHEMA) }) })).output,
		images: async (text, png) => (await generateText({ model, providerOptions, messages: [{ role: "user", content: [
			{ type: "text", text }, { type: "file", data: png, mediaType: "image/png" }] }] })).text,
		abort: async (text) => {
			const stop = new AbortController();
			let n = 0;
			const r = streamText({ model, prompt: text, providerOptions, abortSignal: stop.signal, onError: () => {} });
			try {
				for await (const part of r.textStream) if (++n === 10) stop.abort();
			} catch (e) {
				if (e.name !== "AbortError") throw e;
			}
			return n;
		},
		limited: async (text) => (await ask(text)).text,
	};
	if (thinking) c.thinking = async (text) => {
		const r = streamText({ model, prompt: text, tools, stopWhen: steps, providerOptions: { ...providerOptions, ...thinking } });
		let thoughts = 0;
		for await (const part of r.fullStream) thoughts += part.type === "reasoning-start";
		return { text: await r.text, thoughts };
	};
	if (embedding) c.embeddings = async (value) => (await embed({ model: embedding, value })).embedding;
	return c;
}

const stateless = { openai: { store: false } };
export const responses = client(openai(model.openai), (openai.embeddingModel ?? openai.textEmbeddingModel)(model.openai), stateless,
	{ openai: { store: false, include: ["reasoning.encrypted_content"] } });
export const chat = client(openai.chat(model.openai), null, {});
export const claude = client(anthropic(model.anthropic), null, {}, { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } });
export const gemini = client(google(model.google), null, {}, { google: { thinkingConfig: { includeThoughts: true } } });
