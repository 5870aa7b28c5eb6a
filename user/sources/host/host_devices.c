/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/host/host_devices.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clocks.h"
#include "core/log.h"
#include "sources/host/host_parse.h"

#define MOST_DISKS 512
#define MOST_CARDS 1024 /* of all namespaces together */
#define MOST_NAMESPACES 64
#define MBIT 125000U /* bytes a second */

struct namespace
{
	ino_t ino;
	int dev; /* /proc/PID/net/dev keeps the namespace alive while it is open */
	int socket; /* for queries of an interface's speed, -1: not possible */
};

struct known_card {
	int namespace;
	char name[NPS_HOST_NAME_MAX];
};

struct nps_host_devices {
	struct nps_host_out *out;
	int diskstats;
	struct namespace namespaces[MOST_NAMESPACES];
	int n_namespaces;
	uint32_t disks[MOST_DISKS]; /* ids already named */
	size_t n_disks;
	struct known_card cards[MOST_CARDS];
	size_t n_cards;
	uint64_t missed;
	struct nps_named_disk disk_rows[MOST_DISKS];
	struct nps_named_card card_rows[MOST_CARDS];
};

ssize_t nps_read_proc(int fd, char *text, size_t size)
{
	size_t have = 0;

	while (have < size) {
		ssize_t n = pread(fd, text + have, size - have, (off_t)have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

/* --- disks ------------------------------------------------------------------------------------------- */

/* Has the block device that entry in sysfs and, if it is a folder, is it not empty? */
static bool has_entry(uint32_t id, const char *entry)
{
	char path[80];
	struct dirent *e;
	struct stat st;
	bool any = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", id >> 20, id & 0xfffff, entry);
	if (stat(path, &st))
		return false;
	if (!S_ISDIR(st.st_mode))
		return true;
	dir = opendir(path);
	while (dir && !any && (e = readdir(dir)))
		any = e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return any;
}

static bool is_known_disk(struct nps_host_devices *d, const struct nps_named_disk *disk)
{
	struct nps_host_name name = { .what = NPS_HOST_DISK,
				      .id = disk->disk.id,
				      .time = nps_now(CLOCK_MONOTONIC) };

	for (size_t i = 0; i < d->n_disks; i++)
		if (d->disks[i] == disk->disk.id)
			return true;
	if (d->n_disks == MOST_DISKS) {
		d->missed++;
		return false;
	}
	if (has_entry(disk->disk.id, "partition") || has_entry(disk->disk.id, "slaves") ||
	    has_entry(disk->disk.id, "loop"))
		name.flags |= NPS_HOST_PART;
	d->disks[d->n_disks++] = disk->disk.id;
	nps_host_out__name(d->out, name, disk->name);
	return true;
}

void nps_host_devices__disks(struct nps_host_devices *d, char *text, size_t size)
{
	ssize_t len = d->diskstats < 0 ? -1 : nps_read_proc(d->diskstats, text, size);
	uint64_t now = nps_now(CLOCK_MONOTONIC);
	size_t n = len > 0 ? nps_host_parse__disks(text, (size_t)len, d->disk_rows, MOST_DISKS) : 0;

	for (size_t i = 0; i < n; i++) {
		d->disk_rows[i].disk.time = now;
		if (is_known_disk(d, &d->disk_rows[i]))
			nps_host_out__put(d->out, NPS_CHUNK_HOST_DISKS, &d->disk_rows[i].disk,
					  sizeof(d->disk_rows[i].disk));
	}
}

/* --- interfaces -------------------------------------------------------------------------------------- */

/* Bytes a second of an interface, from its driver; 0 unknown: virtual ones have none. */
static uint64_t speed_of(int sock, const char *name)
{
	struct ethtool_cmd cmd = { .cmd = ETHTOOL_GSET };
	struct ifreq request = { .ifr_data = (char *)&cmd };
	uint32_t mbit;

	if (sock < 0)
		return 0;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", name);
	if (ioctl(sock, SIOCETHTOOL, &request))
		return 0;
	mbit = (uint32_t)cmd.speed_hi << 16 | cmd.speed;
	return mbit == (uint32_t)SPEED_UNKNOWN || mbit == UINT16_MAX ? 0 : (uint64_t)mbit * MBIT;
}

/* The number of an interface, which is named when it is new; UINT32_MAX: no room. */
static uint32_t card_id(struct nps_host_devices *d, int namespace, const char *text)
{
	struct nps_host_name name = { .what = NPS_HOST_CARD,
				      .flags = namespace ? NPS_HOST_JOB_NET : 0,
				      .id = (uint32_t)d->n_cards,
				      .time = nps_now(CLOCK_MONOTONIC) };

	for (size_t i = 0; i < d->n_cards; i++)
		if (d->cards[i].namespace == namespace && !strcmp(d->cards[i].name, text))
			return (uint32_t)i;
	if (d->n_cards == MOST_CARDS) {
		d->missed++;
		return UINT32_MAX;
	}
	d->cards[d->n_cards].namespace = namespace;
	snprintf(d->cards[d->n_cards].name, sizeof(d->cards->name), "%s", text);
	d->n_cards++;
	name.speed = speed_of(d->namespaces[namespace].socket, text);
	nps_host_out__name(d->out, name, text);
	return name.id;
}

static void sample_namespace(struct nps_host_devices *d, int namespace, char *text, size_t size)
{
	ssize_t len = nps_read_proc(d->namespaces[namespace].dev, text, size);
	uint64_t now = nps_now(CLOCK_MONOTONIC);
	size_t n = len > 0 ? nps_host_parse__cards(text, (size_t)len, d->card_rows, MOST_CARDS) : 0;

	for (size_t i = 0; i < n; i++) {
		d->card_rows[i].card.time = now;
		d->card_rows[i].card.id = card_id(d, namespace, d->card_rows[i].name);
		if (d->card_rows[i].card.id != UINT32_MAX)
			nps_host_out__put(d->out, NPS_CHUNK_HOST_CARDS, &d->card_rows[i].card,
					  sizeof(d->card_rows[i].card));
	}
}

void nps_host_devices__cards(struct nps_host_devices *d, char *text, size_t size)
{
	for (int i = 0; i < d->n_namespaces; i++)
		sample_namespace(d, i, text, size);
}

/* Opens a socket in another network namespace. Only this thread enters it, and returns. */
static int socket_in(const char *path)
{
	int ours = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int theirs = open(path, O_RDONLY | O_CLOEXEC), sock = -1;

	if (ours >= 0 && theirs >= 0 && !setns(theirs, CLONE_NEWNET)) {
		sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (setns(ours, CLONE_NEWNET))
			nps_debug("cannot come back from %s: %s", path, strerror(errno));
	}
	if (ours >= 0)
		close(ours);
	if (theirs >= 0)
		close(theirs);
	return sock;
}

bool nps_host_devices__add_namespace(struct nps_host_devices *d, pid_t pid)
{
	struct namespace *ns = &d->namespaces[d->n_namespaces];
	char path[48];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	if (stat(path, &st))
		return false;
	for (int i = 0; i < d->n_namespaces; i++)
		if (d->namespaces[i].ino == st.st_ino)
			return true;
	if (d->n_namespaces == MOST_NAMESPACES) {
		d->missed++;
		return true;
	}
	ns->ino = st.st_ino;
	ns->socket = pid == getpid() ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : socket_in(path);
	snprintf(path, sizeof(path), "/proc/%d/net/dev", pid);
	ns->dev = open(path, O_RDONLY | O_CLOEXEC);
	if (ns->dev < 0) {
		d->missed++;
		if (ns->socket >= 0)
			close(ns->socket);
		return true;
	}
	d->n_namespaces++;
	return true;
}

uint64_t nps_host_devices__missed(const struct nps_host_devices *d)
{
	return d->missed;
}

int nps_host_devices__new(struct nps_host_out *out, struct nps_host_devices **devices)
{
	struct nps_host_devices *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->out = out;
	d->diskstats = open("/proc/diskstats", O_RDONLY | O_CLOEXEC);
	nps_host_devices__add_namespace(d, getpid()); /* number 0 is the host's */
	*devices = d;
	return 0;
}

void nps_host_devices__free(struct nps_host_devices *d)
{
	if (!d)
		return;
	for (int i = 0; i < d->n_namespaces; i++) {
		close(d->namespaces[i].dev);
		if (d->namespaces[i].socket >= 0)
			close(d->namespaces[i].socket);
	}
	if (d->diskstats >= 0)
		close(d->diskstats);
	free(d);
}
