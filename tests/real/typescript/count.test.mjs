import assert from "node:assert";
import test from "node:test";
import { count } from "./out/count.js";

test("counts", () => assert.deepEqual(count("x y x")[0], { word: "x", n: 2 }));
