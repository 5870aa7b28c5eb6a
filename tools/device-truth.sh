#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# How true device times are: a simulated two-rank job whose devices' oscillators drift and change their rate on the way, and
# whose driver answers late and now and then very late, is captured for SECONDS, and each task's time is held against the
# truth. Figures go to OUT/truth.json, each task's error to OUT/errors.tsv, a picture to OUT/clocks.svg.
# Usage: device-truth.sh [SECONDS [OUT]]
set -euo pipefail
seconds=${1:-600}
root=$(cd "$(dirname "$0")/.." && pwd)
out=$(realpath -m "${2:-$root/build/device}")
sim=$root/build/npusim/Ascend

if [ "$(id -u)" != 0 ]; then
	echo "npuscope: make device-truth needs root: probes are loaded into the kernel: run it with sudo" >&2
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
export NPUSIM_DRIFT_PPM=50 NPUSIM_DRIFT_STEP=$((seconds / 2 + 4)):20
export NPUSIM_CLOCK_JITTER_NS=30000 NPUSIM_CLOCK_OUTLIERS=20:2000000
echo "two NPUs, $NPUSIM_DRIFT_PPM ppm fast, and 20 ppm more in the middle; the driver's answers 30 us late, 2 % of them 2 ms" >&2
NPUSIM_TRUTH=$out/truth LD_PRELOAD=$root/build/libnpuscope_agent.so \
	"$sim/bin/npusim-train" --ranks 2 --rate "${DEVICE_TRUTH_RATE:-300}" --seconds 0 --pidfile "$out/pids" > "$out/job.log" 2>&1 &
job=$!
for _ in $(seq 200); do
	grep -q '^ready' "$out/job.log" 2>/dev/null && break
	kill -0 "$job" 2>/dev/null || { cat "$out/job.log" >&2; echo "npuscope: the job died" >&2; exit 1; }
	sleep 0.1
done
sleep 2

status=0
"$root/build/npuscope" record -p "$(paste -sd, "$out/pids")" -d "${seconds}s" -o "$out" --export db \
	--step-marker train_step@1 > "$out/results.txt" || status=$?
sleep 1
kill -TERM "$job"
wait "$job" || true
job=
session=$(head -n 1 "$out/results.txt")
truth=0
"$root/tools/truth/compare" --truth "$out/truth" --result "$session" --session "$session" --json "$out/truth.json" \
	--errors "$out/errors.tsv" >&2 || truth=$?
"$root/tools/truth/draw_errors.py" "$out/errors.tsv" "$out/clocks.svg"
echo "$out/truth.json"
[ "$status" = 0 ] || exit "$status"
exit "$truth"
