# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# To be sourced by a POSIX-like shell with BASH_SOURCE, or with ASCEND_HOME_PATH already set.
if [ -n "${BASH_SOURCE:-}" ]; then
	ASCEND_HOME_PATH=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
fi
export ASCEND_HOME_PATH
export ASCEND_TOOLKIT_HOME="$ASCEND_HOME_PATH"
export ASCEND_OPP_PATH="$ASCEND_HOME_PATH/opp"
_npusim_driver="$(cd "$ASCEND_HOME_PATH/../../driver/lib64" && pwd)"
_npusim_driver="$_npusim_driver/driver:$_npusim_driver/common"
export LD_LIBRARY_PATH="$ASCEND_HOME_PATH/lib64:$_npusim_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
unset _npusim_driver
