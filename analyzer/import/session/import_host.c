/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/import_host.h"

#include "import/session/host_grid.h"
#include "import/session/session_reader.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#define TICKS_NS                                                                                             \
	100000000ULL /* CPUs are counted in ticks of 10 ms: over less time their shares are all noise */
#define USAGE_NS 20000000ULL /* slices of the job's use of CPUs, as the vendor samples it */

struct host_fill {
	struct nps_model *m;
	const struct nps_session *rec;
	const struct nps_host_samples *host;
	uint32_t pid; /* 0: the whole host */
	int err;
};

/* The first and the last sample lie just outside of the capture: they stand for its very ends. */
static uint64_t sample_real(const struct host_fill *f, uint64_t mono)
{
	return nps_session__real(f->rec, NPS_MIN(NPS_MAX(mono, f->rec->begin), f->rec->end));
}

static bool inside(const struct host_fill *f, uint64_t start, uint64_t end)
{
	return end > f->rec->begin && start < f->rec->end;
}

/* A new row; false when something went wrong before. */
static bool host_row_add(struct host_fill *f, struct nps_table *table, size_t *row)
{
	if (!f->err)
		f->err = nps_table__add(table, row);
	return !f->err;
}

static uint32_t host_text(struct host_fill *f, const char *fmt, uint64_t number)
{
	uint32_t id = nps_strings__addf(f->m->strings, fmt, (unsigned long long)number);

	if (id == NPS_NONE && !f->err)
		f->err = -ENOMEM;
	return id;
}

static uint32_t host_name(struct host_fill *f, enum nps_host_what what, uint32_t id)
{
	const struct nps_host_named *name = nps_host_samples__name(f->host, what, id);
	uint32_t own;

	if (!name)
		return host_text(f, "%llu", id);
	if (!(name->flags & NPS_HOST_JOB_NET))
		return name->text;
	/* the host has one of the same name, as a rule */
	own = nps_strings__addf(f->m->strings, "%s (job)", nps_strings__get(f->m->strings, name->text));
	if (own == NPS_NONE && !f->err)
		f->err = -ENOMEM;
	return own;
}

/* NOW - BEFORE for each second of NS; NaN if either is not known, or a counter began anew. */
static double rate(uint64_t before, uint64_t now, uint64_t ns)
{
	if (before == NPS_HOST_UNKNOWN || now == NPS_HOST_UNKNOWN || now < before || !ns)
		return NPS_NAN;
	return (double)(now - before) * 1e9 / (double)ns;
}

static double percent(double part, double whole)
{
	return whole > 0 ? round(part / whole * 1e8) / 1e6 : NPS_NAN;
}

/*
 * The sample before the present one of the same ID, from LAST (id -> row), which is set to ROW. NPS_NONE: it
 * is the first.
 */
static uint32_t before(struct host_fill *f, struct nps_map *last, uint64_t id, uint32_t row)
{
	uint32_t was = nps_map__get(last, id);

	if (!f->err)
		f->err = nps_map__put(last, id, row);
	return was;
}

/* --- what the host has ------------------------------------------------------------------------------- */

static bool is_loopback(const struct host_fill *f, uint32_t card)
{
	const struct nps_host_named *name = nps_host_samples__name(f->host, NPS_HOST_CARD, card);

	return name && !strcmp(nps_strings__get(f->m->strings, name->text), "lo");
}

/*
 * The interfaces that make up the network: those of the job's own namespace if it has one; of these the
 * ones with a known speed; if no speed is known, all but the loopback; if there is no other, the loopback.
 */
struct network_row {
	struct nps_map in; /* ids */
	double speed; /* of all together, bytes a second; 0 unknown */
};

