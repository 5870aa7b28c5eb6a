/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples of /proc of a whole system or of single processes, on the host or the device. A sample is a
 * block: `TimeStamp:`, `Index:`, `DataLen:`, lines of /proc, an empty line. The results are sums, one row
 * for the whole capture.
 */
#include "import/cann/aux_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USER_HZ 100
#define PROCESSES 1024 /* files of single processes */

/* `key:` at the start of a line; the number after it. */
static bool keyed(const char *text, const char *key, uint64_t *value)
{
	size_t len = strlen(key);

	if (strncmp(text, key, len) || text[len] != ':')
		return false;
	text += len + 1;
	return nps_aux__number(&text, value);
}

/* Lines of a block that hold its length. */
static bool is_head(const char *text)
{
	uint64_t ignored;

	return keyed(text, "Index", &ignored) || keyed(text, "DataLen", &ignored);
}

/* The device's row, or the host's. */
static uint32_t owner(const struct nps_aux *aux)
{
	return aux->dir->device == NPS_CANN_HOST ? NPS_NONE : aux->dir->device;
}

/* --- CPUs of the system: user nice system idle iowait irq softirq steal guest guest_nice --- */

enum { CPU_FIELDS = 10, HOST_ALL = 'h' };

/* By kind of CPU: sums of the counters in all samples, which are of the time since the system started. */
struct shares {
	struct usage_kind {
		uint64_t sums[CPU_FIELDS];
	} kinds[3];
	uint64_t blocks;
};

static const struct {
	uint8_t kind;
	const char *name;
} cpu_kinds[3] = { { 'a', "aicpu" }, { 'c', "ctrlcpu" }, { HOST_ALL, "host" } };

/* Which kind a line is about: of the host all of it, of a device the CPUs that its info.json lists. */
static struct usage_kind *cpu_kind(struct nps_aux *aux, struct shares *shares, const char *text)
{
	uint64_t cpu;

	if (aux->dir->device == NPS_CANN_HOST)
		return text[3] == ' ' ? &shares->kinds[2] : NULL;
	text += 3;
	if (*text < '0' || *text > '9' || !nps_aux__number(&text, &cpu) || cpu >= NPS_AUX_CPUS)
		return NULL;
	for (size_t i = 0; i < 2; i++)
		if (aux->config.cpus[cpu] == cpu_kinds[i].kind)
			return &shares->kinds[i];
	return NULL;
}

static bool share_line(struct nps_aux *aux, const char *text)
{
	struct shares *shares = aux->state;
	uint64_t cells[CPU_FIELDS], stamp;
	struct usage_kind *kind;

	if (!*text || is_head(text))
		return true;
	if (keyed(text, "TimeStamp", &stamp)) {
		shares->blocks++;
		return true;
	}
	if (strncmp(text, "cpu", 3) || !shares->blocks)
		return false;
	kind = cpu_kind(aux, shares, text);
	text += strcspn(text, " ");
	for (size_t i = 0; i < CPU_FIELDS; i++)
		if (!nps_aux__number(&text, &cells[i]) || cells[i] > NPS_AUX_MOST_COUNT)
			return false;
	for (size_t i = 0; kind && i < CPU_FIELDS; i++)
		kind->sums[i] = nps_add_sat(kind->sums[i], cells[i]);
	return true;
}

/*
 * As the vendor's parser computes them: totals, no differences. So a capture's own load shows only as far
 * as the capture is long compared with the time before it.
 */
