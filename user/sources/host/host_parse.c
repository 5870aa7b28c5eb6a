/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/host/host_parse.h"

#include <stddef.h>
#include <string.h>

#define SECTOR 512U /* unit of /proc/diskstats, whatever the device's own is */
#define MS 1000000ULL
#define MOST_CPUS (1U << 16)

struct text_cursor {
	const char *at, *end; /* of the rest of the line */
};

/* The line at *at, without its newline; *at moves past it. */
static bool next_line(const char **at, const char *end, struct text_cursor *line)
{
	const char *eol;

	if (*at >= end)
		return false;
	eol = memchr(*at, '\n', end - *at);
	line->at = *at;
	line->end = eol ? eol : end;
	*at = eol ? eol + 1 : end;
	return true;
}

static void skip_blanks(struct text_cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\t'))
		c->at++;
}

/* The next word, of `*len` bytes; NULL at the end of the line. */
static const char *cursor_word(struct text_cursor *c, size_t *len)
{
	const char *begin;

	skip_blanks(c);
	begin = c->at;
	while (c->at < c->end && *c->at != ' ' && *c->at != '\t')
		c->at++;
	*len = c->at - begin;
	return *len ? begin : NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A decimal number that fits; otherwise the cursor is not moved. */
static bool cursor_number(struct text_cursor *c, uint64_t *value)
{
	uint64_t v = 0;
	const char *p;

	skip_blanks(c);
	for (p = c->at; p < c->end && is_digit(*p); p++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return false;
	if (p == c->at)
		return false;
	c->at = p;
	*value = v;
	return true;
}

static bool numbers(struct text_cursor *c, uint64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!cursor_number(c, &v[i]))
			return false;
	return true;
}

static bool starts(const struct text_cursor *c, const char *with, size_t len)
{
	return (size_t)(c->end - c->at) >= len && !memcmp(c->at, with, len);
}

static uint64_t scaled(uint64_t value, uint64_t by)
{
	uint64_t v;

	return __builtin_mul_overflow(value, by, &v) ? NPS_HOST_UNKNOWN : v;
}

/* --- CPUs -------------------------------------------------------------------------------------------- */

/* user nice system idle iowait irq softirq, and since 2.6.11 steal */
static bool cpu_line(struct text_cursor *c, uint64_t tick_ns, struct nps_host_cpu *cpu)
{
	enum { USER, NICE, SYS, IDLE, IOWAIT, IRQ, SOFT, STEAL, CELLS };
	uint64_t v[CELLS] = {}, id = NPS_HOST_ALL_CPUS;

	c->at += 3;
	if (c->at < c->end && is_digit(*c->at) && (!cursor_number(c, &id) || id >= MOST_CPUS))
		return false;
	if (!numbers(c, v, STEAL))
		return false;
	cursor_number(c, &v[STEAL]);
	*cpu = (struct nps_host_cpu){ .cpu = (uint32_t)id,
				      .user = scaled(v[USER] + v[NICE], tick_ns),
				      .sys = scaled(v[SYS], tick_ns),
				      .iowait = scaled(v[IOWAIT], tick_ns),
				      .irq = scaled(v[IRQ], tick_ns),
				      .soft = scaled(v[SOFT], tick_ns),
				      .idle = scaled(v[IDLE], tick_ns),
				      .steal = scaled(v[STEAL], tick_ns) };
	return true;
}

static void system_line(struct text_cursor *c, struct nps_host_system *s)
{
	size_t len;
	const char *name = cursor_word(c, &len);
	uint64_t v;

	if (!name || !cursor_number(c, &v))
		return;
	if (len == 4 && !memcmp(name, "ctxt", len))
		s->switches = v;
	else if (len == 9 && !memcmp(name, "processes", len))
		s->forks = v;
	else if (len == 13 && !memcmp(name, "procs_running", len))
		s->running = v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
	else if (len == 13 && !memcmp(name, "procs_blocked", len))
		s->blocked = v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

size_t nps_host_parse__stat(const char *text, size_t len, uint64_t tick_ns, struct nps_host_cpu *cpus,
			    size_t max, struct nps_host_system *system)
{
	const char *at = text, *end = text + len;
	struct text_cursor line;
	size_t n = 0;

	*system = (struct nps_host_system){ .switches = NPS_HOST_UNKNOWN, .forks = NPS_HOST_UNKNOWN };
	while (next_line(&at, end, &line)) {
		if (!starts(&line, "cpu", 3))
			system_line(&line, system);
		else if (n < max && cpu_line(&line, tick_ns, &cpus[n]))
			n++;
	}
	return n;
}

/* --- tasks ------------------------------------------------------------------------------------------- */

bool nps_host_parse__schedstat(const char *text, size_t len, struct nps_host_thread *thread)
{
	struct text_cursor c = { text, text + len };
	uint64_t v[3];

	if (!numbers(&c, v, 3))
		return false;
	thread->run = v[0];
	thread->wait = v[1];
	thread->switches = v[2];
	return true;
}

bool nps_host_parse__task(const char *text, size_t len, struct nps_task_stat *task)
{
	enum { STATE = 3, USER = 14, SYS = 15, START = 22, CPU = 39 }; /* fields, counted from 1 */
	const char *open = memchr(text, '(', len), *close = memrchr(text, ')', len);
	struct text_cursor c = { close ? close + 1 : text, text + len };
	uint64_t v;
	size_t n;

	/* The text between the brackets is arbitrary, and may contain brackets. */
	if (!open || !close || close < open)
		return false;
	n = close - open - 1;
	n = n < sizeof(task->comm) ? n : sizeof(task->comm) - 1;
	*task = (struct nps_task_stat){ .cpu = 0 };
	memcpy(task->comm, open + 1, n);
	for (int field = STATE; field <= CPU; field++) {
		const char *cell = cursor_word(&c, &n);
		struct text_cursor in = { cell, cell ? cell + n : NULL };

		if (!cell)
			return false;
		if (field == STATE)
			task->state = *cell;
		if (field != USER && field != SYS && field != START && field != CPU)
			continue;
		if (!cursor_number(&in, &v))
			return false;
		if (field == START)
			task->start = v;
		else if (field == CPU)
			task->cpu = v >= MOST_CPUS ? 0 : (uint32_t)v;
		else if (__builtin_add_overflow(task->ticks, v, &task->ticks))
			return false;
	}
	return true;
}

bool nps_host_parse__statm(const char *text, size_t len, uint64_t page, struct nps_host_process *process)
{
	struct text_cursor c = { text, text + len };
	uint64_t v[2];

	if (!numbers(&c, v, 2))
		return false;
	process->resident = scaled(v[1], page);
	return true;
}

/*
 * Parses `name: number` lines into the members of `to` that `fields`
 * lists. Returns a bit mask of those found.
 */
struct field {
	const char *name;
	size_t offset;
};

static unsigned int named_lines(const char *text, size_t len, const struct field *fields, size_t n, void *to)
{
	const char *at = text, *end = text + len;
	unsigned int found = 0;
	struct text_cursor line;

	while (next_line(&at, end, &line)) {
		const char *colon = memchr(line.at, ':', line.end - line.at);
		size_t name_len = colon ? (size_t)(colon - line.at) : 0;
		struct text_cursor value = { colon ? colon + 1 : line.end, line.end };

		for (size_t i = 0; colon && i < n; i++) {
			uint64_t v;

			if (strlen(fields[i].name) != name_len || memcmp(fields[i].name, line.at, name_len) ||
			    !cursor_number(&value, &v))
				continue;
			memcpy((char *)to + fields[i].offset, &v, sizeof(v));
			found |= 1U << i;
		}
	}
	return found;
}

bool nps_host_parse__io(const char *text, size_t len, struct nps_host_process *process)
{
	static const struct field fields[] = {
		{ "read_bytes", offsetof(struct nps_host_process, read) },
		{ "write_bytes", offsetof(struct nps_host_process, written) },
		{ "cancelled_write_bytes", offsetof(struct nps_host_process, cancelled) },
	};
	struct nps_host_process all = { .cancelled = NPS_HOST_UNKNOWN };

	/* all or nothing, because an incomplete line looks like a smaller number */
	if ((named_lines(text, len, fields, 3, &all) & 3) != 3 || !len || text[len - 1] != '\n')
		return false;
	process->read = all.read;
	process->written = all.written;
	process->cancelled = all.cancelled;
	return true;
}

bool nps_host_parse__meminfo(const char *text, size_t len, struct nps_host_memory *memory)
{
#define M(name, member)                                                                                      \
	{                                                                                                    \
		name, offsetof(struct nps_host_memory, member)                                               \
	}
	static const struct field fields[] = {
		M("MemTotal", total),
		M("MemFree", free),
		M("MemAvailable", available),
		M("Buffers", buffers),
		M("Cached", cached),
		M("Shmem", shared),
		M("SwapTotal", swap_total),
		M("SwapFree", swap_free),
		M("Dirty", dirty),
		M("CommitLimit", commit_limit),
		M("Committed_AS", committed),
		M("HugePages_Total", huge_total),
		M("HugePages_Free", huge_free),
	};
#undef M
	memset(memory, 0xff, sizeof(*memory)); /* NPS_HOST_UNKNOWN */
	return named_lines(text, len, fields, sizeof(fields) / sizeof(*fields), memory) & 1;
}

/* --- devices ----------------------------------------------------------------------------------------- */

static void copy_name(char *to, const char *name, size_t len)
{
	len = len < NPS_HOST_NAME_MAX ? len : NPS_HOST_NAME_MAX - 1;
	memcpy(to, name, len);
	memset(to + len, 0, NPS_HOST_NAME_MAX - len);
}

static bool disk_line(struct text_cursor *c, struct nps_named_disk *d)
{
	enum {
		READS,
		READ_MERGED,
		READ_SECTORS,
		READ_MS,
		WRITES,
		WRITE_MERGED,
		WRITE_SECTORS,
		WRITE_MS,
		IN_FLIGHT,
		BUSY_MS,
		QUEUE_MS,
		CELLS
	};
	uint64_t device[2], v[CELLS];
	const char *name;
	size_t len;

	if (!numbers(c, device, 2) || device[0] >= 1U << 12 || device[1] >= 1U << 20 ||
	    !(name = cursor_word(c, &len)) || !numbers(c, v, CELLS))
		return false;
	d->disk = (struct nps_host_disk){ .id = (uint32_t)(device[0] << 20 | device[1]),
					  .reads = v[READS],
					  .read = scaled(v[READ_SECTORS], SECTOR),
					  .writes = v[WRITES],
					  .written = scaled(v[WRITE_SECTORS], SECTOR),
					  .busy = scaled(v[BUSY_MS], MS),
					  .queue = scaled(v[QUEUE_MS], MS) };
	copy_name(d->name, name, len);
	return true;
}

size_t nps_host_parse__disks(const char *text, size_t len, struct nps_named_disk *disks, size_t max)
{
	const char *at = text, *end = text + len;
	struct text_cursor line;
	size_t n = 0;

	while (n < max && next_line(&at, end, &line))
		if (disk_line(&line, &disks[n]) && (disks[n].disk.reads || disks[n].disk.writes))
			n++;
	return n;
}

static bool card_line(struct text_cursor *c, struct nps_named_card *card)
{
	enum { BYTES, PACKETS, ERRORS, DROPS, SENT = 8, CELLS = 12 };
	/* the last one: the name of an alias contains one */
	const char *colon = memrchr(c->at, ':', c->end - c->at);
	uint64_t v[CELLS];

	skip_blanks(c);
	if (!colon || colon <= c->at)
		return false;
	copy_name(card->name, c->at, colon - c->at);
	c->at = colon + 1;
	if (!numbers(c, v, CELLS))
		return false;
	card->card = (struct nps_host_card){ .received = v[BYTES],
					     .received_packets = v[PACKETS],
					     .receive_errors = v[ERRORS],
					     .receive_drops = v[DROPS],
					     .sent = v[SENT + BYTES],
					     .sent_packets = v[SENT + PACKETS],
					     .send_errors = v[SENT + ERRORS],
					     .send_drops = v[SENT + DROPS] };
	return true;
}

size_t nps_host_parse__cards(const char *text, size_t len, struct nps_named_card *cards, size_t max)
{
	const char *at = text, *end = text + len;
	struct text_cursor line;
	size_t n = 0;

	while (n < max && next_line(&at, end, &line))
		if (card_line(&line, &cards[n]))
			n++;
	return n;
}