static int choose_cards(struct host_fill *f, struct network_row *n)
{
	const struct nps_vec *cards = &f->host->cards;
	bool own = false;
	int err = 0;

	for (size_t i = 0; f->pid && i < cards->len && !own; i++) {
		const struct nps_host_named *name = nps_host_samples__name(
			f->host, NPS_HOST_CARD, NPS_AT(cards, struct nps_host_card, i).id);

		own = name && name->flags & NPS_HOST_JOB_NET;
	}
	for (int pass = 0; pass < 3 && !n->in.len; pass++)
		for (size_t i = 0; i < cards->len && !err; i++) {
			uint32_t id = NPS_AT(cards, struct nps_host_card, i).id;
			const struct nps_host_named *name =
				nps_host_samples__name(f->host, NPS_HOST_CARD, id);

			if (!name || !!(name->flags & NPS_HOST_JOB_NET) != own ||
			    (pass == 0 && !name->speed) || (pass == 1 && is_loopback(f, id)) ||
			    nps_map__get(&n->in, id) != NPS_NONE)
				continue;
			err = nps_map__put(&n->in, id, 1);
			n->speed += (double)name->speed;
		}
	return err;
}

static void what_there_is(struct host_fill *f, const struct network_row *n)
{
	const cJSON *host = cJSON_GetObjectItemCaseSensitive(f->rec->json, "host");
	struct nps_host_table *t = &f->m->host;
	size_t row;

	if (!host_row_add(f, &t->t, &row))
		return;
	t->cpus[row] = (uint32_t)NPS_MIN(nps_json_u64(host, "cpus", 0), (uint64_t)NPS_HOST_CPUS);
	t->memory[row] = f->host->memory.len
				 ? (double)NPS_AT(&f->host->memory, struct nps_host_memory, 0).total
				 : (double)nps_json_u64(host, "memory_kb", 0);
	t->network[row] = n->speed;
}

/* --- CPUs -------------------------------------------------------------------------------------------- */

static void put_host_usage(struct host_fill *f, uint64_t time, uint32_t cpu, double usage)
{
	struct nps_cpu_usage_table *t = &f->m->cpu_usage;
	size_t row;

	if (!isfinite(usage) || !host_row_add(f, &t->t, &row))
		return;
	t->timestamp[row] = time;
	t->cpu[row] = cpu;
	t->usage[row] = usage;
}

static uint64_t busy_of(const struct nps_host_cpu *c)
{
	return c->user + c->sys + c->irq + c->soft;
}

static uint64_t all_of(const struct nps_host_cpu *c)
{
	return busy_of(c) + c->iowait + c->idle + c->steal;
}

/* Share of BUSY in the time between two samples; NaN: none passed, or the counters are not from one boot. */
static double busy_share(const struct nps_host_cpu *a, const struct nps_host_cpu *b)
{
	if (all_of(b) <= all_of(a) || busy_of(b) < busy_of(a))
		return NPS_NAN;
	return percent((double)(busy_of(b) - busy_of(a)), (double)(all_of(b) - all_of(a)));
}

/* Use of the whole host: each CPU, and all together. */
static void cpus_of_host(struct host_fill *f)
{
	const struct nps_vec *cpus = &f->host->cpus;
	uint32_t average = host_text(f, "Avg", 0);
	struct nps_map last = { 0 };

	for (size_t i = 0; i < cpus->len && !f->err; i++) {
		const struct nps_host_cpu *now = &NPS_AT(cpus, struct nps_host_cpu, i), *was;
		uint32_t row = nps_map__get(&last, now->cpu);

		was = row == NPS_NONE ? NULL : &NPS_AT(cpus, struct nps_host_cpu, row);
		if (was && now->time < was->time + TICKS_NS)
			continue;
		before(f, &last, now->cpu, (uint32_t)i);
		if (was && inside(f, was->time, now->time))
			put_host_usage(f, sample_real(f, was->time),
				       now->cpu >= NPS_HOST_CPUS ? average : host_text(f, "%llu", now->cpu),
				       busy_share(was, now));
	}
	nps_map__free(&last);
}

