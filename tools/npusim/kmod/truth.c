// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* The lines, kept in memory until they are read. Writing to the file forgets them. */
#include "truth.h"

#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

#include "driver.h"

#define LINES (1 << 17)
#define NAME 14

struct line {
	char what[NAME];
	u8 n;
	u64 v[TRUTH_VALUES];
};

static struct line *lines;
static unsigned long used, lost;
static DEFINE_SPINLOCK(lock);
static struct dentry *dir;

void npusim_truth_add(const char *what, const u64 *values, unsigned int n)
{
	unsigned long flags;
	struct line *l;

	spin_lock_irqsave(&lock, flags);
	if (used == LINES) {
		lost++;
	} else {
		l = &lines[used++];
		strscpy(l->what, what, NAME);
		l->n = min_t(unsigned int, n, TRUTH_VALUES);
		memcpy(l->v, values, l->n * sizeof(u64));
	}
	spin_unlock_irqrestore(&lock, flags);
}
EXPORT_SYMBOL_GPL(npusim_truth_add);

static void *truth_start(struct seq_file *m, loff_t *pos)
{
	return *pos <= READ_ONCE(used) ? pos : NULL;
}

static void *truth_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return truth_start(m, pos);
}

static void truth_stop(struct seq_file *m, void *v)
{
}

static int truth_show(struct seq_file *m, void *v)
{
	unsigned long at = *(loff_t *)v;
	const struct line *l = &lines[at];

	if (at == READ_ONCE(used)) {
		seq_printf(m, "lost\t%lu\n", lost);
		return 0;
	}
	seq_puts(m, l->what);
	for (unsigned int i = 0; i < l->n; i++)
		seq_printf(m, "\t%lld", (long long)l->v[i]);
	seq_putc(m, '\n');
	return 0;
}

static const struct seq_operations truth_seq = {
	.start = truth_start, .next = truth_next, .stop = truth_stop, .show = truth_show
};

static int truth_open(struct inode *inode, struct file *file)
{
	return seq_open(file, &truth_seq);
}

static ssize_t truth_write(struct file *file, const char __user *buf, size_t n, loff_t *pos)
{
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	used = lost = 0;
	spin_unlock_irqrestore(&lock, flags);
	return n;
}

static const struct file_operations truth_fops = {
	.owner = THIS_MODULE,
	.open = truth_open,
	.read = seq_read,
	.write = truth_write,
	.llseek = seq_lseek,
	.release = seq_release,
};

int npusim_truth_init(void)
{
	lines = vzalloc(array_size(LINES, sizeof(*lines)));
	if (!lines)
		return -ENOMEM;
	dir = debugfs_create_dir("npusim", NULL);
	debugfs_create_file("truth", 0600, dir, NULL, &truth_fops);
	return 0;
}

void npusim_truth_exit(void)
{
	debugfs_remove_recursive(dir);
	vfree(lines);
}
