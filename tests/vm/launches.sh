# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC1091,SC2154
# The demo job without a tracer, then under one in each of the ways that `ways` names (launches.py).
. ./guest.sh
load_driver kio || exit 1
start_job launches || exit 1
sleep 4
cut -d' ' -f1 /proc/uptime > /tmp/launches/untouched
while read -r way; do
	"$npuscope" record -p "$(cat /tmp/launches/pids)" -d 2s -o "/tmp/launches/$way" --export none \
		--task-source host --host-sys none --driver "$way" < /dev/null || exit 1
done < /share/in/ways
end_job
unload_driver
keep launches
