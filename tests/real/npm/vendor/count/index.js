// SPDX-License-Identifier: Apache-2.0
exports.count = (list) => list.reduce((m, w) => m.set(w, (m.get(w) || 0) + 1), new Map());
