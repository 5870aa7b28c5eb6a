/* SPDX-License-Identifier: BSD-2-Clause */
/* What the job used of the host: CPUs, memory, network, disk (outputs 3.4). */
#include "import/cann/aux_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_KB 4 /* as the vendor assumes */
#define USER_HZ 100
#define HUNDREDTHS 100 /* of a second, in which /proc/uptime counts */
#define MOST_CPUS 8192

/* `time NS` */
static bool time_line(const char *text, uint64_t *raw)
{
	if (strncmp(text, "time", 4) || (text[4] != ' ' && text[4] != '\t'))
		return false;
	text += 4;
	return nps_aux__number(&text, raw);
}

/* --- host_cpu: `time NS`, a line of /proc/uptime, and one of /proc/PID/task/TID/stat for each thread --- */

struct cpu_thread {
	uint32_t tid, cpu;
	uint64_t used; /* clock ticks */
};

struct cpu_sample {
	uint64_t raw;
	uint64_t uptime; /* hundredths; 0: not read yet */
	struct nps_vec threads; /* struct cpu_thread */
	struct nps_map of; /* tid -> row */
};

struct cpu_samples {
	struct cpu_sample before, now;
	struct share {
		uint64_t used; /* hundredths of clock ticks */
		uint32_t threads, name;
	} shares[MOST_CPUS];
	uint32_t average; /* text */
};

static void put_cpu_usage(struct nps_aux *aux, uint64_t ns, uint32_t cpu, double usage)
{
	struct nps_cpu_usage_table *t = &aux->model->cpu_usage;
	size_t row;

	if (!nps_aux__add(aux, &t->t, &row))
		return;
	t->timestamp[row] = ns;
	t->cpu[row] = cpu;
	t->usage[row] = nps_aux__round6(usage);
}

/*
 * What the threads of both samples used, of at most WHOLE hundredths of ticks each. A thread counts for the
 * CPU of the later sample.
 */
static uint64_t add_shares(struct cpu_samples *cpus, uint64_t whole)
{
	uint64_t total = 0;

	for (size_t i = 0; i < MOST_CPUS; i++)
		cpus->shares[i].used = cpus->shares[i].threads = 0;
	for (size_t i = 0; i < cpus->now.threads.len; i++) {
		const struct cpu_thread *now = &NPS_AT(&cpus->now.threads, struct cpu_thread, i);
		uint32_t row = nps_map__get(&cpus->before.of, now->tid);
		uint64_t was, share;

		if (row == NPS_NONE)
			continue;
		was = NPS_AT(&cpus->before.threads, struct cpu_thread, row).used;
		share = now->used > was ? NPS_MIN(now->used - was, whole) : 0;
		share = NPS_MIN(share * HUNDREDTHS, whole);
		cpus->shares[now->cpu].used += share;
		cpus->shares[now->cpu].threads++;
		total += share;
	}
	return total;
}

/* Rows of the time between the two samples. */
static void put_cpu_sample(struct nps_aux *aux, struct cpu_samples *cpus)
{
	uint64_t hz = aux->dir->user_hz && aux->dir->user_hz <= 1000000 ? aux->dir->user_hz : USER_HZ;
	uint64_t whole, total, ns;

	if (!cpus->before.uptime || cpus->now.uptime <= cpus->before.uptime ||
	    __builtin_mul_overflow(cpus->now.uptime - cpus->before.uptime, hz, &whole) ||
	    whole > UINT32_MAX || !nps_aux__time(aux, NPS_AUX_HOST_RAW, cpus->before.raw, &ns))
		return;
	total = add_shares(cpus, whole);
	for (size_t i = 0; i < MOST_CPUS && !aux->err; i++) {
		struct share *share = &cpus->shares[i];

		/* More than the whole comes from a thread that was on another CPU before. */
		if (!share->threads || share->used > whole)
			continue;
		if (!share->name)
			share->name = nps_strings__addf(aux->model->strings, "%zu", i);
		if (share->name == NPS_NONE)
			aux->err = -ENOMEM;
		put_cpu_usage(aux, ns, share->name, 100.0 * share->used / whole);
	}
	if (aux->dir->cpus && !aux->err)
		put_cpu_usage(aux, ns, cpus->average, 100.0 * total / ((double)whole * aux->dir->cpus));
}

