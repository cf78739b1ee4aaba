// SPDX-License-Identifier: Apache-2.0
// `@langchain/openai`, `@langchain/anthropic`, `@langchain/google-genai`.
import { ChatAnthropic } from "@langchain/anthropic";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatGoogleGenerativeAI } from "@langchain/google-genai";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { PARAMETERS, SCHEMA, done, model } from "./calls.mjs";

const step = tool(async (input) => done(input), { name: "step", description: "takes a step", schema: PARAMETERS });

async function turns(llm, text, isThought) {
	const bound = llm.bindTools([step]), messages = [new HumanMessage(text)];
	let thoughts = 0;
	for (;;) {
		let m = null;
		for await (const part of await bound.stream(messages)) m = m ? m.concat(part) : part;
		thoughts += isThought?.(m) ? 1 : 0;
		if (!m.tool_calls.length) return { text: m.text, thoughts };
		messages.push(m);
		for (const call of m.tool_calls)
			messages.push(new ToolMessage({ content: done(call.args), tool_call_id: call.id, name: call.name }));
	}
}

function client(llm, more = {}) {
	return {
		completion: async (text) => (await llm.invoke(text)).text,
		stream: async (text) => {
			const parts = [];
			for await (const part of await llm.stream(text)) if (part.text) parts.push(part.text);
			return parts;
		},
		tools: async (text) => (await turns(llm, text)).text,
		structured: async (text) => llm.withStructuredOutput(SCHEMA, { name: "stay", method: "jsonSchema" }).invoke(text),
		images: async (text, png) => (await llm.invoke([new HumanMessage({ content: [{ type: "text", text }, { type: "image_url",
			image_url: { url: `data:image/png;base64,${png}` } }] })])).text,
		abort: async (text) => {
			const stop = new AbortController();
			let n = 0;
			try {
				for await (const part of await llm.stream(text, { signal: stop.signal })) if (++n === 10) stop.abort();
			} catch (e) {
				if (!/abort/i.test(`${e.name} ${e.message}`)) throw e;
			}
			return n;
		},
		limited: async (text) => (await llm.invoke(text)).text,
		...more,
	};
}

const configuration = { baseURL: process.env.OPENAI_BASE_URL };
const embeddings = new OpenAIEmbeddings({ model: model.openai, configuration });
export const chat = client(new ChatOpenAI({ model: model.openai, configuration }), {
	embeddings: async (text) => [...(await embeddings.embedQuery(text))] });
const respond = new ChatOpenAI({ model: model.openai, configuration, useResponsesApi: true, zdrEnabled: true,
	modelKwargs: { include: ["reasoning.encrypted_content"] } });
export const responses = client(respond, {
	thinking: (text) => turns(respond, text, (m) => m.additional_kwargs.reasoning ?? m.contentBlocks?.some((b) => b.type === "reasoning")) });
const url = { anthropicApiUrl: process.env.ANTHROPIC_BASE_URL };
const thinker = new ChatAnthropic({ model: model.anthropic, maxTokens: 4096, thinking: { type: "enabled", budget_tokens: 1024 }, ...url });
export const claude = client(new ChatAnthropic({ model: model.anthropic, maxTokens: 2048, ...url }), {
	thinking: (text) => turns(thinker, text, (m) => Array.isArray(m.content) && m.content.some((b) => b.type.endsWith("thinking"))) });
export const gemini = client(new ChatGoogleGenerativeAI({ model: model.google, baseUrl: process.env.GOOGLE_GEMINI_BASE_URL,
	apiKey: process.env.GEMINI_API_KEY }));
