# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Sourced by the scripts that capture a simulated training job of two ranks: starts it, and waits for it; a
# job that is left over when the script ends is ended with it.

sim_root='' sim_out='' sim_job=

# What is built in REPOSITORY is captured into DIRECTORY.
sim_use() { # REPOSITORY DIRECTORY
	sim_root=$1
	sim_out=$2
}

sim_need_root() { # WHAT
	[ "$(id -u)" = 0 ] && return
	echo "npuscope: $1 needs root: probes are loaded into the kernel: run it with sudo" >&2
	exit 1
}

# Starts the job with further options, with its helper library and a truth file, and returns when its ranks
# run: their pids are in $sim_out/pids. Removes the former content of $sim_out.
sim_start() { # OPTION...
	rm -rf "${sim_out:?}"
	mkdir -p "$sim_out/truth"
	# shellcheck source=/dev/null
	. "$sim_root/build/npusim/Ascend/cann/set_env.sh"
	NPUSIM_TRUTH=$sim_out/truth LD_PRELOAD=$sim_root/build/libnpuscope_agent.so \
		"$sim_root/build/npusim/Ascend/bin/npusim-train" --ranks 2 --seconds 0 --pidfile "$sim_out/pids" "$@" \
		> "$sim_out/job.log" 2>&1 &
	sim_job=$!
	trap sim_stop EXIT
	for _ in $(seq 200); do
		grep -q '^ready' "$sim_out/job.log" 2>/dev/null && return
		kill -0 "$sim_job" 2>/dev/null || break
		sleep 0.1
	done
	cat "$sim_out/job.log" >&2
	echo "npuscope: the simulated job did not begin" >&2
	exit 1
}

# Ends the job properly, so that its truth file is whole.
sim_stop() {
	[ -n "$sim_job" ] || return 0
	kill -TERM "$sim_job" 2>/dev/null || true
	wait "$sim_job" || true
	sim_job=
}

# Compares the session and results that record named in $sim_out/results.txt with the truth; options as
# compare's.
sim_compare() { # OPTION...
	local session

	session=$(head -n 1 "$sim_out/results.txt")
	"$sim_root/tools/truth/compare" --truth "$sim_out/truth" --result "$session" --session "$session" "$@" >&2
}