/* Slices of time with what the threads of the process used of each CPU. */
static void put_grid(struct host_fill *f, const struct nps_host_grid *grid, const bool *seen, uint32_t cpus)
{
	uint32_t average = host_text(f, "Avg", 0);

	for (size_t i = 0; i < grid->slices && !f->err; i++) {
		uint64_t begin = grid->begin + i * grid->slice;
		/* The last slice is as long as the capture goes. */
		double whole = (double)(NPS_MIN(begin + grid->slice, f->rec->end) - begin), sum = 0;

		if (begin >= f->rec->end)
			break;
		for (size_t cpu = 0; cpu < grid->cpus; cpu++) {
			double ns = *nps_host_grid__cell(grid, i, cpu);

			sum += ns;
			/* A thread that moved counts for its last CPU, which can make more than there is. */
			if (seen[cpu])
				put_host_usage(f, sample_real(f, begin), host_text(f, "%llu", cpu),
					       percent(NPS_MIN(ns, whole), whole));
		}
		if (cpus)
			put_host_usage(f, sample_real(f, begin), average, percent(sum, whole * cpus));
	}
}

static void cpus_of_process(struct host_fill *f)
{
	bool seen[NPS_HOST_CPUS] = { false };
	struct nps_host_walk walk = { .host = f->host };
	uint32_t cpus = f->m->host.t.len ? f->m->host.cpus[0] : 0;
	struct nps_host_grid grid;
	struct nps_host_use use;
	size_t most = NPS_MAX(cpus, 1U);

	for (size_t i = 0; i < f->host->threads.len; i++) {
		const struct nps_host_thread *t = &NPS_AT(&f->host->threads, struct nps_host_thread, i);

		if (t->pid != f->pid || t->cpu >= NPS_HOST_CPUS)
			continue;
		seen[t->cpu] = true;
		most = NPS_MAX(most, (size_t)t->cpu + 1);
	}
	f->err = nps_host_grid__init(&grid, f->m->tmpfd, f->rec->begin, f->rec->end, USAGE_NS, most);
	while (!f->err && nps_host_walk__next(&walk, &use))
		if (use.pid == f->pid && use.end > f->rec->begin && use.start < f->rec->end)
			nps_host_grid__add(&grid, use.start, use.end, use.cpu, use.run);
	if (!f->err)
		f->err = walk.err;
	if (!f->err && f->host->threads.len)
		put_grid(f, &grid, seen, cpus);
	nps_host_walk__free(&walk);
	nps_host_grid__free(&grid);
}

/* One row: shares of all CPUs from the first sample to the last. */
static void shares_of_host(struct host_fill *f)
{
	const struct nps_host_cpu *first = NULL, *last = NULL;
	struct nps_cpu_share_table *t = &f->m->cpu_share;
	double whole;
	size_t row;

	for (size_t i = 0; i < f->host->cpus.len; i++) {
		const struct nps_host_cpu *c = &NPS_AT(&f->host->cpus, struct nps_host_cpu, i);

		if (c->cpu < NPS_HOST_CPUS)
			continue;
		first = first ? first : c;
		last = c;
	}
	if (!first || all_of(last) <= all_of(first) || !host_row_add(f, &t->t, &row))
		return;
	whole = (double)(all_of(last) - all_of(first));
	t->device[row] = NPS_NONE;
	t->type[row] = host_text(f, "host", 0);
	t->user[row] = percent((double)(last->user - first->user), whole);
	t->sys[row] = percent((double)(last->sys - first->sys), whole);
	t->iowait[row] = percent((double)(last->iowait - first->iowait), whole);
	t->irq[row] = percent((double)(last->irq - first->irq), whole);
	t->soft[row] = percent((double)(last->soft - first->soft), whole);
	t->idle[row] = percent((double)(last->idle - first->idle), whole);
}

