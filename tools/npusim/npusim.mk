# SPDX-License-Identifier: BSD-2-Clause
# The simulated Ascend stack. Included by the root Makefile; also builds alone:
#   make -f tools/npusim/npusim.mk -j2

NPUSIM_DIR ?= tools/npusim
NPUSIM_OUT ?= build/npusim
NPUSIM_CANN ?= 9.0.0
NPUSIM_ARCH ?= $(shell uname -m)

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

# -fcf-protection exists on x86 only.
ifneq ($(NPUSIM_ARCH),x86_64)
NPUSIM_LIB_CFLAGS := $(filter-out -fcf-protection=none,$(NPUSIM_LIB_CFLAGS))
else
# One library with landing pads, so that both kinds of function starts exist.
NPUSIM_CFLAGS_nnopbase := -fcf-protection=branch
endif

npusim_objects = $(patsubst %.c,$(NPUSIM_OBJ)/%.o,$(1))

NPUSIM_SRC_simtruth := truth/buffer.c truth/truth.c
NPUSIM_SRC_ascend_hal := hal/board.c hal/device.c hal/engine.c hal/memory.c hal/model.c hal/prof.c hal/query.c \
	hal/resource.c hal/sched.c hal/sqcq.c
NPUSIM_SRC_runtime := runtime/acl_device.c runtime/acl_kernel.c runtime/acl_memory.c runtime/device.c \
	runtime/event.c runtime/kernel.c runtime/launch.c runtime/memory.c runtime/stream.c
NPUSIM_SRC_acl_rt := acl/acl_rt.c
NPUSIM_SRC_ascendcl := acl/ascendcl.c
NPUSIM_SRC_nnopbase := nnop/executor.c nnop/pta_cache.c nnop/tensor.c
NPUSIM_SRC_opapi := nnop/opapi.c
NPUSIM_SRC_hccl := hccl/collective.c hccl/comm.c
NPUSIM_SRC_trainmark := demo/trainmark.c

NPUSIM_SO_simtruth := $(NPUSIM_COMMON)/libsimtruth.so
NPUSIM_SO_ascend_hal := $(NPUSIM_DRV)/libascend_hal.so
NPUSIM_SO_runtime := $(NPUSIM_LIB)/libruntime.so
NPUSIM_SO_acl_rt := $(NPUSIM_LIB)/libacl_rt.so
NPUSIM_SO_ascendcl := $(NPUSIM_LIB)/libascendcl.so
NPUSIM_SO_nnopbase := $(NPUSIM_LIB)/libnnopbase.so
NPUSIM_SO_opapi := $(NPUSIM_LIB)/libopapi.so
NPUSIM_SO_hccl := $(NPUSIM_LIB)/libhccl.so
NPUSIM_SO_trainmark := $(NPUSIM_BIN)/libtrainmark.so

# Each library after those it needs.
NPUSIM_NEEDS_ascend_hal := simtruth
NPUSIM_NEEDS_runtime := ascend_hal simtruth
NPUSIM_NEEDS_acl_rt := runtime
NPUSIM_NEEDS_ascendcl := acl_rt
NPUSIM_NEEDS_nnopbase := acl_rt simtruth
NPUSIM_NEEDS_opapi := nnopbase simtruth
NPUSIM_NEEDS_hccl := runtime simtruth
NPUSIM_LIBS := simtruth ascend_hal runtime acl_rt ascendcl nnopbase opapi hccl trainmark

NPUSIM_KERNELS := Add_1c7e Mul_9b04 MatMulV2_3f2a_mix_aic SoftmaxV2_77d1 SoftmaxGrad_22fe Cast_0e5b ViewCopy_a3c2 \
	ZerosLike_40d8 TransData_c4f1 ReduceSum_5d90 GatherV2_f3a8 FlashAttentionScore_e21b_mix_aic LayerNormV3_48aa \
	LayerNormGradV3_b915 Gelu_6b3f GeluGrad_d07c ApplyAdamWV2_8e64 eval_metric_custom

NPUSIM_TRAIN_SRC := demo/train.c demo/job.c demo/model.c demo/loader.c demo/step_log.c demo/self_profile.c
NPUSIM_TRAIN := $(NPUSIM_BIN)/npusim-train
NPUSIM_SCRIPTS := $(addprefix $(NPUSIM_BIN)/,npusim-train.py run-demo.sh)
NPUSIM_LINKS := $(NPUSIM_ROOT)/cann/latest $(NPUSIM_TOP)/lib64 $(NPUSIM_TOP)/set_env.sh $(NPUSIM_ROOT)/cann/set_env.sh

