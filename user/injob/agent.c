/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libnpuscope_agent.so: preloaded into a job, or loaded into it later. It sleeps until npuscope wakes it,
 * then opens the channels that npuscope wants (task logs, counters) from inside the process that owns the
 * tasks, because the driver provides the log only there, and passes the bytes on through shared memory. It
 * parses nothing, and calls the driver only between wake-up and release. Each device has a thread of its
 * own, so that a slow driver call delays no other device. When the collector's heartbeat stops it releases
 * the devices by itself.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/futex.h>
#include <linux/types.h>
#include <pthread.h>
#include <sched.h>
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

#include "agent_impl.h"
#include "agent_start.h"

#define STACK_BYTES (512 << 10)
#define TURN_NS 10000000L /* between two reads of a channel */
#define RETRY_NS 200000000ULL /* between two tries to open one */
#define SILENCE_NS 5000000000ULL /* without a heartbeat of the collector, before the devices are released */
#define READ_BYTES (256U << 10)
#define CLOCK_SAMPLES 8
#define LAST_SAMPLES 4 /* factor when the capture ends: nothing comes after them */
#define EXIT_MS 200 /* longest delay of the job's exit */
#define MOST_FAILURES 3 /* failed calls in a row before a channel is opened again, or abandoned */
/* between two tries to open channels that were refused while the log was open */
#define BESIDE_NS 1000000000ULL

/* Driver facts: types and codes of the profiling API of libascend_hal. */
#define ERR_STARTED_ALREADY (-3)
#define ERR_STOPPED_ALREADY (-4)
#define ERR_OCCUPIED (-10)
#define ERR_OCCUPIED_VF (-11)
#define ERR_NO_CONTEXT 115
#define MODULE_SYSTEM 0
#define MODULE_AICORE 4
#define MODULE_VECTOR_CORE 7
#define INFO_CORE_NUM 3
#define INFO_FREQUENCY 4
#define INFO_SYS_COUNT 13
#define INFO_DEV_OSC_FREQUE 25
#define MAX_CHANNELS 160

struct start_para {
	int32_t channel_type;
	uint32_t sample_period, real_time, pad;
	void *user_data;
	uint32_t user_data_size, pad2;
};

struct channel {
	char name[32];
	uint32_t type, id;
};

struct channel_list {
	uint32_t chip_type, n;
	struct channel v[MAX_CHANNELS];
};

struct agent_chip_info {
	char type[32], name[32], version[32];
};

static struct agent_driver {
	int (*get_channels)(unsigned device, struct channel_list *out);
	int (*start)(unsigned device, unsigned channel, struct start_para *p);
	int (*stop)(unsigned device, unsigned channel);
	int (*read)(unsigned device, unsigned channel, char *buf, unsigned size);
	int (*flush)(unsigned device, unsigned channel, unsigned *len);
	int (*device_count)(uint32_t *n);
	int (*device_info)(uint32_t device, int32_t module, int32_t info, int64_t *value);
	int (*chip_info)(unsigned device, struct agent_chip_info *out);
} drv;

/* One device's thread. */
struct worker {
	pthread_t thread;
	unsigned device;
	uint32_t clock_served;
	uint32_t *epoch; /* by want */
	uint64_t position[NPS_AGENT_MAX_WANTS];
	uint32_t failures[NPS_AGENT_MAX_WANTS]; /* failed reads in a row */
	uint64_t beside; /* time of the last try to open channels other than the log */
	bool running;
	struct channel_list channels;
	char buffer[READ_BYTES];
};

static struct nps_agent_control *ctl;
static uint32_t epochs[NPS_AGENT_MAX_DEVICES][NPS_AGENT_MAX_WANTS]; /* how often each was opened, ever */
static uint32_t exiting;
static pid_t own_pid; /* a forked child does not have the threads */

static bool wanted(void)
{
	return nps_agent_load(&ctl->command) == NPS_AGENT_RUN && !nps_agent_load(&exiting);
}

/* ---- driver ---------------------------------------------------------------- */

