// SPDX-License-Identifier: Apache-2.0
exports.words = (text) => text.match(/[\p{L}\p{N}]+/gu) || [];
exports.built = () => require("./built.json").by;
