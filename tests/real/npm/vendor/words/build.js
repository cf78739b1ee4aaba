// SPDX-License-Identifier: Apache-2.0
// An install script, as a package with something to compile has one.
const fs = require("fs");

fs.writeFileSync("built.json", JSON.stringify({ by: process.env.npm_package_name }));
