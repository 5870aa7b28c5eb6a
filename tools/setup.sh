#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs Debian's packages for what is asked: nothing = build and demo, test, torch, lint, fuzz, bench, vm,
# all.
# Does nothing, quickly, when everything is there.
set -eu

build="gcc g++ libc6-dev make clang llvm libbpf-dev libelf-dev libdw-dev libsqlite3-dev libcjson-dev zlib1g-dev"
build="$build libcapstone-dev protobuf-compiler nanopb libnanopb-dev"
build="$build bpftool python3"
test="libcmocka-dev mandoc zsh strace musl-tools util-linux mount podman runc uidmap bpftrace chromium chromium-driver"
test="$test golang-1.19-src libclang-rt-14-dev"
# For make torchsim: PyTorch, its headers, and what those include.
torch="python3-torch libtorch-dev libgflags-dev libgoogle-glog-dev"
test="$test $torch"
command -v npm > /dev/null || test="$test npm"
lint="clang-format clang-tidy cppcheck shellcheck git"
fuzz="clang libclang-rt-14-dev"
bench="strace ltrace uftrace linux-perf bpftrace time"
# The compiler for the other processor, and what boots kernels of both.
case $(uname -m) in
aarch64) other=x86-64 ;;
*) other=aarch64 ;;
esac
vm="qemu-system-x86 qemu-system-arm gcc-12 gcc-12-$other-linux-gnu gcc-$other-linux-gnu g++-$other-linux-gnu"
vm="$vm dwarves zstd binutils debian-archive-keyring python3"

usage="Usage: sh tools/setup.sh [test] [torch] [lint] [fuzz] [bench] [vm] [all]"
wanted=$build
for what in "$@"; do
	case $what in
	build) ;;
	test) wanted="$wanted $test" ;;
	torch) wanted="$wanted $torch" ;;
	lint) wanted="$wanted $lint" ;;
	fuzz) wanted="$wanted $fuzz" ;;
	bench) wanted="$wanted $bench" ;;
	vm) wanted="$wanted $vm" ;;
	all) wanted="$wanted $test $torch $lint $fuzz $bench $vm" ;;
	-h | --help)
		echo "$usage"
		exit 0
		;;
	*)
		echo "setup: no set of packages is called $what: $usage" >&2
		exit 2
		;;
	esac
done

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
	echo "setup: this is not Debian: no apt-get: install by hand what matches: $wanted" >&2
	exit 1
fi

# One word for each architecture that the package is there for.
is_installed() {
	case " $(dpkg-query -W -f '${db:Status-Status} ' "$1" 2> /dev/null)" in
	*" installed "*) return 0 ;;
	esac
	return 1
}

missing=
for package in $wanted; do
	is_installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "setup: installing needs root: run it with sudo: missing:$missing" >&2
	exit 1
fi

export DEBIAN_FRONTEND=noninteractive
echo "setup: installing$missing" >&2
if ! apt-get update -q > /dev/null; then
	echo "setup: apt-get update failed: check the network and the sources of apt" >&2
	exit 1
fi
# shellcheck disable=SC2086 # a list of words
if ! apt-get install -q -y --no-install-recommends $missing > /dev/null; then
	echo "setup: apt-get could not install:$missing: see its messages above" >&2
	exit 1
fi
