#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# How true device times are: a capture of SECONDS of a simulated two-rank job whose devices' oscillators
# drift and change their rate on the way, and whose driver answers late and now and then very late. Each
# task's time is compared with the truth. Figures go to OUT/truth.json, each task's error to OUT/errors.tsv,
# a picture to OUT/clocks.svg.
# Usage: device-truth.sh [SECONDS [OUT]]
set -euo pipefail
seconds=${1:-600}
root=$(cd "$(dirname "$0")/.." && pwd)
out=$(realpath -m "${2:-$root/build/device}")
. "$root/tools/sim-job.sh"

sim_use "$root" "$out"
sim_need_root "make device-truth"
export NPUSIM_DRIFT_PPM=50 NPUSIM_DRIFT_STEP=$((seconds / 2 + 4)):20
export NPUSIM_CLOCK_JITTER_NS=30000 NPUSIM_CLOCK_OUTLIERS=20:2000000
echo "two NPUs, $NPUSIM_DRIFT_PPM ppm fast, and 20 ppm more in the middle;" \
	"the driver's answers 30 us late, 2 % of them 2 ms" >&2
sim_start --rate "${DEVICE_TRUTH_RATE:-300}"
sleep 2

status=0
"$root/build/npuscope" record -p "$(paste -sd, "$out/pids")" -d "${seconds}s" -o "$out" --export db \
	--step-marker train_step@1 > "$out/results.txt" || status=$?
sleep 1
sim_stop
truth=0
sim_compare --json "$out/truth.json" --errors "$out/errors.tsv" || truth=$?
"$root/tools/truth/draw_errors.py" "$out/errors.tsv" "$out/clocks.svg"
echo "$out/truth.json"
[ "$status" = 0 ] || exit "$status"
exit "$truth"
