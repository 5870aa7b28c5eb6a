// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* SQEs on their way to the device: the doorbell's interrupt, the worker, the channel. */
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "trs.h"
#include "truth.h"

#define SQES_MAX 1024 /* of one send */
#define DOORBELL_NS 1500

noinline int trs_chan_ops_sqe_update(struct trs_id_inst *inst, struct trs_sqe_update_info *info)
{
	const struct trs_agent_ops *agent = trs_agent();

	return agent ? agent->sqe_update(inst->devid, inst->tsid, info) : 0;
}
EXPORT_SYMBOL_GPL(trs_chan_ops_sqe_update);

/* One SQE into the hardware's queue. */
noinline int hal_kernel_trs_chan_send(struct trs_id_inst *inst, int chan_id, struct trs_chan_send_para *para)
{
	struct trs_core_ts_inst *ts = container_of(inst, struct trs_core_ts_inst, inst);
	struct trs_queue *q = chan_id >= 0 && chan_id < TRS_CHANS ? ts->chans[chan_id] : NULL;
	const struct stars_sqe *sqe = (const void *)para->sqe, sent = *sqe; /* the agent changes it */
	u64 entered = truth_now();
	u32 long_count = 0;
	struct trs_sqe_update_info info;
	int err;

	if (!q || para->sqe_num != 1)
		return -EINVAL;
	info = (struct trs_sqe_update_info){ .pid = q->pid,
					     .sqid = q->ctx.sqid,
					     .sqeid = q->ctx.sq_tail,
					     .sqe = para->sqe,
					     .size = SQE_SIZE,
					     .long_sqe_cnt = &long_count };
	err = trs_chan_ops_sqe_update(inst, &info);
	para->first_pos = q->ctx.sq_tail;
	q->ctx.sq_tail = (q->ctx.sq_tail + 1) % q->ctx.sq_depth;
	trs_trace_sqe("sq_send", q, sqe);
	atomic64_inc(&ts->sent);
	TRUTH("sqe", inst->devid, q->pid, q->ctx.sqid, sent.stream, sent.task, sent.type & 0x3f, entered,
	      truth_now(), q->ctx.chan_id, q->sending ? q->sending->called_at : 0);
	return err;
}
EXPORT_SYMBOL_GPL(hal_kernel_trs_chan_send);

/* Returns how many SQEs were sent. */
noinline int trs_hw_sq_send_task(struct trs_sq_ctx *sq, int sched_mode)
{
	struct trs_queue *q = container_of(sq, struct trs_queue, ctx);
	struct batch *b = q->sending;
	int sent = 0;

	for (u32 i = 0; b && i < b->n; i++) {
		struct trs_chan_send_para para = { .sqe = b->sqes + i * SQE_SIZE,
						   .sqe_num = 1,
						   .timeout = 1000 };

		if (!hal_kernel_trs_chan_send(&q->ts->inst, sq->chan_id, &para))
			sent++;
	}
	return sent;
}

static void send_batch(struct batch *b)
{
	b->queue->sending = b;
	trs_hw_sq_send_task(&b->queue->ctx, 0);
	b->queue->sending = NULL;
	kfree(b);
}

noinline irqreturn_t trs_sq_trigger_irq_proc(int irq, void *ts_inst)
{
	struct trs_core_ts_inst *ts = ts_inst;
	u64 now = truth_now();
	unsigned long flags;
	bool queued;

	spin_lock_irqsave(&ts->lock, flags);
	queued = queue_work(ts->sq_send_wq, &ts->send_work);
	if (queued)
		ts->queued_at = now;
	spin_unlock_irqrestore(&ts->lock, flags);
	TRUTH("trigger", ts->inst.devid, irq, smp_processor_id(), now, queued);
	return IRQ_HANDLED;
}

static enum hrtimer_restart doorbell_rang(struct hrtimer *timer)
{
	struct trs_core_ts_inst *ts = container_of(timer, struct trs_core_ts_inst, doorbell);

	trs_sq_trigger_irq_proc(ts->trigger_irq, ts);
	return HRTIMER_NORESTART;
}

noinline void trs_sq_send_work(struct work_struct *work)
{
	struct trs_core_ts_inst *ts = container_of(work, struct trs_core_ts_inst, send_work);
	u64 queued, now = truth_now();
	struct batch *b, *next;
	LIST_HEAD(mine);

	spin_lock_irq(&ts->lock);
	queued = ts->queued_at;
	list_splice_init(&ts->pending, &mine);
	spin_unlock_irq(&ts->lock);
	TRUTH("work", ts->inst.devid, current->pid, queued, now);
	list_for_each_entry_safe(b, next, &mine, list) send_batch(b);
}

