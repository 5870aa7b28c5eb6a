// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* The task scheduler's part of the driver: descriptors, ioctls, tracepoints. */
#include "trs.h"

#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/stacktrace.h>
#include <linux/uaccess.h>

#include "truth.h"

#define CREATE_TRACE_POINTS
#include "trs_chan_trace.h"
#include "trs_core_trace.h"

static char *mode = "uio_t";
module_param(mode, charp, 0444);
MODULE_PARM_DESC(mode, "how SQEs reach the device: kio, uio_t (both through the kernel), uio_d (past it)");

#define MOST_FRAMES 48 /* of a stack */

/* These words mark that a probe is at work on a CPU: the kernel skips other probes there meanwhile. */
static ulong prog_active, current_probe;
module_param(prog_active, ulong, 0444);
MODULE_PARM_DESC(prog_active, "where bpf_prog_active is, as /proc/kallsyms has it");
module_param(current_probe, ulong, 0444);
MODULE_PARM_DESC(current_probe, "the same of current_kprobe");

static enum trs_mode how;
static struct trs_core_ts_inst *instances[NPUS_MAX];
static const struct trs_agent_ops *agent;
static atomic_t task_ids;

enum trs_mode trs_mode(void)
{
	return how;
}

const char *trs_mode_name(void)
{
	return mode;
}

struct trs_core_ts_inst *trs_instance(unsigned int device)
{
	return device < NPUS_MAX ? instances[device] : NULL;
}

const struct trs_agent_ops *trs_agent(void)
{
	return READ_ONCE(agent);
}

void trs_register_agent(const struct trs_agent_ops *ops)
{
	WRITE_ONCE(agent, ops);
	synchronize_rcu(); /* interrupts that still use the old ones have ended */
	for (unsigned int i = 0; !ops && i < NPUS_MAX; i++)
		if (instances[i])
			flush_workqueue(instances[i]->sq_send_wq);
}
EXPORT_SYMBOL_GPL(trs_register_agent);

/*
 * Kernels for arm64 do not report where their words are. There: is the interrupt on top of a function that
 * holds them? Callers of such functions count too, as a stack lacks the interrupted function where that has
 * no frame of its own.
 */
static bool interrupted_a_program(void)
{
	static const char *const holders[] = { "trace_call_bpf",     "perf_syscall_enter",
					       "perf_syscall_exit",  "perf_trace_run_bpf_submit",
					       "kprobe_perf_func",   "kretprobe_perf_func",
					       "uprobe_perf_func",   "uretprobe_perf_func",
					       "__uprobe_perf_func", "__sys_bpf" };
	unsigned long at[MOST_FRAMES];
	unsigned int n = stack_trace_save(at, MOST_FRAMES, 1);
	char name[KSYM_SYMBOL_LEN];

	for (unsigned int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%ps", (void *)at[i]);
		for (unsigned int k = 0; k < ARRAY_SIZE(holders); k++)
			if (!strcmp(name, holders[k]))
				return true;
	}
	return false;
}

/* Whether an interrupt on this CPU has stopped a probe. */
bool trs_probes_busy(void)
{
	if (!prog_active && !current_probe)
		return interrupted_a_program();
	return (prog_active && *this_cpu_ptr((int __percpu *)prog_active)) ||
	       (current_probe && *this_cpu_ptr((void *__percpu *)current_probe));
}

/* --- tracepoints, which are quiet until procfs switches them on --- */

void trs_trace_sqe(const char *what, struct trs_queue *q, const struct stars_sqe *sqe)
{
	struct trs_trace_sqe s = { .sqid = q->ctx.sqid,
				   .sq_tail = q->ctx.sq_tail,
				   .chan_id = q->ctx.chan_id,
				   .type = sqe->type & 0x3f,
				   .task_id = sqe->task,
				   .stream_id = sqe->stream };

	if (trs_traced_chan(q->ts->inst.devid))
		trace_sqe(what, &q->ts->inst, &s);
}

void trs_trace_cqe(const char *what, struct trs_core_ts_inst *ts, u32 cqid, const struct stars_cqe *cqe)
{
	struct trs_trace_cqe c = {
		.cqid = cqid, .task_id = cqe->task, .sq_head = cqe->sq_head, .stream_id = cqe->stream
	};

	if (trs_traced_chan(ts->inst.devid))
		trace_cqe(what, &ts->inst, &c);
}

static struct trs_trace_logic_cqe logic_of(u32 cqid, const struct stars_cqe *cqe)
{
	return (struct trs_trace_logic_cqe){ .logic_cqid = cqid,
					     .task_id = cqe->task,
					     .stream_id = cqe->stream,
					     .sq_head = cqe->sq_head,
					     .errcode = cqe->flags & CQE_FAILED ? (u32)cqe->status : 0,
					     .timestamp = cqe->status };
}

void trs_trace_logic_cqe(const char *what, struct trs_core_ts_inst *ts, u32 cqid, const struct stars_cqe *cqe)
{
	struct trs_trace_logic_cqe c = logic_of(cqid, cqe);

	if (trs_traced_core(ts->inst.devid))
		trace_logic_cqe(what, &ts->inst, &c);
}

void trs_trace_logic_recv(const char *what, struct trs_core_ts_inst *ts, u32 cqid,
			  const struct stars_cqe *cqe)
{
	struct trs_trace_logic_cqe c = logic_of(cqid, cqe);

	if (trs_traced_core(ts->inst.devid))
		trace_logic_cq_recv(what, &ts->inst, &c);
}

