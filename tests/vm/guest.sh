# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2034,SC3045
# Sourced by what runs in a guest: where things are, and the demo job.
sim=/payload/Ascend
npuscope=/payload/npuscope/npuscope
export ASCEND_HOME_PATH=$sim/cann/latest ASCEND_OPP_PATH=$sim/cann/latest/opp
export LD_LIBRARY_PATH=$sim/cann/latest/lib64:$sim/driver/lib64/driver:$sim/driver/lib64/common
cd /tmp || exit 1

# wait_for PATTERN FILE PID: until the file has it; not for a process that has ended, nor for good
wait_for() {
	n=0
	until grep -q "$1" "$2"; do
		n=$((n + 1))
		{ [ $n -lt 600 ] && [ -e "/proc/$3" ]; } || return 1
		sleep 0.2
	done
}

# start_job NAME [VAR=VALUE]...: the demo job with $job_options, its truth in
# /tmp/NAME/truth; its pid file is /tmp/NAME/pids
start_job() {
	name=$1
	shift
	mkdir -p "/tmp/$name/truth"
	# shellcheck disable=SC2086 # none, or two
	env NPUSIM_TRUTH="/tmp/$name/truth" "$@" "$sim/bin/npusim-train" --ranks 1 --seconds 0 --rate 300 $job_options \
		--pidfile "/tmp/$name/pids" > "/tmp/$name/job.log" 2>&1 &
	job=$!
	wait_for ^ready "/tmp/$name/job.log" "$job" || {
		cat "/tmp/$name/job.log"
		return 1
	}
}

# start_nodes NAME: a job that calls the driver by its nodes alone
start_nodes() {
	mkdir -p "/tmp/$1"
	/payload/jobs/npu_node_job > "/tmp/$1/job.log" 2>&1 &
	job=$!
	wait_for ^ready "/tmp/$1/job.log" "$job" || return 1
	echo "$job" > "/tmp/$1/pids"
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
	# shellcheck disable=SC2086 # none, or some
	"$npuscope" record -p "$(cat "/tmp/$name/pids")" -d "${SECONDS_RECORDED:-2}s" -o "/tmp/$name/out" \
		--export none --step-marker train_step@1 $driver_options $record_options "$@" \
		> "/tmp/$name/results" 2> "/tmp/$name/messages"
	echo $? > "/tmp/$name/status"
	cat "/tmp/$name/messages"
}

# keep NAME: what the host looks at, which sees all of it or nothing. To make a file in the share takes a
# tenth of a second and more, so it is one
keep() {
	tar -cf "/share/out/$1.part" -C /tmp "$1" && mv "/share/out/$1.part" "/share/out/$1.tar"
	kept=$?
	rm -rf "/tmp/$1"
	return $kept
}

modules="asdrv_pbl drv_pcie_host asdrv_trs ts_agent asdrv_svm drv_pcie_hdc_host"

# word_at OPTION SYMBOL: what tells the mock where that is
word_at() {
	sed -n "s/^\([0-9a-f]*\) . $2\$/$1=0x\1/p" /proc/kallsyms
}

