/* SPDX-License-Identifier: BSD-2-Clause */
/* What the readers of FRAMEWORK/ share. Each fills its tables and counts what it could not use. */
#ifndef NPS_FRAMEWORK_H
#define NPS_FRAMEWORK_H

#include "import/common/memo.h"
#include "import/common/torch_rows.h"
#include "import/torch/clock.h"
#include "model/model.h"

struct nps_framework {
	struct nps_model *model;
	int dirfd; /* FRAMEWORK/ */
	struct nps_fw_clock clock;
	struct nps_fw_memo texts; /* text -> id of the model */
	bool has_pid; /* the model's pid is known */
	size_t first_op, end_ops; /* operators in `torch` */
};

/* In this order: rows of `torch` are kept together by kind. 0 or negative errno. */
int nps_framework__queue(struct nps_framework *fw);
int nps_framework__python(struct nps_framework *fw);
int nps_framework__ops(struct nps_framework *fw);
int nps_framework__memory(struct nps_framework *fw);
int nps_framework__gc(struct nps_framework *fw);

/* pid << 32 | tid. The first pid is that of the model. */
uint64_t nps_framework__gtid(struct nps_framework *fw, uint64_t pid, uint64_t tid);

static inline bool nps_framework__ns(const struct nps_framework *fw, int64_t value, uint64_t *ns)
{
	return nps_fw_clock__ns(&fw->clock, value, ns);
}

#endif