/*
 * The job exits while the channel is open: pass on what the driver still has, and leave its code before its
 * own destructors run. The time is limited, whatever the driver does.
 */
static void agent_let_go(void)
{
	const struct timespec turn = { .tv_nsec = 1000000 };

	if (getpid() != own_pid)
		return;
	nps_agent_store(&exiting, 1);
	for (int i = 0; i < EXIT_MS && nps_agent_load(&ctl->state) != NPS_AGENT_IDLE; i++) {
		nps_agent_wake(&ctl->wake);
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
		{ "prof_drv_get_channels", offsetof(struct agent_driver, get_channels) },
		{ "prof_drv_start", offsetof(struct agent_driver, start) },
		{ "prof_stop", offsetof(struct agent_driver, stop) },
		{ "prof_channel_read", offsetof(struct agent_driver, read) },
		{ "halProfDataFlush", offsetof(struct agent_driver, flush) },
		{ "drvGetDevNum", offsetof(struct agent_driver, device_count) },
		{ "halGetDeviceInfo", offsetof(struct agent_driver, device_info) },
		{ "halGetChipInfo", offsetof(struct agent_driver, chip_info) },
	};
	void *hal;

	if (drv.start)
		return true;
	/* dlopen searches the file system even with RTLD_NOLOAD */
	hal = dl_iterate_phdr(is_driver, NULL) ? dlopen("libascend_hal.so", RTLD_NOW | RTLD_NOLOAD) : NULL;
	if (!hal)
		return false;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		void *sym = dlsym(hal, symbols[i].name);

		memcpy((char *)&drv + symbols[i].offset, &sym, sizeof(sym));
	}
	/* flush and chip_info are optional; the reference keeps the library loaded while it is used */
	if (!drv.get_channels || !drv.start || !drv.stop || !drv.read || !drv.device_count ||
	    !drv.device_info) {
		memset(&drv, 0, sizeof(drv));
		dlclose(hal);
		return false;
	}
	/* Registered after the driver's own handlers, so it runs before them. */
	atexit(agent_let_go);
	return true;
}

/* ---- a device ---------------------------------------------------------------- */

static uint32_t driver_number(unsigned device, int module, int info)
{
	int64_t v = 0;

	return drv.device_info(device, module, info, &v) == 0 && v > 0 && v < UINT32_MAX ? (uint32_t)v : 0;
}

static void describe(const struct worker *w, struct nps_agent_device *d)
{
	struct agent_chip_info chip = {};

	d->freq_khz = driver_number(w->device, MODULE_SYSTEM, INFO_DEV_OSC_FREQUE);
	d->chip_type = w->channels.chip_type;
	d->aic_cores = driver_number(w->device, MODULE_AICORE, INFO_CORE_NUM);
	d->aiv_cores = driver_number(w->device, MODULE_VECTOR_CORE, INFO_CORE_NUM);
	d->aic_mhz = driver_number(w->device, MODULE_AICORE, INFO_FREQUENCY);
	d->aiv_mhz = driver_number(w->device, MODULE_VECTOR_CORE, INFO_FREQUENCY);
	if (drv.chip_info && drv.chip_info(w->device, &chip) == 0) {
		memcpy(d->chip, chip.name, sizeof(d->chip) - 1);
		d->chip[sizeof(d->chip) - 1] = '\0';
	}
}

static bool offered(const struct worker *w, const struct nps_agent_want *want)
{
	const struct channel_list *list = &w->channels;
	uint32_t type = list->chip_type < 63 ? list->chip_type : 63;

	if (!(want->chips >> type & 1))
		return false;
	for (uint32_t i = 0; i < list->n && i < MAX_CHANNELS; i++)
		if (list->v[i].id == want->channel)
			return true;
	return false;
}

