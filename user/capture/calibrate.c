/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/calibrate.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/calibrate_probes.h"
#include "core/clocks.h"
#include "attach/bpf_loader.h"

#define RING_BYTES (1 << 17) /* of each CPU, of which there can be 192 */
#define CALLS 1000 /* a ring has room for their records */
#define THROWS 50 /* of the ball: each waits for a CPU, twice */
#define TRIES 5 /* of all throws, if the difference is lost in noise */
#define ROUNDS 8 /* of all ways and classes of probes */
#define PAUSE_MS 120 /* between two of them */
#define SAMPLES 40 /* in a round: calls of a probed function, and as many of one without a probe */
#define LEAST_SAMPLES 10 /* on a crowded machine */
/*
 * Steps of computing before a call, and timed with it: some 70 us from
 * call to call, as in a job that makes 14,000 a second.
 */
#define STEPS_BEFORE 20000
#define STEPS_AFTER 6000
#define STEPS_FIRST 4000000 /* some 10 ms: a processor that was idle is slow at first */
#define PROGRAM_SAMPLES 20 /* in a round, to measure programs */
#define CACHE_BYTES (256 << 10) /* computed over between two calls: exceeds the first-level cache */
#define PAIRS 15 /* rounds with and without, for cheap events */
#define MOST_PAIRS 50 /* if the noise exceeds the difference */
/* limit of each, with noise: on a crowded machine a round can take seconds */
#define PATIENCE_NS 8000000000ULL

struct bench {
	struct nps_bpf_loader *k;
	struct perf_buffer *records; /* of an old kernel, which has no rings; else NULL */
	uint64_t until; /* CLOCK_MONOTONIC ns: no repetition of the current measurement after it */
};

static void begin_measuring(struct bench *b, uint64_t patience_ns)
{
	b->until = nps_now(CLOCK_MONOTONIC) + patience_ns;
}

static bool has_time(const struct bench *b)
{
	return nps_now(CLOCK_MONOTONIC) < b->until;
}

/* Empties the rings, because records that do not fit are cheaper. */
static void discard(const struct bench *b)
{
	if (b->records)
		perf_buffer__consume(b->records);
	else
		nps_bpf_loader__discard(b->k);
}

/* Through a pointer that the compiler must not resolve. */
static volatile nps_calibration_function called;

/*
 * A job computes between its calls, which evicts what a probe needs from the nearest caches: in a tight
 * loop it would cost much less than in any job. The generator is Marsaglia's xorshift.
 */
static void compute(int steps)
{
	static volatile uint64_t memory[CACHE_BYTES / sizeof(uint64_t)];
	static uint64_t state = 88172645463325252ULL;

	for (int i = 0; i < steps; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		memory[state % (CACHE_BYTES / sizeof(uint64_t))] += state;
	}
}

/* ns of a call and the computing after it, which finds the caches as the call leaves them. */
static double time_of_call(nps_calibration_function function)
{
	uint64_t begin;

	called = function;
	compute(STEPS_BEFORE);
	begin = nps_now(CLOCK_MONOTONIC);
	called(NULL);
	compute(STEPS_AFTER);
	return (double)(nps_now(CLOCK_MONOTONIC) - begin);
}

static void call_kernel(void)
{
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
}

/* One page fault per page. */
static void touch(void)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, CALLS * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return;
	madvise(pages, CALLS * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < CALLS; i++)
		((volatile char *)pages)[i * page] = 1;
	munmap(pages, CALLS * page);
}

/* ns of CPU time of one turn of the loop, or LEAST if that is less. */
static double time_once(void (*loop)(void), double least)
{
	uint64_t begin = nps_now(CLOCK_PROCESS_CPUTIME_ID);
	double ns;

	loop();
	ns = (double)(nps_now(CLOCK_PROCESS_CPUTIME_ID) - begin) / CALLS;
	return ns < least ? ns : least;
}

static int cost_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), cost_compare);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/*
 * What the probe adds to a call of F, ns; noise can make it negative. Calls with and without it alternate,
 * so that other load affects both. The median of each excludes interruptions.
 */
static double time_of_probe(const struct bench *b, nps_calibration_function f)
{
	static double plain[SAMPLES], probed[SAMPLES];
	int n;

	discard(b);
	for (n = 0; n < SAMPLES && (n < LEAST_SAMPLES || has_time(b)); n++) {
		plain[n] = time_of_call(nps_calibration_plain);
		probed[n] = time_of_call(f);
	}
	return median(probed, n) - median(plain, n);
}

/*
 * run_time_ns of the uprobe programs for one call of F, if BPF statistics are on; else 0. They are off during
 * time_of_probe(), because the kernel's counting takes time, too, and a capture has it on only for moments.
 */
