// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* /dev/devmm_svm: device memory as the driver sees it: numbers, no memory. */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "driver.h"
#include "truth.h"

#define SVM_MAGIC 'M'
#define PAGE_HUGE (2UL << 20)

struct devmm_ioctl_arg {
	u32 logical_devid, devid, vfid, pad;
	union {
		struct {
			u64 va, size;
		} alloc;
		struct {
			u64 va;
		} free;
		struct {
			u64 dst, src, bytes;
			u8 is_async;
			u32 direction;
		} copy;
		struct {
			u64 dst, src, dpitch, spitch, width, height;
			u32 direction;
		} copy2d;
		struct {
			u64 ptr, count;
			u32 advise;
		} advise;
		struct {
			u64 dst, value, count;
			u32 width;
		} set;
		u8 room[96];
	} data;
};

_Static_assert(offsetof(struct devmm_ioctl_arg, data) == 16, "layout");

struct devmm_svm_process {
	int pid;
	atomic64_t bytes, peak, allocs;
	struct proc_dir_entry *dir;
};

static struct proc_dir_entry *top, *tasks;
static atomic_t opened;

static void svm_charge(struct devmm_svm_process *p, s64 bytes)
{
	s64 now = atomic64_add_return(bytes, &p->bytes);

	if (now > atomic64_read(&p->peak))
		atomic64_set(&p->peak, now);
}

noinline int devmm_ioctl_alloc(struct devmm_svm_process *p, struct devmm_ioctl_arg *arg)
{
	atomic64_inc(&p->allocs);
	svm_charge(p, arg->data.alloc.size);
	return 0;
}

/* The simulated library passes the size behind the address, as the mock keeps no table of sizes. */
noinline int devmm_ioctl_free_pages(struct devmm_svm_process *p, struct devmm_ioctl_arg *arg)
{
	svm_charge(p, -(s64)arg->data.alloc.size);
	return 0;
}

noinline int devmm_ioctl_memcpy_proc(struct devmm_svm_process *p, struct devmm_ioctl_arg *arg)
{
	return hal_kernel_devdrv_dma_sync_copy(arg->devid, DEVDRV_DMA_DATA_TRAFFIC, arg->data.copy.src,
					       arg->data.copy.dst, (u32)arg->data.copy.bytes,
					       arg->data.copy.direction ? DEVDRV_DMA_DEVICE_TO_HOST
									: DEVDRV_DMA_HOST_TO_DEVICE);
}

noinline int devmm_ioctl_memcpy2d_proc(struct devmm_svm_process *p, struct devmm_ioctl_arg *arg)
{
	return hal_kernel_devdrv_dma_sync_copy(
		arg->devid, DEVDRV_DMA_DATA_TRAFFIC, arg->data.copy2d.src, arg->data.copy2d.dst,
		(u32)(arg->data.copy2d.width * arg->data.copy2d.height),
		arg->data.copy2d.direction ? DEVDRV_DMA_DEVICE_TO_HOST : DEVDRV_DMA_HOST_TO_DEVICE);
}

noinline int devmm_ioctl_advise(struct devmm_svm_process *p, struct devmm_ioctl_arg *arg)
{
	return arg->data.advise.count ? 0 : -EINVAL;
}

noinline int devmm_ioctl_memset8(struct devmm_svm_process *p, struct devmm_ioctl_arg *arg)
{
	return arg->data.set.count ? 0 : -EINVAL;
}

noinline int devmm_ioctl_setup_device(struct devmm_svm_process *p, struct devmm_ioctl_arg *arg)
{
	return devdrv_sync_msg_send(p, arg, sizeof(*arg), 0, NULL);
}

/* By number of the ioctl; called through this table, so none of them is inlined. */
static int (*const handlers[])(struct devmm_svm_process *, struct devmm_ioctl_arg *) = {
	[3] = devmm_ioctl_alloc,	 [4] = devmm_ioctl_free_pages, [5] = devmm_ioctl_memcpy_proc,
	[6] = devmm_ioctl_memcpy2d_proc, [13] = devmm_ioctl_advise,    [15] = devmm_ioctl_memset8,
	[26] = devmm_ioctl_setup_device,
};

static u64 bytes_of(unsigned int nr, const struct devmm_ioctl_arg *arg)
{
	return nr == 5 ? arg->data.copy.bytes : nr == 3 || nr == 4 ? arg->data.alloc.size : 0;
}

noinline long devmm_svm_ioctl(struct file *file, u32 cmd, unsigned long user)
{
	unsigned int nr = _IOC_NR(cmd);
	u64 entered = truth_now();
	struct devmm_ioctl_arg arg;
	long err;

	if (_IOC_TYPE(cmd) != SVM_MAGIC || nr >= ARRAY_SIZE(handlers) || !handlers[nr])
		return -EOPNOTSUPP;
	if (copy_from_user(&arg, (const void __user *)user, sizeof(arg)))
		return -EFAULT;
	err = handlers[nr](file->private_data, &arg);
	TRUTH("svm", arg.devid, current->tgid, current->pid, nr, bytes_of(nr, &arg), (u64)err, entered,
	      truth_now());
	return err;
}

static int task_show(struct seq_file *m, void *v)
{
	struct devmm_svm_process *p = m->private;

	seq_printf(m, "pid %d normal_page 0 huge_page %lld giant_page 0 peak_huge_page %lld allocs %lld\n",
		   p->pid, (long long)atomic64_read(&p->bytes) / (long long)PAGE_HUGE,
		   (long long)atomic64_read(&p->peak) / (long long)PAGE_HUGE,
		   (long long)atomic64_read(&p->allocs));
	return 0;
}

static int svm_summary_show(struct seq_file *m, void *v)
{
	seq_printf(m, "processes %d\n", atomic_read(&opened));
	return 0;
}

noinline int devmm_svm_open(struct inode *inode, struct file *file)
{
	struct devmm_svm_process *p = kzalloc(sizeof(*p), GFP_KERNEL);
	char name[16];

	if (!p)
		return -ENOMEM;
	p->pid = current->tgid;
	file->private_data = p;
	snprintf(name, sizeof(name), "%d", p->pid);
	/* A second descriptor of the process finds the folder made: it stays without. */
	p->dir = tasks ? proc_mkdir(name, tasks) : NULL;
	if (p->dir)
		proc_create_single_data("summary", 0444, p->dir, task_show, p);
	atomic_inc(&opened);
	return 0;
}

noinline int devmm_svm_release(struct inode *inode, struct file *file)
{
	struct devmm_svm_process *p = file->private_data;

	proc_remove(p->dir);
	kfree(p);
	atomic_dec(&opened);
	return 0;
}

static const struct file_operations devmm_fops = {
	.owner = THIS_MODULE,
	.open = devmm_svm_open,
	.release = devmm_svm_release,
	.unlocked_ioctl = (long (*)(struct file *, unsigned int, unsigned long))devmm_svm_ioctl
};

static struct miscdevice node = {
	.minor = MISC_DYNAMIC_MINOR, .name = "devmm_svm", .fops = &devmm_fops, .mode = 0666
};

static int __init svm_init(void)
{
	int err = misc_register(&node);

	if (err)
		return err;
	top = proc_mkdir("svm", NULL);
	tasks = top ? proc_mkdir("task", top) : NULL;
	if (top)
		proc_create_single("summary", 0444, top, svm_summary_show);
	return 0;
}

static void __exit svm_exit(void)
{
	misc_deregister(&node);
	proc_remove(top);
}

module_init(svm_init);
module_exit(svm_exit);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("mock of an NPU driver: shared virtual memory");
