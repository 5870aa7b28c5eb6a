/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profiler in the job, as CANN's is: preloaded, it starts the task log when PROFILE_DIR/start.K appears (K
 * = 0, 1, ...), reads it as fast as it can into ONE buffer that it overwrites right after each read, and
 * stops it when stop.K does. What it read is in own.PID.K; what the driver answered, and how long the start
 * took, without the time in which its thread and the helper library's had no CPU, in log.PID. With
 * PROFILE_SAMPLES it starts channels that sample (HBM, LLC, HCCS, PCIe, NIC) before it, PROFILE_PAUSE us
 * after it has queried the list of channels. Of PROFILE_BESIDE it reads another log as well. With
 * PROFILE_BLOCK all threads of the job block all signals but SIGTERM, which ends it.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES (1U << 20)

enum { TS = 0, PERIPHERAL = 1 };

struct start_para {
	int32_t type;
	uint32_t period, real_time, pad;
	void *data;
	uint32_t size, pad2;
};

static int (*start)(unsigned, unsigned, struct start_para *);
static int (*stop)(unsigned, unsigned);
static int (*list_channels)(unsigned, void *);
static int (*get)(unsigned, unsigned, char *, unsigned);
static int (*flush)(unsigned, unsigned, unsigned *);
static char buffer[READ_BYTES];
static FILE *log_file;
static const char *dir;
static unsigned device, channel, second; /* 0: none */

static int there(const char *what, int k)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s.%d", dir, what, k);
	return access(path, F_OK) == 0;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

#define HELPER "npuscope_agent\n" /* the comm of its threads */

/* ms that the thread TID of this process could have run and had no CPU */
static double thread_waited(const char *tid)
{
	unsigned long long waited = 0;
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", tid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%*u %llu", &waited) != 1)
		waited = 0;
	if (f)
		fclose(f);
	return waited / 1e6;
}

static int is_helper(const char *tid)
{
	char path[300], comm[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", tid);
	f = fopen(path, "re");
	if (f && !fgets(comm, sizeof(comm), f))
		comm[0] = '\0';
	if (f)
		fclose(f);
	return !strcmp(comm, HELPER);
}

/* The same of this thread and of the helper's, all that a start can wait for */
static double kept_waiting(void)
{
	DIR *tasks = opendir("/proc/self/task");
	double sum = 0;

	for (struct dirent *e; tasks && (e = readdir(tasks));)
		if (e->d_name[0] != '.' && (atoi(e->d_name) == gettid() || is_helper(e->d_name)))
			sum += thread_waited(e->d_name);
	if (tasks)
		closedir(tasks);
	return sum;
}

static void read_all(unsigned id, FILE *out)
{
	int n;

	while ((n = get(device, id, buffer, sizeof(buffer))) > 0) {
		fwrite(buffer, 1, n, out);
		memset(buffer, 0xa5, n); /* whoever looks later sees nothing */
	}
}

static int find(void)
{
	void *hal = dlopen("libascend_hal.so", RTLD_NOW | RTLD_NOLOAD);

	if (!hal)
		return 0;
	start = (int (*)(unsigned, unsigned, struct start_para *))dlsym(hal, "prof_drv_start");
	list_channels = (int (*)(unsigned, void *))dlsym(hal, "prof_drv_get_channels");
	stop = (int (*)(unsigned, unsigned))dlsym(hal, "prof_stop");
	get = (int (*)(unsigned, unsigned, char *, unsigned))dlsym(hal, "prof_channel_read");
	flush = (int (*)(unsigned, unsigned, unsigned *))dlsym(hal, "halProfDataFlush");
	return start && stop && get && flush;
}

static int open_one(unsigned id, int type, void *data, size_t size)
{
	struct start_para para = {
		.type = type, .period = 20, .real_time = 1, .data = data, .size = (uint32_t)size
	};
	double waited = kept_waiting(), begin = now();
	int err = start(device, id, &para);
	double elapsed = now() - begin, kept = kept_waiting() - waited;

	kept = kept < 0 ? 0 : kept > elapsed ? elapsed : kept; /* a thread may have ended */
	fprintf(log_file, "start %d %.3f\n", err, elapsed - kept);
	fflush(log_file);
	return err;
}

static const struct {
	unsigned id, size;
	uint32_t data[5];
} samples[] = {
	{ 1, 20, { 20, 0, 2, 0, 1 } }, { 8, 8, { 20, 0 } }, { 9, 0, { 0 } }, { 3, 0, { 0 } }, { 4, 0, { 0 } }
};
#define N_SAMPLES (sizeof(samples) / sizeof(*samples))

static void open_samples(void)
{
	static char list[16384]; /* larger than the driver's list of channels */

	if (getenv("PROFILE_PAUSE") && list_channels) {
		list_channels(device, list);
		usleep((unsigned)atoi(getenv("PROFILE_PAUSE")));
	}
	for (size_t i = 0; getenv("PROFILE_SAMPLES") && i < N_SAMPLES; i++) {
		uint32_t data[5];

		memcpy(data, samples[i].data, sizeof(data));
		open_one(samples[i].id, PERIPHERAL, samples[i].size ? data : NULL, samples[i].size);
	}
}

static void close_samples(void)
{
	for (size_t i = 0; getenv("PROFILE_SAMPLES") && i < N_SAMPLES; i++) {
		fprintf(log_file, "stop %d\n", stop(device, samples[i].id));
		fflush(log_file);
	}
}

static void close_one(unsigned id, FILE *out)
{
	unsigned len;

	flush(device, id, &len);
	read_all(id, out);
	fprintf(log_file, "stop %d\n", stop(device, id));
	fflush(log_file);
}

static FILE *own(int k, unsigned id)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/own.%d.%d.%u", dir, getpid(), k, id);
	return fopen(path, "w");
}