# load_driver MODE[:FOLDER]: the mock driver, SQEs through the kernel (uio_t, kio) or past it (uio_d). FOLDER:
# plain, whose modules have no types, as a vendor's have none; agentless, of a version whose ts_agent nobody
# knows; strange, of one that nobody knows at all; lone, the same without ts_agent; refused, whose ts_agent
# cannot be probed
load_driver() {
	from=modules
	[ "${1#*:}" = "$1" ] || from=${1#*:}
	for m in $modules; do
		[ -e "/share/in/$from/$m.ko" ] || continue
		options=
		[ "$m" = asdrv_trs ] && options="mode=${1%%:*} $(word_at prog_active bpf_prog_active)
			$(word_at current_probe current_kprobe)"
		# shellcheck disable=SC2086 # none, or some
		insmod "/share/in/$from/$m.ko" $options || return 1
	done
}

unload_driver() {
	for m in drv_pcie_hdc_host asdrv_svm ts_agent asdrv_trs drv_pcie_host asdrv_pbl; do
		[ ! -e "/sys/module/$m" ] || rmmod "$m" || return 1
	done
}

# state NAME: the switches of the driver's tracepoints are told
state() {
	printf '%s\t%s\t%s\n' "$1" "$(cat /proc/trs_chan/dev0-ts0/trace_enable)" \
		"$(cat /proc/trs_core/ts_inst/dev7-ts0/trace_enable)" >> /share/out/switches
}

# recorder FOLDER [OPTION]...: one more capture of the idle process, of the driver
# alone; its pid in $recorder once it records
recorder() {
	folder=$1
	shift
	rm -f /tmp/said
	env -i "$npuscope" record -p "$idle" -o "$folder" --export none --host-sys none --level none "$@" \
		> /dev/null 2> /tmp/said &
	recorder=$!
	wait_for "Ctrl-C ends it" /tmp/said "$recorder"
	cat /tmp/said
}

# switches: (of a job without libraries to probe, which would take most of the time) the driver's tracepoints
# are on while they are recorded, and off when nobody does
switches() {
	load_driver kio:lone || return
	rm -f /share/out/switches /share/out/switches_left
	env -i /bin/sleep 1000 &
	idle=$!
	state before
	recorder /tmp/switches --driver tasks
	first=$recorder
	state recorded
	kill -INT "$first"
	wait "$first"
	state interrupted
	recorder /tmp/switches --driver tasks
	first=$recorder
	recorder /tmp/switches --driver tasks
	second=$recorder
	kill -INT "$first"
	wait "$first"
	state one_of_two
	kill -KILL "$second"
	wait "$second"
	state killed
	recorder /tmp/switches --driver none
	state next_start
	kill -INT "$recorder"
	wait "$recorder"
	printf '1\n' > /proc/trs_chan/dev0-ts0/trace_enable
	recorder /tmp/switches --driver tasks
	first=$recorder
	state others
	kill -INT "$first"
	wait "$first"
	state others_stays
	kill "$idle"
	ls /run/npuscope > /share/out/switches_left
	stat -c %a /run/npuscope > /share/out/run_mode
	rm -rf /tmp/switches
	unload_driver
}

# driver_goes: the driver is unloaded while it is recorded, and its /proc cannot be read
driver_goes() {
	load_driver kio:plain || return
	mount -t tmpfs none /proc/trs_core
	sleep 1000 &
	idle=$!
	mkdir -p /tmp/goes
	recorder /tmp/goes/out --driver calls,tasks
	unload_driver
	echo $? > /tmp/goes/unloaded
	kill -INT "$recorder"
	wait "$recorder"
	echo $? > /tmp/goes/status
	mv /tmp/said /tmp/goes/messages
	kill "$idle"
	# What could not go at first goes now.
	umount /proc/trs_core
	unload_driver
	echo $? > /tmp/goes/unloaded_at_last
	keep goes
}

# locked_down: (until the machine is switched off) nobody may read the kernel's memory
locked_down() {
	mount -t securityfs s /sys/kernel/security
	[ -e /sys/kernel/security/lockdown ] || return
	mkdir -p /tmp/locked_down
	sleep 1000 &
	idle=$!
	echo confidentiality > /sys/kernel/security/lockdown
	"$npuscope" record -p "$idle" -d 1s -o /tmp/locked_down/out > /tmp/locked_down/results \
		2> /tmp/locked_down/messages
	echo $? > /tmp/locked_down/status
	"$npuscope" doctor > /tmp/locked_down/doctor 2> /dev/null
	kill "$idle"
	keep locked_down
}

# states NAME: the helper library is put into jobs that are hard to interrupt;
# each says what it found changed in itself
states() {
	mkdir -p "/tmp/$1"
	mkfifo "/tmp/$1/orders"
	for mode in nanosleep clock poll select futex epoll recv read malloc vfork spin masked filter_clone3; do
		/payload/jobs/inject_job $mode 60 "$sim/cann/latest/lib64/libacl_rt.so" \
			< "/tmp/$1/orders" >> "/tmp/$1/$mode" &
		job=$!
		exec 7> "/tmp/$1/orders"
		wait_for ^ready "/tmp/$1/$mode" "$job"
		"$npuscope" record --inject -p $job -d 100ms --host-sys none --export none -o /tmp/states.out \
			> /dev/null 2>> "/tmp/$1/$mode"
		exec 7>&-
		wait "$job"
		echo $? >> "/tmp/$1/$mode"
		rm -rf /tmp/states.out
	done
	rm "/tmp/$1/orders"
	keep "$1"
}

# late NAME FORBID: a job loads libraries of CANN's when recording has begun, from where nobody looks for
# them, and calls one once it is probed. Perf events are allowed as most distributions have it: Debian wants
# CAP_SYS_ADMIN for all of them
late() {
	mkdir -p "/tmp/$1" /tmp/late_libs
	mkfifo "/tmp/$1/orders"
	late="libsimtruth.so libascend_hal.so libruntime.so libacl_rt.so" # each needs those before
	for lib in $late; do
		find -L "$sim/" -name "$lib" -exec cp {} /tmp/late_libs \;
	done
	paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
	echo 2 > /proc/sys/kernel/perf_event_paranoid
	env -u LD_LIBRARY_PATH -u ASCEND_HOME_PATH -u ASCEND_OPP_PATH /payload/jobs/loader_job \
		< "/tmp/$1/orders" > "/tmp/$1/job.log" 2>&1 &
	job=$!
	exec 7> "/tmp/$1/orders"
	wait_for ^ready "/tmp/$1/job.log" "$job" || return
	[ "$2" = btf ] && mount -t tmpfs none /sys/kernel/btf
	NPUSCOPE_FORBID=${2#-} "$npuscope" record -p "$job" -o "/tmp/$1/out" --export none --host-sys osrt \
		--stacks cpu --verbose > "/tmp/$1/results" 2> "/tmp/$1/messages" 7>&- &
	recorder=$!
	wait_for "Ctrl-C ends it" "/tmp/$1/messages" "$recorder"
	for thread in "/proc/$recorder/task/"*; do
		name=$(cat "$thread/comm")
		[ "${thread##*/}" = "$recorder" ] && name=main
		echo "$name $(sed -n 's/^CapEff:\t//p' "$thread/status")"
	done > "/tmp/$1/rights"
	for lib in $late; do
		echo "load /tmp/late_libs/$lib" >&7
	done
	wait_for "libacl_rt.so: [1-9][0-9]* probes\|cannot probe" "/tmp/$1/messages" "$recorder"
	echo "call aclrtSynchronizeDevice 40" >&7
	echo "quit 0" >&7
	exec 7>&-
	wait "$job"
	wait "$recorder"
	echo $? > "/tmp/$1/status"
	echo "$paranoid" > /proc/sys/kernel/perf_event_paranoid
	[ "$2" = btf ] && umount /sys/kernel/btf
	rm -r "/tmp/$1/orders" /tmp/late_libs
	cat "/tmp/$1/messages"
	keep "$1"
}

# one_case NAME HOW DRIVER FORBID: records the demo job; "-" stands for none. HOW: helper, with the helper
# library; inject, which is put into the running job; all, with a profiler of the job's own and whatever can
# be recorded; nodes, another job; states, many others; late, one that loads CANN while it is recorded;
# no_jit, stacks too, while BPF is interpreted
one_case() {
	echo "== $1"
	[ "$2" != states ] || {
		states "$1"
		return
	}
	[ "$2" != late ] || {
		late "$1" "$4"
		return
	}
	driver_options=
	job_options=
	record_options=
	case $2 in
	inject) record_options=--inject ;;
	helper) record_options="--sys-hardware-mem --sys-devices 0" ;;
	all)
		job_options="--self-profile /tmp/$1/own"
		record_options="--level 2 --record-shapes --host-sys cpu,mem,disk,network,osrt --osrt-threshold 0 --irq
			--stacks cpu,offcpu"
		;;
	no_jit)
		record_options="--host-sys osrt --stacks cpu,offcpu"
		echo 0 > /proc/sys/net/core/bpf_jit_enable
		;;
	esac
	if [ "$3" != - ]; then
		load_driver "$3" || return
		[ "$1" = hidden ] && mount -t tmpfs none /proc/trs_chan
		driver_options="--driver calls,tasks"
		"$npuscope" doctor | grep '^  driver' | sed "s/^/$3:/" >> /share/out/driver_rows
	fi
	if [ "$2" = helper ]; then
		start_job "$1" LD_PRELOAD=/payload/npuscope/libnpuscope_agent.so
	elif [ "$2" = nodes ]; then
		start_nodes "$1"
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
	[ "$2" = no_jit ] && echo 1 > /proc/sys/net/core/bpf_jit_enable
	end_job
	if [ "$3" != - ]; then
		cat /sys/kernel/debug/npusim/truth > "/tmp/$1/driver.tsv"
		cp /proc/trs_core/ts_inst/dev0-ts0/hw_sq "/tmp/$1/hw_sq"
		[ "$1" = hidden ] && umount /proc/trs_chan
		unload_driver
	fi
	keep "$1"
}
