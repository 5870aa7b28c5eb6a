/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the time of the threads that drive the device went, and what of it holds up its steps. */
#include "findings/findings.h"

#include "derive/group_by.h"
#include "derive/host.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>

#define ROWS 20
#define ENOUGH 0.1 /* share of a thread's steps from which a part is a finding */

/* The parts in words, by enum nps_host_part. */
static const struct {
	const char *id, *words, *advice; /* of a finding; NULL: there is none */
} parts[NPS_HOST_PARTS] = {
	{ "host_user_code", "ran its own code",
	  "look at the operators' Python and C++ code, data preparation included; a profile of that thread "
	  "names the functions" },
	{ "host_cann_calls", "ran inside of CANN calls",
	  "launching costs more than computing: larger operators, graph mode or several queues save "
	  "launches" },
	{ "host_io_calls", "was on the CPU in calls of files, pipes or sockets",
	  "read in larger pieces, or let another thread do it" },
	{ "host_system_calls", "was on the CPU in other system calls",
	  "see os_runtime_statistic for which: mapping and freeing memory is a frequent one" },
	{ NULL, NULL, NULL },
	{ "host_lock_wait", "waited for locks and other threads",
	  "see which thread woke it: with Python that is often the interpreter's lock, held by a data loader "
	  "or a logger" },
	{ "host_cpu_wait", "could run and had no CPU",
	  "look at affinity, CPU limits and at who took the CPU: npuscope_threads.csv names it" },
	{ "host_io_wait", "waited for files, pipes or sockets",
	  "prefetch, cache, or move the reading to another thread" },
	{ "host_page_faults", "waited for pages of files or swap",
	  "read files ahead (readahead, MAP_POPULATE), lock what is mapped, or give the job more memory" },
	{ "host_interrupts", "was stopped by interrupts",
	  "bind the interrupts of network and disks to other CPUs" },
	{ "host_sleep", "was asleep by its own request (sleep, poll, timed wait)",
	  "look for sleeps, polls with a timeout and condition waits between the steps" },
	{ NULL, NULL, NULL },
};

struct part_sum { /* of a thread over all its windows */
	struct nps_group thread; /* key: its tid */
	uint32_t comm;
	uint64_t windows, length, ns[NPS_HOST_PARTS], worst_ns[NPS_HOST_PARTS], worst_start[NPS_HOST_PARTS];
	uint32_t worst_step[NPS_HOST_PARTS];
	bool interrupts; /* they were recorded */
};

static int host_parts_collect(const struct nps_model *m, struct nps_group_by *sums)
{
	const struct nps_host_breakdown_table *t = &m->host_breakdown;
	struct nps_pace pace = { .model = m };

	for (size_t i = 0; i < t->t.len; i++, nps_pace__step(&pace)) {
		uint64_t ns[NPS_HOST_PARTS];
		struct part_sum *sum = nps_group_by__get(sums, (uint32_t)t->gtid[i], 0);

		if (!sum)
			return -errno;
		nps_host_breakdown__parts(m, i, ns);
		sum->comm = t->comm[i];
		sum->windows++;
		sum->length = nps_add_sat(sum->length, nps_span(t->start[i], t->end[i]));
		sum->interrupts |= t->interrupts[i] != NPS_NULL;
		for (int part = 0; part < NPS_HOST_PARTS; part++) {
			sum->ns[part] = nps_add_sat(sum->ns[part], ns[part]);
			if (ns[part] < sum->worst_ns[part])
				continue;
			sum->worst_ns[part] = ns[part];
			sum->worst_start[part] = t->start[i];
			sum->worst_step[part] = t->step[i];
		}
	}
	return 0;
}

/* The thread with the most work first. */
static int by_work(const void *a, const void *b)
{
	const struct part_sum *x = a, *y = b;
	uint64_t p =
		x->length - NPS_MIN(x->length, nps_add_sat(x->ns[NPS_HOST_SLEEP], x->ns[NPS_HOST_NOT_SEEN]));
	uint64_t q =
		y->length - NPS_MIN(y->length, nps_add_sat(y->ns[NPS_HOST_SLEEP], y->ns[NPS_HOST_NOT_SEEN]));

	return p != q ? (p < q ? 1 : -1) : (x->thread.key > y->thread.key) - (x->thread.key < y->thread.key);
}

#define PART(part) r->ns[NPS_HOST_##part]