static void import_load(struct host_fill *f)
{
	const struct nps_vec *systems = &f->host->systems, *cpus = &f->host->cpus;
	struct nps_host_load_table *t = &f->m->host_load;
	const struct nps_host_system *was = NULL;
	const struct nps_host_cpu *cpu_was = NULL;
	size_t row, cpu = 0;

	for (size_t i = 0; i < systems->len && !f->err; i++) {
		const struct nps_host_system *now = &NPS_AT(systems, struct nps_host_system, i);
		const struct nps_host_cpu *cpu_now = NULL;

		if (was && now->time < was->time + TICKS_NS)
			continue;
		for (; cpu < cpus->len && NPS_AT(cpus, struct nps_host_cpu, cpu).time <= now->time; cpu++)
			if (NPS_AT(cpus, struct nps_host_cpu, cpu).cpu >= NPS_HOST_CPUS)
				cpu_now = &NPS_AT(cpus, struct nps_host_cpu, cpu);
		if (was && inside(f, was->time, now->time) && host_row_add(f, &t->t, &row)) {
			t->timestamp[row] = sample_real(f, was->time);
			t->cpu[row] = cpu_was && cpu_now ? busy_share(cpu_was, cpu_now) : NPS_NAN;
			t->switches[row] = rate(was->switches, now->switches, now->time - was->time);
			t->running[row] = now->running;
			t->blocked[row] = now->blocked;
		}
		was = now;
		cpu_was = cpu_now ? cpu_now : cpu_was;
	}
}

/* --- processes and threads --------------------------------------------------------------------------- */

static void put_process(struct host_fill *f, const struct nps_host_process *was,
			const struct nps_host_process *now)
{
	struct nps_host_process_table *t = &f->m->host_process;
	uint64_t ns = now->time - was->time;
	uint32_t name = host_name(f, NPS_HOST_PROCESS, now->pid);
	size_t row;

	if (!host_row_add(f, &t->t, &row))
		return;
	t->timestamp[row] = sample_real(f, was->time);
	t->pid[row] = now->pid;
	t->name[row] = name;
	t->cpu[row] = rate(was->run, now->run, ns) / 1e7;
	t->resident[row] = now->resident == NPS_HOST_UNKNOWN ? NPS_NAN : (double)now->resident;
	t->read[row] = rate(was->read, now->read, ns);
	t->write[row] = rate(was->written, now->written, ns);
	t->received[row] = rate(was->received, now->received, ns);
	t->sent[row] = rate(was->sent, now->sent, ns);
}

static void import_process_use(struct host_fill *f)
{
	const struct nps_vec *v = &f->host->processes;
	struct nps_map last = { 0 };

	for (size_t i = 0; i < v->len && !f->err; i++) {
		const struct nps_host_process *now = &NPS_AT(v, struct nps_host_process, i), *was;
		uint32_t row;

		if (f->pid && now->pid != f->pid)
			continue;
		row = before(f, &last, now->pid, (uint32_t)i);
		was = row == NPS_NONE ? NULL : &NPS_AT(v, struct nps_host_process, row);
		if (was && now->time > was->time && inside(f, was->time, now->time))
			put_process(f, was, now);
	}
	nps_map__free(&last);
}

static void import_thread_use(struct host_fill *f)
{
	struct nps_host_walk walk = { .host = f->host };
	struct nps_host_thread_table *t = &f->m->host_thread;
	struct nps_host_use use;
	size_t row;

	while (!f->err && nps_host_walk__next(&walk, &use)) {
		uint32_t name;

		/* For the whole host processes are enough: there would be too many threads. */
		if (use.pid != f->pid || !inside(f, use.start, use.end) ||
		    nps_session__is_helper(f->rec, use.pid, use.tid, use.start))
			continue;
		name = host_name(f, NPS_HOST_THREAD, use.tid);
		if (!host_row_add(f, &t->t, &row))
			break;
		t->timestamp[row] = sample_real(f, use.start);
		t->pid[row] = use.pid;
		t->tid[row] = use.tid;
		t->name[row] = name;
		t->cpu[row] = percent((double)use.run, (double)(use.end - use.start));
		t->wait[row] = percent((double)use.wait, (double)(use.end - use.start));
		t->switches[row] = (double)use.switches * 1e9 / (double)(use.end - use.start);
	}
	if (!f->err)
		f->err = walk.err;
	nps_host_walk__free(&walk);
}

