/* SPDX-License-Identifier: BSD-2-Clause */
/* The helper's memory, and the ring in it through which bytes go to the collector. */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent_impl.h"

static struct nps_agent_control *ctl;
static char *ring;
static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t room(uint64_t head)
{
	return NPS_AGENT_RING_SIZE - (head - __atomic_load_n(&ctl->tail, __ATOMIC_ACQUIRE));
}

static bool put_locked(const struct nps_agent_block *head_of, const void *payload)
{
	uint32_t len = head_of->len, need = sizeof(struct nps_agent_block) + ((len + 7) & ~7U);
	uint64_t head = ctl->head;
	uint32_t at = head & (NPS_AGENT_RING_SIZE - 1), to_end = NPS_AGENT_RING_SIZE - at;
	struct nps_agent_block *b;

	if (need > to_end) {
		if (room(head) < (uint64_t)to_end + need)
			return false;
		if (to_end >= sizeof(*b)) {
			b = (struct nps_agent_block *)(ring + at);
			*b = (struct nps_agent_block){ .type = NPS_AGENT_B_SKIP, .len = to_end - sizeof(*b) };
		}
		head += to_end;
		at = 0;
	} else if (room(head) < need) {
		return false;
	}
	b = (struct nps_agent_block *)(ring + at);
	*b = *head_of;
	memcpy(b + 1, payload, len);
	__atomic_store_n(&ctl->head, head + need, __ATOMIC_RELEASE);
	return true;
}

void nps_agent_ring__put(const struct nps_agent_block *head, const void *payload)
{
	pthread_mutex_lock(&ring_lock);
	if (!put_locked(head, payload))
		__atomic_fetch_add(&ctl->lost, head->len, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&ring_lock);
}

void nps_agent_wake(uint32_t *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/*
 * No descriptor is kept, because the job may close or reuse any number. A forked child has neither our
 * thread nor our memory (MADV_DONTFORK); after an exec it gets its own.
 */
struct nps_agent_control *nps_agent_ring__create(void)
{
	size_t size = NPS_AGENT_CONTROL_SIZE + NPS_AGENT_RING_SIZE;
	struct rlimit limit;
	void *m = MAP_FAILED;
	int fd;

	_Static_assert(sizeof(struct nps_agent_control) <= NPS_AGENT_CONTROL_SIZE, "control page");
	/* Beyond the limit ftruncate would kill the job by SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < size)
		return NULL;
	fd = memfd_create(NPS_AGENT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return NULL;
	if (!ftruncate(fd, size) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (m == MAP_FAILED)
		return NULL;
	madvise(m, size, MADV_DONTFORK);
	ctl = m;
	ring = (char *)m + NPS_AGENT_CONTROL_SIZE;
	ctl->version = NPS_AGENT_VERSION;
	ctl->ring_size = NPS_AGENT_RING_SIZE;
	__atomic_store_n(&ctl->magic, NPS_AGENT_MAGIC, __ATOMIC_RELEASE);
	return ctl;
}
