# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2034,SC3045
# Sourced by what runs in a guest: where things are, and the demo job.
sim=/payload/Ascend
npuscope=/payload/npuscope/npuscope
export ASCEND_HOME_PATH=$sim/cann/latest ASCEND_OPP_PATH=$sim/cann/latest/opp
export LD_LIBRARY_PATH=$sim/cann/latest/lib64:$sim/driver/lib64/driver:$sim/driver/lib64/common
cd /tmp || exit 1

# start_job NAME [VAR=VALUE]...: the demo job, its truth in /tmp/NAME/truth; its pid file is /tmp/NAME/pids
start_job() {
	name=$1
	shift
	mkdir -p "/tmp/$name/truth"
	env NPUSIM_TRUTH="/tmp/$name/truth" "$@" "$sim/bin/npusim-train" --ranks 1 --seconds 0 --rate 300 \
		--pidfile "/tmp/$name/pids" > "/tmp/$name/job.log" 2>&1 &
	job=$!
	n=0
	until grep -q ^ready "/tmp/$name/job.log"; do
		n=$((n + 1))
		[ $n -lt 100 ] || {
			cat "/tmp/$name/job.log"
			return 1
		}
		sleep 0.2
	done
}

end_job() {
	sleep 0.3
	kill -TERM "$job"
	wait "$job"
}

# record NAME [OPTION]...: the running job; the session goes to the share, its status to NAME/status
record() {
	name=$1
	shift
	# shellcheck disable=SC2086 # none, or two
	"$npuscope" record -p "$(cat "/tmp/$name/pids")" -d "${SECONDS_RECORDED:-2}s" -o "/tmp/$name/out" --export none \
		--step-marker train_step@1 $driver_options "$@" > "/tmp/$name/results" 2> "/tmp/$name/messages"
	echo $? > "/tmp/$name/status"
	cat "/tmp/$name/messages"
}

# keep NAME: what the host looks at
keep() {
	cp -r "/tmp/$1" /share/out/
	rm -rf "/tmp/$1"
}

modules="asdrv_pbl drv_pcie_host asdrv_trs ts_agent asdrv_svm drv_pcie_hdc_host"

# load_driver MODE[:FOLDER]: the mock driver, SQEs through the kernel (uio_t, kio) or past it (uio_d). FOLDER: plain, whose
# modules have no types, as a vendor's have none; agentless, of a version whose ts_agent nobody knows; strange, of one
# that nobody knows at all
load_driver() {
	from=modules
	[ "${1#*:}" = "$1" ] || from=${1#*:}
	for m in $modules; do
		options=
		[ "$m" = asdrv_trs ] && options=mode=${1%%:*}
		# shellcheck disable=SC2086 # none, or one
		insmod "/share/in/$from/$m.ko" $options || return 1
	done
}

unload_driver() {
	rmmod drv_pcie_hdc_host asdrv_svm ts_agent asdrv_trs drv_pcie_host asdrv_pbl
}

# driver_goes: the driver is unloaded while it is recorded, and its /proc cannot be read
driver_goes() {
	load_driver kio:plain || return
	mount -t tmpfs none /proc/trs_core
	sleep 100 &
	idle=$!
	mkdir -p /tmp/goes
	"$npuscope" record -p "$idle" -d 3s -o /tmp/goes/out --driver calls,tasks --export none \
		> /tmp/goes/results 2> /tmp/goes/messages &
	recorder=$!
	sleep 2
	unload_driver
	echo $? > /tmp/goes/unloaded
	wait "$recorder"
	echo $? > /tmp/goes/status
	kill "$idle"
	# What could not go at first goes now.
	umount /proc/trs_core
	[ -e /sys/module/asdrv_pbl ] && unload_driver
	keep goes
}

# one_case NAME HELPER DRIVER FORBID: records the demo job; "-" stands for none
one_case() {
	echo "== $1"
	driver_options=
	if [ "$3" != - ]; then
		load_driver "$3" || return
		driver_options="--driver calls,tasks"
		"$npuscope" doctor | grep '^  driver' | sed "s/^/$3:/" >> /share/out/driver_rows
	fi
	if [ "$2" = helper ]; then
		start_job "$1" LD_PRELOAD=/payload/npuscope/libnpuscope_agent.so
	else
		start_job "$1"
	fi || return
	# Not only forbidden: hidden, as on a kernel that was built without.
	[ "$4" = btf ] && mount -t tmpfs none /sys/kernel/btf
	if [ "$4" = - ]; then
		record "$1"
	else
		NPUSCOPE_FORBID=$4 record "$1"
	fi
	[ "$4" = btf ] && umount /sys/kernel/btf
	end_job
	if [ "$3" != - ]; then
		cat /sys/kernel/debug/npusim/truth > "/tmp/$1/driver.tsv"
		cp /proc/trs_core/ts_inst/dev0-ts0/hw_sq "/tmp/$1/hw_sq"
		unload_driver
	fi
	keep "$1"
}
