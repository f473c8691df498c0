#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# tsan_ocl.sh BUILD: OpenCL programs with threads that share contexts, with the layer, the driver and
# its server under ThreadSanitizer. BUILD was set up with -Db_sanitize=thread. PoCL is not sanitized:
# what it does to its own memory is not looked at.
set -eu
cd "$(dirname "$0")/.."
build=$(cd "$1" && pwd)
if ! ls /etc/OpenCL/vendors/pocl*.icd >/dev/null 2>&1; then
	echo "no PoCL here: OpenCL was not run under ThreadSanitizer"
	exit 0
fi
ninja -C "$build" --quiet libhale_opencl.so libhale_opencl_remote.so hale-opencl-server
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for p in cg misc solver orders gates; do
	cc -O1 -g -fsanitize=thread -Wno-comment -Wno-deprecated-declarations -Iinclude -o "$work/ocl_$p" "tests/programs/ocl_$p.c" -lOpenCL -lm -lpthread
done
# A slot for a reply goes from one thread of the server to the next by way of the program, which is
# another process: ThreadSanitizer sees only that both write to it.
printf 'race:libpocl\nrace:libLLVM\ndeadlock:libpocl\nrace:^reply$\n' >"$work/known"
export POCL_CACHE_DIR="$work/cache" OPENCL_LAYERS="$build/libhale_opencl.so"
export TSAN_OPTIONS="suppressions=$work/known:exitcode=9:ignore_noninstrumented_modules=1"
runs=0

# Stderr of the server comes with the program's: any report is a failure.
try() { # SETTINGS PROGRAM ARGUMENTS…
	settings="check=none $1"
	shift
	status=0
	# what PoCL compiles it keeps: its linker needs no sanitizer
	OPENCL_LAYERS='' OCL_ICD_VENDORS=/etc/OpenCL/vendors "$work/$@" >"$work/alone" 2>/dev/null || true
	HALE_OPENCL=$settings "$work/$@" >"$work/out" 2>"$work/err" || status=$?
	if [ $status -ne 0 ] || grep -q 'WARNING: ThreadSanitizer' "$work/err" || ! cmp -s "$work/alone" "$work/out"; then
		echo "exit status $status of HALE_OPENCL='$settings' $* (OCL_ICD_VENDORS=${OCL_ICD_VENDORS:-})"
		head -80 "$work/err"
		exit 1
	fi
	runs=$((runs + 1))
}

# Not with the server, whose shared virtual memory has addresses that ThreadSanitizer keeps for itself.
OCL_ICD_VENDORS=/etc/OpenCL/vendors POCL_DEVICES="pthread pthread" try "ckpt=epochs:2 inject=epoch:4:2" ocl_gates
for vendors in /etc/OpenCL/vendors "$build/libhale_opencl_remote.so"; do
	export OCL_ICD_VENDORS="$vendors"
	try "ckpt=every-epoch inject=epoch:5" ocl_cg -t 3 8
	try "ckpt=epochs:3 inject=epoch:5" ocl_cg -t 3 -s 8
	try "ckpt=off inject=epoch:9 opt=none" ocl_cg -t 3 -s 8
	POCL_DEVICES="pthread pthread" try "ckpt=epochs:2 inject=epoch:7:2" ocl_cg -t 3 8
	try "ckpt=epochs:2 inject=epoch:3" ocl_misc callback
	try "ckpt=epochs:2 inject=epoch:3" ocl_solver -q 2 -o 6
	for what in gated unmapped profiled; do
		try "ckpt=epochs:2 inject=epoch:3" ocl_orders $what
	done
done
HALE_OPENCL_COPIES=staged try "ckpt=epochs:2 inject=epoch:5" ocl_solver 10
echo "$runs runs of OpenCL programs under ThreadSanitizer"
