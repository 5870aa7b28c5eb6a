/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "board.h"
#include "control.h"
#include "../truth/truth.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BOARD_MAGIC 0x3244524f4255504eull /* "NPUBORD2" */
#define LOCK_BOARD 0
#define LOCK_SLOT(i) (1 + (i))

static int lock_byte(int fd, int command, short type, off_t byte)
{
	struct flock fl = { .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	while (fcntl(fd, command, &fl)) {
		if (errno != EINTR)
			return -errno;
	}
	return command == F_OFD_GETLK ? fl.l_type : 0;
}

void board_lock(struct board *b)
{
	pthread_mutex_lock(&b->lock);
	if (lock_byte(b->fd, F_OFD_SETLKW, F_WRLCK, LOCK_BOARD)) {
		perror("npusim: board lock");
		abort();
	}
}

void board_unlock(struct board *b)
{
	lock_byte(b->fd, F_OFD_SETLK, F_UNLCK, LOCK_BOARD);
	pthread_mutex_unlock(&b->lock);
}

/* Our own lock never conflicts, so our own slot looks free here. */
static bool slot_held_by_other(struct board *b, unsigned int slot)
{
	return lock_byte(b->fd, F_OFD_GETLK, F_WRLCK, LOCK_SLOT(slot)) != F_UNLCK;
}

bool board_owner_alive(struct board *b, uint32_t owner)
{
	return owner && (owner == b->slot + 1 || slot_held_by_other(b, owner - 1));
}

static void power_up(struct board_shared *s, uint32_t device)
{
	const char *name = getenv("NPUSIM_CHIP");
	const struct chip *chip = chip_named(name);

	if (!chip) {
		fprintf(stderr, "npusim: NPUSIM_CHIP=%s: no such chip\n", name);
		chip = chip_named(NULL);
	}
	memset(s, 0, sizeof(*s));
	s->chip = chip_index(chip);
	s->ids = chip_ids_named(chip, getenv("NPUSIM_IDS"));
	s->resets_ordered = control_resets(device);
	clock_start(s, device, truth_now());
	s->magic = BOARD_MAGIC;
}

pid_t host_pid(void)
{
	char text[16];
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? (pid_t)atoi(text) : getpid();
}

/* What the slot's last holder left behind must not look like ours. */
static void clear_slot(struct board *b)
{
	struct board_shared *s = b->shared;
	uint32_t owner = b->slot + 1;

	for (int i = 0; i < PROF_CHANNELS; i++)
		s->channel_owner[i] = s->channel_owner[i] == owner ? 0 : s->channel_owner[i];
	for (int i = 0; i < BOARD_STREAMS; i++)
		s->stream_owner[i] = s->stream_owner[i] == owner ? 0 : s->stream_owner[i];
	for (int i = 0; i < BOARD_NOTIFIES; i++) {
		if (atomic_load(&s->notifies[i].owner) == owner)
			atomic_store(&s->notifies[i].owner, 0);
	}
	atomic_store(&s->slots[b->slot].hbm_used, 0);
	atomic_store(&s->slots[b->slot].pid, host_pid());
}

/* Called with the board locked. */
static drvError_t claim_slot(struct board *b, uint32_t device)
{
	int mine = -1;
	bool in_use = false;

	for (unsigned int i = 0; i < BOARD_SLOTS; i++) {
		if (slot_held_by_other(b, i))
			in_use = true;
		else if (mine < 0)
			mine = (int)i;
	}
	if (mine < 0)
		return DRV_ERROR_NO_RESOURCES;
	if (!in_use || b->shared->magic != BOARD_MAGIC)
		power_up(b->shared, device);
	if (lock_byte(b->fd, F_OFD_SETLK, F_WRLCK, LOCK_SLOT(mine)))
		return DRV_ERROR_NO_RESOURCES;
	b->slot = (unsigned int)mine;
	clear_slot(b);
	return DRV_ERROR_NONE;
}

/* As of a device node: for everybody, like a driver installed for all users, or NPUSIM_MODE, octal. */
static mode_t board_mode(void)
{
	const char *text = getenv("NPUSIM_MODE");

	return text ? (mode_t)strtoul(text, NULL, 8) : 0666;
}

static int board_open_file(uint32_t device)
{
	const char *name = getenv("NPUSIM_BOARD");
	char path[PATH_MAX];
	int fd;

	if (name && *name && !strchr(name, '/'))
		snprintf(path, sizeof(path), "/dev/shm/%s.%u", name, device);
	else
		snprintf(path, sizeof(path), "/dev/shm/npusim.%u", device);
	/* Without O_CREAT first: in a sticky directory the kernel may refuse it of another user's file. */
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		mode_t before = umask(0);

		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, board_mode());
		umask(before);
	}
	if (fd < 0)
		fprintf(stderr, "npusim: %s: %s\n", path, strerror(errno));
	return fd;
}

