#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: join.sh SYMBOLS PLAIN OUTPUT LIBRARY …: one object file of all that is in the libraries, in which
# each symbol of SYMBOLS is called by the list's second name. What it calls beside these must stand
# in PLAIN: a call that reaches the real kernel by mistake would wait, or change real files.
set -e
symbols=$1 plain=$2 output=$3
shift 3
ld -r -o "$output" --whole-archive "$@"
objcopy --redefine-syms="$symbols" "$output"
unknown=$(nm -u "$output" | awk '{print $2}' | grep -v '^simulate_' | grep -vxf "$plain" || :)
if [ -n "$unknown" ]; then
	echo "tests/simulate: the simulated code calls what is neither in simulate.syms nor in plain.syms:" $unknown >&2
	rm -f "$output"
	exit 1
fi