/* The log, and a second one. */
static void one(int k)
{
	uint32_t stars[11] = { [0] = 1, [6] = 1 }, hwts[1] = { 0 },
		 track[9] = { 20, [1] = 1, [6] = 1, [7] = 1, [8] = 1 };
	FILE *out = own(k, channel), *beside = second ? own(k, second) : NULL;
	uint32_t *config = second == 44 ? track : hwts, size = second == 44 ? sizeof(track) : sizeof(hwts);
	int err;

	open_samples();
	err = channel == 45 ? open_one(channel, TS, hwts, sizeof(hwts))
			    : open_one(channel, TS, stars, sizeof(stars));

	if (!out || err || (second && !beside) || (beside && open_one(second, TS, config, size))) {
		fprintf(log_file, "failed\n");
		return;
	}
	while (!there("stop", k)) {
		read_all(channel, out);
		if (beside)
			read_all(second, beside);
		usleep(2000);
	}
	close_samples();
	close_one(channel, out);
	if (beside)
		close_one(second, beside);
	fclose(out);
	if (beside)
		fclose(beside);
}

static void *run(void *arg)
{
	(void)arg;
	for (int k = 0;; k++) {
		while (!there("start", k))
			usleep(5000);
		while (!find())
			usleep(5000);
		one(k);
	}
	return NULL;
}

__attribute__((constructor)) static void begin(void)
{
	const char *rank = getenv("RANK"), *id = getenv("PROFILE_CHANNEL");
	char path[512];
	pthread_t thread;

	dir = getenv("PROFILE_DIR");
	if (!dir || !rank)
		return;
	if (getenv("PROFILE_BLOCK")) { /* threads inherit it */
		sigset_t most;

		sigfillset(&most);
		sigdelset(&most, SIGTERM);
		pthread_sigmask(SIG_SETMASK, &most, NULL);
	}
	device = (unsigned)atoi(rank);
	channel = id ? (unsigned)atoi(id) : 50;
	second = getenv("PROFILE_BESIDE") ? (unsigned)atoi(getenv("PROFILE_BESIDE")) : 0;
	snprintf(path, sizeof(path), "%s/log.%d", dir, getpid());
	log_file = fopen(path, "w");
	if (log_file)
		pthread_create(&thread, NULL, run, NULL);
}
