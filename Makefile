# SPDX-License-Identifier: BSD-2-Clause
#
#   make            the program and the libraries for jobs, in build/
#   make demo       the simulated job, traced; results in build/demo
#   make device-truth   how true device times are: DEVICE_SECONDS (600) of a job whose clocks drift; figures in build/device
#   make test       everything that can be tested here (as root: all of it)
#   make golden     everything the analyzer writes of fixed inputs, against what it wrote before; GOLDEN=update: that is
#                   right now; GOLDEN='keep=DIR against=DIR': results stay there, to be compared with those of another tree
#   make soak       some of it with inputs that take minutes; SOAK='NAME...': only those scripts
#   make attack     attacks on a capture by jobs and containers (as root; podman makes containers), docs/security.md
#   make bench      figures for docs/benchmarks.md, in build/bench; BENCH=raw: only that section
#   make vmtest     other kernels and arm64, emulated: all that tests/vm/kernels.tsv lists; VM=quick: three of them
#   make fuzz       fuzzers of the importers, FUZZ_SECONDS each (60); FUZZ=cann: only that one
#   make lint       clang-format, clang-tidy, cppcheck, shell and python syntax, the rules of layout (tools/check_layout.py)
#   make install    to DESTDIR and prefix; make uninstall takes it away again
#
# ARCH=arm64 (or x86) on a host of the other kind cross-builds: into build/arm64, against Debian's packages unpacked
# there (sh tools/setup.sh vm installs the compiler).
#
# V=1 shows commands. SAN=1 builds with ASan and UBSan into build/san.
# CC, HOSTCC, CLANG, prefix, DESTDIR, BUILD, DEMO_SECONDS are honoured.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

prefix ?= /usr/local
SAN ?=

HOST_MACHINE := $(shell uname -m)
MACHINE ?= $(or $(patsubst x86,x86_64,$(patsubst arm64,aarch64,$(ARCH))),$(HOST_MACHINE))
override ARCH := $(patsubst x86_64,x86,$(patsubst aarch64,arm64,$(MACHINE)))
CROSS := $(filter-out $(HOST_MACHINE),$(MACHINE))
TOP_BUILD := build$(if $(CROSS),/$(ARCH))
BUILD ?= $(TOP_BUILD)$(if $(SAN),/san)
# What is generated is the same for every build of a processor: programs for BPF have no sanitizer.
BPF_BUILD := $(TOP_BUILD)/bpf
GEN := $(TOP_BUILD)/gen
CLI_DOCS := $(TOP_BUILD)/cli_docs
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-8s %s\n' '$(1)' '$(patsubst $(BUILD)/%,%,$(2))';)

ifneq ($(CROSS),)
SYSROOT := $(TOP_BUILD)/sysroot
CC := $(MACHINE)-linux-gnu-gcc --sysroot=$(SYSROOT)
CXX := $(MACHINE)-linux-gnu-g++ --sysroot=$(SYSROOT)
AR := $(MACHINE)-linux-gnu-ar
# Where Debian keeps libstdc++.so of a compiler that runs on that processor itself.
LDFLAGS += -L$(SYSROOT)/usr/lib/gcc/$(MACHINE)-linux-gnu/12
STRIP := $(MACHINE)-linux-gnu-strip
else
ifeq ($(origin CC),default)
CC := gcc
endif
STRIP ?= strip
endif
# Of programs that run during the build.
HOSTCC ?= gcc
CLANG ?= clang
LLVM_STRIP ?= llvm-strip
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/bin/bpftool) bpftool)
VERSION := 0.1.0

WARN := -Wall -Wextra -Werror
comma := ,
# Sanitizers want line numbers, and no variables, which make each of their programs half as large again.
override CFLAGS := -std=gnu11 $(if $(SAN),-O1 -g1,-O2 -g) $(WARN) -D_GNU_SOURCE -DNPS_VERSION='"$(VERSION)"' \
	$(if $(SAN),-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer) $(CFLAGS)
CPPFLAGS += -Ikheaders -Ianalyzer -Iuser -I$(BPF_BUILD) -I$(GEN) -MMD -MP
BPF_CFLAGS := -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_$(ARCH) -Ikheaders -Ibpf $(WARN) \
	-Wno-unused-parameter -idirafter $(SYSROOT)/usr/include/$(MACHINE)-linux-gnu
# libstdc++: names of C++ functions
ANALYZER_LIBS := -lsqlite3 -lcjson -lz -lm -lprotobuf-nanopb -ldw -lelf -lstdc++ -lpthread
USER_LIBS := -lbpf -lelf -lcapstone $(ANALYZER_LIBS)