static void end_shares(struct nps_aux *aux)
{
	struct nps_cpu_share_table *t = &aux->model->cpu_share;
	const struct shares *shares = aux->state;
	size_t row;

	for (size_t k = 0; k < NPS_ARRAY_SIZE(cpu_kinds) && !aux->err; k++) {
		const struct usage_kind *kind = &shares->kinds[k];
		const uint64_t *spent = kind->sums;
		double all = 0;

		for (size_t i = 0; i < CPU_FIELDS; i++)
			all += spent[i];
		if (!(all > 0) || !nps_aux__add(aux, &t->t, &row))
			continue;
		t->device[row] = owner(aux);
		t->type[row] = nps_aux__text(aux, cpu_kinds[k].name);
		t->user[row] = 100.0 * spent[0] / all;
		t->sys[row] = 100.0 * spent[2] / all;
		t->idle[row] = 100.0 * spent[3] / all;
		t->iowait[row] = 100.0 * spent[4] / all;
		t->irq[row] = 100.0 * spent[5] / all;
		t->soft[row] = 100.0 * spent[6] / all;
	}
}

/* --- memory of the system: the mean of all samples --- */

static const char *const memory_keys[] = { "MemTotal",	   "MemFree",	      "Buffers",
					   "Cached",	   "Shmem",	      "CommitLimit",
					   "Committed_AS", "HugePages_Total", "HugePages_Free" };

struct memory_sample {
	uint64_t sums[NPS_ARRAY_SIZE(memory_keys)], samples;
};

static bool memory_line(struct nps_aux *aux, const char *text)
{
	struct memory_sample *memory = aux->state;
	uint64_t value;

	if (!*text || is_head(text))
		return true;
	if (keyed(text, "TimeStamp", &value)) {
		memory->samples++;
		return true;
	}
	for (size_t i = 0; i < NPS_ARRAY_SIZE(memory_keys); i++)
		if (keyed(text, memory_keys[i], &value)) {
			memory->sums[i] = nps_add_sat(memory->sums[i], value);
			return true;
		}
	return strchr(text, ':') != NULL; /* /proc/meminfo has more lines than the result */
}

static void end_memory(struct nps_aux *aux)
{
	struct nps_sys_mem_table *t = &aux->model->sys_mem;
	const struct memory_sample *memory = aux->state;
	size_t row;

	if (!memory->samples || !nps_aux__add(aux, &t->t, &row))
		return;
	uint64_t *const columns[] = { t->total,	       t->free,	     t->buffers,    t->cached,	 t->shared,
				      t->commit_limit, t->committed, t->huge_total, t->huge_free };

	t->device[row] = owner(aux);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(columns); i++)
		columns[i][row] = memory->sums[i] / memory->samples;
}

/* --- a process: its line of stat or statm, `ProcessName:`, perhaps the system's `cpu` line --- */

struct process_sample {
	uint32_t pid;
	char name[128];
	uint64_t samples;
	uint64_t used, first_used; /* clock ticks */
	uint64_t raw, first_raw;
	uint64_t system, first_system; /* of all CPUs; 0: unknown */
	uint64_t sums[3]; /* pages */
};

/* True if the line belongs to every kind of block. */
static bool common_line(struct process_sample *process, const char *text)
{
	uint64_t raw;

	if (!strncmp(text, "ProcessName:", 12)) {
		snprintf(process->name, sizeof(process->name), "%s", text + 12);
		return true;
	}
	if (!keyed(text, "TimeStamp", &raw))
		return !*text || is_head(text);
	process->raw = raw;
	if (!process->samples++)
		process->first_raw = raw;
	return true;
}

/* `cpu  user nice ...` */
static bool system_line(struct process_sample *process, const char *text)
{
	uint64_t all = 0, cell;

	text += strcspn(text, " ");
	while (nps_aux__number(&text, &cell))
		all = nps_add_sat(all, cell);
	process->system = all;
	if (process->samples == 1)
		process->first_system = all;
	return true;
}

static bool usage_line(struct nps_aux *aux, const char *text)
{
	enum { USER = 13, CELLS = 4 }; /* utime, stime, and those of children */
	struct process_sample *process = aux->state;
	uint64_t used = 0, cell;

	if (common_line(process, text))
		return true;
	if (!process->samples)
		return false;
	if (!strncmp(text, "cpu ", 4))
		return system_line(process, text);
	text = strrchr(text, ')');
	for (int i = 2; text && i < USER + CELLS; i++) {
		const char *p;

		text = nps_aux__word(text);
		p = text;
		if (!text || i < USER)
			continue;
		if (!nps_aux__number(&p, &cell) || cell > NPS_AUX_MOST_COUNT)
			return false;
		used += cell;
	}
	process->used = used;
	if (process->samples == 1)
		process->first_used = used;
	return text != NULL;
}