.PHONY: npusim npusim-check npusim-clean
npusim: $(foreach l,$(NPUSIM_LIBS),$(NPUSIM_SO_$(l))) $(NPUSIM_KERNELS:%=$(NPUSIM_KERNELS_DIR)/%.o) \
	$(NPUSIM_TRAIN) $(NPUSIM_SCRIPTS) $(NPUSIM_LINKS)

npusim-check: npusim
	$(NPUSIM_DIR)/selftest.sh $(NPUSIM_ROOT)

npusim-clean:
	rm -rf $(NPUSIM_OUT)

# Stripped as a release is: only .dynsym is left. -Bsymbolic: a library's calls to itself are direct.
define npusim_library
$(call npusim_objects,$(NPUSIM_SRC_$(1))): NPUSIM_EXTRA := $(NPUSIM_CFLAGS_$(1))
$(NPUSIM_SO_$(1)): $(call npusim_objects,$(NPUSIM_SRC_$(1))) $(foreach n,$(NPUSIM_NEEDS_$(1)),$(NPUSIM_SO_$(n)))
	@mkdir -p $$(@D)
	$(CC) -shared -o $$@ $$(filter %.o,$$^) -Wl,-soname,$$(@F) -Wl,-Bsymbolic -Wl,-z,defs -Wl,--no-as-needed \
		$(NPUSIM_LDPATH) $(NPUSIM_NEEDS_$(1):%=-l%) -Wl,--as-needed -lpthread -ldl
	strip --strip-all $$@
endef
$(foreach l,$(NPUSIM_LIBS),$(eval $(call npusim_library,$(l))))

$(NPUSIM_OBJ)/%.o: $(NPUSIM_DIR)/%.c
	@mkdir -p $(@D)
	$(CC) $(NPUSIM_LIB_CFLAGS) $(NPUSIM_EXTRA) -c -o $@ $<

$(NPUSIM_KERNELS_DIR)/%.o: $(NPUSIM_DIR)/nnop/kernel.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -DKERNEL=$* -c -o $@ $<

# The job is an ordinary program: not stripped, its symbols exported as a runtime's host stubs need them.
NPUSIM_TRAIN_OBJ := $(call npusim_objects,$(NPUSIM_TRAIN_SRC:demo/%=job/%))
$(NPUSIM_OBJ)/job/%.o: $(NPUSIM_DIR)/demo/%.c
	@mkdir -p $(@D)
	$(CC) $(NPUSIM_CFLAGS) -fPIE -c -o $@ $<

$(NPUSIM_TRAIN): $(NPUSIM_TRAIN_OBJ) $(foreach l,ascendcl opapi hccl,$(NPUSIM_SO_$(l)))
	@mkdir -p $(@D)
	$(CC) -pie -rdynamic -o $@ $(NPUSIM_TRAIN_OBJ) $(NPUSIM_LDPATH) -lascendcl -lacl_rt -lruntime -lopapi \
		-lnnopbase -lhccl -lascend_hal -lpthread

$(NPUSIM_BIN)/npusim-train.py: $(NPUSIM_DIR)/demo/train.py
	@mkdir -p $(@D)
	install -m 755 $< $@

$(NPUSIM_BIN)/run-demo.sh: $(NPUSIM_DIR)/run-demo.sh
	@mkdir -p $(@D)
	install -m 755 $< $@

$(NPUSIM_ROOT)/cann/latest:
	@mkdir -p $(@D)
	ln -sfn $(NPUSIM_CANN) $@

$(NPUSIM_TOP)/lib64:
	@mkdir -p $(@D)
	ln -sfn $(NPUSIM_ARCH)-linux/lib64 $@

$(NPUSIM_TOP)/set_env.sh: $(NPUSIM_DIR)/set_env.sh
	@mkdir -p $(@D)
	install -m 644 $< $@

$(NPUSIM_ROOT)/cann/set_env.sh:
	@mkdir -p $(@D)
	ln -sfn latest/set_env.sh $@

-include $(shell find $(NPUSIM_OBJ) -name '*.d' 2>/dev/null)
