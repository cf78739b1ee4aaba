#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# File-heavy work in the working directory, the same bare and in a sandbox.
#	work.sh prepare SOURCES		once: a C project, a git tree, files to pack
#	work.sh build|git|tar
set -eu
export TMPDIR=. HOME=. GIT_CONFIG_NOSYSTEM=1

prepare() {
	rm -rf project tree
	mkdir project tree
	cp -r "$1/common" project/
	rm -rf project/common/*/
	cat >project/Makefile <<'MAKE'
OBJ := $(patsubst %.c,%.o,$(wildcard common/*.c))
libcommon.a: $(OBJ)
	ar rcs $@ $^
%.o: %.c
	cc -std=gnu17 -O0 -I. -include common/banned.h -c -o $@ $<
MAKE
	git init -q tree
	d=0
	while [ $d -lt 100 ]; do
		mkdir -p "tree/d$d/sub"
		f=0
		while [ $f -lt 40 ]; do
			echo "file $f of $d" >"tree/d$d/f$f"
			echo "file $f below $d" >"tree/d$d/sub/f$f"
			f=$((f + 1))
		done
		d=$((d + 1))
	done
	git -C tree add . && git -C tree -c user.name=b -c user.email=b@b commit -qm all
}

case $1 in
prepare) prepare "$2" ;;
build)
	rm -f project/common/*.o project/libcommon.a
	make -s -C project
	;;
git) for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do git -C tree status --short; done ;;
tar)
	rm -rf out out.tar
	tar -cf out.tar tree/d[12]*
	mkdir out
	tar -C out -xf out.tar
	rm -rf out out.tar
	;;
esac