/* CPU time from the first sample to the last, as a share of the capture. */
static void cpu_of_processes(struct host_fill *f)
{
	const struct nps_vec *v = &f->host->processes;
	double span = (double)(f->rec->end - f->rec->begin);
	struct nps_process_cpu_table *t = &f->m->process_cpu;
	struct nps_map first = { 0 }, row_of = { 0 };

	for (size_t i = 0; i < v->len && !f->err && span > 0; i++) {
		const struct nps_host_process *now = &NPS_AT(v, struct nps_host_process, i);
		uint32_t from = nps_map__get(&first, now->pid), row = nps_map__get(&row_of, now->pid);
		size_t fresh = row;

		if ((f->pid && now->pid != f->pid) || now->run == NPS_HOST_UNKNOWN)
			continue;
		if (from == NPS_NONE) {
			before(f, &first, now->pid, (uint32_t)i);
			continue;
		}
		if (row == NPS_NONE && host_row_add(f, &t->t, &fresh)) {
			before(f, &row_of, now->pid, (uint32_t)fresh);
			t->device[fresh] = NPS_NONE;
			t->pid[fresh] = now->pid;
			t->name[fresh] = host_name(f, NPS_HOST_PROCESS, now->pid);
		}
		if (!f->err && now->run >= NPS_AT(v, struct nps_host_process, from).run)
			t->cpu[fresh] = percent(
				(double)(now->run - NPS_AT(v, struct nps_host_process, from).run), span);
	}
	nps_map__free(&first);
	nps_map__free(&row_of);
}

/* --- memory ------------------------------------------------------------------------------------------ */

static void put_memory(struct host_fill *f, uint64_t time, double usage)
{
	struct nps_host_mem_table *t = &f->m->host_mem;
	size_t row;

	if (!isfinite(usage) || !inside(f, time, time) || !host_row_add(f, &t->t, &row))
		return;
	t->timestamp[row] = sample_real(f, time);
	t->usage[row] = usage;
}

static void memory_of_host(struct host_fill *f)
{
	for (size_t i = 0; i < f->host->memory.len; i++) {
		const struct nps_host_memory *m = &NPS_AT(&f->host->memory, struct nps_host_memory, i);

		if (m->available != NPS_HOST_UNKNOWN && m->available <= m->total)
			put_memory(f, m->time, percent((double)(m->total - m->available), (double)m->total));
	}
}

static void memory_of_process(struct host_fill *f)
{
	double total = f->m->host.t.len ? f->m->host.memory[0] * 1024 : 0;

	for (size_t i = 0; i < f->host->processes.len && total > 0; i++) {
		const struct nps_host_process *p = &NPS_AT(&f->host->processes, struct nps_host_process, i);

		if (p->pid == f->pid && p->resident != NPS_HOST_UNKNOWN)
			put_memory(f, p->time, percent((double)p->resident, total));
	}
}

static uint64_t known_or_null(uint64_t value)
{
	return value == NPS_HOST_UNKNOWN ? 0 : value;
}

/* The last look at the whole host's memory. */
static void memory_sums(struct host_fill *f)
{
	const struct nps_host_memory *m;
	struct nps_sys_mem_table *t = &f->m->sys_mem;
	size_t row;

	if (!f->host->memory.len || !host_row_add(f, &t->t, &row))
		return;
	m = &NPS_AT(&f->host->memory, struct nps_host_memory, f->host->memory.len - 1);
	t->device[row] = NPS_NONE;
	t->total[row] = known_or_null(m->total);
	t->free[row] = known_or_null(m->free);
	t->buffers[row] = known_or_null(m->buffers);
	t->cached[row] = known_or_null(m->cached);
	t->shared[row] = known_or_null(m->shared);
	t->commit_limit[row] = known_or_null(m->commit_limit);
	t->committed[row] = known_or_null(m->committed);
	t->huge_total[row] = known_or_null(m->huge_total);
	t->huge_free[row] = known_or_null(m->huge_free);
}

