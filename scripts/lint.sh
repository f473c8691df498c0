#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What a careful reader would otherwise say: layering, format, clang-tidy, cppcheck.
# Usage: scripts/lint.sh BUILD, a folder that is configured (for compile_commands.json).
set -u
cd "$(dirname "$0")/.."
build=${1:-build}
bad=0

scripts/layering.py || bad=1

files=$(find src include bench tests examples -name '*.[ch]' 2>/dev/null | sort)
clang-format --dry-run -Werror $files || bad=1

# Debian's clang-tidy 14 does not know every flag of gcc 12.
find src -name '*.c' ! -name '*_test.c' | sort |
	xargs -P "$(nproc)" -n 1 clang-tidy --quiet -p "$build" \
		--extra-arg=-Wno-unknown-warning-option 2>/dev/null || bad=1

cppcheck --quiet --error-exitcode=1 --std=c17 --enable=warning,portability --inline-suppr \
	--suppress=missingIncludeSystem --suppressions-list=scripts/cppcheck.suppress -Isrc -Iinclude --include=src/base/names.h \
	--library=posix --library=gnu -j 2 \
	$(find src -name "*.c" ! -name "*_test.c" ! -path "*/test/*" | sort) || bad=1

[ $bad = 0 ] && echo "lint: clean"
exit $bad