/* Each kind of error once: the collector reports it to the user. */
static void note_error(const struct worker *w, uint32_t channel, uint32_t call, int code)
{
	struct nps_agent_device *d = &ctl->device[w->device];
	uint32_t n = d->n_errors;

	for (uint32_t i = 0; i < n && i < NPS_AGENT_MAX_ERRORS; i++)
		if (d->errors[i].channel == channel && d->errors[i].call == call && d->errors[i].code == code)
			return;
	if (n >= NPS_AGENT_MAX_ERRORS)
		return;
	d->errors[n] = (struct nps_agent_error){ .channel = channel, .call = call, .code = code };
	nps_agent_store(&d->n_errors, n + 1);
}

static uint32_t status_of(int err)
{
	switch (err) {
	case 0:
		return NPS_AGENT_S_ON;
	case ERR_NO_CONTEXT:
		return NPS_AGENT_S_OFF;
	case ERR_STARTED_ALREADY:
	case ERR_OCCUPIED:
	case ERR_OCCUPIED_VF:
		return NPS_AGENT_S_BUSY;
	default:
		return NPS_AGENT_S_ERROR;
	}
}

static int open_channel(struct worker *w, uint32_t i)
{
	struct nps_agent_device *d = &ctl->device[w->device];
	/* a copy: the driver may write to the memory that it is passed */
	struct nps_agent_want want = ctl->want[i];
	struct start_para p = { .channel_type = want.type,
				.sample_period = want.period_ms,
				.real_time = 1,
				.user_data = want.size ? want.data : NULL,
				.user_data_size = want.size <= sizeof(want.data) ? want.size : 0 };
	int err = drv.start(w->device, want.channel, &p);

	d->want_error[i] = err;
	if (err) {
		d->refused |= 1U << i;
		if (err != ERR_NO_CONTEXT)
			note_error(w, want.channel, NPS_AGENT_CALL_START, err);
		return err;
	}
	w->epoch[i]++;
	w->position[i] = 0;
	w->failures[i] = 0;
	d->refused &= ~(1U << i);
	__atomic_fetch_or(&d->open, 1U << i, __ATOMIC_RELEASE);
	return 0;
}

/* The task log first: without it, or if another process has it, nothing else is useful. */
static void open_channels(struct worker *w)
{
	struct nps_agent_device *d = &ctl->device[w->device];
	uint32_t n = ctl->n_wants < NPS_AGENT_MAX_WANTS ? ctl->n_wants : NPS_AGENT_MAX_WANTS;
	uint32_t status = NPS_AGENT_S_NO_CHANNEL;

	memset(&w->channels, 0, sizeof(w->channels));
	nps_agent_store(&d->status, NPS_AGENT_S_OPENING);
	d->error = drv.get_channels(w->device, &w->channels);
	if (d->error) {
		note_error(w, 0, NPS_AGENT_CALL_CHANNELS, d->error);
		nps_agent_store(&d->status, NPS_AGENT_S_ERROR);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!offered(w, &ctl->want[i]) || (!ctl->want[i].log && status != NPS_AGENT_S_ON))
			continue;
		if (nps_agent_load(&d->hold) || !wanted()) {
			nps_agent_store(&d->status,
					nps_agent_load(&d->hold) ? NPS_AGENT_S_HELD : NPS_AGENT_S_OFF);
			return;
		}
		if (nps_agent_load(&d->open) >> i & 1)
			continue;
		if (!ctl->want[i].log) {
			open_channel(w, i);
			continue;
		}
		if (status == NPS_AGENT_S_ON)
			continue;
		d->error = open_channel(w, i);
		status = status_of(d->error);
		if (status != NPS_AGENT_S_ON)
			break;
		describe(w, d);
		d->started_raw = nps_agent_now(CLOCK_MONOTONIC_RAW);
	}
	nps_agent_store(&d->status, status);
}

