#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A tomb's own secrets, from the text of docs/SECRETS.md; it shares no code with the product.

    tomb_secret.py db|work MASTER NAME GENERATION   the secret
    tomb_secret.py make DIR NAME[:GENERATION]...    the three files of each tomb, beside the masters in DIR
    tomb_secret.py vectors docs/SECRETS.md          the known answers in the document are right
"""
import hmac
import os
import re
import sys


def derive(kind, master, name, generation):
    return hmac.digest(master.encode(), f"lychgate tomb 1|{kind}|{name}|{generation}".encode(), "sha256").hex()


def make(where, name, generation):
    def write(path, text):
        with open(os.open(os.path.join(where, path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as f:
            f.write(text)

    def master(path):
        with open(os.path.join(where, path), encoding="ascii") as f:
            return f.read().strip()
    write("lychgate_generation_of_" + name, f"generation:{generation}")
    write("lychgate_db_of_" + name, derive("db", master("lychgate_db_tomb"), name, generation))
    write("lychgate_work_of_" + name, derive("work", master("lychgate_work"), name, generation))


if __name__ == "__main__":
    verb, rest = sys.argv[1], sys.argv[2:]
    if verb == "make":
        for tomb in rest[1:]:
            name, _, generation = tomb.partition(":")
            make(rest[0], name, generation or 1)
    elif verb == "vectors":
        with open(rest[0], encoding="utf-8") as f:
            v = dict(re.findall(r"^    (tomb_\w+) = (.*)$", f.read(), re.M))
        for what in ("db", "work"):
            assert derive(what, v["tomb_master"], v["tomb_name"], v["tomb_generation"]) == v["tomb_" + what], what
        print("the known answers are right")
    else:
        print(derive(verb, *rest))