/* --- descriptors --- */

noinline int trs_open(struct inode *inode, struct file *file)
{
	struct trs_core_ts_inst *ts = trs_instance(drv_ascend_device(file));
	struct trs_proc_ctx *ctx;

	if (!ts)
		return -ENODEV;
	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL);
	if (!ctx)
		return -ENOMEM;
	ctx->pid = current->tgid;
	ctx->task_id = atomic_inc_return(&task_ids);
	ctx->ts = ts;
	mutex_init(&ctx->lock);
	*drv_ascend_private(file) = ctx;
	trs_proc_add(ctx);
	devdrv_sync_msg_send(ts, NULL, 32, 32, NULL);
	return 0;
}

noinline int trs_release(struct inode *inode, struct file *file)
{
	struct trs_proc_ctx *ctx = *drv_ascend_private(file);

	trs_sq_free_all(ctx);
	proc_remove(ctx->dir);
	kfree(ctx);
	return 0;
}

static long sqcq_alloc(struct trs_proc_ctx *ctx, void __user *arg)
{
	struct halSqCqInputInfo in;

	return copy_from_user(&in, arg, sizeof(in)) ? -EFAULT : trs_sq_alloc(ctx, &in);
}

/* The first words of what frees a queue: type, tsId, sqId. */
static long sqcq_free(struct trs_proc_ctx *ctx, void __user *arg)
{
	u32 words[3];

	if (copy_from_user(words, arg, sizeof(words)))
		return -EFAULT;
	trs_sq_free(ctx, words[2]);
	return 0;
}

static long sqcq_send(struct trs_proc_ctx *ctx, void __user *arg)
{
	struct halTaskSendInfo info;
	u64 entered = truth_now();
	long err;

	if (copy_from_user(&info, arg, sizeof(info)))
		return -EFAULT;
	err = trs_sq_send(ctx, &info, entered);
	if (!err && copy_to_user(arg, &info, sizeof(info)))
		err = -EFAULT;
	TRUTH("send", ctx->ts->inst.devid, current->tgid, current->pid, info.sqId, info.sqe_num, (u64)err,
	      entered, truth_now());
	return err;
}

static long sqcq_recv(struct trs_proc_ctx *ctx, void __user *arg)
{
	struct halReportRecvInfo info;
	long err;

	if (copy_from_user(&info, arg, sizeof(info)))
		return -EFAULT;
	err = trs_logic_cq_recv(ctx, ctx->ts, &info);
	if (!err && copy_to_user(arg, &info, sizeof(info)))
		err = -EFAULT;
	return err;
}

noinline long trs_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct trs_proc_ctx *ctx = *drv_ascend_private(file);
	void __user *user = (void __user *)arg;

	if (_IOC_TYPE(cmd) != TSDRV_MAGIC)
		return -EINVAL;
	switch (_IOC_NR(cmd)) {
	case TSDRV_SQCQ_ALLOC:
		return sqcq_alloc(ctx, user);
	case TSDRV_SQCQ_FREE:
		return sqcq_free(ctx, user);
	case TSDRV_SQCQ_SEND:
		return sqcq_send(ctx, user);
	case TSDRV_SQCQ_RECV:
		return sqcq_recv(ctx, user);
	default:
		return -EOPNOTSUPP;
	}
}

static const struct file_operations trs_fops = {
	.owner = THIS_MODULE, .open = trs_open, .release = trs_release, .unlocked_ioctl = trs_ioctl
};

/* --- devices --- */

static int add_instance(unsigned int device)
{
	struct trs_core_ts_inst *ts = kvzalloc(sizeof(*ts), GFP_KERNEL);

	if (!ts)
		return -ENOMEM;
	ts->inst.devid = device;
	ts->trigger_irq = 80 + device;
	ts->sq_send_wq = alloc_workqueue("dev%u_sq_send_wq", WQ_SYSFS | WQ_HIGHPRI | WQ_UNBOUND, 1, device);
	if (!ts->sq_send_wq) {
		kvfree(ts);
		return -ENOMEM;
	}
	trs_sq_init(ts);
	instances[device] = ts;
	return 0;
}

static void remove_instances(void)
{
	for (unsigned int i = 0; i < NPUS_MAX; i++) {
		if (!instances[i])
			continue;
		hrtimer_cancel(&instances[i]->doorbell);
		destroy_workqueue(instances[i]->sq_send_wq);
		kvfree(instances[i]);
	}
}

static int __init trs_init(void)
{
	int err = 0;

	how = !strcmp(mode, "kio") ? TRS_KIO : !strcmp(mode, "uio_t") ? TRS_UIO_T : TRS_UIO_D;
	if (how == TRS_UIO_D && strcmp(mode, "uio_d"))
		return -EINVAL;
	for (unsigned int i = 0; i < npusim_devices() && !err; i++)
		err = add_instance(i);
	if (err)
		goto end_instances;
	err = trs_proc_init(npusim_devices());
	if (err)
		goto end_instances;
	err = drv_ascend_register_sub_module("TSDRV", &trs_fops);
	if (err)
		goto end_proc;
	return 0;
end_proc:
	trs_proc_exit();
end_instances:
	remove_instances();
	return err;
}

static void __exit trs_exit(void)
{
	drv_ascend_unregister_sub_module("TSDRV");
	trs_proc_exit();
	remove_instances();
}

module_init(trs_init);
module_exit(trs_exit);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("ef377e9"); /* the sources whose layouts it has */
MODULE_DESCRIPTION("mock of an NPU driver: task queues");
