/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/work_budget.h"

#include <stddef.h>
#include <time.h>

#include "core/clocks.h"
#include "core/log.h"

static const struct {
	const char *name, *message;
} kinds[NPS_LEFT_KINDS] = {
	[NPS_LEFT_SCANS] = { "looks", "it takes more than its share of CPU time to look at: it is looked at "
				      "less often: "
				      "calls of libraries that it maps in between can be missing" },
	[NPS_LEFT_DIRS] = { "directories",
			    "its LD_LIBRARY_PATH has too many directories: the first ones are searched: a "
			    "library in "
			    "another one is probed when it is mapped, its first calls can be missing" },
	[NPS_LEFT_FILES] = { "files", "it has mapped too many files under the names of CANN's libraries: "
				      "calls of the later "
				      "ones are missing" },
	[NPS_LEFT_MAPPINGS] = { "mappings", "it has too many mappings: those at higher addresses are not "
					    "looked at: calls of "
					    "libraries there are missing" },
	[NPS_LEFT_SYMBOLS] = { "symbols", "one of its files has more symbols or names than any library: it "
					  "is not probed: its "
					  "calls are missing" },
	[NPS_LEFT_SEARCHED] = { "step marker", "it has mapped too many files: the step marker is not "
					       "searched in the later ones" },
	[NPS_LEFT_TEXTS] = { "texts",
			     "its command line or environment is too long: session.json has the beginning" },
	[NPS_LEFT_HOST_FUNCTIONS] = { "kernel names",
				      "not all functions that its launches point at were looked up: those "
				      "kernels "
				      "have no "
				      "names: link them with -rdynamic and launch fewer different ones" },
	[NPS_LEFT_OPEN] = { "unreadable files", "a file under the name of a library of CANN's cannot be "
						"opened: its calls are missing" },
	[NPS_LEFT_TREE] = { "descendants", "it has too many threads or descendants to find all of them: "
					   "those that were not found are "
					   "not recorded" },
	[NPS_LEFT_BORN] = { "children", "it and its children start too many processes: session.json does not "
					"describe all of them; "
					"what they did is recorded" },
	[NPS_LEFT_LISTED] = { "lists of mappings", "it and its children have too many mappings: session.json "
						   "does not list those of all "
						   "processes" },
};

static unsigned int lines;

void nps_budget__init(struct nps_budget *b, uint64_t capacity, unsigned int percent, uint64_t now)
{
	*b = (struct nps_budget){ .credit = (int64_t)capacity,
				  .capacity = capacity,
				  .percent = percent,
				  .filled = now,
				  .slice = NPS_BUDGET_SLICE_NS };
}

void nps_budget__inherit(struct nps_budget *b, const struct nps_budget *parent)
{
	if (parent->credit < b->credit)
		b->credit = parent->credit;
	b->files = parent->files;
	b->operators = parent->operators;
	b->searched = parent->searched;
}

static void budget_fill(struct nps_budget *b, uint64_t now)
{
	uint64_t passed = now > b->filled ? now - b->filled : 0;

	b->filled = now > b->filled ? now : b->filled;
	if (b->credit >= (int64_t)b->capacity) /* from an advance */
		return;
	/* Divided first, so that an account that was not used for years does not overflow. */
	b->credit += (int64_t)(passed / 100 * b->percent);
	if (b->credit > (int64_t)b->capacity)
		b->credit = (int64_t)b->capacity;
}

void nps_budget__advance(struct nps_budget *b, uint64_t ns)
{
	b->credit = (int64_t)ns;
	b->advanced = true;
}

void nps_budget__end_advance(struct nps_budget *b)
{
	if (!b->advanced)
		return;
	b->advanced = false;
	b->credit = (int64_t)b->capacity;
	b->slice = NPS_BUDGET_SLICE_NS; /* later work is rarely as expensive as the first */
}

bool nps_budget__ready(struct nps_budget *b, uint64_t now)
{
	budget_fill(b, now);
	return b->credit >= (int64_t)b->slice;
}

bool nps_budget__solvent(struct nps_budget *b, uint64_t now)
{
	budget_fill(b, now);
	return b->credit > 0;
}

void nps_budget__begin(struct nps_budget *b)
{
	b->cut = false;
	b->begun = nps_now(CLOCK_THREAD_CPUTIME_ID);
	b->until = b->begun + b->slice;
}

void nps_budget__begin_once(struct nps_budget *b)
{
	nps_budget__begin(b);
	if (b->credit > (int64_t)b->slice)
		b->until = b->begun + (uint64_t)b->credit;
}

void nps_budget__pay(struct nps_budget *b, uint64_t ns)
{
	b->credit -= (int64_t)ns;
	/* Limits the debt: no pause is longer than the time to fill the account. */
	if (b->credit < -(int64_t)b->capacity)
		b->credit = -(int64_t)b->capacity;
}

uint64_t nps_budget__end(struct nps_budget *b)
{
	uint64_t elapsed = nps_now(CLOCK_THREAD_CPUTIME_ID) - b->begun;

	b->begun = b->until = 0;
	nps_budget__pay(b, elapsed);
	b->slice = 2 * (b->cut ? b->slice : elapsed);
	if (b->slice < NPS_BUDGET_SLICE_NS)
		b->slice = NPS_BUDGET_SLICE_NS;
	if (b->slice > b->capacity)
		b->slice = b->capacity;
	return elapsed;
}

bool nps_budget__spent(struct nps_budget *b)
{
	if (!b || !b->until)
		return false;
	if (!b->cut)
		b->cut = nps_now(CLOCK_THREAD_CPUTIME_ID) >= b->until;
	return b->cut;
}

void nps_budget__leave_out(struct nps_budget *b, enum nps_left_out what)
{
	if (b)
		b->left_out |= 1U << what;
}

const char *nps_left_out__name(enum nps_left_out what)
{
	return kinds[what].name;
}

const char *nps_left_out__message(enum nps_left_out what)
{
	return kinds[what].message;
}

bool nps_budget__report(struct nps_budget *b, pid_t pid)
{
	uint32_t fresh = b->left_out & ~b->reported;

	b->reported |= fresh;
	for (int what = 0; what < NPS_LEFT_KINDS; what++) {
		if (!(fresh >> what & 1))
			continue;
		if (lines < NPS_BUDGET_LINES)
			nps_warn("pid %d: %s", pid, kinds[what].message);
		else if (lines == NPS_BUDGET_LINES)
			nps_warn("more was left out of more processes: session.json lists them (left_out)");
		lines += lines <= NPS_BUDGET_LINES;
	}
	return fresh != 0;
}
