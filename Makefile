# SPDX-License-Identifier: BSD-2-Clause
#
#   make            the program and the helper library, in build/
#   make demo       the simulated job, traced; results in build/demo
#   make test       everything that can be tested here (as root: all of it)
#   make bench      figures for docs/benchmarks.md, in build/bench
#   make lint       clang-format, clang-tidy, cppcheck, shell and python syntax
#   make install    to DESTDIR and prefix
#
# V=1 shows commands. SAN=1 builds with ASan and UBSan into build/san.
# CC, CLANG, prefix, DESTDIR, BUILD, DEMO_SECONDS are honoured.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

prefix ?= /usr/local
SAN ?=
BUILD ?= build$(if $(SAN),/san)
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-8s %s\n' '$(1)' '$(patsubst $(BUILD)/%,%,$(2))';)

ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')
ifeq ($(origin CC),default)
CC := gcc
endif
CLANG ?= clang
LLVM_STRIP ?= llvm-strip
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/bin/bpftool) bpftool)
VERSION := 0.1.0

WARN := -Wall -Wextra -Werror
comma := ,
override CFLAGS := -std=gnu11 -O2 -g $(WARN) -D_GNU_SOURCE -DNPS_VERSION='"$(VERSION)"' \
	$(if $(SAN),-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer) $(CFLAGS)
CPPFLAGS += -Ikheaders -Ianalyzer -Iuser -I$(BUILD)/bpf -MMD -MP
BPF_CFLAGS := -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_$(ARCH) -Ikheaders -Ibpf $(WARN) \
	-Wno-unused-parameter -idirafter /usr/include/$(shell uname -m)-linux-gnu
ANALYZER_LIBS := -lsqlite3 -lcjson -lz -lm
USER_LIBS := -lbpf -lelf -lcapstone $(ANALYZER_LIBS) -lpthread

BPF_SRC := $(wildcard bpf/*.bpf.c)
BPF_OBJ := $(BPF_SRC:bpf/%.bpf.c=$(BUILD)/bpf/%.bpf.o)
SKELS := $(BPF_OBJ:.bpf.o=.skel.h)
ANALYZER_SRC := $(wildcard analyzer/*.c)
ANALYZER_OBJ := $(ANALYZER_SRC:%.c=$(BUILD)/%.o)
AGENT_SRC := user/agent.c
USER_SRC := $(filter-out $(AGENT_SRC) user/main.c,$(wildcard user/*.c))
USER_OBJ := $(USER_SRC:%.c=$(BUILD)/%.o)
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/tests/%)
UNIT_HELP := $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(UNIT_SRC),$(wildcard tests/unit/*.c)))
JOB_SRC := $(wildcard tests/integration/jobs/*.c tests/integration/jobs/*.cc)

.PHONY: all test demo demo-run bench lint install clean setup unit jobs npusim format
all: $(BUILD)/npuscope $(BUILD)/libnpuscope_agent.so

# --- kernel side: objects as skeletons inside the program -------------------
$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c | $(BUILD)/bpf
	$(call say,BPF,$@)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@
	$(Q)$(LLVM_STRIP) -g $@

$(BUILD)/bpf/%.skel.h: $(BUILD)/bpf/%.bpf.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# --- collector and analyzer --------------------------------------------------
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

$(USER_OBJ): | $(SKELS)

$(BUILD)/libnps_analyzer.a: $(ANALYZER_OBJ)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(BUILD)/libnps_user.a: $(USER_OBJ)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(BUILD)/npuscope: $(BUILD)/user/main.o $(BUILD)/libnps_user.a $(BUILD)/libnps_analyzer.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@ $(USER_LIBS)

# The helper runs inside the job: no sanitizer, no library but libc.
$(BUILD)/libnpuscope_agent.so: user/agent.c kheaders/agent.h kheaders/session.h | $(BUILD)/bpf
	$(call say,AGENT,$@)$(CC) -std=gnu11 -O2 -g $(WARN) -D_GNU_SOURCE -Ikheaders -fPIC -shared \
		-fvisibility=hidden -Wl,-z,defs,-soname,libnpuscope_agent.so $< -o $@ -ldl -lpthread

$(BUILD)/bpf:
	@mkdir -p $@

# --- the simulated NPU ---------------------------------------------------------
NPUSIM_OUT ?= build/npusim
npusim:
	$(Q)$(MAKE) --no-print-directory -f tools/npusim/npusim.mk NPUSIM_OUT=$(NPUSIM_OUT) CC=$(CC)

# --- tests ------------------------------------------------------------------------
$(BUILD)/tests/%: tests/unit/%.c $(UNIT_HELP) $(BUILD)/libnps_user.a $(BUILD)/libnps_analyzer.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(CC) $(CPPFLAGS) -Itests/unit $(CFLAGS) $(filter %.c %.o %.a,$^) -o $@ -lcmocka $(USER_LIBS)

unit: $(UNIT_BIN)

JOBS := $(patsubst tests/integration/jobs/%,build/jobs/%,$(basename $(filter-out %_lib.c %_lib.cc,$(JOB_SRC))))
build/jobs/%: tests/integration/jobs/%.c
	@mkdir -p $(@D)
	$(call say,JOB,$@)$(CC) -std=gnu11 -O1 -g $(WARN) -D_GNU_SOURCE $< -o $@ -ldl -lpthread
build/jobs/%: tests/integration/jobs/%.cc
	@mkdir -p $(@D)
	$(call say,JOB,$@)$(CXX) -O1 -g $(WARN) -D_GNU_SOURCE -rdynamic $< -o $@ -ldl -lpthread
CXX ?= g++
jobs: $(JOBS)

test: all npusim
	$(Q)$(MAKE) --no-print-directory jobs unit
	$(Q)$(MAKE) --no-print-directory SAN=1 unit all
	$(Q)tests/run

# --- demo, bench, lint ----------------------------------------------------------
setup:
	$(Q)sh tools/setup.sh

demo: setup
	$(Q)$(MAKE) --no-print-directory demo-run

demo-run: all npusim
	$(Q)tools/demo.sh

bench: all npusim
	$(Q)$(MAKE) --no-print-directory jobs
	$(Q)tools/bench/run.sh

lint: $(SKELS)
	$(Q)tools/lint.sh

format:
	$(Q)git ls-files '*.c' '*.h' '*.cc' | xargs clang-format -i

install: all
	install -d $(DESTDIR)$(prefix)/bin $(DESTDIR)$(prefix)/lib/npuscope
	install -m 755 $(BUILD)/npuscope $(DESTDIR)$(prefix)/bin/npuscope
	install -m 755 $(BUILD)/libnpuscope_agent.so $(DESTDIR)$(prefix)/lib/npuscope/libnpuscope_agent.so

clean:
	rm -rf build

-include $(BPF_OBJ:.o=.d) $(ANALYZER_OBJ:.o=.d) $(USER_OBJ:.o=.d) $(BUILD)/user/main.d
-include $(wildcard $(BUILD)/tests/*.d $(BUILD)/tests/unit/*.d)