static void next_sample(struct nps_aux *aux, struct cpu_samples *cpus, uint64_t raw)
{
	struct cpu_sample spare = cpus->before;

	put_cpu_sample(aux, cpus);
	cpus->before = cpus->now;
	spare.raw = raw;
	spare.uptime = 0;
	spare.threads.len = 0;
	nps_map__clear(&spare.of);
	cpus->now = spare;
}

/* A line of stat: the name in brackets holds anything. */
static bool thread_line(struct nps_aux *aux, struct cpu_sample *sample, const char *text)
{
	enum { USER = 13, SYSTEM = 14, CPU = 38 };
	uint64_t tid, user = 0, system = 0, cpu = 0;
	struct cpu_thread *thread;
	const char *p = text;
	uint32_t row;

	if (!nps_aux__number(&p, &tid) || tid > UINT32_MAX || !(p = strrchr(p, ')')))
		return false;
	for (int i = 2; i <= CPU; i++) {
		const char *cell;

		p = nps_aux__word(p);
		cell = p;
		if (!p || (i == USER && !nps_aux__number(&cell, &user)) ||
		    (i == SYSTEM && !nps_aux__number(&cell, &system)) ||
		    (i == CPU && !nps_aux__number(&cell, &cpu)))
			return false;
	}
	if (cpu >= MOST_CPUS || user > NPS_AUX_MOST_COUNT || system > NPS_AUX_MOST_COUNT)
		return false;
	row = nps_map__get(&sample->of, tid);
	thread = row == NPS_NONE ? nps_vec__push(&sample->threads)
				 : &NPS_AT(&sample->threads, struct cpu_thread, row);
	if (!thread || (row == NPS_NONE && nps_map__put(&sample->of, tid, sample->threads.len - 1))) {
		aux->err = -ENOMEM;
		return true;
	}
	*thread = (struct cpu_thread){ .tid = tid, .cpu = cpu, .used = user + system };
	return true;
}

static bool cpu_line(struct nps_aux *aux, const char *text)
{
	struct cpu_samples *cpus = aux->state;
	uint64_t raw;

	if (!*text)
		return true;
	if (time_line(text, &raw)) {
		next_sample(aux, cpus, raw);
		return true;
	}
	if (!cpus->now.raw)
		return false;
	if (cpus->now.uptime)
		return thread_line(aux, &cpus->now, text);
	return nps_aux__fixed(&text, 2, &cpus->now.uptime) && cpus->now.uptime &&
	       cpus->now.uptime <= NPS_AUX_MOST_COUNT;
}

static void end_cpus(struct nps_aux *aux)
{
	put_cpu_sample(aux, aux->state);
}

static void read_cpu(struct nps_aux *aux)
{
	struct cpu_samples *cpus;

	if (aux->err || !nps_aux__has(aux, "host_cpu.data"))
		return;
	cpus = calloc(1, sizeof(*cpus));
	if (!cpus) {
		aux->err = -ENOMEM;
		return;
	}
	nps_vec__init(&cpus->before.threads, aux->model->tmpfd, sizeof(struct cpu_thread));
	nps_vec__init(&cpus->now.threads, aux->model->tmpfd, sizeof(struct cpu_thread));
	cpus->average = nps_aux__text(aux, "Avg");
	aux->state = cpus;
	nps_aux__lines(aux, "host_cpu.data", cpu_line, end_cpus);
	aux->state = NULL;
	nps_vec__free(&cpus->before.threads);
	nps_vec__free(&cpus->now.threads);
	nps_map__free(&cpus->before.of);
	nps_map__free(&cpus->now.of);
	free(cpus);
}

/* --- host_mem: `NS` and a line of /proc/PID/statm --- */

