/* SPDX-License-Identifier: BSD-2-Clause */
/* One rank: set up, loop over steps, agree with the others on when to stop. */
#define _GNU_SOURCE
#include "job.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCH_BYTES (256 * 1024)
#define EVALUATE_EVERY 50

static volatile sig_atomic_t stop_signal;
static struct rank self;
static struct model *model;

/* External and not inlined: for a tracer its entry is the begin of the step. */
void train_step(long step);

void fail(int err, const char *what)
{
	fprintf(stderr, "npusim-train: rank %d: %s: error %d\n", self.id, what, err);
	exit(1);
}

static void on_signal(int sig)
{
	stop_signal = sig;
}

static int env_number(const char *name)
{
	const char *value = getenv(name);

	return value ? atoi(value) : 0;
}

static void exchange_root(struct rank *r)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	if (r->id == 0) {
		check(HcclGetRootInfo(&r->control->root), "HcclGetRootInfo");
		atomic_store(&r->control->root_ready, 1);
	}
	while (!atomic_load(&r->control->root_ready))
		nanosleep(&pause, NULL);
}

static void set_up(struct rank *r)
{
	check(aclInit(NULL), "aclInit");
	check(aclrtSetDevice(r->device), "aclrtSetDevice");
	step_log_open();
	check(aclrtCreateStream(&r->compute), "aclrtCreateStream");
	check(aclrtCreateStreamWithConfig(&r->communication, 0, 1), "aclrtCreateStreamWithConfig");
	exchange_root(r);
	check(HcclCommInitRootInfo((uint32_t)r->world, &r->control->root, (uint32_t)r->id, &r->comm),
	      "HcclCommInitRootInfo");
	r->loader = loader_create(r->id, BATCH_BYTES, r->options->slow_every);
	model = model_create(r);
}

static void tear_down(struct rank *r)
{
	model_destroy(model);
	loader_destroy(r->loader);
	check(HcclCommDestroy(r->comm), "HcclCommDestroy");
	check(aclrtDestroyStream(r->communication), "aclrtDestroyStream");
	check(aclrtDestroyStream(r->compute), "aclrtDestroyStream");
	check(aclrtResetDevice(r->device), "aclrtResetDevice");
	check(aclFinalize(), "aclFinalize");
}

__attribute__((noinline)) void train_step(long step)
{
	uint64_t begin = now_ns();

	model_step(model, loader_next(self.loader, step), BATCH_BYTES,
		   self.options->time_every && step % self.options->time_every == 0);
	self.loss = self.loss * 6364136223846793005ull + 1442695040888963407ull;
	if (step % EVALUATE_EVERY == EVALUATE_EVERY - 1)
		model_evaluate(model);
	step_log(step, begin, now_ns());
}

/*
 * A rank in step k meets the others in k, so none of them is beyond the start of k + 1: a stop at k + 2 is
 * in the future of all.
 */
static void propose_stop(struct rank *r, long step)
{
	long undecided = 0;

	atomic_compare_exchange_strong(&r->control->stop_at, &undecided, step + 2);
}

static bool must_stop(struct rank *r, long step, uint64_t start)
{
	const struct options *o = r->options;
	long stop_at = atomic_load(&r->control->stop_at);

	if (stop_at)
		return step >= stop_at;
	if (o->steps && step >= o->steps)
		return true;
	if (stop_signal || (o->seconds > 0 && now_ns() - start >= (uint64_t)(o->seconds * 1e9)))
		propose_stop(r, step);
	return false;
}

int rank_main(const struct options *options, struct control *control)
{
	struct sigaction action = { .sa_handler = on_signal };
	uint64_t start;
	long step;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	self.options = options;
	self.control = control;
	self.id = env_number("RANK");
	self.world = env_number("WORLD_SIZE");
	self.device = env_number("LOCAL_RANK");
	set_up(&self);
	if (options->self_profile)
		self_profile_start(options->self_profile, self.id, self.device);
	atomic_fetch_add(&control->ready, 1);
	start = now_ns();
	for (step = 0; !must_stop(&self, step, start); step++) {
		train_step(step);
		if (!options->quiet && self.id == 0 && step % 20 == 19)
			fprintf(stderr, "step %ld: %.1f ms\n", step + 1,
				(double)(now_ns() - start) / 1e6 / (double)(step + 1));
	}
	if (options->self_profile)
		self_profile_stop();
	if (self.id == 0)
		printf("result steps=%ld loss=%.6f checksum=%016llx\n", step,
		       (double)(self.loss >> 11) / (double)(1ull << 53), (unsigned long long)self.loss);
	tear_down(&self);
	step_log_close();
	return 0;
}
