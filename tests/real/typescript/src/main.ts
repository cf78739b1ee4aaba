import { count } from "./count.js";

declare const console: { log(text: string): void };
console.log(JSON.stringify(count("a b a")));