static bool mem_line(struct nps_aux *aux, const char *text)
{
	struct nps_host_mem_table *t = &aux->model->host_mem;
	uint64_t raw, size, resident, ns;
	size_t row;

	if (!*text)
		return true;
	if (!nps_aux__number(&text, &raw) || !nps_aux__number(&text, &size) ||
	    !nps_aux__number(&text, &resident))
		return false;
	if (!aux->dir->memory_kb || !nps_aux__time(aux, NPS_AUX_HOST_RAW, raw, &ns) ||
	    !nps_aux__add(aux, &t->t, &row))
		return true;
	t->timestamp[row] = ns;
	t->usage[row] = nps_aux__round6(100.0 * PAGE_KB * resident / aux->dir->memory_kb);
	return true;
}

/* --- host_network: `time NS`, lines of /proc/net/dev; only cards whose speed is known --- */

struct net_sample {
	struct moment {
		uint64_t raw;
		uint64_t received[NPS_AUX_CARDS], sent[NPS_AUX_CARDS];
		bool seen[NPS_AUX_CARDS];
	} before, now;
};

static void put_net_sample(struct nps_aux *aux, const struct net_sample *n)
{
	struct nps_host_network_table *t = &aux->model->host_network;
	uint64_t raw = n->before.raw, ns;
	double bytes = 0, speed = 0, rate;
	size_t row;

	if (!raw || n->now.raw <= raw)
		return;
	for (size_t i = 0; i < aux->config.ncards; i++) {
		if (!n->before.seen[i] || !n->now.seen[i] || n->now.received[i] < n->before.received[i] ||
		    n->now.sent[i] < n->before.sent[i])
			continue;
		bytes += n->now.received[i] - n->before.received[i];
		bytes += n->now.sent[i] - n->before.sent[i];
		speed += aux->config.cards[i].speed;
	}
	if (!(speed > 0) || !nps_aux__time(aux, NPS_AUX_HOST_RAW, raw, &ns) ||
	    !nps_aux__add(aux, &t->t, &row))
		return;
	rate = bytes * 1e9 / (n->now.raw - raw);
	t->timestamp[row] = ns;
	t->usage[row] = nps_aux__round6(100 * rate / speed);
	t->speed[row] = rate;
}

/* `name: received and 7 more, sent and 7 more` */
static bool card_line(struct nps_aux *aux, struct moment *now, const char *text)
{
	const char *name = text + strspn(text, " \t"), *colon = strchr(name, ':');
	uint64_t cells[9];
	size_t card = 0;

	if (!colon || colon == name)
		return false;
	for (; card < aux->config.ncards; card++)
		if (strlen(aux->config.cards[card].name) == (size_t)(colon - name) &&
		    !strncmp(aux->config.cards[card].name, name, colon - name))
			break;
	colon++;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(cells); i++)
		if (!nps_aux__number(&colon, &cells[i]))
			return false;
	if (card == aux->config.ncards)
		return true;
	now->received[card] = cells[0];
	now->sent[card] = cells[8];
	now->seen[card] = true;
	return true;
}

static bool network_line(struct nps_aux *aux, const char *text)
{
	struct net_sample *n = aux->state;
	uint64_t raw;

	if (!*text)
		return true;
	if (!time_line(text, &raw))
		return n->now.raw && card_line(aux, &n->now, text);
	put_net_sample(aux, n);
	n->before = n->now;
	n->now = (struct moment){ .raw = raw };
	return true;
}

static void end_network(struct nps_aux *aux)
{
	put_net_sample(aux, aux->state);
}

static void read_network(struct nps_aux *aux)
{
	struct net_sample *n = calloc(1, sizeof(*n));

	if (!n) {
		aux->err = -ENOMEM;
		return;
	}
	aux->state = n;
	nps_aux__lines(aux, "host_network.data", network_line, end_network);
	aux->state = NULL;
	free(n);
}

/* --- host_disk: `start_time NS`, then what `iotop -b -P -t` writes: a line of the job a sample --- */

struct disk {
	bool started;
	uint64_t raw, samples;
};

