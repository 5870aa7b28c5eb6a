// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* /dev/hisi_hdc: sessions with services of the device. */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "driver.h"
#include "truth.h"

#define HDC_MAGIC 'H'
enum { HDC_CONNECT = 0x13, HDC_CLOSE = 0x14, HDC_SEND = 0x15, HDC_RECV = 0x17, HDC_FAST_SEND = 0x22 };

struct hdcdrv_cmd_connect {
	int peer_pid, dev_id;
	u64 pid, check;
	int service_type, session;
	u8 rest[32];
};

struct hdcdrv_cmd_send {
	int ret, dev_id;
	u64 pid, check;
	int session, pad;
	void __user *src;
	int len;
	u8 rest[20];
};

struct hdcdrv_cmd_recv {
	int ret, dev_id;
	u64 pid, check;
	int session, pad;
	void __user *dst;
	int len;
	u8 rest[20];
};

_Static_assert(offsetof(struct hdcdrv_cmd_send, len) == 40 && sizeof(struct hdcdrv_cmd_send) == 64, "layout");
_Static_assert(offsetof(struct hdcdrv_cmd_connect, session) == 28 && sizeof(struct hdcdrv_cmd_connect) == 64,
	       "layout");

static atomic_t sessions;

static noinline long hdcdrv_connect(struct hdcdrv_cmd_connect *cmd, u32 fid)
{
	cmd->session = atomic_inc_return(&sessions);
	return cmd->dev_id >= 0 && cmd->dev_id < NPUS_MAX ? 0 : -ENODEV;
}

static noinline long hdcdrv_close(struct hdcdrv_cmd_connect *cmd, int mode)
{
	return cmd->session > 0 ? 0 : -EINVAL;
}

static noinline long hdcdrv_send(struct hdcdrv_cmd_send *cmd, int mode)
{
	cmd->ret = cmd->len;
	return cmd->session > 0 && cmd->len >= 0 ? 0 : -EINVAL;
}

static noinline long hdcdrv_fast_send(struct hdcdrv_cmd_send *cmd, int mode)
{
	return hdcdrv_send(cmd, mode);
}

static noinline long hdcdrv_recv(struct hdcdrv_cmd_recv *cmd, int mode)
{
	cmd->ret = cmd->len;
	return cmd->session > 0 && cmd->len >= 0 ? 0 : -EINVAL;
}

noinline long hdcdrv_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	union {
		struct hdcdrv_cmd_connect connect;
		struct hdcdrv_cmd_send send;
		struct hdcdrv_cmd_recv recv;
	} u;
	u64 entered = truth_now();
	int len = 0, session;
	long err;

	if (_IOC_TYPE(cmd) != HDC_MAGIC)
		return -EINVAL;
	if (copy_from_user(&u, (const void __user *)arg, sizeof(u)))
		return -EFAULT;
	switch (_IOC_NR(cmd)) {
	case HDC_CONNECT:
		err = hdcdrv_connect(&u.connect, 0);
		break;
	case HDC_CLOSE:
		err = hdcdrv_close(&u.connect, 0);
		break;
	case HDC_SEND:
		err = hdcdrv_send(&u.send, 0);
		len = u.send.len;
		break;
	case HDC_FAST_SEND:
		err = hdcdrv_fast_send(&u.send, 0);
		len = u.send.len;
		break;
	case HDC_RECV:
		err = hdcdrv_recv(&u.recv, 0);
		len = u.recv.len;
		break;
	default:
		return -EOPNOTSUPP;
	}
	session = len ? u.send.session : u.connect.session;
	if (!err && copy_to_user((void __user *)arg, &u, sizeof(u)))
		err = -EFAULT;
	TRUTH("hdc", u.send.dev_id, current->tgid, current->pid, _IOC_NR(cmd), session, len, entered,
	      truth_now());
	return err;
}

noinline int hdcdrv_open(struct inode *inode, struct file *file)
{
	return 0;
}

noinline int hdcdrv_release(struct inode *inode, struct file *file)
{
	return 0;
}

static const struct file_operations hdc_fops = {
	.owner = THIS_MODULE, .open = hdcdrv_open, .release = hdcdrv_release, .unlocked_ioctl = hdcdrv_ioctl
};

static struct miscdevice node = {
	.minor = MISC_DYNAMIC_MINOR, .name = "hisi_hdc", .fops = &hdc_fops, .mode = 0666
};

module_misc_device(node);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("mock of an NPU driver: host-device communication");
