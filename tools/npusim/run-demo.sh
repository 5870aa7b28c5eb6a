#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs the demo job with the simulated stack's environment: run-demo.sh [npusim-train options]
# With --python first, runs the Python job instead.
set -e
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
source "$here/../cann/set_env.sh"
if [ "${1:-}" = --python ]; then
	shift
	exec /usr/bin/python3 "$here/npusim-train.py" "$@"
fi
exec "$here/npusim-train" "$@"