/* `12.34 K/s` in hundredths of bytes a second. */
static bool disk_rate(const char **p, double *rate)
{
	static const char units[] = "BKMG";
	const char *unit;
	uint64_t value;

	if (!nps_aux__fixed(p, 2, &value))
		return false;
	*p = nps_aux__word(*p);
	if (!*p || !**p || !(unit = strchr(units, **p)) || strncmp(*p + 1, "/s", 2))
		return false;
	*rate = (double)value / 100 * (1ULL << 10 * (unit - units));
	return true;
}

/* TEXT behind the time of day that `iotop -t` begins every line with; it has no more than seconds. */
static const char *skip_time(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	const char *rest;

	if (!digits || text[digits] != ':')
		return text;
	rest = nps_aux__word(text);
	return rest ? rest : "";
}

/* `12.34 %`; NaN where the kernel does not account delays, in which case iotop prints a word instead. */
static bool disk_share(const char **p, double *share)
{
	uint64_t hundredths;

	*share = NPS_NAN;
	if (**p == '?')
		return true;
	if (!nps_aux__fixed(p, 2, &hundredths) || !(*p = nps_aux__word(*p)) || **p != '%')
		return false;
	*share = hundredths / 100.0;
	return true;
}

/* PID PRIO USER READ UNIT WRITE UNIT SWAPIN % IO % COMMAND; without accounting both are `?unavailable?`. */
static bool disk_row(struct nps_aux *aux, struct disk *disk, const char *text)
{
	struct nps_host_disk_table *t = &aux->model->host_disk;
	unsigned __int128 after;
	double read, written, share;
	uint64_t ns;
	size_t row;

	for (int i = 0; i < 3 && text; i++)
		text = nps_aux__word(text);
	if (!text || !disk_rate(&text, &read) || !(text = nps_aux__word(text)) ||
	    !disk_rate(&text, &written) || !(text = nps_aux__word(text)) || !disk_share(&text, &share))
		return false;
	if (!isnan(share) && (!(text = nps_aux__word(text)) || !disk_share(&text, &share)))
		return false;
	after = (unsigned __int128)disk->samples++ * NPS_NS_PER_S * 1000000 / aux->config.disk_hz;
	if (after > NPS_AUX_MOST_TIME ||
	    !nps_aux__time(aux, NPS_AUX_HOST_RAW, nps_add_sat(disk->raw, (uint64_t)after), &ns) ||
	    !nps_aux__add(aux, &t->t, &row))
		return true;
	t->timestamp[row] = ns;
	t->read[row] = read;
	t->write[row] = written;
	t->usage[row] = share;
	return true;
}

static bool disk_line(struct nps_aux *aux, const char *text)
{
	struct disk *disk = aux->state;

	text += strspn(text, " \t");
	if (!strncmp(text, "start_time", 10)) {
		text += 10;
		disk->started = nps_aux__number(&text, &disk->raw);
		return disk->started;
	}
	text = skip_time(text);
	if (!(*text >= '0' && *text <= '9')) /* what iotop writes above its rows */
		return true;
	return disk->started && disk_row(aux, disk, text);
}

static void read_disk(struct nps_aux *aux)
{
	struct disk disk = { 0 };

	aux->state = &disk;
	nps_aux__lines(aux, "host_disk.data", disk_line, NULL);
	aux->state = NULL;
}

/* --- what the host has --- */

static void add_host(struct nps_aux *aux)
{
	struct nps_host_table *t = &aux->model->host;
	size_t row;

	if (t->t.len || !nps_aux__add(aux, &t->t, &row))
		return;
	t->cpus[row] = NPS_MIN(aux->dir->cpus, (uint64_t)UINT32_MAX);
	t->memory[row] = aux->dir->memory_kb;
	t->network[row] = 0;
	for (size_t i = 0; i < aux->config.ncards; i++)
		t->network[row] += aux->config.cards[i].speed;
}

void nps_aux__host(struct nps_aux *aux)
{
	add_host(aux);
	read_cpu(aux);
	nps_aux__lines(aux, "host_mem.data", mem_line, NULL);
	read_network(aux);
	read_disk(aux);
}
