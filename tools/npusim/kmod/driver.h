/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Structs and functions of an Ascend driver as far as the mock has them: names, argument order and offsets
 * are those that are known of the real one.
 */
#ifndef NPUSIM_KMOD_DRIVER_H
#define NPUSIM_KMOD_DRIVER_H

#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <linux/version.h>

#define NPUS_MAX 16

/* --- the entry: davinci_manager passes descriptors to parts of the driver --- */

#define INTF_MAGIC 'Z'
enum { INTF_OPEN = 0, INTF_CLOSE = 1, INTF_STATUS = 2 };

struct intf_open_arg {
	char module_name[256];
	int device_id;
};

int drv_ascend_register_sub_module(const char *name, const struct file_operations *fops);
void drv_ascend_unregister_sub_module(const char *name);
/* What a part keeps of a descriptor that was handed to it, and the device it is for. */
void **drv_ascend_private(struct file *file);
int drv_ascend_device(struct file *file);

int npusim_truth_init(void);
void npusim_truth_exit(void);
int uda_init(void);
void uda_exit(void);
unsigned int npusim_devices(void);

/* --- task queues --- */

#define TSDRV_MAGIC 'X'
enum { TSDRV_SQCQ_ALLOC = 15, TSDRV_SQCQ_FREE = 16, TSDRV_SQCQ_SEND = 19, TSDRV_SQCQ_RECV = 20 };

struct trs_id_inst {
	u32 devid, tsid;
};

struct trs_chan_send_para {
	u8 *sqe;
	u32 sqe_num, first_pos;
	int timeout;
};

struct trs_sqe_update_info {
	int pid;
	void *sq_base;
	u32 sqid, sqeid;
	void *sqe;
	u32 size;
	u32 *long_sqe_cnt;
};

struct trs_sq_ctx {
	struct trs_id_inst inst;
	u32 type, flag, status, sq_num, sqid, cqid, stream_id;
	int chan_id;
	u32 sq_depth, sqe_size, sq_tail, mode;
};

_Static_assert(offsetof(struct trs_chan_send_para, timeout) == 16, "layout");
_Static_assert(offsetof(struct trs_sqe_update_info, long_sqe_cnt) == 40, "layout");
_Static_assert(offsetof(struct trs_sq_ctx, chan_id) == 36 && offsetof(struct trs_sq_ctx, mode) == 52,
	       "layout");

/* As user space passes them. */
struct halTaskSendInfo {
	s32 type;
	u32 tsId, sqId;
	s32 timeout;
	u8 __user *sqe_addr;
	u32 sqe_num, pos, res[8];
};

struct halReportRecvInfo {
	u32 type, tsId, cqId;
	s32 timeout;
	u8 __user *cqe_addr;
	u32 cqe_num, report_cqe_num, stream_id, task_id;
	u64 done_in; /* reserved in the real one: ns until the simulated device has done the task */
	u32 res[6];
};

struct halSqCqInputInfo {
	u32 type, tsId, sqeSize, cqeSize, sqeDepth, cqeDepth, grpId, flag, cqId, sqId, info[5], ext_info_len;
	void __user *ext_info;
	u32 res[6];
};

struct stars_sqe {
	u8 type, flags;
	u16 block_dim, stream, task;
	u8 rest[56];
};

struct stars_cqe {
	u16 flags, sq_head, stream, task;
	u64 status;
};

#define SQE_SIZE 64
#define CQE_SIZE 16
/* What the device's ids are before the agent decodes them; the real code is another. */
#define CQE_STREAM_CODE 0x8000
#define CQE_TASK_CODE 0x3000
#define CQE_FAILED 0x8000 /* of the flags; its status has the reason */
_Static_assert(sizeof(struct stars_sqe) == SQE_SIZE && sizeof(struct stars_cqe) == CQE_SIZE, "layout");
_Static_assert(sizeof(struct halTaskSendInfo) == 64 && sizeof(struct halReportRecvInfo) == 72 &&
		       sizeof(struct halSqCqInputInfo) == 96,
	       "layout");

struct trs_agent_ops {
	int (*sqe_update)(u32 devid, u32 tsid, struct trs_sqe_update_info *info);
	int (*cqe_update)(u32 devid, u32 tsid, int pid, u32 cqid, void *cqe);
};

void trs_register_agent(const struct trs_agent_ops *ops);
int trs_chan_ops_sqe_update(struct trs_id_inst *inst, struct trs_sqe_update_info *info);
int hal_kernel_trs_chan_send(struct trs_id_inst *inst, int chan_id, struct trs_chan_send_para *para);

/* --- PCIe --- */

enum devdrv_dma_direction { DEVDRV_DMA_HOST_TO_DEVICE = 0, DEVDRV_DMA_DEVICE_TO_HOST = 1 };
enum devdrv_dma_data_type { DEVDRV_DMA_DATA_COMMON = 0, DEVDRV_DMA_DATA_TRAFFIC = 2 };

int hal_kernel_devdrv_dma_sync_copy(u32 udevid, enum devdrv_dma_data_type type, u64 src, u64 dst, u32 size,
				    enum devdrv_dma_direction dir);
int devdrv_sync_msg_send(void *msg_chan, void *data, u32 in_len, u32 out_len, u32 *real_out_len);

/* --- differences between kernels --- */

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 17, 0)
#define pde_data PDE_DATA
#endif

static inline void npusim_timer_init(struct hrtimer *t, enum hrtimer_restart (*fn)(struct hrtimer *))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(t, fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
#else
	hrtimer_init(t, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	t->function = fn;
#endif
}

static inline void npusim_timer_start(struct hrtimer *t, u64 ns)
{
	hrtimer_start(t, ns_to_ktime(ns), HRTIMER_MODE_REL_HARD);
}

#endif
