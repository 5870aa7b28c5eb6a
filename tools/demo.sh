#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The whole path on a machine without an NPU: a simulated two-rank training job runs, npuscope
# attaches to it by PID, and the result is held against what the simulator says really happened.
# Results go to build/demo; DEMO_SECONDS (10) is the length of the capture.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${DEMO_SECONDS:-10}
out=build/demo
. tools/sim-job.sh

sim_use "$PWD" "$PWD/$out"
sim_need_root "make demo"
echo "starting the simulated job: two ranks on two NPUs" >&2
sim_start --rate 2000
sleep 3 # steps without a tracer, to compare with

pids=$(paste -sd, "$out/pids")
echo "attaching to pids $pids for $seconds s" >&2
status=0
build/npuscope record -p "$pids" -d "${seconds}s" -o "$out" --step-marker train_step@1 > "$out/results.txt" || status=$?
sleep 1
sim_stop

echo >&2
echo "held against the truth of the simulator:" >&2
truth=0
sim_compare --json "$out/truth.json" || truth=$?

echo >&2
echo "what watching cost:" >&2
tools/traps.py "$(head -n 1 "$out/results.txt")" | sed 's/^/  /' >&2

echo >&2
echo "results (open a folder in MindStudio Insight, or trace_view.json in Perfetto or chrome://tracing):" >&2
tail -n +2 "$out/results.txt" | sed "s|^$PWD/|  |" >&2
echo "figures: $out/truth.json" >&2
cat "$out/results.txt"
[ "$status" = 0 ] || exit "$status"
exit "$truth"
