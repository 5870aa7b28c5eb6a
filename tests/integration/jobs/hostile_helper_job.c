/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A job that forges the memory of npuscope's helper library: `hostile_helper_job HOW [N]`, N processes of it.
 * It knows the layout (kheaders/agent.h), and breaks its rules in one way:
 *   flood     blocks of the largest size, as fast as they are taken
 *   breaks    small blocks, none of which follows the one before
 *   devices   as `breaks`, of every channel of every device in turn
 *   clocks    nothing but samples of clocks
 *   garbage   blocks of random type, length and device
 *   head      the number of bytes written jumps
 *   errors    every error of the driver that there is room for, always others
 *   deaf      does not stop when ordered to, and floods on
 *   running   claims to be running before anybody woke it, and for ever
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

#include "agent.h"
#include "session.h"

#define SIZE (NPS_AGENT_CONTROL_SIZE + NPS_AGENT_RING_SIZE)

static struct nps_agent_control *ctl;
static char *ring;

static void make_memory(void)
{
	int fd = memfd_create(NPS_AGENT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *m;

	if (fd < 0 || ftruncate(fd, SIZE) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		exit(1);
	m = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED)
		exit(1);
	ctl = m;
	ring = (char *)m + NPS_AGENT_CONTROL_SIZE;
	ctl->version = NPS_AGENT_VERSION;
	ctl->ring_size = NPS_AGENT_RING_SIZE;
	ctl->magic = NPS_AGENT_MAGIC;
}

static bool put(struct nps_agent_block b)
{
	uint32_t need = sizeof(b) + ((b.len + 7) & ~7U);
	uint64_t head = ctl->head,
		 room = NPS_AGENT_RING_SIZE - (head - __atomic_load_n(&ctl->tail, __ATOMIC_ACQUIRE));
	uint32_t at = head & (NPS_AGENT_RING_SIZE - 1), end = NPS_AGENT_RING_SIZE - at;

	if (need > end) {
		struct nps_agent_block skip = { .type = NPS_AGENT_B_SKIP, .len = end - sizeof(b) };

		if (room < (uint64_t)end + need)
			return false;
		if (end >= sizeof(skip))
			memcpy(ring + at, &skip, sizeof(skip));
		head += end;
		at = 0;
	} else if (room < need) {
		return false;
	}
	memcpy(ring + at, &b, sizeof(b));
	__atomic_store_n(&ctl->head, head + need, __ATOMIC_RELEASE);
	return true;
}

static void flood(void)
{
	static uint64_t position;
	struct nps_agent_block b = { .type = NPS_AGENT_B_DATA,
				     .len = NPS_AGENT_BLOCK_MAX,
				     .channel = 50,
				     .epoch = 1,
				     .position = position };

	if (put(b))
		position += b.len;
}

static void breaks(void)
{
	static uint32_t epoch;

	epoch++;
	put((struct nps_agent_block){ .type = NPS_AGENT_B_DATA,
				      .len = 64,
				      .channel = 50,
				      .epoch = epoch,
				      .position = (uint64_t)epoch << 40 });
}

static void devices(void)
{
	static const uint16_t channels[] = { 43, 44, 45, 48, 50, 51, 53, 85, 143 };
	static uint32_t n;
	uint32_t channel = n / NPS_AGENT_MAX_DEVICES % (sizeof(channels) / sizeof(*channels));

	put((struct nps_agent_block){ .type = NPS_AGENT_B_DATA,
				      .len = 64,
				      .device = (uint16_t)(n % NPS_AGENT_MAX_DEVICES),
				      .channel = channels[channel],
				      .epoch = n + 1 });
	n++;
}

static void clocks(void)
{
	put((struct nps_agent_block){ .type = NPS_AGENT_B_CLOCK,
				      .len = 16 * sizeof(struct nps_device_clock) });
}

static void garbage(void)
{
	put((struct nps_agent_block){ .type = (uint32_t)rand() % 5,
				      .len = (uint32_t)rand() % 100000,
				      .device = (uint16_t)rand(),
				      .channel = (uint16_t)rand(),
				      .epoch = (uint32_t)rand(),
				      .position = (uint64_t)rand() << 33 });
}

static void head(void)
{
	__atomic_fetch_add(&ctl->head, (uint64_t)rand() & 0x1ffffff8, __ATOMIC_RELEASE);
}

static void errors(void)
{
	for (int d = 0; d < NPS_AGENT_MAX_DEVICES; d++) {
		struct nps_agent_device *device = &ctl->device[d];

		device->started_raw = 1;
		device->status = (uint32_t)rand();
		device->refused = (uint32_t)rand();
		device->open = (uint32_t)rand();
		device->n_errors = (uint32_t)rand();
		memset(device->chip, '%', sizeof(device->chip));
		for (int i = 0; i < NPS_AGENT_MAX_ERRORS; i++) {
			device->want_error[i] = rand();
			device->errors[i] =
				(struct nps_agent_error){ (uint32_t)rand(), (uint32_t)rand(), rand() };
		}
	}
	usleep(1000);
}

static const struct {
	const char *name;
	void (*turn)(void);
	bool deaf;
} ways[] = { { "flood", flood, false },	  { "breaks", breaks, false },	 { "devices", devices, false },
	     { "clocks", clocks, false }, { "garbage", garbage, false }, { "head", head, false },
	     { "errors", errors, false }, { "deaf", flood, true },	 { "running", NULL, true } };
#define N_WAYS (sizeof(ways) / sizeof(*ways))

static void attack(size_t way)
{
	make_memory();
	if (!ways[way].turn)
		ctl->state = NPS_AGENT_RUN;
	printf("ready %d\n", getpid());
	fflush(stdout);
	for (;;) {
		if (!ways[way].turn) {
			pause();
			continue;
		}
		if (ctl->command != NPS_AGENT_RUN && !(ways[way].deaf && ctl->state == NPS_AGENT_RUN)) {
			ctl->state = NPS_AGENT_IDLE;
			usleep(2000);
			continue;
		}
		ctl->state = NPS_AGENT_RUN;
		ctl->device[0].status = NPS_AGENT_S_ON;
		ctl->device[0].started_raw = 1;
		ctl->device[0].freq_khz = 50000;
		ctl->device[0].open = 1;
		ways[way].turn();
	}
}

int main(int argc, char **argv)
{
	size_t way = 0;
	int more = argc > 2 ? atoi(argv[2]) - 1 : 0;

	while (way < N_WAYS && (argc < 2 || strcmp(argv[1], ways[way].name) != 0))
		way++;
	if (way == N_WAYS)
		return 2;
	for (; more > 0; more--)
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			break;
		}
	srand((unsigned int)getpid());
	attack(way);
}
