#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: own_build.sh BUILD SOURCE: a build folder that was copied together with its clone would build
# the sources of the clone that it was copied from, into the build folder there. It is made anew.
set -e
build=$1 source=$2
[ -e "$build/build.ninja" ] || exit 0
# quotes of the shell and escapes of ninja left out
if ! sed -n "/internal regenerate/{s/[\$']//g;p}" "$build/build.ninja" | grep -qF " regenerate $source "; then
	echo "$build was made for another folder than $source: it is made anew"
	rm -rf "$build"
fi
