/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libnpuscope_agent.so: preloaded into a job, it sleeps until npuscope wakes it,
 * then opens the driver's task-log channel from inside the process that owns the
 * tasks (the driver gives the log to nobody else) and hands the bytes over through
 * shared memory. It parses nothing, allocates nothing while it runs, interposes no symbol, and touches the
 * driver only between wake-up and release. When the collector falls silent it lets go by itself.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/futex.h>
#include <linux/types.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#include "agent.h"
#include "session.h"

#define STACK_BYTES (512 << 10)
#define TURN_NS 10000000L /* between two reads of a channel */
#define RETRY_NS 200000000ULL /* between two tries to open one */
#define SILENCE_NS 5000000000ULL /* of the collector, before we let go */
#define READ_BYTES (256U << 10)
#define CLOCK_SAMPLES 8
#define EXIT_MS 200 /* at most, of the job's exit */

/* Driver facts: channel, types and codes of the profiling API of libascend_hal. */
#define CHANNEL_STARS_SOC_LOG 50
#define CHANNEL_TYPE_TS 0
#define SAMPLE_PERIOD_MS 20
#define ERR_STARTED_ALREADY (-3)
#define ERR_OCCUPIED (-10)
#define ERR_OCCUPIED_VF (-11)
#define ERR_NO_CONTEXT 115
#define MODULE_SYSTEM 0
#define INFO_SYS_COUNT 13
#define INFO_DEV_OSC_FREQUE 25

struct start_para {
	int32_t channel_type;
	uint32_t sample_period, real_time, pad;
	void *user_data;
	uint32_t user_data_size, pad2;
};

/* acsq_task, accPmu, cdqm, vpc, jpegd, jpege, ffts_context_task, ffts_block, sdma_dmu, tag, blockShink */
struct stars_log_config {
	uint32_t v[11];
};

struct channel {
	char name[32];
	uint32_t type, id;
};

struct channel_list {
	uint32_t chip_type, n;
	struct channel v[160];
};

struct chip_info {
	char type[32], name[32], version[32];
};

static struct driver {
	int (*get_channels)(unsigned device, struct channel_list *out);
	int (*start)(unsigned device, unsigned channel, struct start_para *p);
	int (*stop)(unsigned device, unsigned channel);
	int (*read)(unsigned device, unsigned channel, char *buf, unsigned size);
	int (*flush)(unsigned device, unsigned channel, unsigned *len);
	int (*device_count)(uint32_t *n);
	int (*device_info)(uint32_t device, int32_t module, int32_t info, int64_t *value);
	int (*chip_info)(unsigned device, struct chip_info *out);
} drv;

static struct nps_agent_control *ctl;
static char *ring;
static char buffer[READ_BYTES];
static struct channel_list channels;
static uint32_t clock_served;
static uint32_t exiting;

