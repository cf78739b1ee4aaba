// SPDX-License-Identifier: Apache-2.0
// Asks each client for each call; a line CELL for each.
import { ask } from "./calls.mjs";

const clients = {
	"openai, chat": ["./openai.mjs", "chatCompletions"],
	"openai, Responses": ["./openai.mjs", "responses"],
	"@anthropic-ai/sdk": ["./anthropic.mjs", "messages"],
	"@google/genai": ["./genai.mjs", "genai"],
	"ai, OpenAI (Responses)": ["./ai.mjs", "responses"],
	"ai, OpenAI (chat)": ["./ai.mjs", "chat"],
	"ai, Anthropic": ["./ai.mjs", "claude"],
	"ai, Google": ["./ai.mjs", "gemini"],
	"@openai/agents (Responses)": ["./agents.mjs", "responses"],
	"@openai/agents (chat)": ["./agents.mjs", "chat"],
	"@langchain/openai (chat)": ["./langchain.mjs", "chat"],
	"@langchain/openai (Responses)": ["./langchain.mjs", "responses"],
	"@langchain/anthropic": ["./langchain.mjs", "claude"],
	"@langchain/google-genai": ["./langchain.mjs", "gemini"],
};
// what a client leaves behind when its stream is aborted is no other call's
process.on("unhandledRejection", (e) => console.log(`left behind: ${e}`));
const only = process.argv.slice(2);
for (const [name, [file, member]] of Object.entries(clients))
	if (!only.length || only.some((o) => name.includes(o))) await ask(name, (await import(file))[member]);
process.exit(0);