/* In a container the numbers begin with its first device. */
static uint32_t number_on_host(uint32_t device)
{
	const char *first = getenv("NPUSIM_FIRST_DEVICE");

	return device + (first ? (uint32_t)strtoul(first, NULL, 10) : 0);
}

drvError_t board_open(struct board *b, uint32_t device)
{
	size_t size = sizeof(struct board_shared);
	drvError_t err;

	device = number_on_host(device);

	b->fd = board_open_file(device);
	if (b->fd < 0)
		return DRV_ERROR_NO_DEVICE;
	pthread_mutex_init(&b->lock, NULL);
	board_lock(b);
	b->shared = ftruncate(b->fd, (off_t)size)
			    ? MAP_FAILED
			    : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	err = b->shared == MAP_FAILED ? DRV_ERROR_OUT_OF_MEMORY : claim_slot(b, device);
	board_unlock(b);
	if (err)
		close(b->fd);
	return err;
}

void board_forget(struct board *b)
{
	munmap(b->shared, sizeof(struct board_shared));
	close(b->fd);
}

int board_claim_stream(struct board *b)
{
	int id = -1;

	board_lock(b);
	for (int i = 0; i < BOARD_STREAMS && id < 0; i++) {
		if (!board_owner_alive(b, b->shared->stream_owner[i]))
			id = i;
	}
	if (id >= 0)
		b->shared->stream_owner[id] = b->slot + 1;
	board_unlock(b);
	return id;
}

void board_release_stream(struct board *b, uint32_t id)
{
	board_lock(b);
	b->shared->stream_owner[id] = 0;
	board_unlock(b);
}

int board_claim_notify(struct board *b)
{
	int id = -1;

	board_lock(b);
	for (int i = 0; i < BOARD_NOTIFIES && id < 0; i++) {
		if (!board_owner_alive(b, b->shared->notifies[i].owner))
			id = i;
	}
	if (id >= 0) {
		memset(&b->shared->notifies[id], 0, sizeof(struct board_notify));
		b->shared->notifies[id].owner = b->slot + 1;
	}
	board_unlock(b);
	return id;
}

void board_release_notify(struct board *b, uint32_t id)
{
	atomic_store(&b->shared->notifies[id].owner, 0);
}

bool board_claim_channel(struct board *b, uint32_t channel)
{
	uint32_t *owner = &b->shared->channel_owner[channel];
	bool used;

	board_lock(b);
	used = *owner != b->slot + 1 && board_owner_alive(b, *owner);
	if (!used)
		*owner = b->slot + 1;
	board_unlock(b);
	return !used;
}

void board_release_channel(struct board *b, uint32_t channel)
{
	board_lock(b);
	b->shared->channel_owner[channel] = 0;
	board_unlock(b);
}

uint32_t board_follow_reset(struct board *b, uint32_t orders)
{
	struct board_shared *s = b->shared;

	if (orders > s->resets_ordered) {
		board_lock(b);
		if (orders > s->resets_ordered) {
			s->resets_ordered = orders;
			memset(s->channel_owner, 0, sizeof(s->channel_owner));
			atomic_store(&s->reset_at, truth_now());
			clock_restart(s, atomic_load(&s->reset_at));
			atomic_fetch_add(&s->resets, 1);
		}
		board_unlock(b);
	}
	return atomic_load(&s->resets);
}

void board_ring(struct board *b, uint32_t slot)
{
	_Atomic uint32_t *bell = &b->shared->slots[slot].doorbell;

	atomic_fetch_add(bell, 1);
	syscall(SYS_futex, bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void board_notify_post(struct board *b, uint32_t id, uint64_t when)
{
	struct board_notify *n = &b->shared->notifies[id];
	uint32_t owner = atomic_load(&n->owner);

	if (!owner)
		return;
	atomic_store(&n->when[atomic_fetch_add(&n->posted, 1) % BOARD_POSTS], when);
	board_ring(b, owner - 1);
}

uint64_t board_notify_consume(struct board *b, uint32_t id)
{
	struct board_notify *n = &b->shared->notifies[id];
	uint64_t when = atomic_exchange(&n->when[n->used % BOARD_POSTS], 0);

	if (when)
		n->used++;
	return when;
}

uint64_t board_hbm_used(struct board *b)
{
	uint64_t sum = 0;

	board_lock(b);
	for (uint32_t i = 0; i < BOARD_SLOTS; i++) {
		if (board_owner_alive(b, i + 1))
			sum += atomic_load(&b->shared->slots[i].hbm_used);
	}
	board_unlock(b);
	return sum;
}

const struct chip *board_chip(const struct board *b)
{
	return chip_at(b->shared->chip);
}
