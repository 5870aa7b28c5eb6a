/* SPDX-License-Identifier: BSD-2-Clause */
/* A data loader: a thread that reads batches from a file and hands them over through a short queue. */
#define _GNU_SOURCE
#include "job.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define QUEUE_DEPTH 3
#define DATASET_BATCHES 32
#define SLOW_READ_NS 150000000L

struct loader {
	int fd;
	size_t batch_bytes;
	long slow_every;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	long produced, consumed;
	bool stopping;
	void *batches[QUEUE_DEPTH];
};

static int create_dataset(int rank, size_t batch_bytes)
{
	const char *dir = getenv("TMPDIR");
	char path[PATH_MAX];
	char *batch = malloc(batch_bytes);
	int fd;

	snprintf(path, sizeof(path), "%s/npusim-dataset.%d.%d", dir ? dir : "/tmp", getpid(), rank);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	check(fd < 0 || !batch, "dataset");
	for (int i = 0; i < DATASET_BATCHES; i++) {
		memset(batch, i, batch_bytes);
		check(write(fd, batch, batch_bytes) != (ssize_t)batch_bytes, "dataset write");
	}
	unlink(path); /* the file lasts as long as the job */
	free(batch);
	return fd;
}

static bool is_slow(const struct loader *l, long step)
{
	return l->slow_every && step % l->slow_every == l->slow_every - 1;
}

static void read_batch(struct loader *l, long step)
{
	const struct timespec slow = { .tv_nsec = SLOW_READ_NS };
	off_t offset = step % DATASET_BATCHES * (off_t)l->batch_bytes;

	if (is_slow(l, step))
		nanosleep(&slow, NULL); /* a file server having a bad moment */
	check(pread(l->fd, l->batches[step % QUEUE_DEPTH], l->batch_bytes, offset) != (ssize_t)l->batch_bytes,
	      "dataset read");
}

/* A slot is free when the batch in it is no longer the consumer's current one. */
static void *loader_run(void *arg)
{
	struct loader *l = arg;

	prctl(PR_SET_NAME, "loader");
	pthread_mutex_lock(&l->lock);
	while (!l->stopping) {
		long step = l->produced;

		if (step - l->consumed >= QUEUE_DEPTH - 1) {
			pthread_cond_wait(&l->changed, &l->lock);
			continue;
		}
		pthread_mutex_unlock(&l->lock);
		read_batch(l, step);
		pthread_mutex_lock(&l->lock);
		l->produced++;
		pthread_cond_broadcast(&l->changed);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

struct loader *loader_create(int rank, size_t batch_bytes, long slow_every)
{
	struct loader *l = calloc(1, sizeof(*l));

	check(!l, "loader");
	l->fd = create_dataset(rank, batch_bytes);
	l->batch_bytes = batch_bytes;
	l->slow_every = slow_every;
	for (int i = 0; i < QUEUE_DEPTH; i++)
		check(aclrtMallocHost(&l->batches[i], batch_bytes), "aclrtMallocHost");
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	check(pthread_create(&l->thread, NULL, loader_run, l), "loader thread");
	return l;
}

const void *loader_next(struct loader *l, long step)
{
	pthread_mutex_lock(&l->lock);
	l->consumed = step;
	pthread_cond_broadcast(&l->changed);
	while (l->produced <= step)
		pthread_cond_wait(&l->changed, &l->lock);
	pthread_mutex_unlock(&l->lock);
	return l->batches[step % QUEUE_DEPTH];
}

void loader_destroy(struct loader *l)
{
	pthread_mutex_lock(&l->lock);
	l->stopping = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
	for (int i = 0; i < QUEUE_DEPTH; i++)
		check(aclrtFreeHost(l->batches[i]), "aclrtFreeHost");
	close(l->fd);
	free(l);
}
