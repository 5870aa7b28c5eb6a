#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs the demo jobs for a few seconds and holds the truth files against themselves: selftest.sh [.../Ascend]
set -eu
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
root=${1:-build/npusim/Ascend}
dir=$(mktemp -d)
export NPUSIM_BOARD="npusim-selftest-$$"
trap 'rm -rf "$dir"; rm -f /dev/shm/$NPUSIM_BOARD.*' EXIT

run() {	# NAME RUN-DEMO-ARGUMENT...
	local name=$1
	shift
	echo "== $name"
	NPUSIM_TRUTH="$dir/$name" "$root/bin/run-demo.sh" "$@"
}

echo "== channel"
(source "$root/cann/set_env.sh" && python3 "$here/selftest_channel.py")

echo "== device"
python3 "$here/selftest_device.py" "$root"

run c --seconds 3 --quiet --self-profile "$dir/stars"
python3 "$here/selftest.py" "$dir/c" "$dir/stars"

run fast --seconds 3 --rate 50000 --quiet --self-profile "$dir/stars"
python3 "$here/selftest.py" "$dir/fast" "$dir/stars"

run four --steps 20 --ranks 4 --quiet
python3 "$here/selftest.py" "$dir/four"

run python --python --seconds 2
python3 "$here/selftest.py" "$dir/python"

echo "== a killed rank leaves nothing behind"
"$root/bin/run-demo.sh" --seconds 30 --quiet --pidfile "$dir/pids" &
job=$!
while [ ! -s "$dir/pids" ]; do sleep 0.05; done
sleep 0.5
xargs kill -9 < "$dir/pids"
wait $job && exit 1
run after --steps 20 --quiet
python3 "$here/selftest.py" "$dir/after"

echo "== the result depends on the number of steps only"
a=$("$root/bin/run-demo.sh" --steps 10 --quiet | grep ^result)
b=$("$root/bin/run-demo.sh" --steps 10 --rate 8000 --ranks 1 --quiet | grep ^result)
[ "$a" = "$b" ]
echo ok
