// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* Sees every SQE and CQE with the process it belongs to. */
#include <linux/kprobes.h>
#include <linux/module.h>

#include "driver.h"

#define SQE_FFTS 0
#define SQE_TYPE_MAX 20
#define SQE_INVALID 63

/* As the real one it changes SQEs in place: ids of FFTS ones, and the type of what it does not know. */
noinline int tsagent_sqe_update(u32 devid, u32 tsid, struct trs_sqe_update_info *info)
{
	struct stars_sqe *sqe = info->sqe;
	u8 type = sqe->type & 0x3f;

	if (info->long_sqe_cnt)
		*info->long_sqe_cnt = 1;
	if (type == SQE_FFTS) {
		sqe->stream = info->sqid;
		sqe->task = info->sqeid;
	} else if (type > SQE_TYPE_MAX) {
		sqe->type |= SQE_INVALID;
	}
	return 0;
}

/* CQEs come with ids that it decodes. */
noinline int tsagent_cqe_update(u32 devid, u32 tsid, int pid, u32 cqid, void *cqe)
{
	struct stars_cqe *c = cqe;

	if (devid >= NPUS_MAX || !c)
		return -EINVAL;
	c->stream ^= CQE_STREAM_CODE;
	c->task ^= CQE_TASK_CODE;
	return 0;
}

#ifdef NPUSIM_NOKPROBE
NOKPROBE_SYMBOL(tsagent_sqe_update);
NOKPROBE_SYMBOL(tsagent_cqe_update);
#endif

static const struct trs_agent_ops ops = { tsagent_sqe_update, tsagent_cqe_update };

static int __init agent_init(void)
{
	trs_register_agent(&ops);
	return 0;
}

static void __exit agent_exit(void)
{
	trs_register_agent(NULL);
}

module_init(agent_init);
module_exit(agent_exit);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("ef377e9"); /* the sources whose layouts it has */
MODULE_DESCRIPTION("mock of an NPU driver: the task scheduler's agent");
