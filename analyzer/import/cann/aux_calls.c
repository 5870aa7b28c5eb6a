/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that the host traced: lines of `perf trace` and of `ltrace`, whose clocks are not those of the
 * capture. As in the vendor's tools, the first call of each file counts as the start of the collection.
 */
#include "import/cann/aux_read.h"

#include <string.h>

#define IGNORED "pthread_once" /* the vendor leaves it out */

/* values[0] of key 0: time of the file's first call. */
static void put_call(struct nps_aux *aux, const char *name, size_t len, uint64_t tid, uint64_t at,
		     uint64_t lasts)
{
	struct nps_osrt_table *t = &aux->model->osrt;
	struct nps_aux_last *last;
	uint64_t ns, begin = aux->dir->begin_us * 1000;
	size_t row;
	bool first;

	last = nps_aux__last(aux, 0, &first);
	if (!last)
		return;
	if (first)
		last->values[0] = at;
	if (len == strlen(IGNORED) && !strncmp(name, IGNORED, len))
		return;
	if (!aux->dir->has_begin || at < last->values[0] || lasts > NPS_AUX_MOST_TIME) {
		aux->untimed++;
		return;
	}
	if (!nps_aux__time(aux, NPS_AUX_UNIX, nps_add_sat(begin, at - last->values[0]), &ns) ||
	    !nps_aux__add(aux, &t->t, &row))
		return;
	t->name[row] = nps_strings__add(aux->model->strings, name, len);
	t->gtid[row] = (uint64_t)aux->dir->pid << 32 | tid;
	t->start[row] = ns;
	t->end[row] = nps_add_sat(ns, lasts);
	nps_model__cover(aux->model, ns, t->end[row]);
}

/* Length of a name of a function at P. */
static size_t word_length(const char *p)
{
	size_t len = 0;

	while (p[len] == '_' || (p[len] >= 'a' && p[len] <= 'z') || (p[len] >= 'A' && p[len] <= 'Z') ||
	       (p[len] >= '0' && p[len] <= '9'))
		len++;
	return len;
}

/* ` MS ( MS ms): comm/TID name(arguments) = result`; the thread's name may hold anything. */
static bool syscall_line(struct nps_aux *aux, const char *text)
{
	uint64_t at, lasts, tid;
	size_t len;

	if (!*text)
		return true;
	if (!nps_aux__fixed(&text, 6, &at))
		return false;
	text += strspn(text, " ");
	if (*text++ != '(' || !nps_aux__fixed(&text, 6, &lasts) || strncmp(text, " ms): ", 6))
		return false;
	while ((text = strchr(text, '/'))) {
		const char *p = ++text;

		if (!nps_aux__number(&p, &tid) || *p != ' ' || tid > UINT32_MAX)
			continue;
		len = word_length(++p);
		if (len && p[len] == '(') {
			put_call(aux, p, len, tid, at, lasts);
			return true;
		}
	}
	return false;
}

/* `[pid TID] SECONDS library->name(arguments) = result <SECONDS>`; a single thread has no `[pid]`. */
static bool pthread_line(struct nps_aux *aux, const char *text)
{
	uint64_t tid = aux->dir->pid, at, lasts;
	const char *name, *end;
	size_t len;

	if (!*text)
		return true;
	if (!strncmp(text, "[pid ", 5)) {
		text += 5;
		if (!nps_aux__number(&text, &tid) || *text++ != ']' || tid > UINT32_MAX)
			return false;
	}
	name = nps_aux__fixed(&text, 9, &at) ? strstr(text, "->") : NULL;
	end = name ? strrchr(name, '<') : NULL;
	if (!end)
		return false;
	end++;
	name += 2;
	len = word_length(name);
	if (!len || name[len] != '(' || !nps_aux__fixed(&end, 9, &lasts) || *end != '>')
		return false;
	put_call(aux, name, len, tid, at, lasts);
	return true;
}

void nps_aux__calls(struct nps_aux *aux)
{
	nps_aux__lines(aux, "host_syscall.data", syscall_line, NULL);
	nps_aux__lines(aux, "host_pthreadcall.data", pthread_line, NULL);
}
