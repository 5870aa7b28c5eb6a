/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/job_processes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/probe_rows.h"
#include "capture/discover.h"
#include "core/clocks.h"
#include "core/log.h"

#define MAX_POLLS 1024 /* reads of /proc a second, of idle processes */
#define MOST_REFUSED 1024 /* remembered births whose parents have used up their budget */
#define MOST_UNREAD 16384 /* listed ones: a job can start any number */

/* A birth whose parent's budget did not allow a read of /proc. */
struct nps_refused {
	struct nps_notice notice; /* the first notice about it */
	struct nps_process *payer; /* not by its pid, which may be reused before the retry */
	bool executed;
};

static struct nps_process **process_slot(const struct nps_capture *c, pid_t pid)
{
	return (struct nps_process **)&c->by_pid[(unsigned int)pid % NPS_PID_SLOTS];
}

void nps_job_processes__add(struct nps_capture *c, struct nps_process *p, struct nps_process *parent)
{
	struct nps_process **slot = process_slot(c, p->pid);

	p->root = parent ? parent->root : p;
	p->root->n_born++;
	if (parent)
		nps_budget__inherit(&p->budget, &parent->budget);
	p->next = c->processes;
	c->processes = p;
	p->next_of_pid = *slot;
	*slot = p;
	nps_sources__process(c, &(struct nps_source_event){ .kind = NPS_EVENT_LISTED, .p = p });
}

struct nps_process *nps_job_processes__find_started(const struct nps_capture *c, pid_t pid, uint64_t started)
{
	for (struct nps_process *p = *process_slot(c, pid); p; p = p->next_of_pid)
		if (p->pid == pid && nps_process__has_started(p, started))
			return p;
	return NULL;
}

struct nps_process *nps_job_processes__find(const struct nps_capture *c, pid_t pid)
{
	return nps_job_processes__find_started(c, pid, 0);
}

/* A child that has not called exec shares its parent's properties. */
static void process_inherit(struct nps_process *p, const struct nps_process *parent)
{
	if (!parent || parent->source == NPS_PROCESS_UNREAD)
		return;
	cJSON_Delete(p->cmdline);
	cJSON_Delete(p->env);
	p->cmdline = cJSON_Duplicate(parent->cmdline, 1);
	p->env = cJSON_Duplicate(parent->env, 1);
	p->rank = parent->rank;
	p->world_size = parent->world_size;
	p->foreign = parent->foreign;
	memcpy(p->host_name, parent->host_name, sizeof(p->host_name));
	p->source = NPS_PROCESS_OF_PARENT;
	p->text_bytes = parent->text_bytes;
	nps_process__count_texts(p);
}

static pid_t parent_of(const struct nps_notice *n)
{
	return n->what == NPS_NOTICE_FORK ? (pid_t)n->pid : (pid_t)n->parent;
}

static struct nps_process *make(struct nps_capture *c, const struct nps_notice *n, pid_t pid)
{
	struct nps_process *parent = nps_job_processes__find(c, parent_of(n));
	bool may = c->n_unread < MOST_UNREAD && nps_discover__may_add_born(c, parent_of(n));
	struct nps_process *p = may ? nps_process__new(pid) : NULL;

	if (!p) {
		c->unread_left_out += n->what == NPS_NOTICE_EXIT;
		return NULL;
	}
	c->n_unread++;
	/*
	 * The difference between the two clocks is the time suspended, and the host was not suspended since.
	 */
	p->start_mono = n->started - (c->start.boot - c->start.mono);
	p->executed = n->what == NPS_NOTICE_EXEC;
	snprintf(p->agent_reason, sizeof(p->agent_reason), "it ended before npuscope looked at it");
	p->born = c->begin_mono && p->start_mono >= c->begin_mono;
	nps_job_processes__add(c, p, parent ? parent : c->orphans);
	return p;
}

static void complete(struct nps_process *p, const struct nps_notice *n)
{
	p->start_boot = n->started ? n->started : p->start_boot;
	if (!p->comm[0])
		snprintf(p->comm, sizeof(p->comm), "%s", n->comm);
	if (n->what == NPS_NOTICE_FORK) {
		p->born = true;
		p->start_mono = n->time;
	}
	if (n->parent && (!p->ppid || n->what == NPS_NOTICE_FORK))
		p->ppid = n->parent;
	/* Its last name; of one that was read the name of that time is kept. */
	if (n->what == NPS_NOTICE_EXIT && n->comm[0] && (p->born || p->source != NPS_PROCESS_READ))
		snprintf(p->comm, sizeof(p->comm), "%s", n->comm);
}

static pid_t subject_of(const struct nps_notice *n)
{
	return (pid_t)(n->what == NPS_NOTICE_FORK ? n->arg : n->pid);
}

