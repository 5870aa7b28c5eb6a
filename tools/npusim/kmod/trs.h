/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* The mock's own state of task queues. */
#ifndef NPUSIM_KMOD_TRS_H
#define NPUSIM_KMOD_TRS_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/refcount.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "driver.h"

#define TRS_CHANS 1024
#define TRS_PROC_SQS 512

enum trs_mode {
	TRS_KIO, /* an SQE goes through an ioctl, all of it in the caller */
	TRS_UIO_T, /* the caller rings a doorbell; an interrupt starts a worker, which sends */
	TRS_UIO_D, /* user space does it all: no task reaches the kernel */
};

struct trs_core_ts_inst {
	struct trs_id_inst inst;
	int trigger_irq;
	struct workqueue_struct *sq_send_wq; /* devN_sq_send_wq */
	struct work_struct send_work;
	struct hrtimer doorbell; /* stands for the device's interrupt */
	spinlock_t lock; /* of the three below */
	struct list_head pending; /* struct batch */
	struct list_head waiters; /* struct waiter */
	u64 queued_at; /* of the work, 0: not queued */
	struct trs_queue *chans[TRS_CHANS]; /* written under chan_lock and with the worker at rest */
	struct mutex chan_lock;
	atomic64_t sent, full, done; /* SQEs, SQEs refused, CQEs */
};

struct trs_queue {
	struct trs_sq_ctx ctx;
	struct trs_core_ts_inst *ts;
	int pid; /* thread group */
	struct batch *sending;
};

struct trs_proc_ctx {
	int pid, task_id;
	struct trs_core_ts_inst *ts;
	struct trs_queue *queues[TRS_PROC_SQS];
	struct mutex lock;
	struct proc_dir_entry *dir;
};

struct batch {
	struct list_head list;
	struct trs_queue *queue;
	u64 called_at; /* when the ioctl was entered */
	u32 n;
	u8 sqes[];
};

enum trs_mode trs_mode(void);
const char *trs_mode_name(void);
struct trs_core_ts_inst *trs_instance(unsigned int device);
const struct trs_agent_ops *trs_agent(void);
bool trs_probes_busy(void);

void trs_sq_init(struct trs_core_ts_inst *ts);
long trs_sq_alloc(struct trs_proc_ctx *ctx, struct halSqCqInputInfo *in);
void trs_sq_free(struct trs_proc_ctx *ctx, u32 sqid);
void trs_sq_free_all(struct trs_proc_ctx *ctx);
/* The argument after INFO: when the ioctl was entered. */
long trs_sq_send(struct trs_proc_ctx *ctx, struct halTaskSendInfo *info, u64 called_at);
int trs_logic_cq_recv(struct trs_proc_ctx *ctx, struct trs_core_ts_inst *ts, struct halReportRecvInfo *info);

int trs_proc_init(unsigned int devices);
void trs_proc_exit(void);
void trs_proc_add(struct trs_proc_ctx *ctx);
bool trs_traced_core(unsigned int device);
bool trs_traced_chan(unsigned int device);

/* The tracepoints are in trs.c, where their code is made. */
void trs_trace_sqe(const char *what, struct trs_queue *q, const struct stars_sqe *sqe);
void trs_trace_cqe(const char *what, struct trs_core_ts_inst *ts, u32 cqid, const struct stars_cqe *cqe);
void trs_trace_logic_cqe(const char *what, struct trs_core_ts_inst *ts, u32 cqid,
			 const struct stars_cqe *cqe);
void trs_trace_logic_recv(const char *what, struct trs_core_ts_inst *ts, u32 cqid,
			  const struct stars_cqe *cqe);

#endif
