# SPDX-License-Identifier: BSD-3-Clause
# For tests/spin_*.sh: a model with some of its constants defined anew must be right in all states,
# or must be found wrong. Set model=docs/models/NAME.pml, then `. scripts/spin_lib.sh`.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mistakes=0

check() {
	for d in "$@"; do echo "#define $d"; done | cat - "$model" >"$dir/model.pml"
	sh scripts/spin.sh "$dir/model.pml" >"$dir/log" 2>&1
}

# right 'N 3' 'M 2' …
right() {
	status=0
	check "$@" || status=$?
	[ $status -ne 77 ] || exit 77
	[ $status -eq 0 ] || { echo "wrong with $*:"; cat "$dir/log"; exit 1; }
	echo "right: $*: $(grep 'states, stored' "$dir/log")"
}

# The same with a deliberate mistake in it. A model that can't be checked is no finding. Each day of
# the year checks every third mistake; HALE_LONG=1 checks all.
wrong() {
	mistakes=$((mistakes + 1))
	if [ "${HALE_LONG:-0}" = 0 ] && [ $(((mistakes + $(date +%j | sed 's/^0*//')) % 3)) -ne 0 ]; then
		return
	fi
	if check "$@"; then
		echo "the model doesn't notice what is broken by $*"
		exit 1
	fi
	grep -Eq 'assertion violated|invalid end state' "$dir/log" || { echo "no finding with $*:"; cat "$dir/log"; exit 1; }
	echo "noticed: $*"
}