static void end_usage(struct nps_aux *aux)
{
	struct nps_process_cpu_table *t = &aux->model->process_cpu;
	const struct process_sample *p = aux->state;
	uint64_t hz = aux->dir->user_hz && aux->dir->user_hz <= 1000000 ? aux->dir->user_hz : USER_HZ;
	double used = p->used > p->first_used ? p->used - p->first_used : 0, share = NPS_NAN;
	size_t row;

	if (p->system > p->first_system)
		share = 100 * used / (p->system - p->first_system);
	else if (p->raw > p->first_raw)
		share = 100 * used * 1e9 / ((double)hz * (p->raw - p->first_raw));
	if (!p->samples || !nps_aux__add(aux, &t->t, &row))
		return;
	t->device[row] = owner(aux);
	t->pid[row] = p->pid;
	t->name[row] = nps_aux__text(aux, p->name);
	t->cpu[row] = share;
}

static bool pages_line(struct nps_aux *aux, const char *text)
{
	struct process_sample *process = aux->state;
	uint64_t cells[3];

	if (common_line(process, text))
		return true;
	for (size_t i = 0; i < 3; i++)
		if (!nps_aux__number(&text, &cells[i]))
			return false;
	for (size_t i = 0; i < 3; i++)
		process->sums[i] = nps_add_sat(process->sums[i], cells[i]);
	return process->samples > 0;
}

static void end_pages(struct nps_aux *aux)
{
	struct nps_process_mem_table *t = &aux->model->process_mem;
	const struct process_sample *p = aux->state;
	size_t row;

	if (!p->samples || !nps_aux__add(aux, &t->t, &row))
		return;
	t->device[row] = owner(aux);
	t->pid[row] = p->pid;
	t->name[row] = nps_aux__text(aux, p->name);
	t->size[row] = p->sums[0] / p->samples;
	t->resident[row] = p->sums[1] / p->samples;
	t->shared[row] = p->sums[2] / p->samples;
}

/* Files `PID-KIND`; the list of slices is sorted by name. */
static void read_processes(struct nps_aux *aux, const char *kind,
			   bool (*line)(struct nps_aux *, const char *), void (*end)(struct nps_aux *))
{
	const struct nps_slices *files = &aux->dir->files;
	uint64_t last = UINT64_MAX, pid;
	size_t done = 0;

	for (size_t i = 0; i < files->n && done < PROCESSES && !aux->err; i++) {
		const char *p = files->all[i].name;
		struct process_sample process = { 0 };
		char name[64];

		if (*p < '0' || *p > '9' || !nps_aux__number(&p, &pid) || pid > UINT32_MAX || pid == last ||
		    *p != '-' || strncmp(p + 1, kind, strlen(kind)))
			continue;
		last = pid;
		done++;
		process.pid = pid;
		aux->state = &process;
		snprintf(name, sizeof(name), "%u-%s", process.pid, kind);
		nps_aux__lines(aux, name, line, end);
	}
	aux->state = NULL;
}

void nps_aux__system(struct nps_aux *aux)
{
	bool host = aux->dir->device == NPS_CANN_HOST;
	struct memory_sample memory = { 0 };
	struct shares shares = { 0 };

	aux->state = &shares;
	nps_aux__lines(aux, host ? "host_sys_cpu.data" : "SystemCpuUsage.data", share_line, end_shares);
	aux->state = &memory;
	nps_aux__lines(aux, host ? "host_sys_mem.data" : "Memory.data", memory_line, end_memory);
	aux->state = NULL;
	read_processes(aux, "CpuUsage.data", usage_line, end_usage);
	read_processes(aux, "Memory.data", pages_line, end_pages);
}
