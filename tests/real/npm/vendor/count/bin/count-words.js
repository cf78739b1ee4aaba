#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
const fs = require("fs");
const { count } = require("..");

for (const name of process.argv.slice(2))
	console.log(name, count(fs.readFileSync(name, "utf8").split(/\s+/)).size);