static double time_of_programs(const struct bench *b, nps_calibration_function f)
{
	uint64_t before = nps_bpf_loader__program_ns(b->k);

	for (int i = 0; i < PROGRAM_SAMPLES; i++)
		time_of_call(f);
	return (double)(nps_bpf_loader__program_ns(b->k) - before) / PROGRAM_SAMPLES;
}

/*
 * What watching adds to one turn of the loop, ns: measured with and without in turns, so that other load
 * affects both. 0 if it is less than the noise, negative if this process cannot be watched.
 */
static double time_added(const struct bench *b, void (*loop)(void))
{
	double without = INFINITY, with = INFINITY;

	for (int i = 0; !i || (has_time(b) && (i < PAIRS || (i < MOST_PAIRS && with <= without))); i++) {
		without = time_once(loop, without);
		discard(b);
		if (nps_bpf_loader__add_target(b->k, getpid(), NPS_TARGET_WATCH | NPS_TARGET_OSRT))
			return -1;
		with = time_once(loop, with);
		nps_bpf_loader__del_target(b->k, getpid());
	}
	return with > without ? with - without : 0;
}

/* Measures the same call with a record each time, and summed up. */
static void time_of_syscalls(struct bench *b, struct nps_cost *cost)
{
	uint64_t threshold = nps_bpf_loader__threshold(b->k);

	begin_measuring(b, PATIENCE_NS);
	nps_bpf_loader__set_threshold(b->k, 0);
	cost->syscall_ns = time_added(b, call_kernel);
	begin_measuring(b, PATIENCE_NS);
	nps_bpf_loader__set_threshold(b->k, NPS_LONGEST_SUMMED);
	cost->sum_ns = time_added(b, call_kernel);
	nps_bpf_loader__set_threshold(b->k, threshold);
}

/*
 * A ball that two threads on one CPU throw to each other: its return
 * takes two switches, two wake-ups and four calls.
 */
static int ball[2]; /* eventfds */
static uint64_t stop_word;

static void *partner(void *arg)
{
	uint64_t one = 1, got;

	(void)arg;
	while (read(ball[0], &got, sizeof(got)) == sizeof(got) &&
	       !__atomic_load_n(&stop_word, __ATOMIC_ACQUIRE))
		if (write(ball[1], &one, sizeof(one)) != sizeof(one))
			break;
	return NULL;
}

static bool throw_ball(void)
{
	uint64_t one = 1;

	return write(ball[0], &one, sizeof(one)) == sizeof(one);
}

static void play(void)
{
	uint64_t got;

	for (int i = 0; i < THROWS; i++)
		if (!throw_ball() || read(ball[1], &got, sizeof(got)) != sizeof(got))
			return;
}

/*
 * Measures two threads that share a CPU, with and without being watched. CALL_NS: cost of each system call.
 */
static double time_of_play(const struct bench *b, double call_ns)
{
	pthread_t thread;
	double ns = 0, added = 0;

	__atomic_store_n(&stop_word, 0, __ATOMIC_RELEASE);
	if (call_ns < 0 || pthread_create(&thread, NULL, partner, NULL))
		return -1;
	/* On a busy machine noise can be larger than the difference. */
	for (int i = 0; i < TRIES && ns <= 0 && added >= 0 && (!i || has_time(b)); i++) {
		added = time_added(b, play) * CALLS / THROWS;
		ns = added / 2 - 2 * call_ns;
	}
	__atomic_store_n(&stop_word, 1, __ATOMIC_RELEASE);
	if (throw_ball())
		pthread_join(thread, NULL);
	else
		pthread_detach(thread);
	return added < 0 ? -1 : ns > 0 ? ns : 0;
}

static double time_of_switches(const struct bench *b, double call_ns)
{
	cpu_set_t old, one;
	double ns = -1;

	if (sched_getaffinity(0, sizeof(old), &old))
		return -1;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ball[0] = eventfd(0, EFD_CLOEXEC);
	ball[1] = eventfd(0, EFD_CLOEXEC);
	if (ball[0] >= 0 && ball[1] >= 0 && !sched_setaffinity(0, sizeof(one), &one)) {
		ns = time_of_play(b, call_ns);
		sched_setaffinity(0, sizeof(old), &old);
	}
	for (int i = 0; i < 2; i++)
		if (ball[i] >= 0)
			close(ball[i]);
	return ns;
}

/* Measured values of each round, ns. */
struct rounds {
	double mark[NPS_PROBE_CLASSES][ROUNDS], call[NPS_PROBE_CLASSES][ROUNDS];
	double mark_program[ROUNDS], call_program[ROUNDS];
};

