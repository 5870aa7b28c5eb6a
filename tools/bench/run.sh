#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# `make bench`: see bench.py.
exec /usr/bin/python3 "$(dirname "$0")/bench.py" "$@"
