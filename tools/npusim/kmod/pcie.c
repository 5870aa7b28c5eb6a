// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* Copies over PCIe: the caller sleeps until the DMA engine's interrupt. Nothing is moved. */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/sched.h>

#include "driver.h"
#include "truth.h"

#define SETUP_NS 2000
#define BYTES_PER_NS 16
#define DMA_IRQ 71

struct transfer {
	struct hrtimer timer; /* the engine */
	struct completion done;
	u64 irq_at;
	u32 udevid;
};

noinline irqreturn_t devdrv_dma_done_interrupt(int irq, void *data)
{
	struct transfer *t = data;

	t->irq_at = truth_now();
	complete(&t->done);
	return IRQ_HANDLED;
}

static enum hrtimer_restart transferred(struct hrtimer *timer)
{
	devdrv_dma_done_interrupt(DMA_IRQ, container_of(timer, struct transfer, timer));
	return HRTIMER_NORESTART;
}

static void transfer(u32 udevid, u64 size, enum devdrv_dma_direction dir, u64 entered)
{
	struct transfer t = { .udevid = udevid };

	init_completion(&t.done);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup_on_stack(&t.timer, transferred, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
#else
	hrtimer_init_on_stack(&t.timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	t.timer.function = transferred;
#endif
	npusim_timer_start(&t.timer, SETUP_NS + size / BYTES_PER_NS);
	wait_for_completion(&t.done);
	hrtimer_cancel(&t.timer);
	destroy_hrtimer_on_stack(&t.timer);
	TRUTH("dma", udevid, dir, size, current->tgid, current->pid, entered, t.irq_at, truth_now());
}

noinline int hal_kernel_devdrv_dma_sync_copy(u32 udevid, enum devdrv_dma_data_type type, u64 src, u64 dst,
					     u32 size, enum devdrv_dma_direction dir)
{
	transfer(udevid, size, dir, truth_now());
	return 0;
}
EXPORT_SYMBOL_GPL(hal_kernel_devdrv_dma_sync_copy);

noinline int devdrv_sync_msg_send(void *msg_chan, void *data, u32 in_len, u32 out_len, u32 *real_out_len)
{
	u64 entered = truth_now();

	if (real_out_len)
		*real_out_len = out_len;
	TRUTH("msg", in_len, out_len, current->tgid, current->pid, entered, truth_now());
	return 0;
}
EXPORT_SYMBOL_GPL(devdrv_sync_msg_send);

MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("ef377e9"); /* the sources whose layouts it has */
MODULE_DESCRIPTION("mock of an NPU driver: PCIe");
