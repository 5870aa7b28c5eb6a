/* SPDX-License-Identifier: BSD-2-Clause */
#include "buffer.h"
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES (256 * 1024)
#define FIELD_MAX_BYTES 512
#define WRITE_PERIOD_NS 100000000L

struct buffer {
	pthread_mutex_t lock;
	struct buffer *next;
	bool in_use;
	size_t len;
	char *data;
};

static struct {
	pthread_mutex_t lock;
	/* From the exchange of a buffer to its end in the file; locked before a buffer's lock. */
	pthread_mutex_t writing;
	pthread_cond_t wake;
	pthread_key_t key;
	pthread_t writer;
	struct buffer *buffers;
	bool started;
	bool closing;
	atomic_bool running;
	int fd;
} truth = { .lock = PTHREAD_MUTEX_INITIALIZER, .writing = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static __thread struct buffer *own;

static void write_all(const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(truth.fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			fprintf(stderr, "npusim: truth file: %s\n", strerror(errno));
			atomic_store(&truth.running, false);
			return;
		}
		data += n;
		len -= (size_t)n;
	}
}

static void release_buffer(void *arg)
{
	struct buffer *b = arg;

	pthread_mutex_lock(&truth.lock);
	b->in_use = false;
	pthread_mutex_unlock(&truth.lock);
}

static struct buffer *new_buffer(void)
{
	struct buffer *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->data = malloc(BUFFER_BYTES);
	if (!b->data) {
		free(b);
		return NULL;
	}
	pthread_mutex_init(&b->lock, NULL);
	b->next = truth.buffers;
	truth.buffers = b;
	return b;
}

/* A thread that ended leaves its buffer, lines and all, to the next thread that starts. */
static struct buffer *claim_buffer(void)
{
	struct buffer *b;

	pthread_mutex_lock(&truth.lock);
	for (b = truth.buffers; b && b->in_use; b = b->next)
		;
	if (!b)
		b = new_buffer();
	if (b)
		b->in_use = true;
	pthread_mutex_unlock(&truth.lock);
	if (b)
		pthread_setspecific(truth.key, b);
	return b;
}

char *put_str(char *p, const char *s)
{
	*p++ = '\t';
	if (!s || !*s)
		*p++ = '-';
	for (int i = 0; s && s[i] && i < FIELD_MAX_BYTES; i++)
		*p++ = s[i];
	return p;
}

char *put_u64(char *p, uint64_t v)
{
	char digits[20];
	int n = 0;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	*p++ = '\t';
	while (n > 0)
		*p++ = digits[--n];
	return p;
}

char *put_i64(char *p, int64_t v)
{
	char *sign;

	if (v >= 0)
		return put_u64(p, (uint64_t)v);
	sign = p;
	p = put_u64(p + 1, -(uint64_t)v);
	sign[0] = '\t';
	sign[1] = '-';
	return p;
}

char *put_hex(char *p, uint64_t v)
{
	return p + sprintf(p, "\t%llx", (unsigned long long)v);
}

char *line_open(const char *kind)
{
	struct buffer *b = own;
	size_t len;

	if (!buffer_running())
		return NULL;
	if (!b)
		b = own = claim_buffer();
	if (!b)
		return NULL;
	pthread_mutex_lock(&b->lock);
	if (b->len + LINE_MAX_BYTES > BUFFER_BYTES) {
		write_all(b->data, b->len);
		b->len = 0;
	}
	len = strlen(kind);
	memcpy(b->data + b->len, kind, len);
	return b->data + b->len + len;
}

void line_close(char *end)
{
	*end++ = '\n';
	own->len = (size_t)(end - own->data);
	pthread_mutex_unlock(&own->lock);
}

void buffer_flush(void)
{
	if (!own || !buffer_running())
		return;
	pthread_mutex_lock(&truth.writing);
	pthread_mutex_lock(&own->lock);
	write_all(own->data, own->len);
	own->len = 0;
	pthread_mutex_unlock(&own->lock);
	pthread_mutex_unlock(&truth.writing);
}

