#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause tests/fuzz/run.sh SECONDS PROGRAM...: the committed inputs once, then
# SECONDS of fuzzing for each program. What it finds is kept in build/fuzz/found; inputs that reach new code
# in build/fuzz/new. Exit status 1: something was found. A PROGRAM of build/san/replay (replay.c) can do the
# first only.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

seconds=$1
shift
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
FUZZ_TMP=$(mktemp -d -p /dev/shm nps-fuzz.XXXXXX) || exit 1
export FUZZ_TMP
trap 'rm -rf "$FUZZ_TMP"' EXIT
LIMITS=(-rss_limit_mb=2048 -timeout=25 -max_len=300000)
bad=0

# Outputs of the programs are as long as their inputs are strange.
said() { # log
	grep -E -A 12 'ERROR: |runtime error|broken contract' "$1" | grep -v '^npuscope' | head -40
}

for program in "$@"; do
	name=$(basename "$program")
	name=${name#fuzz_}
	corpus=tests/fuzz/corpus/$name
	new=build/fuzz/new/$name
	found=build/fuzz/found/$name
	log=build/fuzz/$name.log
	mkdir -p "$new" "$found"
	# The limits of libFuzzer where it is not there.
	case $program in */replay/*)
		ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=0:max_allocation_size_mb=2048
		export ASAN_OPTIONS=$ASAN_OPTIONS:hard_rss_limit_mb=2048 ;;
	esac
	if ! "$program" "${LIMITS[@]}" -artifact_prefix="$found/" "$corpus"/* > "$log" 2>&1; then
		echo "FAIL fuzz/$name: a committed input"
		said "$log"
		bad=1
		continue
	fi
	if [ "$seconds" -gt 0 ]; then
		"$program" "${LIMITS[@]}" -artifact_prefix="$found/" -fork=1 -ignore_crashes=1 -ignore_timeouts=1 \
			-ignore_ooms=1 -max_total_time="$seconds" "$new" "$corpus" > "$log" 2>&1
	fi
	if find "$found" -type f | grep -q .; then
		echo "FAIL fuzz/$name: $(find "$found" -type f | wc -l) inputs in $found; log in $log"
		said "$log"
		bad=1
	else
		echo "PASS fuzz/$name: $(find "$corpus" -type f | wc -l) inputs," \
			"$(grep -oE '^#[0-9]+: cov: [0-9]+' "$log" | tail -1 || true)"
	fi
done
exit "$bad"
