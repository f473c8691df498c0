#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: join.sh SYMBOLS OUTPUT LIBRARY …: one object file of all that is in the libraries, in which
# each symbol of the list is called by the list's second name.
set -e
symbols=$1 output=$2
shift 2
ld -r -o "$output" --whole-archive "$@"
objcopy --redefine-syms="$symbols" "$output"
