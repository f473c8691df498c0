# SPDX-License-Identifier: BSD-3-Clause
# For tests/spin_*.sh whose $model reads its settings from the environment: it is compiled once for all
# runs. right NAME=VALUE…, wrong NAME=VALUE…: all states are right, or something wrong is noticed.
command -v spin >/dev/null || { echo "spin isn't installed (Debian package spin)"; exit 77; }
model=$(realpath "$model")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
spin -a "$model" >spin.log
cc -w -O2 -DSAFETY -DCOLLAPSE -DMEMLIM=4096 -o pan pan.c

visit() {
	env "$@" ./pan -m100000 -w22 >log 2>&1 || true
	! grep -qE 'max search depth too small|out of memory|pan: reached' log || { cat log; exit 1; }
	grep -q 'errors: ' log || { cat log; exit 1; }
}

right() {
	visit "$@"
	grep -q 'errors: 0$' log && ! grep -q 'Search not completed' log || { echo "wrong with $*:"; cat spin.log log; exit 1; }
	echo "right: $*: $(grep 'states, stored' log)"
}

wrong() {
	visit "$@"
	grep -Eq 'assertion violated|invalid end state' log || { echo "the model doesn't notice what is broken by $*"; cat log; exit 1; }
	echo "noticed: $*"
}