static uint64_t now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static uint32_t load32(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void store32(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* ---- ring ---------------------------------------------------------------- */

static uint64_t room(uint64_t head)
{
	return NPS_AGENT_RING_SIZE - (head - __atomic_load_n(&ctl->tail, __ATOMIC_ACQUIRE));
}

static bool put_block(uint32_t type, uint32_t device, uint32_t phase, const void *payload, uint32_t len)
{
	uint32_t need = sizeof(struct nps_agent_block) + ((len + 7) & ~7U);
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
	*b = (struct nps_agent_block){
		.type = type, .len = len, .device = device, .channel = CHANNEL_STARS_SOC_LOG, .phase = phase
	};
	memcpy(b + 1, payload, len);
	__atomic_store_n(&ctl->head, head + need, __ATOMIC_RELEASE);
	return true;
}

/* ---- driver ---------------------------------------------------------------- */

/*
 * The job exits while the channel is open: hand over what the driver still holds, and be out of its
 * code before its own destructors run. Bounded, whatever the driver does.
 */
static void let_go(void)
{
	const struct timespec turn = { .tv_nsec = 1000000 };

	store32(&exiting, 1);
	for (int i = 0; i < EXIT_MS && load32(&ctl->state) != NPS_AGENT_IDLE; i++) {
		__atomic_fetch_add(&ctl->wake, 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, &ctl->wake, FUTEX_WAKE, 1, NULL, NULL, 0);
		nanosleep(&turn, NULL);
	}
}

static int is_driver(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

	(void)size;
	(void)arg;
	return slash && strcmp(slash + 1, "libascend_hal.so") == 0;
}

static bool find_driver(void)
{
	static const struct {
		const char *name;
		size_t offset;
	} symbols[] = {
		{ "prof_drv_get_channels", offsetof(struct driver, get_channels) },
		{ "prof_drv_start", offsetof(struct driver, start) },
		{ "prof_stop", offsetof(struct driver, stop) },
		{ "prof_channel_read", offsetof(struct driver, read) },
		{ "halProfDataFlush", offsetof(struct driver, flush) },
		{ "drvGetDevNum", offsetof(struct driver, device_count) },
		{ "halGetDeviceInfo", offsetof(struct driver, device_info) },
		{ "halGetChipInfo", offsetof(struct driver, chip_info) },
	};
	void *hal;

	if (drv.start)
		return true;
	/* dlopen searches the file system even when told not to load */
	hal = dl_iterate_phdr(is_driver, NULL) ? dlopen("libascend_hal.so", RTLD_NOW | RTLD_NOLOAD) : NULL;
	if (!hal)
		return false;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		void *sym = dlsym(hal, symbols[i].name);

		memcpy((char *)&drv + symbols[i].offset, &sym, sizeof(sym));
	}
	/* flush and chip_info are conveniences; the reference keeps the library while we use it */
	if (!drv.get_channels || !drv.start || !drv.stop || !drv.read || !drv.device_count ||
	    !drv.device_info) {
		memset(&drv, 0, sizeof(drv));
		dlclose(hal);
		return false;
	}
	/* Registered after the driver's own handlers, so it runs before them. */
	atexit(let_go);
	return true;
}

static bool has_task_log(unsigned device)
{
	memset(&channels, 0, sizeof(channels));
	if (drv.get_channels(device, &channels))
		return false;
	for (uint32_t i = 0; i < channels.n && i < 160; i++)
		if (channels.v[i].id == CHANNEL_STARS_SOC_LOG)
			return true;
	return false;
}

static void describe(unsigned device, struct nps_agent_device *d)
{
	struct chip_info chip = {};
	int64_t khz = 0;

	if (drv.device_info(device, MODULE_SYSTEM, INFO_DEV_OSC_FREQUE, &khz) == 0 && khz > 0)
		d->freq_khz = (uint32_t)khz;
	if (drv.chip_info && drv.chip_info(device, &chip) == 0) {
		memcpy(d->chip, chip.name, sizeof(d->chip) - 1);
		d->chip[sizeof(d->chip) - 1] = '\0';
	}
}

static void open_channel(unsigned device)
{
	struct nps_agent_device *d = &ctl->device[device];
	struct stars_log_config config = { .v = { [0] = 1, [6] = 1 } };
	struct start_para p = { .channel_type = CHANNEL_TYPE_TS,
				.sample_period = SAMPLE_PERIOD_MS,
				.real_time = 1,
				.user_data = &config,
				.user_data_size = sizeof(config) };
	int err;

	if (!has_task_log(device)) {
		store32(&d->status, NPS_AGENT_S_NO_CHANNEL);
		return;
	}
	err = drv.start(device, CHANNEL_STARS_SOC_LOG, &p);
	d->error = err;
	switch (err) {
	case 0:
		describe(device, d);
		d->started_raw = now(CLOCK_MONOTONIC_RAW);
		store32(&d->status, NPS_AGENT_S_ON);
		break;
	case ERR_NO_CONTEXT:
		store32(&d->status, NPS_AGENT_S_OFF);
		break;
	case ERR_STARTED_ALREADY:
	case ERR_OCCUPIED:
	case ERR_OCCUPIED_VF:
		store32(&d->status, NPS_AGENT_S_BUSY);
		break;
	default:
		store32(&d->status, NPS_AGENT_S_ERROR);
	}
}

static bool any_open(void)
{
	for (unsigned i = 0; i < NPS_AGENT_MAX_DEVICES; i++)
		if (ctl->device[i].status == NPS_AGENT_S_ON)
			return true;
	return false;
}

static void open_channels(void)
{
	uint32_t n = 0;

	if (!find_driver() || drv.device_count(&n))
		return;
	for (uint32_t i = 0; i < n && i < NPS_AGENT_MAX_DEVICES; i++)
		if (ctl->device[i].status != NPS_AGENT_S_ON)
			open_channel(i);
}

static void read_channel(unsigned device)
{
	struct nps_agent_device *d = &ctl->device[device];
	int n;

	while ((n = drv.read(device, CHANNEL_STARS_SOC_LOG, buffer, sizeof(buffer))) > 0) {
		uint32_t phase = d->bytes % NPS_AGENT_RECORD;

		d->bytes += n;
		if (!put_block(NPS_AGENT_B_DATA, device, phase, buffer, n))
			__atomic_fetch_add(&ctl->lost, n, __ATOMIC_RELAXED);
	}
}

static void close_channel(unsigned device)
{
	unsigned len = 0;

	if (drv.flush)
		drv.flush(device, CHANNEL_STARS_SOC_LOG, &len);
	read_channel(device);
	drv.stop(device, CHANNEL_STARS_SOC_LOG);
	read_channel(device);
	store32(&ctl->device[device].status, NPS_AGENT_S_OFF);
}

/* Brackets a read of the device's counter between two of ours, several times. */
static void sample_clock(unsigned device)
{
	struct nps_device_clock c[CLOCK_SAMPLES];
	int n = 0;

	for (int i = 0; i < CLOCK_SAMPLES; i++) {
		int64_t counter = 0;

		c[n].device = device;
		c[n].pid = 0; /* the collector knows it */
		c[n].raw_before = now(CLOCK_MONOTONIC_RAW);
		if (drv.device_info(device, MODULE_SYSTEM, INFO_SYS_COUNT, &counter))
			continue;
		c[n].raw_after = now(CLOCK_MONOTONIC_RAW);
		c[n++].counter = (uint64_t)counter;
	}
	if (n && !put_block(NPS_AGENT_B_CLOCK, device, 0, c, n * sizeof(*c)))
		__atomic_fetch_add(&ctl->lost, n * sizeof(*c), __ATOMIC_RELAXED);
}

/* ---- life -------------------------------------------------------------------- */

static void wait_for_wake(uint32_t seen, const struct timespec *timeout)
{
	syscall(SYS_futex, &ctl->wake, FUTEX_WAIT, seen, timeout, NULL, 0);
}

static void for_each_open(void (*what)(unsigned device))
{
	for (unsigned i = 0; i < NPS_AGENT_MAX_DEVICES; i++)
		if (ctl->device[i].status == NPS_AGENT_S_ON)
			what(i);
}

static void serve_clock_request(void)
{
	uint32_t request = load32(&ctl->clock_request);

	if (request == clock_served)
		return;
	for_each_open(sample_clock);
	clock_served = request;
	store32(&ctl->clock_done, request);
}

static void run(void)
{
	const struct timespec turn = { .tv_nsec = TURN_NS };
	uint64_t tried = 0, heard = now(CLOCK_MONOTONIC);
	uint32_t beat = load32(&ctl->heartbeat);

	store32(&ctl->state, NPS_AGENT_RUN);
	while (load32(&ctl->command) == NPS_AGENT_RUN && !load32(&exiting)) {
		uint32_t seen = load32(&ctl->wake);
		uint64_t t = now(CLOCK_MONOTONIC);

		if (load32(&ctl->heartbeat) != beat) {
			beat = load32(&ctl->heartbeat);
			heard = t;
		} else if (t - heard > SILENCE_NS) {
			store32(&ctl->command, NPS_AGENT_IDLE);
			break;
		}
		/* Asking costs the driver a message: with one open, only when told of a change. */
		if (tried == 0 || (t - tried > RETRY_NS && !any_open())) {
			open_channels();
			tried = t;
		}
		for_each_open(read_channel);
		serve_clock_request();
		wait_for_wake(seen, &turn);
		if (load32(&ctl->wake) != seen)
			tried = 0; /* something changed: perhaps a device was set */
	}
	for_each_open(sample_clock);
	for_each_open(close_channel);
	store32(&ctl->state, NPS_AGENT_IDLE);
}

static void *agent_main(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "npuscope_agent");
	for (;;) {
		uint32_t seen = load32(&ctl->wake);

		if (load32(&ctl->command) == NPS_AGENT_RUN && !load32(&exiting))
			run();
		else
			wait_for_wake(seen, NULL);
	}
	return NULL;
}

