#!/bin/sh
# Runs the testbed's problems in parallel, each on two cores of its own: shards.sh OUT SECONDS NAME... -- FLAG...
# Runs krrlab testbed --problems NAME, in the order of the names, as many at a time as there are pairs of cores, and
# writes the lines to OUT/testbed.jsonl, also if the time limit ends it. The same command run again continues.
# The environment variable KRRLAB is the program to run.
set -eu
out=$1 limit=$2
shift 2
names=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	names="$names $1"
	shift
done
[ $# -eq 0 ] || shift
mkdir -p "$out"
export KRRLAB="${KRRLAB:-krrlab}" OUT="$out"
pairs=$(($(nproc) / 2))
# shellcheck disable=SC2016
printf '%s\n' $names | timeout "$limit" xargs -P "$((pairs > 0 ? pairs : 1))" --process-slot-var=SLOT -I NAME sh -c '
	name=$1
	shift
	exec taskset -c "$((2 * SLOT)),$((2 * SLOT + 1))" "$KRRLAB" --threads 2 testbed --problems "$name" \
		--out "$OUT/$name.part" "$@" >"$OUT/$name.log" 2>&1' sh NAME "$@" || echo "shards.sh: not all was run: see $out/*.log" >&2
cat "$out"/*.part >"$out/testbed.jsonl"