/* A channel that is not stopped would stay open in the job, so a stop that failed is repeated. */
static void stop_channel(struct worker *w, uint32_t i)
{
	struct nps_agent_device *d = &ctl->device[w->device];
	uint32_t channel = ctl->want[i].channel;
	int err = -1;

	for (int k = 0; err && err != ERR_STOPPED_ALREADY && k < MOST_FAILURES; k++) {
		err = drv.stop(w->device, channel);
		if (err && err != ERR_STOPPED_ALREADY)
			note_error(w, channel, NPS_AGENT_CALL_STOP, err);
	}
	__atomic_fetch_and(&d->open, ~(1U << i), __ATOMIC_RELEASE);
}

/*
 * A single read may fail. If reads keep failing, or the channel was
 * stopped, as by a reset, it is opened again.
 */
static void worker_failed(struct worker *w, uint32_t i, int err)
{
	struct nps_agent_device *d = &ctl->device[w->device];
	bool log = ctl->want[i].log;

	/* A reset stops all channels: it is only reported for the log. */
	if (log || err != ERR_STOPPED_ALREADY)
		note_error(w, ctl->want[i].channel, NPS_AGENT_CALL_READ, err);
	if (err != ERR_STOPPED_ALREADY && ++w->failures[i] < MOST_FAILURES)
		return;
	d->want_error[i] = log ? err : 0;
	if (log) {
		d->error = err;
		nps_agent_store(&d->status, NPS_AGENT_S_ERROR);
	}
	stop_channel(w, i);
	d->refused |= 1U << i; /* until it is open again */
}

static void read_channel(struct worker *w, uint32_t i)
{
	struct nps_agent_device *d = &ctl->device[w->device];
	uint32_t channel = ctl->want[i].channel;
	int n;

	while ((n = drv.read(w->device, channel, w->buffer, sizeof(w->buffer))) > 0) {
		struct nps_agent_block b = { .type = NPS_AGENT_B_DATA,
					     .len = (uint32_t)n,
					     .device = (uint16_t)w->device,
					     .channel = (uint16_t)channel,
					     .epoch = w->epoch[i],
					     .position = w->position[i] };

		w->failures[i] = 0;
		d->bytes += n;
		w->position[i] += n;
		nps_agent_ring__put(&b, w->buffer);
	}
	if (n < 0)
		worker_failed(w, i, n);
	else
		w->failures[i] = 0;
}

/* Few channels support it; if it fails the device sends the rest at the stop, or never. */
static void flush_channel(struct worker *w, uint32_t i)
{
	uint32_t channel = ctl->want[i].channel;
	unsigned len = 0;
	int err = drv.flush ? drv.flush(w->device, channel, &len) : 0;

	if (err && err != ERR_STOPPED_ALREADY && ctl->want[i].log)
		note_error(w, channel, NPS_AGENT_CALL_FLUSH, err);
}

static void close_channel(struct worker *w, uint32_t i)
{
	struct nps_agent_device *d = &ctl->device[w->device];

	flush_channel(w, i);
	do
		read_channel(w, i);
	while (w->failures[i] && nps_agent_load(&d->open) >> i & 1);
	if (nps_agent_load(&d->open) >> i & 1)
		stop_channel(w, i);
}

static void for_each_open(struct worker *w, void (*what)(struct worker *w, uint32_t i))
{
	for (uint32_t i = 0; i < NPS_AGENT_MAX_WANTS; i++)
		if (nps_agent_load(&ctl->device[w->device].open) >> i & 1)
			what(w, i);
}

/* Reads the device's counter several times, each between two reads of our clock. */
static void sample_clock(const struct worker *w)
{
	struct nps_device_clock c[CLOCK_SAMPLES];
	struct nps_agent_block b = { .type = NPS_AGENT_B_CLOCK, .device = (uint16_t)w->device };
	int n = 0;

	for (int i = 0; i < CLOCK_SAMPLES; i++) {
		int64_t counter = 0;

		c[n].device = w->device;
		c[n].pid = 0; /* the collector knows it */
		c[n].raw_before = nps_agent_now(CLOCK_MONOTONIC_RAW);
		if (drv.device_info(w->device, MODULE_SYSTEM, INFO_SYS_COUNT, &counter))
			continue;
		c[n].raw_after = nps_agent_now(CLOCK_MONOTONIC_RAW);
		c[n++].counter = (uint64_t)counter;
	}
	b.len = n * sizeof(*c);
	if (n)
		nps_agent_ring__put(&b, c);
}

