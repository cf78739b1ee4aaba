// SPDX-License-Identifier: Apache-2.0
// `@openai/agents`: over Responses, its default, without a stored conversation, and over chat completions. Its traces go to
// OpenAI's own host, so they are off.
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from "@openai/agents";
import { PARAMETERS, TURNS, done, model } from "./calls.mjs";
import { z } from "zod";

setTracingDisabled(true);
const step = tool({ name: "step", description: "takes a step", parameters: PARAMETERS, strict: true, execute: async (input) => done(input) });

function client(useResponses) {
	const runner = new Runner({ modelProvider: new OpenAIProvider({ useResponses }), tracingDisabled: true });
	const modelSettings = useResponses ? { store: false, providerData: { include: ["reasoning.encrypted_content"] } } : {};
	const agent = (more) => new Agent({ name: "stayer", instructions: "Be brief.", model: model.openai, modelSettings, ...more });
	const run = (input, more, options) => runner.run(agent(more), input, { maxTurns: TURNS + 5, ...options });
	const c = {
		completion: async (text) => (await run(text)).finalOutput,
		stream: async (text) => {
			const parts = [], r = await run(text, {}, { stream: true });
			for await (const part of r.toTextStream()) parts.push(part);
			await r.completed;
			return parts;
		},
		tools: async (text) => (await run(text, { tools: [step] })).finalOutput,
		structured: async (text) => (await run(text, { outputType: z.object({ city: z.string(), days: z.int() }) })).finalOutput,
		images: async (text, png) => (await run([{ role: "user", content: [{ type: "input_text", text }, { type: "input_image",
			image: `data:image/png;base64,${png}` }] }])).finalOutput,
		abort: async (text) => {
			const stop = new AbortController();
			let n = 0;
			try {
				const r = await run(text, {}, { stream: true, signal: stop.signal });
				for await (const part of r.toTextStream()) if (++n === 10) stop.abort();
			} catch (e) {
				if (!/abort/i.test(`${e.name} ${e.message}`)) throw e;
			}
			return n;
		},
		limited: async (text) => (await run(text)).finalOutput,
	};
	if (useResponses) c.thinking = async (text) => {
		const r = await run(text, { tools: [step] });
		return { text: r.finalOutput, thoughts: r.newItems.filter((item) => item.type === "reasoning_item").length };
	};
	return c;
}
export const responses = client(true);
export const chat = client(false);