/* The buffer is exchanged under its lock and written without it: a thread never waits for the disk. */
static void drain(char **spare)
{
	struct buffer *b;

	pthread_mutex_lock(&truth.lock);
	b = truth.buffers;
	pthread_mutex_unlock(&truth.lock);
	for (; b; b = b->next) {
		char *full;
		size_t len;

		pthread_mutex_lock(&truth.writing);
		pthread_mutex_lock(&b->lock);
		full = b->data;
		len = b->len;
		b->data = *spare;
		b->len = 0;
		pthread_mutex_unlock(&b->lock);
		*spare = full;
		write_all(full, len);
		pthread_mutex_unlock(&truth.writing);
	}
}

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* "One instant" is the shortest of a few bracketed readings. */
static void put_clocks(void)
{
	uint64_t raw = 0, mono = 0, real = 0, best = UINT64_MAX;
	char *p;

	for (int i = 0; i < 5 && best > 200; i++) {
		uint64_t before = truth_now();
		uint64_t m = read_clock(CLOCK_MONOTONIC);
		uint64_t r = read_clock(CLOCK_REALTIME);
		uint64_t after = truth_now();

		if (after - before >= best)
			continue;
		best = after - before;
		raw = before + best / 2;
		mono = m;
		real = r;
	}
	p = line_open("clock");
	if (!p)
		return;
	p = put_u64(p, raw);
	p = put_u64(p, mono);
	line_close(put_u64(p, real));
}

static void *writer(void *arg)
{
	char *spare = arg;
	sigset_t all;

	sigfillset(&all); /* signals are the job's */
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_NAME, "npusim-truth");
	pthread_mutex_lock(&truth.lock);
	while (!truth.closing) {
		struct timespec ts;

		clock_gettime(CLOCK_MONOTONIC, &ts);
		ts.tv_nsec += WRITE_PERIOD_NS;
		if (ts.tv_nsec >= 1000000000L) {
			ts.tv_nsec -= 1000000000L;
			ts.tv_sec++;
		}
		pthread_cond_timedwait(&truth.wake, &truth.lock, &ts);
		pthread_mutex_unlock(&truth.lock);
		put_clocks();
		drain(&spare);
		pthread_mutex_lock(&truth.lock);
	}
	pthread_mutex_unlock(&truth.lock);
	return spare;
}

static void put_proc(void)
{
	char comm[32] = "";
	char *p = line_open("proc");

	if (!p)
		return;
	prctl(PR_GET_NAME, comm);
	p = put_u64(p, (uint64_t)getpid());
	p = put_str(p, getenv("RANK"));
	line_close(put_str(p, comm));
}

/* A forked child is another process: the file belongs to the parent. */
static void disable_in_child(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

	atomic_store(&truth.running, false);
	truth.started = false;
	memcpy(&truth.lock, &unlocked, sizeof(unlocked)); /* the thread that held it is not in this process */
	memcpy(&truth.writing, &unlocked, sizeof(unlocked));
	truth.buffers = NULL;
	own = NULL;
}

static int truth_open_file(const char *dir)
{
	char path[PATH_MAX];

	if (mkdir(dir, 0777) && errno != EEXIST) {
		fprintf(stderr, "npusim: %s: %s\n", dir, strerror(errno));
		return -1;
	}
	snprintf(path, sizeof(path), "%s/truth.%d.tsv", dir, getpid());
	truth.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (truth.fd < 0) {
		fprintf(stderr, "npusim: %s: %s\n", path, strerror(errno));
		return -1;
	}
	return 0;
}

static bool start_writer(char *spare)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&truth.wake, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_key_create(&truth.key, release_buffer))
		return false;
	pthread_atfork(NULL, NULL, disable_in_child);
	return pthread_create(&truth.writer, NULL, writer, spare) == 0;
}

bool buffer_start(void)
{
	const char *dir = getenv("NPUSIM_TRUTH");
	bool first = false;

	pthread_mutex_lock(&truth.lock);
	if (!truth.started && dir && *dir) {
		char *spare = malloc(BUFFER_BYTES);

		truth.started = true;
		if (spare && truth_open_file(dir) == 0 && start_writer(spare)) {
			atomic_store(&truth.running, true);
			first = true;
		} else {
			free(spare);
		}
	}
	pthread_mutex_unlock(&truth.lock);
	if (first) {
		put_proc();
		put_clocks();
	}
	return buffer_running();
}

bool buffer_running(void)
{
	return atomic_load_explicit(&truth.running, memory_order_relaxed);
}

/* Runs after the destructors of every library that uses this one, thus after the device has stopped. */
__attribute__((destructor)) static void truth_finish(void)
{
	void *spare;
	char *p;

	if (!buffer_running())
		return;
	pthread_mutex_lock(&truth.lock);
	truth.closing = true;
	pthread_cond_signal(&truth.wake);
	pthread_mutex_unlock(&truth.lock);
	pthread_join(truth.writer, &spare);
	put_clocks();
	drain((char **)&spare);
	p = line_open("end");
	if (p)
		line_close(put_str(p, "exit"));
	drain((char **)&spare);
	atomic_store(&truth.running, false);
	close(truth.fd);
}
