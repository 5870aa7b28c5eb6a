// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* /proc/trs_core and /proc/trs_chan: what is in use, and the switches of the tracepoints. */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "trs.h"

static struct proc_dir_entry *core, *chan, *instances, *procs;
static bool traced[2][NPUS_MAX]; /* [0] trs_core, [1] trs_chan */

bool trs_traced_core(unsigned int device)
{
	return READ_ONCE(traced[0][device]);
}

bool trs_traced_chan(unsigned int device)
{
	return READ_ONCE(traced[1][device]);
}

/* Two bytes, "1\n" or "0\n", and nothing else. */
static ssize_t switch_write(struct file *file, const char __user *buf, size_t n, loff_t *pos)
{
	bool *on = pde_data(file_inode(file));
	char text[2];

	if (n != sizeof(text) || copy_from_user(text, buf, sizeof(text)) || text[1] != '\n')
		return -EINVAL;
	WRITE_ONCE(*on, text[0] == '1');
	return n;
}

static int switch_show(struct seq_file *m, void *v)
{
	seq_printf(m, "%d\n", *(bool *)m->private);
	return 0;
}

static int switch_open(struct inode *inode, struct file *file)
{
	return single_open(file, switch_show, pde_data(inode));
}

static const struct proc_ops switch_ops = { .proc_open = switch_open,
					    .proc_read = seq_read,
					    .proc_write = switch_write,
					    .proc_lseek = seq_lseek,
					    .proc_release = single_release };

static int summary_show(struct seq_file *m, void *v)
{
	struct trs_core_ts_inst *ts = m->private;

	seq_printf(m, "devid %u tsid %u hw_type 1\n", ts->inst.devid, ts->inst.tsid);
	mutex_lock(&ts->chan_lock);
	for (int i = 0; i < TRS_CHANS; i++)
		if (ts->chans[i])
			seq_printf(m, "pid %d stream %u sq %u cq %u chan %d\n", ts->chans[i]->pid,
				   ts->chans[i]->ctx.stream_id, ts->chans[i]->ctx.sqid,
				   ts->chans[i]->ctx.cqid, i);
	mutex_unlock(&ts->chan_lock);
	return 0;
}

static int queues_show(struct seq_file *m, void *v)
{
	struct trs_core_ts_inst *ts = m->private;

	seq_printf(m, "mode %s uio send ok %lld full %lld cqe %lld\n", trs_mode_name(),
		   (long long)atomic64_read(&ts->sent), (long long)atomic64_read(&ts->full),
		   (long long)atomic64_read(&ts->done));
	return 0;
}

static int process_show(struct seq_file *m, void *v)
{
	struct trs_proc_ctx *ctx = m->private;

	seq_printf(m, "pid %d task_id %d devid %u status 0\n", ctx->pid, ctx->task_id, ctx->ts->inst.devid);
	return 0;
}

void trs_proc_add(struct trs_proc_ctx *ctx)
{
	char name[64];

	snprintf(name, sizeof(name), "%d-%d-dev-%u", ctx->pid, ctx->task_id, ctx->ts->inst.devid);
	ctx->dir = procs ? proc_mkdir(name, procs) : NULL;
	if (ctx->dir)
		proc_create_single_data("summary", 0444, ctx->dir, process_show, ctx);
}

int trs_proc_init(unsigned int devices)
{
	core = proc_mkdir("trs_core", NULL);
	chan = proc_mkdir("trs_chan", NULL);
	instances = core ? proc_mkdir("ts_inst", core) : NULL;
	procs = core ? proc_mkdir("proc", core) : NULL;
	if (!core || !chan || !instances || !procs) {
		trs_proc_exit();
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < devices; i++) {
		struct proc_dir_entry *in_core, *in_chan;
		char name[32];

		snprintf(name, sizeof(name), "dev%u-ts0", i);
		in_core = proc_mkdir(name, instances);
		in_chan = proc_mkdir(name, chan);
		if (!in_core || !in_chan)
			continue;
		proc_create_single_data("summary", 0444, in_core, summary_show, trs_instance(i));
		proc_create_single_data("hw_sq", 0444, in_core, queues_show, trs_instance(i));
		proc_create_data("trace_enable", 0444, in_core, &switch_ops, &traced[0][i]);
		proc_create_data("trace_enable", 0444, in_chan, &switch_ops, &traced[1][i]);
	}
	return 0;
}

void trs_proc_exit(void)
{
	proc_remove(core);
	proc_remove(chan);
}