static bool notice_is_same(const struct nps_notice *a, const struct nps_notice *b)
{
	return subject_of(a) == subject_of(b) && (a->started == b->started || !a->started || !b->started);
}

/* A process has one entry, however many notices it has. */
static void merge(struct nps_refused *r, const struct nps_notice *n, struct nps_process *payer)
{
	if (!r->notice.started) {
		r->notice = *n;
		r->payer = payer;
	}
	r->executed |= n->what == NPS_NOTICE_EXEC;
}

static void tree_leave_out(struct nps_capture *c, struct nps_process *root)
{
	nps_budget__leave_out(&root->budget, NPS_LEFT_BORN);
	c->degraded |= nps_budget__report(&root->budget, root->pid);
}

/* A family gets at most half of the entries that others do not use. */
static void remember_refused(struct nps_capture *c, const struct nps_notice *n)
{
	struct nps_process *payer = nps_discover__payer(c, parent_of(n));
	size_t held = 0;

	if (!payer)
		return;
	if (payer->root->n_born >= NPS_BUDGET_BORN) {
		tree_leave_out(c, payer->root);
		return;
	}
	for (size_t i = 0; i < c->n_refused; i++) {
		if (notice_is_same(&c->refused[i].notice, n)) {
			merge(&c->refused[i], n, payer);
			return;
		}
		held += c->refused[i].payer->root == payer->root;
	}
	if (!c->refused)
		c->refused = malloc(MOST_REFUSED * sizeof(*c->refused));
	if (!c->refused || held >= MOST_REFUSED - c->n_refused)
		tree_leave_out(c, payer->root);
	else
		c->refused[c->n_refused++] = (struct nps_refused){
			.notice = *n,
			.payer = payer,
			.executed = n->what == NPS_NOTICE_EXEC,
		};
}

/* A check whether a child still exists is charged to its parent, too. */
static bool may_wait(struct nps_capture *c, const struct nps_refused *r)
{
	uint64_t begin = nps_now(CLOCK_THREAD_CPUTIME_ID), elapsed;
	bool there = r->payer->root->n_born < NPS_BUDGET_BORN && nps_pid_exists(subject_of(&r->notice));

	elapsed = nps_now(CLOCK_THREAD_CPUTIME_ID) - begin;
	nps_budget__pay(&r->payer->budget, elapsed);
	nps_budget__pay(&c->work, elapsed);
	return there;
}

/* True: done; false: its parent's budget does not allow it yet. */
static bool retry(struct nps_capture *c, const struct nps_refused *r)
{
	const struct nps_notice *n = &r->notice;
	pid_t pid = subject_of(n);
	struct nps_process *p = NULL;
	int err = nps_discover__add_child(c, pid, r->payer, n->started); /* 0 also if it is known already */

	if (err == -E2BIG && may_wait(c, r))
		return false;
	if (err)
		tree_leave_out(c, r->payer->root);
	else
		p = nps_job_processes__find_started(c, pid, n->started);
	if (p && n->started)
		complete(p, n);
	if (p && r->executed)
		p->executed = true;
	return true;
}

void nps_job_processes__retry(struct nps_capture *c, uint64_t ns)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC), now = begin;

	for (size_t n = c->n_refused; n && now - begin < ns && nps_budget__solvent(&c->work, now); n--) {
		if (c->next_refused >= c->n_refused)
			c->next_refused = 0;
		if (retry(c, &c->refused[c->next_refused]))
			c->refused[c->next_refused] = c->refused[--c->n_refused];
		else
			c->next_refused++;
		now = nps_now(CLOCK_MONOTONIC);
	}
}

void nps_job_processes__abandon(struct nps_capture *c)
{
	for (size_t i = 0; i < c->n_refused; i++) {
		const struct nps_notice *n = &c->refused[i].notice;
		const struct nps_process *p = nps_job_processes__find_started(c, subject_of(n), n->started);

		if (!p || (!p->alive && !n->started)) /* the pid alone does not identify it */
			tree_leave_out(c, c->refused[i].payer->root);
	}
	c->n_refused = 0;
}

void nps_job_processes__missed(struct nps_capture *c, pid_t pid)
{
	const struct nps_notice n = { .what = NPS_NOTICE_FORK, .arg = (uint64_t)pid };

	if (nps_discover__add_born(c, pid, 0, 0) == -E2BIG)
		remember_refused(c, &n);
}

struct nps_process *nps_job_processes__of_notice(struct nps_capture *c, const struct nps_notice *n)
{
	pid_t pid = subject_of(n);
	struct nps_process *p = nps_job_processes__find_started(c, pid, n->started);
	int err = 0;
	bool followed = n->what == NPS_NOTICE_FORK || (c->opts->children && !c->opts->all && n->started);

