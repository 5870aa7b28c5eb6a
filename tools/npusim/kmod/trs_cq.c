// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* CQEs on their way back: the completion interrupt, and the thread that waits for it. */
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "trs.h"
#include "truth.h"

#define LONGEST_NS 10000000000ULL
#define FAILS(task) ((task) % 8 == 7)
#define VECTOR_CORE_EXCEPTION 0x91

struct waiter {
	struct list_head list;
	struct trs_core_ts_inst *ts;
	struct hrtimer device; /* stands for the device's interrupt */
	wait_queue_head_t wait;
	struct stars_cqe cqe;
	u32 logic_cq;
	int pid;
	u64 irq_at;
	bool done, busy; /* busy: the interrupt stopped a probe */
};

static atomic_t logic_cqs;

noinline int trs_hw_cq_recv(struct trs_id_inst *inst, u32 cqid, void *cqe)
{
	struct trs_core_ts_inst *ts = container_of(inst, struct trs_core_ts_inst, inst);

	atomic64_inc(&ts->done);
	trs_trace_cqe("cq_recv", ts, cqid, cqe);
	return 0;
}

/* Passes a CQE to the process that waits for it. */
noinline int trs_logic_cq_enque(struct trs_core_ts_inst *ts, u32 logic_cq, u32 stream, u32 task, void *cqe)
{
	unsigned long flags;
	struct waiter *w;
	int err = -ENOENT;

	trs_trace_logic_cqe("enque", ts, logic_cq, cqe);
	spin_lock_irqsave(&ts->lock, flags);
	list_for_each_entry(w, &ts->waiters, list)
	{
		if (w->logic_cq != logic_cq)
			continue;
		w->done = true;
		wake_up(&w->wait);
		err = 0;
		break;
	}
	spin_unlock_irqrestore(&ts->lock, flags);
	return err;
}

noinline int trs_chan_irq_proc(int irq_type, int irq_index, void *para, u32 cqid[], u32 cq_num)
{
	struct waiter *w = para;
	const struct trs_agent_ops *agent = trs_agent();

	w->irq_at = truth_now();
	w->busy = trs_probes_busy();
	for (u32 i = 0; i < cq_num; i++) {
		trs_hw_cq_recv(&w->ts->inst, cqid[i], &w->cqe);
		if (agent) {
			w->cqe.stream ^= CQE_STREAM_CODE;
			w->cqe.task ^= CQE_TASK_CODE;
			agent->cqe_update(w->ts->inst.devid, w->ts->inst.tsid, w->pid, cqid[i], &w->cqe);
		}
		TRUTH("cqe", w->ts->inst.devid, w->pid, cqid[i], w->cqe.stream, w->cqe.task, w->irq_at,
		      w->busy);
		trs_logic_cq_enque(w->ts, w->logic_cq, w->cqe.stream, w->cqe.task, &w->cqe);
	}
	return 0;
}

static enum hrtimer_restart completed(struct hrtimer *timer)
{
	struct waiter *w = container_of(timer, struct waiter, device);
	u32 cqid[] = { w->ts->inst.devid };

	trs_chan_irq_proc(0, w->ts->trigger_irq + 16, w, cqid, 1);
	return HRTIMER_NORESTART;
}

static struct waiter *waiter_new(struct trs_proc_ctx *ctx, const struct halReportRecvInfo *info)
{
	struct waiter *w = kzalloc(sizeof(*w), GFP_KERNEL);

	if (!w)
		return NULL;
	w->ts = ctx->ts;
	w->pid = ctx->pid;
	w->logic_cq = (u32)atomic_inc_return(&logic_cqs) & 0xffff;
	w->cqe.stream = info->stream_id;
	w->cqe.task = info->task_id;
	if (FAILS(info->task_id)) {
		w->cqe.flags = CQE_FAILED;
		w->cqe.status = VECTOR_CORE_EXCEPTION;
	}
	init_waitqueue_head(&w->wait);
	npusim_timer_init(&w->device, completed);
	return w;
}

noinline int trs_logic_cq_recv(struct trs_proc_ctx *ctx, struct trs_core_ts_inst *ts,
			       struct halReportRecvInfo *info)
{
	struct waiter *w = waiter_new(ctx, info);
	u64 asleep = truth_now();
	int err;

	if (!w)
		return -ENOMEM;
	spin_lock_irq(&ts->lock);
	list_add_tail(&w->list, &ts->waiters);
	spin_unlock_irq(&ts->lock);
	npusim_timer_start(&w->device, min_t(u64, info->done_in, LONGEST_NS));
	err = wait_event_interruptible(w->wait, READ_ONCE(w->done));
	hrtimer_cancel(&w->device);
	spin_lock_irq(&ts->lock);
	list_del(&w->list);
	spin_unlock_irq(&ts->lock);
	if (!err) {
		TRUTH("wake", ts->inst.devid, current->tgid, current->pid, w->cqe.stream, w->cqe.task, asleep,
		      w->irq_at, truth_now());
		trs_trace_logic_recv("recv", ts, w->logic_cq, &w->cqe);
		info->report_cqe_num = 0;
		if (info->cqe_num && info->cqe_addr) {
			if (copy_to_user(info->cqe_addr, &w->cqe, CQE_SIZE))
				err = -EFAULT;
			else
				info->report_cqe_num = 1;
		}
	}
	kfree(w);
	return err == -ERESTARTSYS ? -EINTR : err;
}
