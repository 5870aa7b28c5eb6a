/* SPDX-License-Identifier: BSD-2-Clause */
/* What the scheduler's exports call things, the same in the trace and in ftrace_data.db. */
#ifndef NPS_RUN_NAMES_H
#define NPS_RUN_NAMES_H

#include "model/model.h"

/* The letters of the kernel's own sched_switch, R = preempted; N/A: the capture ended first. */
static inline const char *nps_run__letter(uint32_t state)
{
	static const struct {
		uint32_t bit;
		const char *letter;
	} letters[] = { { NPS_RUN_OPEN, "N/A" }, { 0x1, "S" },	{ 0x2, "D" },  { 0x4, "T" }, { 0x8, "t" },
			{ 0x10, "X" },		 { 0x20, "Z" }, { 0x40, "P" }, { 0x80, "I" } };

	for (size_t i = 0; state && i < NPS_ARRAY_SIZE(letters); i++)
		if (state & letters[i].bit)
			return letters[i].letter;
	return state ? "?" : "R";
}

/* The thread's name at that time, else its process's. */
static inline const char *nps_run__comm(const struct nps_model *m, uint32_t comm)
{
	comm = comm == NPS_NONE ? m->process : comm;
	return comm == NPS_NONE ? "unknown" : nps_model__text(m, comm);
}

/* How the thread left its CPU in the run BEFORE, NPS_NONE: not known. */
static inline const char *nps_run__left(const struct nps_model *m, uint32_t before)
{
	return before == NPS_NONE ? "N/A" : nps_run__letter(m->run.state[before]);
}

/* Who woke the thread of run ROW. */
static inline const char *nps_run__waker(const struct nps_model *m, size_t row)
{
	return m->run.waker_comm[row] == NPS_NONE ? "unknown" : nps_model__text(m, m->run.waker_comm[row]);
}

/* Who had the CPU next: `swapper` is nobody. */
static inline const char *nps_run__next(const struct nps_model *m, size_t row)
{
	return m->run.next_comm[row] != NPS_NONE ? nps_model__text(m, m->run.next_comm[row])
	       : m->run.next[row]		 ? "unknown"
						 : "swapper";
}

/* Why the end of a call was not seen, in words; NULL: it was seen. */
static inline const char *nps_call__ending(uint8_t ending)
{
	return ending == NPS_ENDING_LOWER_BOUND	 ? "lower bound"
	       : ending == NPS_ENDING_UNFINISHED ? "after the capture"
	       : ending == NPS_ENDING_UNWOUND	 ? "left by an exception"
						 : NULL;
}

/* Whether the row is time on a CPU: one of length 0 at the end of the capture only ends the wait before. */
static inline bool nps_run__ran(const struct nps_model *m, size_t row)
{
	return !(m->run.state[row] & NPS_RUN_OPEN) || m->run.end[row] > m->run.start[row];
}

#endif