	if (!p && (!followed || (c->end_mono && n->time > c->end_mono)))
		return NULL;
	if (!p && n->what != NPS_NOTICE_EXIT)
		err = nps_discover__add_born(c, pid, parent_of(n), n->started);
	if (!p && n->what != NPS_NOTICE_EXIT && !err)
		p = nps_job_processes__find_started(c, pid, n->started);
	if (!p)
		p = make(c, n, pid);
	if (!p && err == -E2BIG)
		remember_refused(c, n);
	if (p && n->started)
		complete(p, n);
	if (p && n->what == NPS_NOTICE_FORK && !p->executed && p->source == NPS_PROCESS_UNREAD)
		process_inherit(p, nps_job_processes__find(c, (pid_t)n->pid));
	return p;
}

void nps_job_processes__add_cpu(struct nps_capture *c, struct nps_process *p, uint64_t cpu_ns)
{
	p->busy = cpu_ns > p->cpu_last;
	if (!p->busy)
		return;
	if (p->cpu_last || p->born)
		c->job_cpu_ns += cpu_ns - p->cpu_last;
	p->cpu_last = cpu_ns;
}

void nps_job_processes__account_cpu(struct nps_capture *c)
{
	uint64_t cpu_ns;

	for (struct nps_process *p = c->processes; p; p = p->next)
		if (p->alive && nps_process__read_cpu(p, &cpu_ns))
			nps_job_processes__add_cpu(c, p, cpu_ns);
}

void nps_job_processes__exited(struct nps_process *p, uint64_t when, int code)
{
	/* Its EXIT record may arrive after its end was noticed. */
	if (!p || (!p->alive && (p->exit_code != NPS_EXIT_UNKNOWN || code == NPS_EXIT_UNKNOWN)))
		return;
	p->alive = false;
	p->exit_mono = when;
	p->exit_code = code;
}

static void process_poll(struct nps_capture *c, struct nps_process *p, uint64_t now)
{
	uint64_t cpu_ns;

	if (nps_process__read_cpu(p, &cpu_ns)) {
		p->missed = false;
		nps_job_processes__add_cpu(c, p, cpu_ns);
	} else if (!p->missed) {
		p->missed = true; /* its EXIT record may still arrive */
	} else {
		/* Its EXIT record was lost, or it exited before we attached. */
		nps_sources__process(c, &(struct nps_source_event){ .kind = NPS_EVENT_EXITED, .p = p });
		nps_job_processes__exited(p, now, NPS_EXIT_UNKNOWN);
	}
}

void nps_job_processes__poll(struct nps_capture *c, uint64_t now)
{
	struct nps_process *first = c->next_polled ? c->next_polled : c->processes, *p = first;
	unsigned int polls = 0;

	while (p) {
		bool rests = !p->busy && !p->missed;

		if (p->alive && (!rests || polls < MAX_POLLS)) {
			polls += rests;
			if (rests && polls == MAX_POLLS)
				c->next_polled = p->next;
			process_poll(c, p, now);
		}
		p = p->next ? p->next : c->processes;
		if (p == first)
			break;
	}
}

/* Its libraries were not read either. */
static bool lacks_libraries(const struct nps_process *p)
{
	return p->born && p->executed && !p->maps && !(p->budget.left_out >> NPS_LEFT_LISTED & 1);
}

static bool is_incomplete(const struct nps_process *p)
{
	return !p->alive && (p->source == NPS_PROCESS_UNREAD || lacks_libraries(p));
}

/* If only the host is recorded nothing is missing: the kernel reports names and actions of processes. */
static bool is_of_host_alone(const struct nps_capture *c)
{
	if (c->opts->level != NPS_LEVEL_NONE && !c->opts->host_requested)
		return false;
	for (const struct nps_process *p = c->processes; p; p = p->next)
		if (p->has_cann) /* its children can use its library of marks, too */
			return false;
	return true;
}

void nps_job_processes__report(struct nps_capture *c)
{
	const struct nps_process *first = NULL;
	uint64_t n = c->unread_left_out, unread = nps_job_processes__unread(c);

	if (is_of_host_alone(c))
		return;
	for (const struct nps_process *p = c->processes; p && !c->opts->all; p = p->next)
		if (is_incomplete(p)) {
			first = first && first->start_mono < p->start_mono ? first : p;
			n++;
		}
	if (!first)
		return;
	nps_warn("%" PRIu64
		 " processes of the job ended before npuscope looked at them (the first: %s, pid %d): "
		 "command lines of %" PRIu64
		 ", and calls in libraries that only they used, are missing: leave "
		 "npuscope a CPU, or give it a higher priority",
		 n, first->comm, first->pid, unread);
	c->degraded = true;
}

uint64_t nps_job_processes__unread(const struct nps_capture *c)
{
	uint64_t n = c->unread_left_out;

	for (const struct nps_process *p = c->processes; p; p = p->next)
		n += p->source == NPS_PROCESS_UNREAD;
	return n;
}