#define THREAD_COLUMNS(C)                                                                                    \
	C("thread", COUNT, "thread", r->thread.key)                                                          \
	C("name", TEXT, "name", nps_model__text(m, r->comm))                                                 \
	C("steps", COUNT, NULL, m->step.t.len ? r->windows : 0)                                              \
	C("total_us", NS, "total", r->length)                                                                \
	C("user_us", NS, "own code", PART(USER))                                                             \
	C("cann_us", NS, "CANN", PART(CANN))                                                                 \
	C("io_calls_us", NS, "I/O calls", PART(IO_CALLS))                                                    \
	C("other_calls_us", NS, "other calls", PART(OTHER_CALLS))                                            \
	C("device_wait_us", NS, "for device", PART(DEVICE_WAIT))                                             \
	C("lock_wait_us", NS, "for locks", PART(LOCK_WAIT))                                                  \
	C("cpu_wait_us", NS, "for a CPU", PART(CPU_WAIT))                                                    \
	C("io_wait_us", NS, "for I/O", PART(IO_WAIT))                                                        \
	C("page_faults_us", NS, "page faults", PART(FAULTS))                                                 \
	C("interrupts_us", US, "interrupts", r->interrupts ? PART(INTERRUPTS) / 1e3 : NPS_NAN,               \
	  .optional = true)                                                                                  \
	C("sleep_us", NS, "sleep", PART(SLEEP))                                                              \
	C("not_observed_us", NS, "not seen", PART(NOT_SEEN))

NPS_FIND_TABLE(table, "host_time", "time of host threads over all steps, us", struct nps_model,
	       struct part_sum, THREAD_COLUMNS)

/* The parts, and then the total. */
static cJSON *numbers_of(const struct nps_model *m, const struct part_sum *sum)
{
	static const char *const others[] = { "thread", "name", "steps" };
	cJSON *object = nps_find__object(&table, m, sum);

	for (size_t i = 0; i < NPS_ARRAY_SIZE(others); i++)
		cJSON_DeleteItemFromObjectCaseSensitive(object, others[i]);
	cJSON_AddItemToObject(object, "total_us",
			      cJSON_DetachItemFromObjectCaseSensitive(object, "total_us"));
	return object;
}

/* The part that cost a thread most, unless it waits for the device anyway. */
static int judge(struct nps_find *find, const struct part_sum *sum)
{
	const struct nps_model *m = find->model;
	uint64_t busy = sum->length - NPS_MIN(sum->length, nps_add_sat(sum->ns[NPS_HOST_DEVICE_WAIT],
								       sum->ns[NPS_HOST_NOT_SEEN]));
	cJSON *where;
	int worst = 0;

	for (int part = 1; part < NPS_HOST_PARTS; part++)
		if (parts[part].id && sum->ns[part] > sum->ns[worst])
			worst = part;
	/* A host that mostly waits for the device does not delay it. */
	if (!sum->length || sum->ns[NPS_HOST_DEVICE_WAIT] > busy ||
	    (double)sum->ns[worst] < ENOUGH * (double)sum->length)
		return 0;
	where = cJSON_CreateObject();
	cJSON_AddNumberToObject(where, "thread", (double)sum->thread.key);
	cJSON_AddStringToObject(where, "step", nps_model__text(m, sum->worst_step[worst]));
	nps_find__time(where, "start_us", sum->worst_start[worst]);
	return nps_find__add(
		find, parts[worst].id, nps_find__share(find, sum->ns[worst] / 1e3), numbers_of(m, sum), where,
		parts[worst].advice,
		"steps wait for the host: thread %u (%s) %s for %.1f us of %.1f us, and waited for the "
		"device for %.1f us",
		(uint32_t)sum->thread.key, nps_model__text(m, sum->comm), parts[worst].words,
		sum->ns[worst] / 1e3, sum->length / 1e3, sum->ns[NPS_HOST_DEVICE_WAIT] / 1e3);
}

static int host_time_find(struct nps_find *find)
{
	const struct nps_model *m = find->model;
	struct nps_group_by sums;
	int err;

	if (!m->host_breakdown.t.len)
		return 0;
	nps_group_by__init(&sums, m, sizeof(struct part_sum));
	err = host_parts_collect(m, &sums);
	if (err)
		goto out;
	nps_group_by__sort(&sums, by_work);
	nps_find__rows(find->document, &table, m, sums.rows.data, NPS_MIN(sums.rows.len, (size_t)ROWS),
		       sums.rows.elem);
	/* Without tasks of a device, the host delays nothing. */
	if (m->task.t.len)
		err = judge(find, nps_group_by__at(&sums, 0));
out:
	nps_group_by__free(&sums);
	return err;
}

const struct nps_find_question nps_question_host_time = { .find = host_time_find, .tables = { &table } };