/*
 * A process that cannot become an NPU job is left exactly as it was: a thread more would change what
 * it may do (unshare, setns). Python loads CANN later, everything else is linked with it.
 */
static bool may_use_npu(void)
{
	static const char *const libraries[] = { "libascendcl.so", "libacl_rt.so", "libascend_hal.so" };

	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++) {
		void *lib = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);

		if (lib) {
			dlclose(lib);
			return true;
		}
	}
	return dlsym(RTLD_DEFAULT, "Py_IsInitialized") != NULL;
}

/* No descriptor is kept: the job may close or reuse any number. A forked child has neither our
 * thread nor our memory (MADV_DONTFORK); exec gives it its own. */
static bool create_memory(void)
{
	size_t size = NPS_AGENT_CONTROL_SIZE + NPS_AGENT_RING_SIZE;
	struct rlimit limit;
	void *m = MAP_FAILED;
	int fd;

	_Static_assert(sizeof(struct nps_agent_control) <= NPS_AGENT_CONTROL_SIZE, "control page");
	/* Beyond the limit ftruncate would kill the job with SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < size)
		return false;
	fd = memfd_create(NPS_AGENT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return false;
	if (!ftruncate(fd, size) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (m == MAP_FAILED)
		return false;
	madvise(m, size, MADV_DONTFORK);
	ctl = m;
	ring = (char *)m + NPS_AGENT_CONTROL_SIZE;
	ctl->version = NPS_AGENT_VERSION;
	ctl->ring_size = NPS_AGENT_RING_SIZE;
	__atomic_store_n(&ctl->magic, NPS_AGENT_MAGIC, __ATOMIC_RELEASE);
	return true;
}

__attribute__((constructor)) static void agent_start(void)
{
	int saved = errno;
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;

	/* Whatever fails here, the job goes on as if we were not there. */
	if (!may_use_npu() || !create_memory())
		goto out;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, agent_main, NULL))
		ctl->magic = 0;
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
out:
	errno = saved;
}
