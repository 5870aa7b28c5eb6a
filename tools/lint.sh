#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Everything that can be said of the tree without running it: format, clang-tidy, cppcheck, shellcheck,
# Python syntax, the rules of layout (check_layout.py). Needs the packages of `sh tools/setup.sh lint` and the
# skeletons that `make lint` builds first.
# shellcheck disable=SC2016 # the inner shell expands for itself
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

BUILD=${BUILD:-build}
failed=0

have() { # program
	command -v "$1" > /dev/null && return 0
	echo "lint: no $1: sh tools/setup.sh lint" >&2
	failed=1
	return 1
}

# Tracked files, or all of them where there is no repository. Generated ones are in build/.
files() { # pattern...
	local names=() pattern

	if git rev-parse --git-dir > /dev/null 2>&1; then
		git ls-files -z --cached --others --exclude-standard -- "$@" | sort -zu | xargs -0 -r ls -d 2> /dev/null
		return
	fi
	for pattern in "$@"; do
		names+=(-o -name "$pattern")
	done
	find . -path ./build -prune -o -type f \( "${names[@]:1}" \) -print
}

check() { # name command...
	local name=$1 begin=$SECONDS

	shift
	if "$@"; then
		printf '  %-14s ok, %d s\n' "$name" $((SECONDS - begin))
	else
		printf '  %-14s FAILED\n' "$name"
		failed=1
	fi
}

check_format() {
	have clang-format || return 1
	files '*.c' '*.h' '*.cc' '*.cpp' | grep -v '_trace\.h$' | xargs -r clang-format --dry-run -Werror
}

# Not what is compiled against a kernel (programs for BPF, the mock driver's modules) or CPython's internals.
user_space() {
	files '*.c' '*.cc' | grep -v -e '\.bpf\.c$' -e '^\(\./\)\?tools/npusim/kmod/' \
		-e '^\(\./\)\?tools/python_layouts/'
}

# How many nodes of a function's paths clang-tidy walks. Its own limit, 225000, takes six times as long,
# most of it in a few long functions: LINT_NODES=225000 make lint.
LINT_NODES=${LINT_NODES:-30000}

# One call for each file, so that both CPUs have something to do.
check_tidy() {
	have clang-tidy || return 1
	user_space | xargs -r -P "$(nproc)" -I{} bash -c '
			checks=
			# What ships is analysed path by path; tests and tools, which run with sanitizers,
			# are not: it takes minutes. The skeletons of bpftool are generated code.
			case $2 in tests/* | tools/*) checks="--checks=-clang-analyzer-*" ;; esac
			! grep -q "\.skel\.h" "$2" || checks=--checks=-clang-analyzer-unix.Malloc
			case $2 in
			*.cc) flags=(-std=c++17) ;;
			tools/npusim/*) flags=(-std=gnu11 -Itools/npusim) ;;
			*) flags=(-std=gnu11 -Ikheaders -Ianalyzer -Iuser -Itests/unit "-I$0/bpf" "-I$0/gen") ;;
			esac
			out=$(clang-tidy --quiet $checks "$2" -- "${flags[@]}" -D_GNU_SOURCE "-DNPS_VERSION=\"0\"" \
				-Xclang -analyzer-config -Xclang "max-nodes=$1" 2> /dev/null)
			status=$?
			[ "$status" = 0 ] || printf "%s\n" "$out"
			exit "$status"' "$BUILD" "$LINT_NODES" {}
}

# Suppressed: headers of the system are not read; cppcheck does not expand a macro argument that becomes
# several (the slots of the catalogue); it loses its way in a long argument list (internalAstError);
# `buf + at` after `buf &&` in a loop's condition is no arithmetic with NULL; the end of a string is not the
# size of its array (put_str).
check_cppcheck() {
	have cppcheck || return 1
	mkdir -p "$BUILD/cppcheck"
	user_space > "$BUILD/cppcheck/files"
	cppcheck --quiet -j "$(nproc)" --error-exitcode=1 --enable=warning,performance,portability \
		--inline-suppr --cppcheck-build-dir="$BUILD/cppcheck" \
		--suppress=missingIncludeSystem --suppress=unmatchedSuppression \
		--suppress=preprocessorErrorDirective:kheaders/catalog_rows.h \
		--suppress=internalAstError:analyzer/export/export_db.c \
		--suppress=nullPointerArithmeticRedundantCheck:user/capture/process.c \
		--suppress=arrayIndexOutOfBounds:tools/npusim/truth/buffer.c \
		'-DLIBBPF_OPTS(type,name,...)=struct type name = {__VA_ARGS__}' \
		-D_GNU_SOURCE -D__x86_64__ -DNPS_VERSION='"0"' \
		-Ikheaders -Ianalyzer -Iuser -Itests/unit -Itools/npusim \
		--file-list="$BUILD/cppcheck/files"
}

# SC2317: this version takes functions that a trap or a variable calls for dead code. SC1091: set_env.sh is
# found at run time.
check_shell() {
	have shellcheck || return 1
	{
		files '*.sh'
		for script in tests/run .ci/run; do
			[ ! -f "$script" ] || echo "$script"
		done
	} | xargs -r shellcheck -x --exclude=SC2317,SC1091
}

python_files() {
	files '*.py'
	for script in tools/truth/compare tools/conformance/check; do
		[ ! -f "$script" ] || echo "$script"
	done
}

check_python() {
	python_files | /usr/bin/python3 -c '
import ast, sys
failed = 0
for name in sys.stdin.read().split("\n"):
    try:
        if name:
            ast.parse(open(name, encoding="utf-8").read(), name)
    except SyntaxError as error:
        print(f"{error.filename}:{error.lineno}: {error.msg}")
        failed = 1
sys.exit(failed)'
}

check_layout() {
	/usr/bin/python3 tools/check_layout.py
}

check layout check_layout
check clang-format check_format
check clang-tidy check_tidy
check cppcheck check_cppcheck
check shellcheck check_shell
check python check_python
exit "$failed"