static void serve_clock_request(struct worker *w)
{
	uint32_t request = nps_agent_load(&ctl->clock_request);

	/* Skips devices that the process does not use. */
	if (request == w->clock_served || !ctl->device[w->device].started_raw)
		return;
	sample_clock(w);
	w->clock_served = request;
	nps_agent_store(&ctl->clock_done, request);
}

static void let_go_of(struct worker *w, uint32_t status)
{
	struct nps_agent_device *d = &ctl->device[w->device];

	for (int i = 0; nps_agent_load(&d->open) && i < LAST_SAMPLES; i++)
		sample_clock(w);
	for_each_open(w, close_channel);
	nps_agent_store(&d->status, status);
	__atomic_store_n(&d->busy, 0, __ATOMIC_SEQ_CST);
	nps_agent_wake(&ctl->released);
}

/*
 * Tries again to open channels that another process had, or that failed,
 * until the log itself is opened again.
 */
static void open_beside(struct worker *w, uint64_t t)
{
	struct nps_agent_device *d = &ctl->device[w->device];
	uint32_t missing = d->refused & ~nps_agent_load(&d->open);

	if (!missing || nps_agent_load(&d->status) != NPS_AGENT_S_ON || t - w->beside < BESIDE_NS)
		return;
	w->beside = t;
	for (uint32_t i = 0; i < NPS_AGENT_MAX_WANTS; i++)
		if (missing >> i & 1 && !ctl->want[i].log && !nps_agent_load(&d->hold))
			open_channel(w, i);
}

/*
 * Sets `busy` before it reads `hold`; yield_device() does the opposite,
 * so that one of the two sees the other's change.
 */
static void try_to_open(struct worker *w)
{
	struct nps_agent_device *d = &ctl->device[w->device];

	__atomic_store_n(&d->busy, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&d->hold, __ATOMIC_SEQ_CST))
		open_channels(w);
	if (nps_agent_load(&d->status) != NPS_AGENT_S_ON)
		let_go_of(w, nps_agent_load(&d->status));
}

/* ---- threads ---------------------------------------------------------------- */

static void wait_for_wake(uint32_t seen, long ns)
{
	const struct timespec timeout = { .tv_nsec = ns };

	syscall(SYS_futex, &ctl->wake, FUTEX_WAIT, seen, ns ? &timeout : NULL, NULL, 0);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct nps_agent_device *d = &ctl->device[w->device];
	uint64_t tried = 0;

	prctl(PR_SET_NAME, NPS_AGENT_COMM);
	while (wanted()) {
		uint32_t seen = nps_agent_load(&ctl->wake);
		uint64_t t = nps_agent_now(CLOCK_MONOTONIC);

		if (nps_agent_load(&d->hold) && nps_agent_load(&d->busy))
			let_go_of(w, NPS_AGENT_S_HELD);
		/* A query costs the driver a message: with a channel open, only after an announced change. */
		if (!nps_agent_load(&d->hold) && nps_agent_load(&d->status) != NPS_AGENT_S_ON &&
		    (!tried || t - tried > RETRY_NS)) {
			try_to_open(w);
			tried = t;
		}
		for_each_open(w, read_channel);
		open_beside(w, t);
		serve_clock_request(w);
		wait_for_wake(seen, nps_agent_load(&d->open) ? TURN_NS : (long)RETRY_NS);
		if (nps_agent_load(&ctl->wake) != seen)
			tried = 0; /* something changed: perhaps a device was set */
	}
	/* The reason why nothing was recorded is reported after the end. */
	let_go_of(w, d->status == NPS_AGENT_S_ON ? NPS_AGENT_S_OFF : d->status);
	return NULL;
}

