#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The whole path on a machine without an NPU: a simulated two-rank training job runs, npuscope
# attaches to it by PID, and the result is held against what the simulator says really happened.
# Results go to build/demo; DEMO_SECONDS (10) is the length of the capture.
set -euo pipefail
cd "$(dirname "$0")/.."

out=build/demo
seconds=${DEMO_SECONDS:-10}
sim=build/npusim/Ascend

if [ "$(id -u)" != 0 ]; then
	echo "npuscope: make demo needs root: probes are loaded into the kernel: run it with sudo" >&2
	exit 1
fi
rm -rf "$out"
mkdir -p "$out/truth"

job=
cleanup() {
	[ -n "$job" ] && kill "$job" 2>/dev/null && wait "$job" 2>/dev/null
	true
}
trap cleanup EXIT

# shellcheck source=/dev/null
. "$sim/cann/set_env.sh"
echo "starting the simulated job: two ranks on two NPUs" >&2
NPUSIM_TRUTH=$PWD/$out/truth LD_PRELOAD=$PWD/build/libnpuscope_agent.so \
	"$sim/bin/npusim-train" --ranks 2 --seconds 0 --pidfile "$out/pids" > "$out/job.log" 2>&1 &
job=$!
for _ in $(seq 100); do
	grep -q '^ready' "$out/job.log" 2>/dev/null && break
	kill -0 "$job" 2>/dev/null || { cat "$out/job.log" >&2; echo "npuscope: the demo job died" >&2; exit 1; }
	sleep 0.1
done
sleep 3 # steps without a tracer, to compare with

pids=$(paste -sd, "$out/pids")
echo "attaching to pids $pids for $seconds s" >&2
status=0
build/npuscope record -p "$pids" -d "${seconds}s" -o "$out" --step-marker train_step@1 > "$out/results.txt" || status=$?
sleep 1
kill -TERM "$job"
wait "$job" || true
job=
session=$(head -n 1 "$out/results.txt")

echo >&2
echo "held against the truth of the simulator:" >&2
truth=0
tools/truth/compare --truth "$out/truth" --result "$session" --session "$session" \
	--json "$out/truth.json" >&2 || truth=$?

echo >&2
echo "results (open a folder in MindStudio Insight, or trace_view.json in Perfetto or chrome://tracing):" >&2
tail -n +2 "$out/results.txt" | sed "s|^$PWD/|  |" >&2
echo "figures: $out/truth.json" >&2
cat "$out/results.txt"
[ "$status" = 0 ] || exit "$status"
exit "$truth"
