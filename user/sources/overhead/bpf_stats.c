/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/overhead/bpf_stats.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/privilege.h"

#define NONE INT_MAX /* no answer */

struct nps_bpf_stats {
	pthread_t thread;
	sem_t requested;
	atomic_bool stop;
	atomic_int fd;
};

static void *stats_run(void *arg)
{
	struct nps_bpf_stats *s = arg;

	nps_privilege__keep(NPS_PRIVILEGE_STATISTICS, false);
	for (;;) {
		while (sem_wait(&s->requested))
			;
		if (atomic_load(&s->stop))
			return NULL;
		atomic_store(&s->fd, bpf_enable_stats(BPF_STATS_RUN_TIME));
	}
}

int nps_bpf_stats__start(struct nps_bpf_stats **out)
{
	struct nps_bpf_stats *s = calloc(1, sizeof(*s));
	sigset_t all, old;
	int err;

	*out = NULL;
	if (!s)
		return -ENOMEM;
	sem_init(&s->requested, 0, 0);
	atomic_init(&s->stop, false);
	atomic_init(&s->fd, NONE);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = -pthread_create(&s->thread, NULL, stats_run, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		free(s);
	else
		*out = s;
	return err;
}

void nps_bpf_stats__request(struct nps_bpf_stats *s)
{
	sem_post(&s->requested);
}

bool nps_bpf_stats__answered(struct nps_bpf_stats *s, int *fd)
{
	*fd = atomic_exchange(&s->fd, NONE);
	return *fd != NONE;
}

void nps_bpf_stats__free(struct nps_bpf_stats *s)
{
	int fd;

	if (!s)
		return;
	atomic_store(&s->stop, true);
	sem_post(&s->requested);
	pthread_join(s->thread, NULL);
	if (nps_bpf_stats__answered(s, &fd) && fd >= 0)
		close(fd);
	sem_destroy(&s->requested);
	free(s);
}