static void one_round(struct bench *b, struct rounds *r, int round)
{
	int stats;

	compute(STEPS_FIRST);
	for (int i = 0; i < NPS_PROBE_CLASSES; i++) {
		/* each class is first in turn */
		enum nps_probe_class class = (round + i) % NPS_PROBE_CLASSES;

		r->mark[class][round] = time_of_probe(b, nps_calibration__function(class, false));
		r->call[class][round] = time_of_probe(b, nps_calibration__function(class, true));
	}
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	r->mark_program[round] = time_of_programs(b, nps_calibration__function(NPS_PROBE_EMULATED, false));
	r->call_program[round] = time_of_programs(b, nps_calibration__function(NPS_PROBE_EMULATED, true));
	if (stats >= 0)
		close(stats);
}

/* Mean without the least and the greatest value; at least 0. */
static double over_rounds(double values[ROUNDS])
{
	double sum = 0;

	qsort(values, ROUNDS, sizeof(*values), cost_compare);
	for (int i = 1; i < ROUNDS - 1; i++)
		sum += values[i];
	return sum > 0 ? sum / (ROUNDS - 2) : 0;
}

/* Rounds with pauses, because a processor's speed varies with the load of its neighbours. */
static void time_of_probes(struct bench *b, struct nps_cost *cost)
{
	struct rounds r;

	begin_measuring(b, PATIENCE_NS);
	for (int round = 0; round < ROUNDS; round++) {
		if (round)
			poll(NULL, 0, PAUSE_MS);
		one_round(b, &r, round);
	}
	for (enum nps_probe_class class = 0; class < NPS_PROBE_CLASSES; class ++) {
		cost->mark_ns[class] = over_rounds(r.mark[class]);
		cost->call_ns[class] = over_rounds(r.call[class]);
	}
	cost->mark_program_ns = over_rounds(r.mark_program);
	cost->call_program_ns = over_rounds(r.call_program);
}

static int measure_probes(struct bench *b, struct nps_cost *cost)
{
	struct nps_links links = { 0 };
	int err = nps_calibration__attach(b->k, &links);

	if (err)
		goto out;
	err = nps_bpf_loader__add_target(b->k, getpid(), NPS_TARGET_WATCH);
	if (err)
		goto out;
	time_of_probes(b, cost);
	nps_bpf_loader__del_target(b->k, getpid());
out:
	nps_links__free(&links);
	return err;
}

static void forget_record(void *arg, int cpu, void *data, __u32 size)
{
	(void)arg;
	(void)cpu;
	(void)data;
	(void)size;
}

/* As in a capture: the programs, their tracepoints, and room for records. */
static int open_bench(const struct nps_capability *cap, struct bench *b)
{
	struct nps_bpf_loader_opts opts = { .sz = sizeof(opts),
					    .ring_bytes = RING_BYTES,
					    .osrt = true,
					    .osrt_threshold_ns = NPS_LONGEST_SUMMED };
	int err = nps_bpf_loader__open(cap, &opts, &b->k);

	if (!err && nps_bpf_loader__is_legacy(b->k)) {
		b->records = perf_buffer__new(nps_bpf_loader__records_fd(b->k),
					      RING_BYTES / (size_t)sysconf(_SC_PAGESIZE), forget_record, NULL,
					      NULL, NULL);
		err = b->records ? 0 : -errno;
	}
	return err ? err : nps_bpf_loader__attach(b->k);
}

static void close_bench(struct bench *b)
{
	perf_buffer__free(b->records);
	nps_bpf_loader__close(b->k);
}

int nps_calibrate(const struct nps_capability *cap, struct nps_cost *cost)
{
	struct bench b = { 0 };
	int err = open_bench(cap, &b);

	for (size_t i = 0; i < NPS_COST_MEMBERS; i++)
		*nps_cost__member(cost, i) = -1;
	if (err)
		goto out;
	err = measure_probes(&b, cost);
	if (err)
		goto out;
	/* The programs of old kernels keep no sums, and record neither switches nor faults. */
	if (nps_bpf_loader__is_legacy(b.k)) {
		begin_measuring(&b, PATIENCE_NS);
		cost->syscall_ns = time_added(&b, call_kernel);
	} else {
		time_of_syscalls(&b, cost);
		begin_measuring(&b, PATIENCE_NS);
		cost->fault_ns = time_added(&b, touch);
		begin_measuring(&b, PATIENCE_NS);
		cost->switch_ns = time_of_switches(&b, cost->sum_ns);
	}
out:
	close_bench(&b);
	return err;
}
