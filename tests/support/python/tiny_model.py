#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tiny_model.py FILE: a language model for a real server of models to serve in tests: llama architecture, random
weights from a fixed seed, half a megabyte, in the file format GGUF (version 3). It speaks nonsense, and always the
same. A token is a printable character (or a byte, for what else a text may hold), so every text can be read; only
characters are ever said. Standard library alone; the same bytes with every Python 3."""
import random, struct, sys

WIDTH, LAYERS, HEADS, KV_HEADS, CONTEXT = 64, 2, 4, 2, 4096
PRINTABLE = range(0x20, 0x7F)
TEMPLATE = ("{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}")
# (text, score, kind): unknown, control, byte and normal tokens, as sentencepiece has them; the blank is U+2581.
TOKENS = [("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3)]
TOKENS += [(f"<0x{b:02X}>", 0, 6) for b in range(256)]
FIRST_SAID = len(TOKENS)
TOKENS += [(chr(c).replace(" ", "\u2581"), -1 - i, 1) for i, c in enumerate(PRINTABLE)]


def string(s):
    data = s.encode()
    return struct.pack("<Q", len(data)) + data


def scalar(v):
    """The format's number for a type, and the value in it."""
    if isinstance(v, bool):
        return 7, struct.pack("<?", v)
    if isinstance(v, int):
        return 4, struct.pack("<I", v)
    if isinstance(v, float):
        return 6, struct.pack("<f", v)
    return 8, string(v)


def entry(key, v):
    if not isinstance(v, list):
        kind, data = scalar(v)
        return string(key) + struct.pack("<I", kind) + data
    kind = scalar(v[0])[0]
    return string(key) + struct.pack("<IIQ", 9, kind, len(v)) + b"".join(scalar(x)[1] for x in v)


def entries():
    llama = {"context_length": CONTEXT, "embedding_length": WIDTH, "block_count": LAYERS,
             "feed_forward_length": 2 * WIDTH, "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS,
             "attention.layer_norm_rms_epsilon": 1e-5, "rope.dimension_count": WIDTH // HEADS,
             "vocab_size": len(TOKENS)}
    tokenizer = {"ggml.model": "llama", "ggml.tokens": [t for t, _, _ in TOKENS],
                 "ggml.scores": [float(s) for _, s, _ in TOKENS], "ggml.token_type": None,
                 "ggml.unknown_token_id": 0, "ggml.bos_token_id": 1, "ggml.eos_token_id": 2,
                 "ggml.add_bos_token": True, "ggml.add_space_prefix": False, "chat_template": TEMPLATE}
    out = [entry("general.architecture", "llama"), entry("general.name", "tiny")]
    out += [entry("llama." + k, v) for k, v in llama.items()]
    for k, v in tokenizer.items():
        if v is None:  # the one list of signed numbers
            kinds = b"".join(struct.pack("<i", kind) for _, _, kind in TOKENS)
            out.append(string("tokenizer." + k) + struct.pack("<IIQ", 9, 5, len(TOKENS)) + kinds)
        else:
            out.append(entry("tokenizer." + k, v))
    return out


def shapes():
    """(name, rows, columns); no rows: a vector of ones."""
    kv = WIDTH // HEADS * KV_HEADS
    yield "token_embd.weight", len(TOKENS), WIDTH
    for i in range(LAYERS):
        for name, rows, columns in (("attn_norm", 0, WIDTH), ("attn_q", WIDTH, WIDTH), ("attn_k", kv, WIDTH),
                                    ("attn_v", kv, WIDTH), ("attn_output", WIDTH, WIDTH), ("ffn_norm", 0, WIDTH),
                                    ("ffn_gate", 2 * WIDTH, WIDTH), ("ffn_up", 2 * WIDTH, WIDTH),
                                    ("ffn_down", WIDTH, 2 * WIDTH)):
            yield f"blk.{i}.{name}.weight", rows, columns
    yield "output_norm.weight", 0, WIDTH
    yield "output.weight", len(TOKENS), WIDTH


def weights(dice, name, rows, columns):
    if rows == 0:
        return [1.0] * columns
    # wide enough that what was said before decides what is said next
    spread = 3.0 * columns ** -0.5
    out = [(2 * dice.random() - 1) * spread for _ in range(rows * columns)]
    if name == "output.weight":  # nothing but characters
        out[:FIRST_SAID * columns] = [0.0] * (FIRST_SAID * columns)
    return out


def aligned(data):
    return data + b"\0" * (-len(data) % 32)


def main():
    dice, table, blob = random.Random("tiny"), [], b""
    for name, rows, columns in shapes():
        values = weights(dice, name, rows, columns)
        sides = (columns, rows) if rows else (columns,)
        table.append(string(name) + struct.pack(f"<I{len(sides)}QIQ", len(sides), *sides, 0, len(blob)))
        blob += aligned(struct.pack(f"<{len(values)}f", *values))
    head = entries()
    with open(sys.argv[1], "wb") as f:
        f.write(aligned(b"GGUF" + struct.pack("<IQQ", 3, len(table), len(head)) + b"".join(head + table)) + blob)


main()
