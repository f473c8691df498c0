#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# asan_ocl.sh BUILD: OpenCL programs of the tests with the layer, the driver and its server under
# AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer. BUILD was set up with
# -Db_sanitize=address,undefined. The programs and PoCL are not sanitized; what PoCL and LLVM leak
# is passed over, by the names of their libraries.
set -eu
cd "$(dirname "$0")/.."
build=$(cd "$1" && pwd)
if ! ls /etc/OpenCL/vendors/pocl*.icd >/dev/null 2>&1; then
	echo "no PoCL here: OpenCL was not run under AddressSanitizer"
	exit 0
fi
ninja -C "$build" --quiet libhale_opencl.so libhale_opencl_remote.so hale-opencl-server
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for p in solver misc recorded svm gates pinned; do
	cc -O1 -g -Wno-comment -Wno-deprecated-declarations -Iinclude -o "$work/ocl_$p" "tests/programs/ocl_$p.c" -lOpenCL -lm -lpthread
done
printf 'leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libOpenCL\nleak:ld-linux\nleak:libbfd\nleak:ld.bfd\n' >"$work/leaks"
export POCL_CACHE_DIR="$work/cache" OPENCL_LAYERS="$build/libhale_opencl.so"
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export LSAN_OPTIONS="suppressions=$work/leaks:print_suppressions=0"
export ASAN_OPTIONS=detect_stack_use_after_return=0:exitcode=9
remote=$build/libhale_opencl_remote.so
runs=0

# Stderr of the server comes with the program's: any report of a sanitizer is a failure.
try() { # SETTINGS PROGRAM ARGUMENTS…
	settings="check=none $1"
	shift
	status=0
	# what PoCL compiles it keeps: its linker needs no sanitizer
	OPENCL_LAYERS='' OCL_ICD_VENDORS=/etc/OpenCL/vendors "$work/$@" >/dev/null 2>&1 || true
	HALE_OPENCL=$settings LD_PRELOAD=$(cc -print-file-name=libasan.so):$(cc -print-file-name=libubsan.so) \
		"$work/$@" >"$work/out" 2>"$work/err" || status=$?
	if [ $status -ne 0 ] || grep -qE 'Sanitizer|runtime error' "$work/err"; then
		echo "exit status $status of HALE_OPENCL='$settings' $* (OCL_ICD_VENDORS=${OCL_ICD_VENDORS:-})"
		tail -60 "$work/err"
		exit 1
	fi
	runs=$((runs + 1))
}

for vendors in /etc/OpenCL/vendors "$remote"; do
	export OCL_ICD_VENDORS="$vendors"
	# the driver's objects lie in a mapping where LeakSanitizer looks for no pointers; valgrind does
	# (make check ONLY=valgrind_finds)
	[ "$vendors" = "$remote" ] && ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
	try "ckpt=every-epoch inject=epoch:3" ocl_solver 6
	try "ckpt=epochs:2 inject=epoch:4" ocl_solver -q 2 -o 6
	try "ckpt=off inject=epoch:5 opt=none" ocl_solver -m 6
	try "ckpt=epochs:2 inject=epoch:4" ocl_solver -e -q 2 6
	for mode in in out gate changed; do
		try "ckpt=every-epoch inject=epoch:3" ocl_recorded $mode 6
	done
	for what in image callback errors parts; do
		try "ckpt=every-epoch inject=epoch:2" ocl_misc $what
	done
	try "ckpt=epochs:5" ocl_misc once 200
	try "ckpt=epochs:2 inject=epoch:3" ocl_svm later 4
	try "ckpt=epochs:3 inject=epoch:9" ocl_pinned read
	POCL_DEVICES="pthread pthread" try "ckpt=epochs:2 inject=epoch:4:2" ocl_gates
	POCL_DEVICES="pthread pthread" try "ckpt=epochs:2 inject=epoch:3:2" ocl_recorded out 6
	POCL_DEVICES="pthread pthread" try "ckpt=epochs:2 inject=epoch:3:2" ocl_solver -m 6
done
OCL_ICD_VENDORS=/etc/OpenCL/vendors
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=1
try "ckpt=every-epoch inject=epoch:3" ocl_misc svm
echo "$runs runs of OpenCL programs under AddressSanitizer"