long trs_sq_send(struct trs_proc_ctx *ctx, struct halTaskSendInfo *info, u64 called_at)
{
	struct trs_core_ts_inst *ts = ctx->ts;
	struct trs_queue *q;
	struct batch *b;
	long err = 0;

	if (trs_mode() == TRS_UIO_D)
		return -EOPNOTSUPP;
	if (!info->sqe_num || info->sqe_num > SQES_MAX || info->sqId >= TRS_PROC_SQS)
		return -EINVAL;
	b = kmalloc(struct_size(b, sqes, info->sqe_num * SQE_SIZE), GFP_KERNEL);
	if (!b)
		return -ENOMEM;
	b->n = info->sqe_num;
	b->called_at = called_at;
	mutex_lock(&ctx->lock);
	q = b->queue = ctx->queues[info->sqId];
	if (!q)
		err = -EINVAL;
	else if (copy_from_user(b->sqes, info->sqe_addr, b->n * SQE_SIZE))
		err = -EFAULT;
	else
		info->pos = q->ctx.sq_tail;
	if (err) {
		kfree(b);
	} else if (trs_mode() == TRS_KIO) {
		send_batch(b);
	} else {
		spin_lock_irq(&ts->lock);
		list_add_tail(&b->list, &ts->pending);
		spin_unlock_irq(&ts->lock);
		npusim_timer_start(&ts->doorbell, DOORBELL_NS);
	}
	mutex_unlock(&ctx->lock);
	return err;
}

/* Waits until the worker has nothing of a queue any more. */
static void settle(struct trs_core_ts_inst *ts)
{
	hrtimer_cancel(&ts->doorbell);
	queue_work(ts->sq_send_wq, &ts->send_work);
	flush_work(&ts->send_work);
}

static int claim_chan(struct trs_core_ts_inst *ts, struct trs_queue *q)
{
	int err = -ENOSPC;

	mutex_lock(&ts->chan_lock);
	for (int i = 0; i < TRS_CHANS && err; i++) {
		if (ts->chans[i])
			continue;
		q->ctx.chan_id = i;
		ts->chans[i] = q;
		err = 0;
	}
	mutex_unlock(&ts->chan_lock);
	return err;
}

noinline int trs_stream_bind_remote_sqcq(struct trs_id_inst *inst, struct trs_queue *q)
{
	return claim_chan(container_of(inst, struct trs_core_ts_inst, inst), q);
}
EXPORT_SYMBOL_GPL(trs_stream_bind_remote_sqcq);

long trs_sq_alloc(struct trs_proc_ctx *ctx, struct halSqCqInputInfo *in)
{
	struct trs_queue *q;
	int err = -EINVAL;

	if (in->sqId >= TRS_PROC_SQS)
		return -EINVAL;
	q = kzalloc(sizeof(*q), GFP_KERNEL);
	if (!q)
		return -ENOMEM;
	q->ts = ctx->ts;
	q->pid = ctx->pid;
	q->ctx = (struct trs_sq_ctx){ .inst = ctx->ts->inst,
				      .sqid = in->sqId,
				      .cqid = in->cqId,
				      .stream_id = in->info[0],
				      .sq_depth = in->sqeDepth ? in->sqeDepth : 1024,
				      .sqe_size = SQE_SIZE,
				      .mode = trs_mode() };
	mutex_lock(&ctx->lock);
	if (!ctx->queues[in->sqId])
		err = trs_stream_bind_remote_sqcq(&ctx->ts->inst, q);
	if (!err)
		ctx->queues[in->sqId] = q;
	mutex_unlock(&ctx->lock);
	if (err)
		kfree(q);
	return err;
}

static void free_queue(struct trs_proc_ctx *ctx, u32 sqid)
{
	struct trs_queue *q = ctx->queues[sqid];

	if (!q)
		return;
	ctx->queues[sqid] = NULL;
	settle(ctx->ts);
	mutex_lock(&ctx->ts->chan_lock);
	ctx->ts->chans[q->ctx.chan_id] = NULL;
	mutex_unlock(&ctx->ts->chan_lock);
	kfree(q);
}

void trs_sq_free(struct trs_proc_ctx *ctx, u32 sqid)
{
	mutex_lock(&ctx->lock);
	if (sqid < TRS_PROC_SQS)
		free_queue(ctx, sqid);
	mutex_unlock(&ctx->lock);
}

void trs_sq_free_all(struct trs_proc_ctx *ctx)
{
	for (u32 i = 0; i < TRS_PROC_SQS; i++)
		trs_sq_free(ctx, i);
}

void trs_sq_init(struct trs_core_ts_inst *ts)
{
	spin_lock_init(&ts->lock);
	mutex_init(&ts->chan_lock);
	INIT_LIST_HEAD(&ts->pending);
	INIT_LIST_HEAD(&ts->waiters);
	INIT_WORK(&ts->send_work, trs_sq_send_work);
	npusim_timer_init(&ts->doorbell, doorbell_rang);
}