/* --- disks and interfaces ---------------------------------------------------------------------------- */

static void put_device_rates(struct host_fill *f, uint64_t time, uint32_t name, bool card, double in,
			     double out, double busy)
{
	struct nps_host_device_table *t = &f->m->host_device;
	size_t row;

	if (!host_row_add(f, &t->t, &row))
		return;
	t->timestamp[row] = sample_real(f, time);
	t->name[row] = name;
	t->card[row] = card;
	t->in[row] = in;
	t->out[row] = out;
	t->busy[row] = busy;
}

static void put_disks(struct host_fill *f, uint64_t time, double read, double write, double busy)
{
	struct nps_host_disk_table *t = &f->m->host_disk;
	size_t row;

	if (!host_row_add(f, &t->t, &row))
		return;
	t->timestamp[row] = sample_real(f, time);
	t->read[row] = read;
	t->write[row] = write;
	t->usage[row] = busy;
}

static bool is_part(const struct host_fill *f, uint32_t disk)
{
	const struct nps_host_named *name = nps_host_samples__name(f->host, NPS_HOST_DISK, disk);

	return name && name->flags & NPS_HOST_PART;
}

/* What is added up over the devices of one sample. */
struct network_sum {
	uint64_t time, before; /* of the sample, and of the one before */
	double in, out, busy;
	bool any;
};

static double or_nothing(double x)
{
	return isfinite(x) ? x : 0;
}

/* Samples of disks that were taken together have the same time. */
static void put_disk_sum(struct host_fill *f, const struct network_sum *s)
{
	if (s->any && !f->pid)
		put_disks(f, s->before, s->in, s->out, s->busy);
}

static void disks(struct host_fill *f)
{
	const struct nps_vec *v = &f->host->disks;
	struct nps_map last = { 0 };
	struct network_sum sum = { 0 };

	for (size_t i = 0; i < v->len && !f->err; i++) {
		const struct nps_host_disk *now = &NPS_AT(v, struct nps_host_disk, i), *was;
		uint32_t row = before(f, &last, now->id, (uint32_t)i);
		double read, write, busy;

		if (now->time != sum.time) {
			put_disk_sum(f, &sum);
			sum = (struct network_sum){ .time = now->time };
		}
		was = row == NPS_NONE ? NULL : &NPS_AT(v, struct nps_host_disk, row);
		if (!was || now->time <= was->time || !inside(f, was->time, now->time))
			continue;
		read = rate(was->read, now->read, now->time - was->time);
		write = rate(was->written, now->written, now->time - was->time);
		busy = NPS_MIN(rate(was->busy, now->busy, now->time - was->time) / 1e7, 100.0);
		put_device_rates(f, was->time, host_name(f, NPS_HOST_DISK, now->id), false, read, write,
				 busy);
		if (is_part(f, now->id))
			continue;
		sum.any = true;
		sum.before = was->time;
		sum.in += or_nothing(read);
		sum.out += or_nothing(write);
		sum.busy = NPS_MAX(sum.busy, or_nothing(busy));
	}
	put_disk_sum(f, &sum);
	nps_map__free(&last);
}

/* Of a process: its own bytes; not how busy the busiest disk was, which others cause too. */
static void disks_of_process(struct host_fill *f)
{
	const struct nps_host_process_table *t = &f->m->host_process;

	for (size_t i = 0; i < t->t.len && !f->err; i++) {
		struct nps_host_disk_table *to = &f->m->host_disk;
		size_t row;

		if (!isfinite(t->read[i]) || !host_row_add(f, &to->t, &row))
			continue;
		to->timestamp[row] = t->timestamp[i];
		to->read[row] = t->read[i];
		to->write[row] = t->write[i];
		to->usage[row] = NPS_NAN;
	}
}