BPF_SRC := $(wildcard bpf/*.bpf.c)
BPF_OBJ := $(BPF_SRC:bpf/%.bpf.c=$(BPF_BUILD)/%.bpf.o)
SKELS := $(BPF_OBJ:.bpf.o=.skel.h)
ANALYZER_SRC := $(sort $(wildcard analyzer/*.c analyzer/*/*.c analyzer/*/*/*.c))
ANALYZER_OBJ := $(ANALYZER_SRC:%.c=$(BUILD)/%.o)
AGENT_SRC := user/injob/agent.c user/injob/agent_ring.c user/injob/agent_start.c user/injob/agent_yield.c
INJOB_SRC := $(AGENT_SRC) user/injob/mstx_inject.c
USER_SRC := $(sort $(filter-out $(INJOB_SRC) user/cli/main.c user/worker/%,$(wildcard user/*/*.c user/*/*/*.c)))
USER_OBJ := $(USER_SRC:%.c=$(BUILD)/%.o)
WORKER_SRC := $(wildcard user/worker/*.c)
WORKER_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(filter-out user/worker/main.c,$(WORKER_SRC)))
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/tests/%)
UNIT_HELP := $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(UNIT_SRC),$(wildcard tests/unit/*.c)))
JOB_SRC := $(wildcard tests/integration/jobs/*.c tests/integration/jobs/*.cc)

.PHONY: all test demo demo-run bench lint install uninstall clean setup unit jobs format
all: $(BUILD)/npuscope $(BUILD)/npuscope-device-worker $(BUILD)/libnpuscope_agent.so $(BUILD)/libnpuscope_mstx.so $(CLI_DOCS)/done

# --- another processor's headers and libraries -------------------------------
ifneq ($(CROSS),)
include $(SYSROOT)/ready.mk
endif
$(SYSROOT)/ready.mk: tools/cross/sysroot.py
	$(call say,SYSROOT,$@)tools/cross/sysroot.py $(patsubst x86,amd64,$(ARCH)) $(@D) && touch $@

# --- kernel side: objects as skeletons inside the program -------------------
# What 4.19 understands.
$(BPF_BUILD)/legacy.bpf.o: override BPF_CFLAGS := $(subst -mcpu=v3,-mcpu=v2,$(BPF_CFLAGS))

$(BPF_BUILD)/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF,$@)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@
	$(Q)$(LLVM_STRIP) -g $@

$(BPF_BUILD)/%.skel.h: $(BPF_BUILD)/%.bpf.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# --- field numbers of Perfetto's format ---------------------------------------
$(GEN)/export/perfetto.pb.h: analyzer/export/perfetto.proto
	@mkdir -p $(@D)
	$(call say,PROTO,$@)nanopb_generator.py -q -I $(<D) -D $(@D) $(<F)

$(BUILD)/analyzer/export/pftrace_writer.o: | $(GEN)/export/perfetto.pb.h

# --- collector and analyzer --------------------------------------------------
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

# Code that is copied into a job: it may refer to nothing outside of its section, and uses no vector registers.
INJECT_CFLAGS := -std=gnu11 -Os -g $(WARN) -D_GNU_SOURCE -fPIC -mgeneral-regs-only -fno-stack-protector -fno-jump-tables \
	-fno-builtin -fno-tree-vectorize -fno-tree-loop-distribute-patterns \
	$(if $(filter x86_64,$(MACHINE)),-fcf-protection=none,-mbranch-protection=none -mno-outline-atomics)
$(BUILD)/user/injob/inject_code.o: user/injob/inject_code.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) $(INJECT_CFLAGS) -c $< -o $@

$(USER_OBJ): | $(SKELS)

$(BUILD)/libnps_analyzer.a: $(ANALYZER_OBJ)
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/libnps_user.a: $(USER_OBJ)
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/libnps_worker.a: $(WORKER_OBJ)
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/npuscope: $(BUILD)/user/cli/main.o $(BUILD)/libnps_user.a $(BUILD)/libnps_analyzer.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@ $(USER_LIBS)

# The helper runs inside the job: no sanitizer, no library but libc.
$(BUILD)/libnpuscope_agent.so: $(AGENT_SRC) user/injob/agent_impl.h user/injob/agent_start.h kheaders/agent.h kheaders/session.h
	@mkdir -p $(@D)
	$(call say,AGENT,$@)$(CC) -std=gnu11 -O2 -g $(WARN) -D_GNU_SOURCE -Ikheaders -fPIC -shared \
		-fvisibility=hidden -Wl,-z,defs,-soname,libnpuscope_agent.so $(AGENT_SRC) -o $@ -ldl -lpthread

# Loads the driver's libraries, in a container where need be: no sanitizer, no library but libc.
$(BUILD)/npuscope-device-worker: $(WORKER_SRC) $(wildcard user/worker/*.h) kheaders/device_worker.h
	@mkdir -p $(@D)
	$(call say,WORKER,$@)$(CC) -std=gnu11 -O2 -g $(WARN) -D_GNU_SOURCE -Ikheaders -fPIE -pie -Wl,-z,now $(WORKER_SRC) -o $@ \
		-ldl -lpthread

$(BUILD)/libnpuscope_mstx.so: user/injob/mstx_inject.c kheaders/bpf_shared.h
	@mkdir -p $(@D)
	$(call say,MSTX,$@)$(CC) -std=gnu11 -O2 -g $(WARN) -Wno-cast-function-type -D_GNU_SOURCE -Ikheaders -fPIC -shared \
		-fvisibility=hidden -Wl,-z,defs,-soname,libnpuscope_mstx.so $< -o $@ -ldl -lpthread

# --- man pages and completions, from the rows of options -------------------------------------------------------
# Made by a program for the machine that builds, which a cross build needs. Rows refer to what parses their values: where that
# refers to something else, which it never calls here, that is dropped by the linker.
CLI_DOCS_SRC := $(wildcard tools/cli_docs/*.c analyzer/cli/*option*.c analyzer/cli/nearest.c user/cli/*_options.c) $(addprefix user/,driver/aic_metrics.c driver/device_options.c attach/mstx.c)
CLI_DOCS_CFLAGS := -std=gnu11 -O1 $(WARN) -D_GNU_SOURCE -DNPS_VERSION='"$(VERSION)"' -Ikheaders -Ianalyzer -Iuser \
	-ffunction-sections -fdata-sections -Wl,--gc-sections
# Of the man pages.
CLI_DOCS_DATE = $(shell date -u -d "@$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2> /dev/null || date +%s)}" +%F)
$(CLI_DOCS)/generator: $(CLI_DOCS_SRC) $(wildcard tools/cli_docs/*.h analyzer/*.h analyzer/*/*.h user/*/*.h \
		kheaders/*.h) Makefile
	@mkdir -p $(@D)
	$(call say,HOSTCC,$@)$(HOSTCC) $(CLI_DOCS_CFLAGS) $(filter %.c,$^) -o $@

$(CLI_DOCS)/done: $(CLI_DOCS)/generator
	$(call say,DOCS,$(@D))rm -f $(@D)/*.1 && $< $(@D) $(CLI_DOCS_DATE) && touch $@

# --- the simulated NPU: libraries as in a CANN installation, and the demo job -------
NPUSIM_DIR ?= tools/npusim
NPUSIM_OUT ?= $(TOP_BUILD)/npusim
NPUSIM_CANN ?= 9.0.0
NPUSIM_ARCH := $(MACHINE)

NPUSIM_ROOT := $(NPUSIM_OUT)/Ascend
NPUSIM_TOP := $(NPUSIM_ROOT)/cann/$(NPUSIM_CANN)
NPUSIM_LIB := $(NPUSIM_TOP)/$(NPUSIM_ARCH)-linux/lib64
NPUSIM_DRV := $(NPUSIM_ROOT)/driver/lib64/driver
NPUSIM_COMMON := $(NPUSIM_ROOT)/driver/lib64/common
NPUSIM_BIN := $(NPUSIM_ROOT)/bin
NPUSIM_KERNELS_DIR := $(NPUSIM_TOP)/opp/built-in/op_impl/ai_core/tbe/kernel/ascend910b
NPUSIM_OBJ := $(NPUSIM_OUT)/obj

NPUSIM_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror -MMD -MP
NPUSIM_LIB_CFLAGS := $(NPUSIM_CFLAGS) -fPIC -fvisibility=hidden -fcf-protection=none
# What links against the libraries finds the ones behind them by path, as a linker on an Ascend host does.
NPUSIM_LDPATH := -L$(NPUSIM_LIB) -L$(NPUSIM_DRV) -L$(NPUSIM_COMMON) \
	-Wl,-rpath-link,$(NPUSIM_LIB):$(NPUSIM_DRV):$(NPUSIM_COMMON)

# Operators are called all the time: their functions, and what they are built of, begin as large functions of a real
# library do, with a push, which is cheap to probe, and not with what -O2 finds for small ones.
NPUSIM_CFLAGS_nnopbase := -fno-omit-frame-pointer -fno-shrink-wrap -fno-schedule-insns2
# They end as those, too: with the stack protector's check in front of the return.
NPUSIM_CFLAGS_opapi := $(NPUSIM_CFLAGS_nnopbase) -fstack-protector-all -fno-optimize-sibling-calls
NPUSIM_CFLAGS_opapi_nn := $(NPUSIM_CFLAGS_opapi)

# -fcf-protection exists on x86 only.
ifneq ($(NPUSIM_ARCH),x86_64)
NPUSIM_LIB_CFLAGS := $(filter-out -fcf-protection=none,$(NPUSIM_LIB_CFLAGS))
else
# One library with landing pads, so that both kinds of function starts exist.
NPUSIM_CFLAGS_nnopbase += -fcf-protection=branch
endif

npusim_objects = $(patsubst %.c,$(NPUSIM_OBJ)/%.o,$(1))

NPUSIM_SRC_simtruth := truth/buffer.c truth/truth.c
NPUSIM_SRC_ascend_hal := hal/board.c hal/channel.c hal/chip.c hal/clock.c hal/control.c hal/device.c hal/dsmi.c hal/engine.c \
	hal/kmod.c \
	hal/links.c hal/memory.c hal/model.c hal/pmu.c hal/prof.c hal/prof_kinds.c hal/query.c hal/resource.c hal/sampler.c hal/samples.c hal/sched.c hal/sqcq.c \
	hal/tasklog.c
NPUSIM_SRC_dcmi := dcmi/dcmi.c
NPUSIM_SRC_runtime := runtime/acl_device.c runtime/acl_kernel.c runtime/acl_memory.c runtime/device.c \
	runtime/event.c runtime/kernel.c runtime/launch.c runtime/memory.c runtime/stream.c
NPUSIM_SRC_acl_rt := acl/acl_rt.c
NPUSIM_SRC_ascendcl := acl/ascendcl.c
NPUSIM_SRC_nnopbase := nnop/cache.c nnop/executor.c nnop/pta_cache.c nnop/tensor.c
NPUSIM_SRC_opapi := nnop/opapi.c
NPUSIM_SRC_opapi_nn := nnop/opapi_nn.c
NPUSIM_SRC_hccl := hccl/collective.c hccl/comm.c
NPUSIM_SRC_trainmark := demo/trainmark.c

NPUSIM_SO_simtruth := $(NPUSIM_COMMON)/libsimtruth.so
NPUSIM_SO_ascend_hal := $(NPUSIM_DRV)/libascend_hal.so
NPUSIM_SO_dcmi := $(NPUSIM_COMMON)/libdcmi.so
NPUSIM_SO_runtime := $(NPUSIM_LIB)/libruntime.so
NPUSIM_SO_acl_rt := $(NPUSIM_LIB)/libacl_rt.so
NPUSIM_SO_ascendcl := $(NPUSIM_LIB)/libascendcl.so
NPUSIM_SO_nnopbase := $(NPUSIM_LIB)/libnnopbase.so
NPUSIM_SO_opapi := $(NPUSIM_LIB)/libopapi.so
NPUSIM_SO_opapi_nn := $(NPUSIM_LIB)/libopapi_nn.so
NPUSIM_SO_hccl := $(NPUSIM_LIB)/libhccl.so
NPUSIM_SO_trainmark := $(NPUSIM_BIN)/libtrainmark.so

# Each library after those it needs.
NPUSIM_NEEDS_ascend_hal := simtruth
NPUSIM_NEEDS_dcmi := ascend_hal simtruth
NPUSIM_NEEDS_runtime := ascend_hal simtruth
NPUSIM_NEEDS_acl_rt := runtime
NPUSIM_NEEDS_ascendcl := acl_rt
NPUSIM_NEEDS_nnopbase := acl_rt simtruth
NPUSIM_NEEDS_opapi := nnopbase simtruth
NPUSIM_NEEDS_opapi_nn := nnopbase simtruth
NPUSIM_NEEDS_hccl := runtime simtruth
NPUSIM_LIBS := simtruth ascend_hal dcmi runtime acl_rt ascendcl nnopbase opapi opapi_nn hccl trainmark

NPUSIM_KERNELS := Add_1c7e Mul_9b04 MatMulV2_3f2a_mix_aic SoftmaxV2_77d1 SoftmaxGrad_22fe Cast_0e5b ViewCopy_a3c2 \
	ZerosLike_40d8 TransData_c4f1 ReduceSum_5d90 GatherV2_f3a8 FlashAttentionScore_e21b_mix_aic LayerNormV3_48aa \
	LayerNormGradV3_b915 Gelu_6b3f GeluGrad_d07c ApplyAdamWV2_8e64 eval_metric_custom
# Of libopapi_nn.
NPUSIM_NN_KERNELS := AdaptiveAvgPool2d Addcdiv Addcmul Adds ArgMaxV2 AxpyV2 BatchMatMulV3 Conv2D Conv2DBackpropInput \
	DSARandomUniform Equal Exp Fill Log LogSoftmaxGrad LogSoftmaxV2 MSELoss MSELossGrad MatMulV3 \
	Mul Muls NLLLoss NLLLossGrad Neg RealDiv ReduceMean Relu ReluGrad Sigmoid SigmoidGrad Sqrt \
	StatelessRandomNormalV2 Sub Subs Tanh TanhGrad \
	BatchNormGradV3 BatchNormV3 ConcatD EmbeddingDenseGradV2 GatherV2 Greater MaxPoolGradWithArgmaxV1 \
	MaxPoolWithArgmaxV1 ReduceMax StatelessBernoulli TopKV2
NPUSIM_KERNELS += $(NPUSIM_NN_KERNELS:%=%_5a1c)

NPUSIM_TRAIN_SRC := demo/train.c demo/job.c demo/model.c demo/loader.c demo/step_log.c demo/self_profile.c
NPUSIM_TRAIN := $(NPUSIM_BIN)/npusim-train
NPUSIM_SCRIPTS := $(addprefix $(NPUSIM_BIN)/,npusim-train.py run-demo.sh)
NPUSIM_LINKS := $(NPUSIM_ROOT)/cann/latest $(NPUSIM_TOP)/lib64 $(NPUSIM_TOP)/set_env.sh $(NPUSIM_ROOT)/cann/set_env.sh

.PHONY: npusim npusim-check
npusim: $(foreach l,$(NPUSIM_LIBS),$(NPUSIM_SO_$(l))) $(NPUSIM_KERNELS:%=$(NPUSIM_KERNELS_DIR)/%.o) \
	$(NPUSIM_TRAIN) $(NPUSIM_SCRIPTS) $(NPUSIM_LINKS)

npusim-check: npusim
	$(Q)$(NPUSIM_DIR)/selftest.sh $(NPUSIM_ROOT)

# Stripped as a release is: only .dynsym is left. -Bsymbolic: a library's calls to itself are direct.
define npusim_library
$(call npusim_objects,$(NPUSIM_SRC_$(1))): NPUSIM_EXTRA := $(NPUSIM_CFLAGS_$(1))
$(NPUSIM_SO_$(1)): $(call npusim_objects,$(NPUSIM_SRC_$(1))) $(foreach n,$(NPUSIM_NEEDS_$(1)),$(NPUSIM_SO_$(n)))
	@mkdir -p $$(@D)
	$$(call say,SIM,$$@)$(CC) -shared -o $$@ $$(filter %.o,$$^) -Wl,-soname,$$(@F) -Wl,-Bsymbolic -Wl,-z,defs -Wl,--no-as-needed \
		$(NPUSIM_LDPATH) $(NPUSIM_NEEDS_$(1):%=-l%) -Wl,--as-needed -lpthread -ldl
	$$(Q)$(STRIP) --strip-all $$@
endef
$(foreach l,$(NPUSIM_LIBS),$(eval $(call npusim_library,$(l))))

$(NPUSIM_OBJ)/%.o: $(NPUSIM_DIR)/%.c
	@mkdir -p $(@D)
	$(call say,SIM,$@)$(CC) $(NPUSIM_LIB_CFLAGS) $(NPUSIM_EXTRA) -c -o $@ $<

$(NPUSIM_KERNELS_DIR)/%.o: $(NPUSIM_DIR)/nnop/kernel.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -DKERNEL=$* -c -o $@ $<

# The job is an ordinary program: not stripped, its symbols exported as a runtime's host stubs need them.
NPUSIM_TRAIN_OBJ := $(call npusim_objects,$(NPUSIM_TRAIN_SRC:demo/%=job/%))
$(NPUSIM_OBJ)/job/%.o: $(NPUSIM_DIR)/demo/%.c
	@mkdir -p $(@D)
	$(call say,SIM,$@)$(CC) $(NPUSIM_CFLAGS) -fPIE -c -o $@ $<

$(NPUSIM_TRAIN): $(NPUSIM_TRAIN_OBJ) $(foreach l,ascendcl opapi hccl,$(NPUSIM_SO_$(l)))
	@mkdir -p $(@D)
	$(call say,SIM,$@)$(CC) -pie -rdynamic -o $@ $(NPUSIM_TRAIN_OBJ) $(NPUSIM_LDPATH) -lascendcl -lacl_rt -lruntime -lopapi \
		-lnnopbase -lhccl -lascend_hal -lpthread

$(NPUSIM_BIN)/npusim-train.py: $(NPUSIM_DIR)/demo/train.py
	@mkdir -p $(@D)
	$(Q)install -m 755 $< $@

$(NPUSIM_BIN)/run-demo.sh: $(NPUSIM_DIR)/run-demo.sh
	@mkdir -p $(@D)
	$(Q)install -m 755 $< $@

$(NPUSIM_ROOT)/cann/latest:
	@mkdir -p $(@D)
	$(Q)ln -sfn $(NPUSIM_CANN) $@

$(NPUSIM_TOP)/lib64:
	@mkdir -p $(@D)
	$(Q)ln -sfn $(NPUSIM_ARCH)-linux/lib64 $@

$(NPUSIM_TOP)/set_env.sh: $(NPUSIM_DIR)/set_env.sh
	@mkdir -p $(@D)
	$(Q)install -m 644 $< $@

$(NPUSIM_ROOT)/cann/set_env.sh:
	@mkdir -p $(@D)
	$(Q)ln -sfn latest/set_env.sh $@

# --- the simulated torch_npu: needs PyTorch's headers (tools/setup.sh torch) ----------
TORCHSIM_DIR := $(NPUSIM_DIR)/torch_npu
TORCHSIM_OUT := $(NPUSIM_OUT)/torch
TORCHSIM_SRC := $(wildcard $(TORCHSIM_DIR)/*.cpp)
TORCHSIM_OBJ := $(TORCHSIM_SRC:$(NPUSIM_DIR)/%.cpp=$(NPUSIM_OBJ)/%.o)
TORCHSIM_PY := $(wildcard $(TORCHSIM_DIR)/package/*.py)
TORCHSIM_HEADERS := $(wildcard /usr/include/torch/library.h)
# Two packages: one as it is linked, and one stripped, as a release is.
TORCHSIM_SO := $(TORCHSIM_OUT)/plain/torch_npu/lib/libtorch_npu.so
TORCHSIM_STRIPPED := $(TORCHSIM_OUT)/stripped/torch_npu/lib/libtorch_npu.so
TORCHSIM_FILES := $(foreach p,plain stripped,$(TORCHSIM_PY:$(TORCHSIM_DIR)/package/%=$(TORCHSIM_OUT)/$(p)/torch_npu/%))

.PHONY: torchsim
ifneq ($(TORCHSIM_HEADERS),)
torchsim: npusim $(TORCHSIM_SO) $(TORCHSIM_STRIPPED) $(TORCHSIM_FILES)
else
torchsim:
	@echo "torchsim: not built: PyTorch's headers are not installed: sudo sh tools/setup.sh torch"
endif

$(NPUSIM_OBJ)/torch_npu/%.o: $(TORCHSIM_DIR)/%.cpp
	@mkdir -p $(@D)
	$(call say,SIM,$@)$(CXX) -std=c++17 -O1 -g1 -fPIC -fvisibility=hidden -Wall -Wextra -Werror -Wno-invalid-offsetof -MMD -MP \
		-c -o $@ $<

$(TORCHSIM_SO): $(TORCHSIM_OBJ) $(foreach l,ascendcl opapi opapi_nn hccl,$(NPUSIM_SO_$(l)))
	@mkdir -p $(@D)
	$(call say,SIM,$@)$(CXX) -shared -o $@ $(TORCHSIM_OBJ) -Wl,-soname,$(@F) -Wl,-Bsymbolic $(NPUSIM_LDPATH) -lascendcl -lacl_rt \
		-lnnopbase -lhccl -ltorch_cpu -lc10 -lpthread -ldl
	$(Q)$(STRIP) --strip-debug $@

$(TORCHSIM_STRIPPED): $(TORCHSIM_SO)
	@mkdir -p $(@D)
	$(Q)$(STRIP) --strip-all -o $@ $<

$(TORCHSIM_OUT)/plain/torch_npu/%.py $(TORCHSIM_OUT)/stripped/torch_npu/%.py: $(TORCHSIM_DIR)/package/%.py
	$(Q)for p in plain stripped; do install -D -m 644 $< $(TORCHSIM_OUT)/$$p/torch_npu/$*.py; done

# --- tests ------------------------------------------------------------------------
$(BUILD)/tests/%: tests/unit/%.c $(UNIT_HELP) $(BUILD)/libnps_worker.a $(BUILD)/libnps_user.a $(BUILD)/libnps_analyzer.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(CC) $(CPPFLAGS) -Itests/unit $(CFLAGS) $< $(filter %.o %.a,$^) -o $@ -lcmocka $(USER_LIBS)

unit: $(UNIT_BIN) $(BUILD)/bench/gen_session

# --- witnesses: programs that make input with known content; they share nothing with what they test -------
GEN_CANN_SRC := $(wildcard tests/cannraw/*.c)
build/tests/gen-cann: $(GEN_CANN_SRC) $(wildcard tests/cannraw/*.h)
	@mkdir -p $(@D)
	$(call say,TEST,$@)gcc -std=gnu11 -O2 -Wall -Wextra -Werror -o $@ $(GEN_CANN_SRC) -lm

# Where each function of a file would be probed, and whether a process comes by there; where functions leave.
build/tests/probe_survey build/tests/exit_survey: build/tests/%: tests/%.c $(BUILD)/libnps_user.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(filter %.c %.a,$^) -o $@ $(USER_LIBS)

# Names of all operators of a library of PyTorch.
build/tests/torch_names: tests/torch_names.c $(BUILD)/libnps_user.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(filter %.c %.a,$^) -o $@ $(USER_LIBS)

# Python stacks of a process, read from outside.
build/tests/python_stacks: tests/python_stacks.c $(BUILD)/libnps_user.a $(BUILD)/libnps_analyzer.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(filter %.c %.a,$^) -o $@ $(USER_LIBS)

.PHONY: witnesses
witnesses: build/tests/gen-cann build/tests/probe_survey build/tests/exit_survey build/tests/torch_names build/tests/python_stacks

$(BUILD)/browser/make_pftrace: tests/browser/make_pftrace.c $(BUILD)/libnps_analyzer.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(filter %.c %.a,$^) -o $@ $(ANALYZER_LIBS)

.PHONY: browser
browser: $(BUILD)/browser/make_pftrace
	$(Q)tests/browser/fetch.sh || echo 'make: the browser tests will be skipped' >&2

JOBS := $(patsubst tests/integration/jobs/%,$(TOP_BUILD)/jobs/%,$(basename $(filter-out %_lib.c %_lib.cc,$(JOB_SRC))))
$(TOP_BUILD)/jobs/%: tests/integration/jobs/%.c
	@mkdir -p $(@D)
	$(call say,JOB,$@)$(CC) -std=gnu11 -O1 -g $(WARN) -D_GNU_SOURCE -Ikheaders $< -o $@ -ldl -lpthread
$(TOP_BUILD)/jobs/%: tests/integration/jobs/%.cc
	@mkdir -p $(@D)
	$(call say,JOB,$@)$(CXX) -O1 -g $(WARN) -D_GNU_SOURCE -rdynamic $< -o $@ -ldl -lpthread
CXX ?= g++
jobs: $(JOBS)

test:
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) all npusim torchsim jobs unit witnesses browser bench-programs
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) SAN=1 unit all replays
	$(Q)tests/run

.PHONY: golden
golden: all $(BUILD)/bench/gen_session build/tests/gen-cann
	$(Q)NPS_BUILD=$(abspath $(BUILD)) /usr/bin/python3 tests/golden/golden.py $(GOLDEN)

# Some of the tests with inputs and rounds that take minutes.
.PHONY: soak
soak:
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) all npusim torchsim jobs unit witnesses browser bench-programs
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) SAN=1 all
	$(Q)NPUSCOPE_SOAK=1 tests/run $(or $(SOAK),conformance/ browser/ test_analyze test_bad_input test_inject test_outputs)

# --- other kernels and the other processor, in virtual machines ---------------------------------------------------
VM ?= full
.PHONY: vmtest vm-programs
vm-programs:
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) all npusim jobs
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) ARCH=$(if $(filter x86_64,$(HOST_MACHINE)),arm64,x86) all npusim jobs

vmtest: vm-programs
	$(Q)tests/vm/matrix.py --set $(VM) $(if $(filter full,$(VM)),--docs docs/kernels.md)

# --- fuzzers of the importers and of the collector's reader of libraries: clang with libFuzzer (Debian: clang, libclang-rt-14-dev) -----------------------------
FUZZ ?= session ascend_db cann torch trace records samples elf stream
FUZZ_SECONDS ?= 60
FUZZ_BIN := $(FUZZ:%=build/fuzz/fuzz_%)
FUZZ_ELF_SRC := tests/fuzz/fuzz_elf.c $(addprefix user/,attach/code_flow.c attach/code_insn.c attach/eh_frame.c attach/exit_points.c core/clocks.c attach/elf_file.c attach/landing_pads.c core/log.c core/open_below.c attach/operators.c attach/probe_block_arm64.c attach/probe_block_x86.c \
	attach/probe_point.c attach/mangled_types.c attach/torch_inputs.c attach/torch_names.c core/proc_maps.c core/work_budget.c)
FUZZ_STREAM_SRC := tests/fuzz/fuzz_stream.c $(addprefix user/,driver/aic_metrics.c core/clocks.c sources/device/device_channels.c driver/device_info.c driver/device_launcher.c driver/device_lib.c \
	driver/device_options.c sources/device/device_stream.c core/host_names.c core/log.c capture/log_budget.c core/open_below.c core/own_file.c attach/elf_file.c driver/prof_files.c core/proc_maps.c capture/process.c capture/process_owner.c core/rate_limit.c core/session_json.c core/session_writer.c \
	core/work_budget.c)
FUZZ_HELP := $(addprefix tests/fuzz/,archive.c check_model.c check_result.c mutate.c mutate_db.c scratch.c)
FUZZ_SAN := -fsanitize=address,undefined -fno-sanitize=pointer-overflow -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer

.PHONY: fuzz fuzzers fuzz-library
fuzz-library:
	$(Q)$(MAKE) --no-print-directory BUILD=build/fuzz CC=$(CLANG) CFLAGS='-O1 $(FUZZ_SAN) -fsanitize=fuzzer-no-link' \
		WARN=-w build/fuzz/libnps_analyzer.a

# What the collector reads of the watched job's files: no importer, no archive.
build/fuzz/fuzz_elf: $(FUZZ_ELF_SRC)
	@mkdir -p $(@D)
	$(call say,FUZZ,$@)$(CLANG) -std=gnu11 -O1 -g $(WARN) -D_GNU_SOURCE -Ikheaders -Iuser $(FUZZ_SAN) -fsanitize=fuzzer $^ \
		-o $@ -lelf -lcapstone

# ... and of the driver.
build/fuzz/fuzz_stream: $(FUZZ_STREAM_SRC)
	@mkdir -p $(@D)
	$(call say,FUZZ,$@)$(CLANG) -std=gnu11 -O1 -g $(WARN) -D_GNU_SOURCE -Ikheaders -Iuser $(FUZZ_SAN) -fsanitize=fuzzer $^ \
		-o $@ -lcjson -lz

$(filter-out build/fuzz/fuzz_elf build/fuzz/fuzz_stream,$(FUZZ_BIN)): build/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(FUZZ_HELP) $(wildcard tests/fuzz/*.h) fuzz-library
	$(call say,FUZZ,$@)$(CLANG) -std=gnu11 -O1 -g $(WARN) -D_GNU_SOURCE -Ikheaders -Ianalyzer -Itests/fuzz $(FUZZ_SAN) \
		-fsanitize=fuzzer $(filter %.c,$^) build/fuzz/libnps_analyzer.a -o $@ $(ANALYZER_LIBS)

fuzzers: $(FUZZ_BIN)

# The same functions with the sanitized libraries that are there already, to replay committed inputs: no libFuzzer.
REPLAY_HELP := $(patsubst %.c,$(BUILD)/%.o,$(FUZZ_HELP))
$(BUILD)/replay/libfuzz.a: $(REPLAY_HELP)
	@mkdir -p $(@D)
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/replay/fuzz_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(BUILD)/replay/libfuzz.a $(BUILD)/libnps_user.a $(BUILD)/libnps_analyzer.a
	@mkdir -p $(@D)
	$(call say,REPLAY,$@)$(CC) $(CPPFLAGS) -Itests/fuzz $(CFLAGS) $(filter %.c %.a,$^) -o $@ $(USER_LIBS)

.PHONY: replays
replays: $(FUZZ:%=$(BUILD)/replay/fuzz_%)

fuzz: fuzzers
	$(Q)tests/fuzz/run.sh $(FUZZ_SECONDS) $(FUZZ_BIN)

.PHONY: attack
attack: all npusim jobs
	$(Q)NPUSIM_BOARD=attack /usr/bin/python3 tests/integration/test_worker.py
	$(Q)NPUSIM_BOARD=attack NPUSCOPE_ATTACK=1 /usr/bin/python3 tests/integration/test_hostile_helper.py
	$(Q)NPUSIM_BOARD=attack NPUSCOPE_ATTACK=1 /usr/bin/python3 tests/integration/test_hostile_work.py

# --- demo, bench, lint ----------------------------------------------------------
setup:
	$(Q)sh tools/setup.sh

demo: setup
	$(Q)$(MAKE) --no-print-directory demo-run

demo-run: all npusim
	$(Q)tools/demo.sh

.PHONY: device-truth
device-truth: all npusim
	$(Q)tools/device-truth.sh $(or $(DEVICE_SECONDS),600)

$(BUILD)/bench/gen_session: tools/bench/gen_session_main.c $(BUILD)/tests/unit/gen_session.o $(BUILD)/libnps_analyzer.a
	@mkdir -p $(@D)
	$(call say,BENCH,$@)$(CC) $(CPPFLAGS) -Itests/unit $(CFLAGS) $(filter %.c %.o %.a,$^) -o $@ $(ANALYZER_LIBS)

$(BUILD)/bench/hammer $(BUILD)/bench/workload: $(BUILD)/bench/%: tools/bench/%.c
	@mkdir -p $(@D)
	$(call say,BENCH,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $< -o $@ -lpthread

$(BUILD)/bench/calls: tools/bench/calls.c tools/bench/alternate.c tools/bench/alternate.h
	@mkdir -p $(@D)
	$(call say,BENCH,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(filter %.c,$^) -o $@ -lpthread

$(BUILD)/bench/ingest: tools/bench/ingest.c $(BUILD)/libnps_user.a $(BUILD)/libnps_analyzer.a
	@mkdir -p $(@D)
	$(call say,BENCH,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(filter %.c %.a,$^) -o $@ $(USER_LIBS)

# A job whose host limits it, on libraries of CANN's names that do next to nothing.
BENCH_LIB := $(BUILD)/bench_lib
$(BENCH_LIB)/libacl_rt.so: BENCH_PART := -DACL_RT
$(BENCH_LIB)/libascend_hal.so: BENCH_PART := -DHAL
$(BENCH_LIB)/libnnopbase.so: BENCH_PART := -DNNOPBASE
$(BENCH_LIB)/%.so: tools/bench/cann_stub.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) -std=gnu11 -O2 -fPIC -shared $(WARN) -Wno-missing-prototypes $(BENCH_PART) $(filter %.c %.so,$^) -o $@ -Wl,-soname,$(@F)
$(BENCH_LIB)/libacl_rt.so: $(BENCH_LIB)/libascend_hal.so
$(BENCH_LIB)/libplain.so: BENCH_PART := -DACL_RT -DHAL -DNNOPBASE -Wl,-Bsymbolic
$(BUILD)/bench/launches: tools/bench/launches.c tools/bench/alternate.c tools/bench/alternate.h \
		$(addprefix $(BENCH_LIB)/,libacl_rt.so libascend_hal.so libnnopbase.so) | $(BENCH_LIB)/libplain.so
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(filter %.c,$^) -o $@ -Wl,--no-as-needed $(filter %.so,$^) -lpthread
$(BUILD)/bench/bare_uprobes: tools/bench/bare_uprobes.c $(BUILD)/libnps_user.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(filter %.c %.a,$^) -o $@ $(USER_LIBS)

.PHONY: bench-programs
bench-programs: $(BUILD)/bench/gen_session $(BUILD)/bench/hammer $(BUILD)/bench/workload $(BUILD)/bench/calls \
	$(BUILD)/bench/ingest
bench-programs: $(BUILD)/bench/launches $(BUILD)/bench/bare_uprobes

bench: all npusim witnesses unit bench-programs
	$(Q)tools/bench/run.sh $(BENCH)

lint: $(SKELS) $(GEN)/export/perfetto.pb.h
	$(Q)tools/lint.sh

format:
	$(Q)git ls-files '*.c' '*.h' '*.cc' | xargs clang-format -i

MAN_DIR = $(DESTDIR)$(prefix)/share/man/man1
BASH_DIR = $(DESTDIR)$(prefix)/share/bash-completion/completions
ZSH_DIR = $(DESTDIR)$(prefix)/share/zsh/site-functions
install: all
	install -d $(DESTDIR)$(prefix)/bin $(DESTDIR)$(prefix)/lib/npuscope $(MAN_DIR) $(BASH_DIR) $(ZSH_DIR)
	install -m 755 $(BUILD)/npuscope $(DESTDIR)$(prefix)/bin/npuscope
	install -m 755 $(BUILD)/npuscope-device-worker $(DESTDIR)$(prefix)/lib/npuscope/npuscope-device-worker
	install -m 755 $(BUILD)/libnpuscope_agent.so $(DESTDIR)$(prefix)/lib/npuscope/libnpuscope_agent.so
	install -m 755 $(BUILD)/libnpuscope_mstx.so $(DESTDIR)$(prefix)/lib/npuscope/libnpuscope_mstx.so
	install -m 644 $(CLI_DOCS)/*.1 $(MAN_DIR)
	install -m 644 $(CLI_DOCS)/npuscope.bash $(BASH_DIR)/npuscope
	install -m 644 $(CLI_DOCS)/_npuscope $(ZSH_DIR)/_npuscope

uninstall:
	rm -f $(DESTDIR)$(prefix)/bin/npuscope $(MAN_DIR)/npuscope.1 $(MAN_DIR)/npuscope-*.1 $(BASH_DIR)/npuscope $(ZSH_DIR)/_npuscope
	rm -rf $(DESTDIR)$(prefix)/lib/npuscope

clean:
	rm -rf build

-include $(BPF_OBJ:.o=.d) $(ANALYZER_OBJ:.o=.d) $(USER_OBJ:.o=.d) $(WORKER_OBJ:.o=.d) $(BUILD)/user/cli/main.d
-include $(wildcard $(BUILD)/tests/*.d $(BUILD)/tests/unit/*.d $(BUILD)/tests/fuzz/*.d $(BUILD)/replay/*.d)
-include $(shell find $(NPUSIM_OBJ) -name '*.d' 2>/dev/null)