static void start_workers(struct worker **workers, uint32_t n)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (uint32_t i = 0; i < n && i < NPS_AGENT_MAX_DEVICES; i++) {
		if (workers[i])
			continue;
		/* Not malloc(): the job may have replaced it by one that cannot be used in other threads. */
		workers[i] = mmap(NULL, sizeof(**workers), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (workers[i] == MAP_FAILED) {
			workers[i] = NULL;
			break;
		}
		workers[i]->device = i;
		workers[i]->epoch = epochs[i];
		workers[i]->running = !pthread_create(&workers[i]->thread, &attr, work, workers[i]);
	}
	pthread_attr_destroy(&attr);
}

static void end_workers(struct worker **workers)
{
	nps_agent_wake(&ctl->wake);
	for (uint32_t i = 0; i < NPS_AGENT_MAX_DEVICES; i++) {
		if (!workers[i])
			continue;
		if (workers[i]->running)
			pthread_join(workers[i]->thread, NULL);
		munmap(workers[i], sizeof(**workers));
		workers[i] = NULL;
	}
}

/* The sampler has ended without releasing its devices, and cannot do so any more. */
static void forget_sampler(void)
{
	for (unsigned i = 0; i < NPS_AGENT_MAX_DEVICES; i++)
		__atomic_store_n(&ctl->device[i].sampled, 0, __ATOMIC_SEQ_CST);
	nps_agent_wake(&ctl->released);
}

/*
 * Checks the collector's heartbeat while the devices' threads work. A silence in which this thread was not
 * scheduled hardly counts, because on a stopped machine the collector could not send heartbeats either.
 */
static void agent_run(void)
{
	static struct worker *workers[NPS_AGENT_MAX_DEVICES];
	uint32_t beat = nps_agent_load(&ctl->heartbeat), n;
	uint64_t checked = nps_agent_now(CLOCK_MONOTONIC), silent = 0;

	nps_agent_yield__begin();
	nps_agent_store(&ctl->state, NPS_AGENT_RUN);
	while (wanted()) {
		uint32_t seen = nps_agent_load(&ctl->wake);
		uint64_t t = nps_agent_now(CLOCK_MONOTONIC);

		silent += t - checked > 2 * RETRY_NS ? 2 * RETRY_NS : t - checked;
		checked = t;
		if (nps_agent_load(&ctl->heartbeat) != beat) {
			beat = nps_agent_load(&ctl->heartbeat);
			silent = 0;
		} else if (silent > SILENCE_NS) {
			nps_agent_store(&ctl->command, NPS_AGENT_IDLE);
			forget_sampler();
			break;
		}
		n = 0;
		if (find_driver() && !drv.device_count(&n))
			start_workers(workers, n);
		wait_for_wake(seen, (long)RETRY_NS);
	}
	end_workers(workers);
	nps_agent_store(&ctl->state, NPS_AGENT_IDLE);
}

static void *agent_main(void *arg)
{
	int nice;

	(void)arg;
	prctl(PR_SET_NAME, NPS_AGENT_COMM);
	errno = 0;
	nice = getpriority(PRIO_PROCESS, (id_t)own_pid);
	if (!errno)
		setpriority(PRIO_PROCESS, 0,
			    nice); /* of this thread: as that of the first one, if permitted */
	for (;;) {
		uint32_t seen = nps_agent_load(&ctl->wake);

		if (wanted())
			agent_run();
		else
			wait_for_wake(seen, 0);
	}
	return NULL;
}

bool nps_agent__start(void)
{
	sigset_t all, old;
	cpu_set_t cpus;
	pthread_attr_t attr;
	pthread_t thread;

	ctl = nps_agent_ring__create();
	if (!ctl)
		return false;
	own_pid = getpid();
	nps_agent_yield__init(ctl, own_pid);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/*
	 * Any thread of the job can create ours, even a real-time one, or one
	 * bound to a CPU: neither is inherited.
	 */
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	if (!sched_getaffinity(own_pid, sizeof(cpus), &cpus))
		pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	if (pthread_create(&thread, &attr, agent_main, NULL))
		ctl->magic = 0;
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return true;
}
