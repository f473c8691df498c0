#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The story of one job: Debian's LAMMPS, not recompiled, loses a process, and its launcher, and still
# ends with the very same numbers. Uses a folder of its own and leaves nothing behind.
set -u
build=${HALE_BUILD:-$(cd "$(dirname "$0")/../build" && pwd)}
hale=$build/hale
input=/usr/share/lammps/examples/melt/in.melt
steps=${DEMO_STEPS:-4000}
ranks=4

work=$(mktemp -d "${TMPDIR:-/tmp}/hale-demo.XXXXXX")
job=
cleanup() {
	[ -n "$job" ] && kill "$job" 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT
cd "$work" || exit 1
# Open MPI, as root too, and with nothing left in /dev/shm when one of its ranks is killed
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_vader_backing_directory=$work

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' off=$'\e[0m'; else bold='' dim='' off=''; fi
start=$(date +%s.%N)
since() { awk -v a="$1" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f s", b - a }'; }
say() { printf '%s%8s%s  %s\n' "$dim" "$(since "$start")" "$off" "$*"; }
title() { printf '\n%s%s%s\n' "$bold" "$*" "$off"; }
command_line() { printf '          %s$ %s%s\n' "$bold" "$*" "$off"; }
fail() {
	say "$*"
	for f in err.*; do sed 's/^/          | /' "$f"; done
	exit 1
}
thermo() { awk '/^ *Step /{p=1} /^Loop time/{p=0} p' "$1"; }

# Waits until a command succeeds: at most 60 s, and not longer than the job runs.
until_true() {
	local i
	for ((i = 0; i < 1200; i++)); do
		"$@" && return 0
		[ -n "$job" ] && ! kill -0 "$job" 2>/dev/null && return 1
		sleep 0.05
	done
	return 1
}
complete() { [ "$(find hale-ckpt -path '*/[0-9]*/manifest.json' 2>/dev/null | grep -cv '\.tmp/')" -ge "$1" ]; }
newest() { find "$work/hale-ckpt" -name manifest.json | grep -v '\.tmp/' | sort -V | tail -1 | xargs -r dirname; }
rank_pid() {
	"$hale" ps --json | /usr/bin/python3 -c '
import json, sys
for job in json.load(sys.stdin)["jobs"]:
    if job["id"] == sys.argv[1]:
        print([r["pid"] for r in job["ranks"] if r["rank"] == int(sys.argv[2])][0])' "$1" "$2"
}

sed "s/^run.*/run $steps/" "$input" >in.melt
lmp=(lmp -log none -in in.melt)

title "1. LAMMPS under Open MPI, undisturbed"
command_line "mpirun -n $ranks lmp -in in.melt"
t=$(date +%s.%N)
if command -v mpirun.openmpi >/dev/null; then
	TMPDIR=$work mpirun.openmpi --oversubscribe --bind-to none -n $ranks "${lmp[@]}" \
		>out.reference 2>err.reference </dev/null || fail "Open MPI could not run it"
	say "done in $(since "$t"); its last line: $(thermo out.reference | tail -1 | xargs)"
fi

title "2. The same binary under Hale; rank 2 is killed after the first checkpoint"
command_line "hale run -n $ranks --ckpt-every 1s -- lmp -in in.melt"
t=$(date +%s.%N)
"$hale" run -n $ranks --ckpt-every 1s --report report.json -- "${lmp[@]}" \
	>out.killed 2>err.killed </dev/null &
job=$!
until_true complete 1 || fail "no checkpoint came"
sleep 0.7
id=$(basename "$(dirname "$(newest)")")
victim=$(rank_pid "$id" 2)
[ -n "$victim" ] || fail "hale ps does not list rank 2"
command_line "kill -9 $victim        # rank 2 of job $id"
kill -9 "$victim"
wait "$job"
status=$?
job=
sed 's/^/          | /' err.killed
[ $status = 0 ] || fail "hale run ended with status $status"
say "done in $(since "$t"), the rollback included; status $status"
/usr/bin/python3 - <<'P'
import json
r = json.load(open("report.json"))
done = [c for c in r["checkpoints"] if c["complete"]]
print(f"          {len(done)} checkpoints of {max(c['bytes'] for c in done) / 2**20:.0f} MiB; the program"
      f" paused {max(c['pause_seconds'] for c in done) * 1e3:.1f} ms at most; {r['restarts']} rollback")
P
cmp -s <(thermo out.reference) <(thermo out.killed) || fail "other numbers than Open MPI's"
say "all $(thermo out.killed | wc -l) thermo lines are those of the undisturbed run, to the last digit"

title "3. The launcher itself is killed; the job continues from its checkpoint"
rm -rf hale-ckpt
"$hale" run -n $ranks --ckpt-every 1s -- "${lmp[@]}" >out.first 2>err.first </dev/null &
job=$!
until_true complete 1 || fail "no checkpoint came"
command_line "kill -9 $job        # hale run"
kill -9 "$job"
wait "$job" 2>/dev/null
job=
from=$(newest)
command_line "hale restart ${from#"$work"/}"
t=$(date +%s.%N)
"$hale" restart "$from" >out.second 2>err.second </dev/null || fail "the restart failed"
say "done in $(since "$t"); its last line: $(thermo <(cat out.first out.second) | tail -1 | xargs)"
[ "$(thermo out.reference | tail -1)" = "$(thermo <(cat out.first out.second) | tail -1)" ] ||
	fail "other numbers than Open MPI's"
say "the same numbers"

if command -v mpirun.openmpi >/dev/null; then
	title "4. For comparison: Open MPI when a rank is killed"
	TMPDIR=$work mpirun.openmpi --oversubscribe --bind-to none -n $ranks "${lmp[@]}" \
		>out.lost 2>err.lost </dev/null &
	job=$!
	until_true grep -qs '^ *50 ' out.lost
	kill -9 "$(cut -d" " -f1 "/proc/$job/task/$job/children")" 2>/dev/null
	wait "$job"
	status=$?
	job=
	say "mpirun ends with status $status after $(thermo out.lost | grep -c '^ *[0-9]') of \
$(thermo out.reference | grep -c '^ *[0-9]') thermo lines"
fi
printf '\n'
