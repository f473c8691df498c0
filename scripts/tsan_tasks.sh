#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# tsan_tasks.sh BUILD: protected tasks of <hale/task.h> under ThreadSanitizer, without errors and with
# those that the program finds itself: ThreadSanitizer holds back the signals that report others. BUILD
# was set up with -Db_sanitize=thread. libomp is not sanitized, so OpenMP's tasks are not looked at here;
# what protects them is the same code.
set -eu
cd "$(dirname "$0")/.."
build=$(cd "$1" && pwd)
ninja -C "$build" --quiet libhale_task.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O1 -g -fsanitize=thread -Iinclude -o "$work/tasks_own" tests/programs/tasks_own.c -L "$build" -lhale_task \
	-Wl,-rpath,"$build"
mkdir "$work/reports"
export TSAN_OPTIONS="exitcode=9" HALE_TASK_THREADS=4 HALE_TASKS_REPORTS="$work/reports"
runs=0
# Any report is a failure.
for mode in "random 1" "raising 2" nested; do
	for settings in "" "inputs:keep" "protect:auto"; do
		status=0
		[ "$mode $settings" = "raising 2 protect:auto" ] && continue # unprotected ones end the program
		# shellcheck disable=SC2086 # two arguments
		HALE_TASKS=$settings "$work/tasks_own" $mode >"$work/out" 2>"$work/err" || status=$?
		if [ $status -ne 0 ] || grep -q 'WARNING: ThreadSanitizer' "$work/err"; then
			echo "exit status $status of HALE_TASKS='$settings' tasks_own $mode"
			head -80 "$work/err"
			exit 1
		fi
		runs=$((runs + 1))
	done
done
echo "$runs runs of programs with tasks under ThreadSanitizer"
