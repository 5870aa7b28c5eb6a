// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* /dev/davinci_manager: a descriptor is handed over to the part of the driver that the first ioctl names. */
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "driver.h"
#include "truth.h"

static unsigned int devices = 8;
module_param(devices, uint, 0444);
MODULE_PARM_DESC(devices, "NPUs of this host");

#define PARTS 16

static struct part {
	char name[32];
	const struct file_operations *fops;
} parts[PARTS];
static DEFINE_MUTEX(parts_lock);

struct intf_file {
	const struct file_operations *fops; /* NULL: not handed over */
	void *private;
	int device;
};

unsigned int npusim_devices(void)
{
	return min_t(unsigned int, devices, NPUS_MAX);
}
EXPORT_SYMBOL_GPL(npusim_devices);

int drv_ascend_register_sub_module(const char *name, const struct file_operations *fops)
{
	int err = -ENOSPC;

	mutex_lock(&parts_lock);
	for (int i = 0; i < PARTS && err; i++) {
		if (parts[i].fops)
			continue;
		strscpy(parts[i].name, name, sizeof(parts[i].name));
		parts[i].fops = fops;
		err = 0;
	}
	mutex_unlock(&parts_lock);
	return err;
}
EXPORT_SYMBOL_GPL(drv_ascend_register_sub_module);

void drv_ascend_unregister_sub_module(const char *name)
{
	mutex_lock(&parts_lock);
	for (int i = 0; i < PARTS; i++)
		if (parts[i].fops && !strcmp(parts[i].name, name))
			parts[i].fops = NULL;
	mutex_unlock(&parts_lock);
}
EXPORT_SYMBOL_GPL(drv_ascend_unregister_sub_module);

/* The part's module stays as long as the descriptor. */
static const struct file_operations *find_part(const char *name)
{
	const struct file_operations *fops = NULL;

	mutex_lock(&parts_lock);
	for (int i = 0; i < PARTS; i++)
		if (parts[i].fops && !strcmp(parts[i].name, name))
			fops = parts[i].fops;
	if (fops && !try_module_get(fops->owner))
		fops = NULL;
	mutex_unlock(&parts_lock);
	return fops;
}

void **drv_ascend_private(struct file *file)
{
	return &((struct intf_file *)file->private_data)->private;
}
EXPORT_SYMBOL_GPL(drv_ascend_private);

int drv_ascend_device(struct file *file)
{
	return ((struct intf_file *)file->private_data)->device;
}
EXPORT_SYMBOL_GPL(drv_ascend_device);

noinline int drv_ascend_intf_open(struct inode *inode, struct file *file)
{
	struct intf_file *f = kzalloc(sizeof(*f), GFP_KERNEL);

	if (!f)
		return -ENOMEM;
	file->private_data = f;
	TRUTH("open", current->tgid, current->pid, truth_now());
	return 0;
}

noinline int drv_ascend_intf_release(struct inode *inode, struct file *file)
{
	struct intf_file *f = file->private_data;

	if (f->fops) {
		f->fops->release(inode, file);
		module_put(f->fops->owner);
	}
	kfree(f);
	return 0;
}

static long hand_over(struct file *file, const void __user *from)
{
	struct intf_file *f = file->private_data;
	const struct file_operations *fops;
	struct intf_open_arg *arg;
	long err = 0;

	if (f->fops)
		return -EBUSY;
	arg = memdup_user(from, sizeof(*arg));
	if (IS_ERR(arg))
		return PTR_ERR(arg);
	arg->module_name[sizeof(arg->module_name) - 1] = 0;
	f->device = arg->device_id;
	fops = find_part(arg->module_name);
	if (!fops || arg->device_id < 0 || arg->device_id >= (int)npusim_devices())
		err = -ENODEV;
	kfree(arg);
	if (!err)
		err = fops->open(file_inode(file), file);
	if (!err)
		f->fops = fops;
	else if (fops)
		module_put(fops->owner);
	return err;
}

noinline long drv_ascend_intf_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct intf_file *f = file->private_data;

	if (_IOC_TYPE(cmd) == INTF_MAGIC)
		return _IOC_NR(cmd) == INTF_OPEN     ? hand_over(file, (const void __user *)arg)
		       : _IOC_NR(cmd) == INTF_STATUS ? 0
						     : -EINVAL;
	return f->fops ? f->fops->unlocked_ioctl(file, cmd, arg) : -EINVAL;
}

static const struct file_operations drv_ascend_intf_fops = {
	.owner = THIS_MODULE,
	.open = drv_ascend_intf_open,
	.release = drv_ascend_intf_release,
	.unlocked_ioctl = drv_ascend_intf_ioctl,
};

static struct miscdevice manager = {
	.minor = MISC_DYNAMIC_MINOR, .name = "davinci_manager", .fops = &drv_ascend_intf_fops, .mode = 0666
};

static int __init pbl_init(void)
{
	int err = npusim_truth_init();

	if (err)
		return err;
	err = uda_init();
	if (err)
		goto end_truth;
	err = misc_register(&manager);
	if (err)
		goto end_uda;
	return 0;
end_uda:
	uda_exit();
end_truth:
	npusim_truth_exit();
	return err;
}

static void __exit pbl_exit(void)
{
	misc_deregister(&manager);
	uda_exit();
	npusim_truth_exit();
}

module_init(pbl_init);
module_exit(pbl_exit);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("mock of an NPU driver: device nodes, and what really happened");
