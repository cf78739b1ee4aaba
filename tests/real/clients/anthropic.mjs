// SPDX-License-Identifier: Apache-2.0
// `@anthropic-ai/sdk`: messages.
import Anthropic from "@anthropic-ai/sdk";
import { PARAMETERS, SCHEMA, done, model } from "./calls.mjs";

const anthropic = new Anthropic();
const user = (content) => [{ role: "user", content }];
const say = (content, more) => anthropic.messages.create({ model: model.anthropic, max_tokens: 2048, messages: user(content), ...more });

async function turns(text, more = {}) {
	const messages = user(text), tools = [{ name: "step", description: "takes a step", input_schema: PARAMETERS }];
	let thoughts = 0;
	for (;;) {
		const m = await anthropic.messages.stream({ model: model.anthropic, max_tokens: 4096, messages, tools, ...more }).finalMessage();
		thoughts += m.content.filter((b) => b.type.endsWith("thinking")).length;
		if (m.stop_reason !== "tool_use") return { text: m.content.at(-1).text, thoughts };
		messages.push({ role: "assistant", content: m.content }, { role: "user", content: m.content.filter((b) => b.type === "tool_use")
			.map((b) => ({ type: "tool_result", tool_use_id: b.id, content: done(b.input) })) });
	}
}

export const messages = {
	completion: async (text) => (await say(text)).content[0].text,
	stream: async (text) => {
		const parts = [];
		await anthropic.messages.stream({ model: model.anthropic, max_tokens: 64, messages: user(text) }).on("text", (t) => parts.push(t)).done();
		return parts;
	},
	tools: async (text) => (await turns(text)).text,
	structured: async (text) => JSON.parse((await say(text, { output_config: { format: { type: "json_schema", schema: SCHEMA } } })).content[0].text),
	images: async (text, png) => (await say([{ type: "text", text }, { type: "image", source: { type: "base64", media_type: "image/png",
		data: png } }])).content[0].text,
	thinking: async (text) => turns(text, { thinking: { type: "enabled", budget_tokens: 1024 } }),
	count: async (text) => (await anthropic.messages.countTokens({ model: model.anthropic, messages: user(text) })).input_tokens,
	abort: async (text) => {
		const stream = anthropic.messages.stream({ model: model.anthropic, max_tokens: 64, messages: user(text) });
		let n = 0;
		stream.on("text", () => { if (++n === 10) stream.abort(); });
		await stream.done().catch((e) => { if (e.constructor.name !== "APIUserAbortError") throw e; });
		return n;
	},
	limited: async (text) => (await say(text)).content[0].text,
};
