#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs inside the sandbox: builds zlib's own example programs and runs zlib's own test.
set -eu
for f in *.gz; do [ ! -e "$f" ] || gunzip -f "$f"; done
for p in example minigzip zpipe; do
	gcc -O2 -Wall -o "$p" "$p.c" -lz
	echo "built $p: $(wc -c <"$p") bytes"
done
./example
./zpipe <example.c >example.zlib
./zpipe -d <example.zlib | cmp - example.c
echo "zpipe: $(wc -c <example.c) bytes to $(wc -c <example.zlib) and back, identical"
mkdir -p out
./minigzip <example.c >out/example.c.gz
sha256sum example.c >out/sha256.txt
echo "all tests passed" | tee out/verdict.txt
