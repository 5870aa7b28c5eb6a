// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* /dev/davinciN and /proc/uda. */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#include "driver.h"

noinline bool uda_can_access_udevid(u32 udevid)
{
	return udevid < npusim_devices();
}
EXPORT_SYMBOL_GPL(uda_can_access_udevid);

noinline int uda_access_open(struct inode *inode, struct file *file)
{
	return 0;
}

noinline long uda_access_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return _IOC_TYPE(cmd) == 'U' ? 0 : -EINVAL;
}

static const struct file_operations uda_access_fops = { .owner = THIS_MODULE,
							.open = uda_access_open,
							.unlocked_ioctl = uda_access_ioctl };

static struct miscdevice nodes[NPUS_MAX];
static char names[NPUS_MAX][16];
static struct proc_dir_entry *dir;
static unsigned int made;

static int show_devices(struct seq_file *m, void *v)
{
	for (unsigned int i = 0; i < made; i++)
		seq_printf(m, "udevid %u chip_type 5 ns_id 0\n", i);
	return 0;
}

int uda_init(void)
{
	int err = 0;

	for (; made < npusim_devices() && !err; made++) {
		snprintf(names[made], sizeof(names[made]), "davinci%u", made);
		nodes[made] = (struct miscdevice){ .minor = MISC_DYNAMIC_MINOR,
						   .name = names[made],
						   .fops = &uda_access_fops,
						   .mode = 0666 };
		err = misc_register(&nodes[made]);
		if (err)
			break;
	}
	dir = proc_mkdir("uda", NULL);
	if (dir)
		proc_create_single("udevice", 0440, dir, show_devices);
	if (err)
		uda_exit();
	return err;
}

void uda_exit(void)
{
	proc_remove(dir);
	while (made)
		misc_deregister(&nodes[--made]);
}
