// SPDX-License-Identifier: Apache-2.0
// What each client is asked for, and how that is judged: a client is an object with a function for each call that it has, which
// returns what came. The stand-in (tests/support/python/strict/) answers by the words.
export const NAMES = ["completion", "stream", "tools", "structured", "images", "embeddings", "thinking", "count", "abort", "limited"];
export const TURNS = 40;
export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
export const SEEN = ", and saw image/png 6b7fa434f92a8b80";
export const model = { openai: process.env.MODEL_OPENAI, anthropic: process.env.MODEL_ANTHROPIC, google: process.env.MODEL_GEMINI };

// Of structured output: an object of it.
export const SCHEMA = { type: "object", additionalProperties: false, required: ["city", "days"],
	properties: { city: { type: "string" }, days: { type: "integer" } } };
// Of the tool: what it asks for comes back in what it says.
export const PARAMETERS = { type: "object", additionalProperties: false, required: ["n", "note"],
	properties: { n: { type: "integer" }, note: { type: "string" } } };
export const NOTE = "“é” \\ \" \n\t€";
export const done = ({ n, note }) => {
	same(note, NOTE);
	return `step ${n} is done: ${note}`;
};

export const same = (a, b) => {
	if (JSON.stringify(a) !== JSON.stringify(b)) throw new Error(`${JSON.stringify(a)} is not ${JSON.stringify(b)}`);
};
export const is = (condition, what) => {
	if (!condition) throw new Error(what);
};
let id = 0;
export const once = () => `once ${process.pid}-${++id}`;

const asked = {
	completion: async (c) => same(await c.completion("hello “there”"), "you said: hello “there”"),
	stream: async (c) => {
		// more than two of the longest pieces that the stand-in draws
		const long = "a stream, 1 € of it please, and by no means all of it at once";
		const parts = await c.stream(long);
		is(parts.length > 2, `${parts.length} parts`);
		same(parts.join(""), `you said: ${long}`);
	},
	tools: async (c) => same(await c.tools(`turns ${TURNS}`), `done after ${TURNS} calls`),
	structured: async (c) => same(await c.structured("which city?"), { city: "Trier", days: 7 }),
	images: async (c) => same(await c.images("look", PNG), `you said: look${SEEN}`),
	embeddings: async (c) => same(await c.embeddings("a word"), [0.5, -1, 0.25]),
	thinking: async (c) => {
		const { text, thoughts } = await c.thinking("turns 6");
		same(text, "done after 6 calls");
		is(thoughts > 0, "no thoughts came");
	},
	count: async (c) => is((await c.count("count this")) > 0, "no count"),
	// whoever leaves a stream behind is told so by an error, or by its end
	abort: async (c) => is((await c.abort("endless")) >= 5, "no stream"),
	limited: async (c) => same(await c.limited(once()), "again after long enough"),
};

export async function ask(name, client) {
	for (const call of NAMES) {
		let cell = "–", detail = "";
		if (client[call]) {
			try {
				await asked[call](client);
				cell = "ok";
			} catch (e) {
				cell = "FAIL";
				detail = `${e.stack ?? e}`;
			}
		}
		console.log(`CELL ${JSON.stringify([name, call, cell])}`);
		if (detail) console.log(`${name} ${call}: ${detail}`);
	}
}
