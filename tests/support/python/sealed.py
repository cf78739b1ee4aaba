#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second implementation of docs/SECRETS.md, from its text: hashlib's scrypt and HMAC, and an
AES-256-GCM written here, slow and plain. It shares no code with secrets/.

    sealed.py vectors docs/SECRETS.md          the known answers in the document are right
    sealed.py open STORE OPENER-FILE ID        the value of a secret in a real store
"""
import hashlib
import hmac
import os
import re
import sys


def sbox():
    p, q, box = 1, 1, [0] * 256
    while True:
        p ^= (p << 1 & 0xFF) ^ (0x1B if p & 0x80 else 0)
        for shift in (1, 2, 4):
            q ^= q << shift & 0xFF
        if q & 0x80:
            q ^= 0x09
        r = lambda x, n: (x << n | x >> (8 - n)) & 0xFF
        box[p] = q ^ r(q, 1) ^ r(q, 2) ^ r(q, 3) ^ r(q, 4) ^ 0x63
        if p == 1:
            break
    box[0] = 0x63
    return box


SBOX = sbox()


def xtime(a):
    return (a << 1 ^ 0x1B) & 0xFF if a & 0x80 else a << 1


def round_keys(key):
    words = [list(key[i:i + 4]) for i in range(0, 32, 4)]
    rcon = 1
    for i in range(8, 60):
        t = list(words[i - 1])
        if i % 8 == 0:
            t = [SBOX[b] for b in t[1:] + t[:1]]
            t[0] ^= rcon
            rcon = xtime(rcon)
        elif i % 8 == 4:
            t = [SBOX[b] for b in t]
        words.append([a ^ b for a, b in zip(words[i - 8], t)])
    return [sum(words[i:i + 4], []) for i in range(0, 60, 4)]


def aes_block(keys, block):
    s = [a ^ b for a, b in zip(block, keys[0])]
    for n, key in enumerate(keys[1:], 1):
        s = [SBOX[b] for b in s]
        s = [s[(i + 4 * (i % 4)) % 16] for i in range(16)]
        if n < 14:
            out = []
            for c in range(0, 16, 4):
                a = s[c:c + 4]
                every = a[0] ^ a[1] ^ a[2] ^ a[3]
                out += [a[i] ^ every ^ xtime(a[i] ^ a[(i + 1) % 4]) for i in range(4)]
            s = out
        s = [a ^ b for a, b in zip(s, key)]
    return bytes(s)


def ghash(h, data):
    y, h = 0, int.from_bytes(h, "big")
    for i in range(0, len(data), 16):
        x, v = y ^ int.from_bytes(data[i:i + 16], "big"), h
        y = 0
        for bit in range(127, -1, -1):
            if x >> bit & 1:
                y ^= v
            v = v >> 1 ^ (0xE1 << 120 if v & 1 else 0)
    return y.to_bytes(16, "big")


def gcm(key, nonce, aad, text, decrypt):
    """(other text, tag)"""
    keys = round_keys(key)
    stream = b"".join(aes_block(keys, nonce + (i + 2).to_bytes(4, "big")) for i in range((len(text) + 15) // 16))
    other = bytes(a ^ b for a, b in zip(text, stream))
    cipher = text if decrypt else other
    pad = lambda b: b + bytes(-len(b) % 16)
    lengths = (8 * len(aad)).to_bytes(8, "big") + (8 * len(cipher)).to_bytes(8, "big")
    s = ghash(aes_block(keys, bytes(16)), pad(aad) + pad(cipher) + lengths)
    return other, bytes(a ^ b for a, b in zip(s, aes_block(keys, nonce + b"\0\0\0\1")))


def store_key(header, opener):
    assert len(header) == 84 and header[:8] == b"LYCHSTOR" and header[8:10] == b"\0\1" and header[11] == 0
    salt = header[24:56]
    n, r, p = (int.from_bytes(header[i:i + 4], "big") for i in (12, 16, 20))
    if header[10] == 1:
        key = hashlib.scrypt(opener, salt=salt, n=1 << n, r=r, p=p, dklen=32, maxmem=1 << 30)
    else:
        assert header[10] == 2 and (n, r, p) == (0, 0, 0)
        prk = hmac.new(salt, bytes.fromhex(opener.decode()), hashlib.sha256).digest()
        key = hmac.new(prk, b"lychgate secret store 1\1", hashlib.sha256).digest()
    _, tag = gcm(key, header[56:68], header[:56], b"", True)
    return key, salt, tag == header[68:84]


def record_aad(start, salt, ident):
    return start + salt + bytes([len(ident)]) + ident


def unseal(key, salt, ident, record):
    assert record[:12] == b"LYCHSECR\0\1\0\0" and int.from_bytes(record[12:16], "big") == len(record) - 44
    value, tag = gcm(key, record[16:28], record_aad(record[:16], salt, ident), record[28:-16], True)
    assert tag == record[-16:], "tag"
    return value


def vectors(path):
    v = {}
    with open(path, encoding="utf-8") as f:
        for m in re.finditer(r"^    (\w+) = ([^\n]*)$", f.read(), re.M):
            v[m[1]] = m[2]
    # the GCM test case 15 of the mode's specification: is this AES right at all?
    k = bytes.fromhex("feffe9928665731c6d6a8f9467308308" * 2)
    n = bytes.fromhex("cafebabefacedbaddecaf888")
    text = bytes.fromhex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                         "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255")
    assert gcm(k, n, b"", text, False)[1].hex() == "b094dac5d93471bdec1a502270e3cc6c"
    for kind in ("scrypt", "hkdf"):
        opener, header = v[kind + "_opener"].encode(), bytes.fromhex(v[kind + "_header"])
        key, salt, ok = store_key(header, opener)
        assert ok and key.hex() == v[kind + "_key"], kind
        value = unseal(key, salt, v["record_id"].encode(), bytes.fromhex(v[kind + "_record"]))
        assert value == v["record_value"].encode(), kind
    print("the known answers are right")


def main():
    if sys.argv[1] == "vectors":
        vectors(sys.argv[2])
        return
    store, opener, ident = sys.argv[2:5]
    read = lambda *p: open(os.path.join(*p), "rb").read()
    key, salt, ok = store_key(read(store, "store.header"), read(opener).rstrip(b"\n"))
    assert ok, "key check"
    sys.stdout.buffer.write(unseal(key, salt, ident.encode(), read(store, ident + ".secret")))


if __name__ == "__main__":
    main()
