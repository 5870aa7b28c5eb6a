// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* Sees every SQE and CQE with the process it belongs to. */
#include <linux/module.h>

#include "driver.h"

noinline int tsagent_sqe_update(u32 devid, u32 tsid, struct trs_sqe_update_info *info)
{
	if (info->long_sqe_cnt)
		*info->long_sqe_cnt = 1;
	return 0;
}

noinline int tsagent_cqe_update(u32 devid, u32 tsid, int pid, u32 cqid, void *cqe)
{
	return devid < NPUS_MAX && cqe ? 0 : -EINVAL;
}

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
