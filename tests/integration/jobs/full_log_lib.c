/* SPDX-License-Identifier: BSD-2-Clause */
/* A libascend_hal.so whose channels always have more: a read is filled to the last byte. */
#include <string.h>

int prof_drv_get_channels(unsigned device, void *list);
int prof_drv_start(unsigned device, unsigned channel, void *para);
int prof_stop(unsigned device, unsigned channel);
int prof_channel_read(unsigned device, unsigned channel, char *buf, unsigned size);

int prof_drv_get_channels(unsigned device, void *list)
{
	(void)device;
	(void)list;
	return 0;
}

int prof_drv_start(unsigned device, unsigned channel, void *para)
{
	(void)device;
	(void)channel;
	(void)para;
	return 0;
}

int prof_stop(unsigned device, unsigned channel)
{
	return device > 63 || channel > 159;
}

int prof_channel_read(unsigned device, unsigned channel, char *buf, unsigned size)
{
	memset(buf, (int)(device + channel), size);
	return (int)size;
}
