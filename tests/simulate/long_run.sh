#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: long_run.sh SIMULATOR RESULTS [SECONDS]: schedules in chunks of 5,000, one process, lowest priority. A line
# of RESULTS for each chunk: the first seed, and what came of it; a later run goes on with the next chunk. What goes
# wrong is told with its story in RESULTS.SEED.
set -e
simulator=$1 results=$2 end=$(($(date +%s) + ${3:-31536000}))
chunk=5000
touch "$results"
while [ "$(date +%s)" -lt "$end" ]; do
	seed=$(($(wc -l <"$results") * chunk + 100000000))
	nice -n 19 "$simulator" --seed $seed --runs $chunk >"$results.$seed" || :
	echo "$seed $(tail -1 "$results.$seed")" >>"$results"
	case $(tail -1 "$results") in *" schedules, 0 wrong;"*) rm "$results.$seed" ;; esac
done
awk '{ runs += $2; wrong += $4 } END { print runs " schedules, " wrong " wrong" }' "$results"
