# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC1091,SC2154
# What a machine of the matrix does: cases.txt names a case a line (guest.sh, one_case).
. ./guest.sh
run_cases() {
	while read -r name helper driver forbid; do
		one_case "$name" "$helper" "$driver" "$forbid" < /dev/null
	done < /share/in/cases.txt
}
[ ! -e /share/in/timed ] || {
	run_cases
	exit 0
}
rm -f /share/out/driver_rows
"$npuscope" doctor > /share/out/doctor 2>&1
load_driver uio_t && {
	ls /sys/kernel/btf > /share/out/btf
	unload_driver
}
switches
run_cases
driver_goes
locked_down
true
