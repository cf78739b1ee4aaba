// SPDX-License-Identifier: Apache-2.0
// `openai`: chat completions, and Responses without a stored conversation.
import OpenAI from "openai";
import { PARAMETERS, SCHEMA, done, model } from "./calls.mjs";

const openai = new OpenAI();
const user = (content) => [{ role: "user", content }];
const chat = (messages, more, options) => openai.chat.completions.create({ model: model.openai, messages, ...more }, options);
const url = (png) => `data:image/png;base64,${png}`;

export const chatCompletions = {
	completion: async (text) => (await chat(user(text))).choices[0].message.content,
	stream: async (text) => {
		const parts = [];
		for await (const c of await chat(user(text), { stream: true }))
			if (c.choices[0]?.delta?.content) parts.push(c.choices[0].delta.content);
		return parts;
	},
	tools: async (text) => {
		const tools = [{ type: "function", function: { name: "step", parameters: PARAMETERS, strict: true } }];
		const messages = user(text);
		for (;;) {
			const { message } = (await openai.chat.completions.stream({ model: model.openai, messages, tools }).finalChatCompletion()).choices[0];
			if (!message.tool_calls?.length) return message.content;
			// `parsed` and `parsed_arguments` are the SDK's own, and no words of the API
			messages.push({ role: "assistant", content: message.content, tool_calls: message.tool_calls.map(({ id, type, function: f }) =>
				({ id, type, function: { name: f.name, arguments: f.arguments } })) });
			for (const call of message.tool_calls)
				messages.push({ role: "tool", tool_call_id: call.id, content: done(JSON.parse(call.function.arguments)) });
		}
	},
	structured: async (text) => JSON.parse((await chat(user(text), { response_format: { type: "json_schema",
		json_schema: { name: "stay", strict: true, schema: SCHEMA } } })).choices[0].message.content),
	images: async (text, png) => (await chat(user([{ type: "text", text }, { type: "image_url", image_url: { url: url(png) } }])))
		.choices[0].message.content,
	embeddings: async (text) => [...(await openai.embeddings.create({ model: model.openai, input: text })).data[0].embedding],
	abort: async (text) => {
		const stream = await chat(user(text), { stream: true });
		let n = 0;
		for await (const c of stream) if (++n === 10) stream.controller.abort();
		return n;
	},
	limited: async (text) => (await chat(user(text))).choices[0].message.content,
};

const respond = (input, more, options) => openai.responses.create({ model: model.openai, input, store: false, ...more }, options);
const tool = { type: "function", name: "step", parameters: PARAMETERS, strict: true };
async function turns(text) {
	const input = user(text);
	let thoughts = 0;
	for (;;) {
		const r = await openai.responses.stream({ model: model.openai, input, store: false, tools: [tool],
			include: ["reasoning.encrypted_content"] }).finalResponse();
		thoughts += r.output.filter((item) => item.type === "reasoning" && item.encrypted_content).length;
		const calls = r.output.filter((item) => item.type === "function_call");
		if (!calls.length) return { text: r.output_text, thoughts };
		input.push(...r.output.map(({ parsed_arguments, ...item }) => item));
		for (const call of calls)
			input.push({ type: "function_call_output", call_id: call.call_id, output: done(JSON.parse(call.arguments)) });
	}
}
export const responses = {
	completion: async (text) => (await respond(text)).output_text,
	stream: async (text) => {
		const parts = [];
		for await (const e of await respond(text, { stream: true })) if (e.type === "response.output_text.delta") parts.push(e.delta);
		return parts;
	},
	tools: async (text) => (await turns(text)).text,
	structured: async (text) => JSON.parse((await respond(text, { text: { format: { type: "json_schema", name: "stay", strict: true,
		schema: SCHEMA } } })).output_text),
	images: async (text, png) => (await respond(user([{ type: "input_text", text }, { type: "input_image", image_url: url(png),
		detail: "auto" }]))).output_text,
	thinking: turns,
	abort: async (text) => {
		const stream = await respond(text, { stream: true });
		let n = 0;
		for await (const e of stream) if (++n === 10) stream.controller.abort();
		return n;
	},
	limited: async (text) => (await respond(text)).output_text,
};