static void put_network_rates(struct host_fill *f, const struct network_sum *s, const struct network_row *n)
{
	struct nps_host_network_table *t = &f->m->host_network;
	size_t row;

	if (!s->any || !host_row_add(f, &t->t, &row))
		return;
	t->timestamp[row] = sample_real(f, s->before);
	t->usage[row] = percent(s->in, n->speed);
	t->speed[row] = s->in;
}

static void cards(struct host_fill *f, const struct network_row *n)
{
	const struct nps_vec *v = &f->host->cards;
	struct nps_map last = { 0 };
	struct network_sum sum = { 0 };

	for (size_t i = 0; i < v->len && !f->err; i++) {
		const struct nps_host_card *now = &NPS_AT(v, struct nps_host_card, i), *was;
		uint32_t row = before(f, &last, now->id, (uint32_t)i);
		double in, out;

		if (now->time != sum.time) {
			put_network_rates(f, &sum, n);
			sum = (struct network_sum){ .time = now->time };
		}
		was = row == NPS_NONE ? NULL : &NPS_AT(v, struct nps_host_card, row);
		if (!was || now->time <= was->time || !inside(f, was->time, now->time))
			continue;
		in = rate(was->received, now->received, now->time - was->time);
		out = rate(was->sent, now->sent, now->time - was->time);
		put_device_rates(f, was->time, host_name(f, NPS_HOST_CARD, now->id), true, in, out, NPS_NAN);
		if (nps_map__get(&n->in, now->id) == NPS_NONE)
			continue;
		sum.any = true;
		sum.before = was->time;
		sum.in += or_nothing(in) + or_nothing(out);
	}
	put_network_rates(f, &sum, n);
	nps_map__free(&last);
}

/* --- all of it --------------------------------------------------------------------------------------- */

static void import_neighbours(struct host_fill *f)
{
	struct nps_neighbour_table *t = &f->m->neighbour;
	size_t row;

	for (size_t i = 0; i < f->host->neighbours.len && !f->err; i++) {
		const struct nps_neighbour *n = &NPS_AT(&f->host->neighbours, struct nps_neighbour, i);
		uint32_t name = n->name == NPS_NONE ? host_text(f, "%llu", n->pid) : n->name;

		if (!n->contended || !host_row_add(f, &t->t, &row))
			break; /* what took most comes first */
		t->pid[row] = n->pid;
		t->name[row] = name;
		t->run[row] = n->run;
		t->contended[row] = n->contended;
	}
}

int nps_import__host(struct nps_model *model, const struct nps_session *rec, uint32_t pid)
{
	struct host_fill f = { .m = model, .rec = rec, .host = &rec->host, .pid = pid };
	struct network_row network = { .speed = 0 };

	if (!rec->host.requested)
		return 0;
	f.err = choose_cards(&f, &network);
	what_there_is(&f, &network);
	if (!f.err && pid)
		cpus_of_process(&f);
	else
		cpus_of_host(&f);
	shares_of_host(&f);
	import_load(&f);
	import_process_use(&f);
	if (pid)
		import_thread_use(&f);
	cpu_of_processes(&f);
	if (pid)
		memory_of_process(&f);
	else
		memory_of_host(&f);
	memory_sums(&f);
	disks(&f);
	if (pid)
		disks_of_process(&f);
	cards(&f, &network);
	import_neighbours(&f);
	/* A value that did not change is recorded when it does, after the next values of others. */
	if (!f.err)
		f.err = nps_table__order(&model->host_process.t, 0);
	if (!f.err)
		f.err = nps_table__order(&model->host_thread.t, 0);
	if (!f.err) /* disks, then interfaces */
		f.err = nps_table__order(&model->host_device.t, 0);
	nps_map__free(&network.in);
	return f.err;
}
