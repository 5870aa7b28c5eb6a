/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was measured in one process (or, without a process, on one host): columnar tables that an importer
 * fills, the derivations complete and the exporters read. One model is one result directory.
 *
 * Order of rows that importers keep: `task`, `api`, `comm_op`, `osrt` and counters by start; details of
 * tasks by task row.
 */
#ifndef NPS_MODEL_H
#define NPS_MODEL_H

#include "base/string_table.h"
#include "base/vec.h"
#include "model/lost.h"
#include "model/step_source.h"
#include "schema/tables.h"

struct cJSON;
struct nps_progress;

/* Column and layer names (outputs 0, gen-A and gen-B). */
enum nps_generation {
	NPS_GENERATION_B, /* with Device_id columns, Block Num, layer Communication, schema 1.2.0 */
	NPS_GENERATION_A /* early 2025: Block Dim, layer HCCL, schema 1.0.0 */
};

/* Which tree the vendor would have written. */
enum nps_layout {
	NPS_LAYOUT_TORCH, /* ..._ascend_pt/ASCEND_PROFILER_OUTPUT */
	NPS_LAYOUT_MSPROF /* PROF_.../mindstudio_profiler_output and msprof_*.db */
};

#define NPS_TABLE_FIELD(field, COLUMNS) struct nps_##field##_table field;
#define NPS_SHARED_FIELD(field, type, COLUMNS) struct nps_##type##_table field;

#define NPS_REQUESTED_OS 0x1U /* system calls and scheduling */
#define NPS_REQUESTED_ONCPU 0x2U /* stacks of what ran */
#define NPS_REQUESTED_OFFCPU 0x4U /* stacks of what slept */

/* Whose memory a row of NPU_MEM is: process and device are the vendor's; the job's are npuscope's own. */
enum nps_mem_type { NPS_MEM_JOB, NPS_MEM_APP, NPS_MEM_DEVICE, NPS_MEM_TYPES };

/*
 * A device's part of a step of which no time was measured. Tables of text have a row without times for it;
 * databases have none, for the vendor's readers compare the cells of step_trace as numbers.
 */
struct nps_unmeasured_step {
	uint32_t device, step; /* step: text */
	size_t before; /* the row of step_trace that it would stand before */
};

struct nps_model {
	int tmpfd; /* directory of temporary files; not owned */
	struct nps_strings *strings; /* texts of all columns; `own` or the importer's */
	struct nps_strings own;
	struct nps_vec db_ids; /* uint32_t a text: its STRING_IDS id in the database it came from, NPS_NONE */
	uint32_t na; /* the text N/A */
	uint32_t memory_types[NPS_MEM_TYPES]; /* the texts of enum nps_mem_type */
	struct nps_progress *progress; /* NULL: none is shown; not owned */

	enum nps_generation generation; /* of what was imported */
	enum nps_layout layout;
	bool mindspore; /* of an ..._ascend_ms directory: the database has MindSpore's name */
	unsigned int level; /* profiler level: 0, 1, 2 */
	uint32_t pid;
	bool has_rank;
	uint32_t rank; /* the device's number if there is none */
	uint32_t process; /* text: name of the process, NPS_NONE unknown */
	uint32_t host_name, host_uid; /* texts; the uid is a decimal number */
	uint64_t start, end; /* of the capture, Unix ns: everything timed lies in between */
	struct cJSON *info; /* profiler_info_{rank}.json; owned; NULL: none */
	struct cJSON *metadata; /* profiler_metadata.json and META_DATA; owned; NULL: none */
	bool comm_analyzed; /* comm_time, comm_bandwidth and comm_matrix were imported */
	bool step_traced; /* step_trace was imported */
	bool overlapped; /* overlap was imported */
	enum nps_step_source step_source; /* requested; AUTO: of a session */
	bool steps_found; /* rows of `step` are iterations that were found in the sequence of launches */
	bool marks_steps; /* of a session, whose steps nothing marks among the operators */
	size_t step_marks; /* rows of `torch` that nps_derive__step_marks() added */
	double step_confidence; /* share of the launches that repeat in these */
	bool sampled; /* the collector sampled devices: also what the torch profiler does not import */
	bool runs_lost; /* some rows of `run` are missing */
	uint64_t unnamed_kernels, shapeless_kernels; /* of which the capture has less than of others */
	char why_unnamed[160], why_shapeless[320]; /* the causes, if there are any such kernels */
	struct nps_vec unmeasured_steps; /* struct nps_unmeasured_step: rows that step_trace has not */
	unsigned int requested; /* NPS_REQUESTED_*: also if there was none, then the file has no rows */
	struct nps_vec losses; /* struct nps_lost */
	uint64_t stacks; /* with a part in user space; whole_stacks of them lead to where the thread began */
	uint64_t whole_stacks;

	NPS_OWN_TABLES(NPS_TABLE_FIELD)
	NPS_SHARED_TABLES(NPS_SHARED_FIELD)
};

/* An empty model with temporary files in TMPFD and texts in STRINGS (NULL: its own). 0 or -ENOMEM. */
int nps_model__init(struct nps_model *model, int tmpfd, struct nps_strings *strings);
void nps_model__free(struct nps_model *model);

/* All tables leave the resident set; see nps_table__cool(). Threads that read them may go on. */
void nps_model__cool(const struct nps_model *model);

/* Counts COUNT things that were lost or could not be read; nothing if COUNT is 0. */
void nps_model__lost(struct nps_model *model, uint64_t count, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Widens [start, end] so that it covers a time; 0 is no time. */
void nps_model__cover(struct nps_model *model, uint64_t start, uint64_t end);

/* The id of text S. NPS_NONE without memory: then *ERR, if it is 0, becomes -ENOMEM. */
uint32_t nps_model__intern(struct nps_model *model, const char *s, int *err);

/* The text of a cell, "" for NPS_NONE. */
static inline const char *nps_model__text(const struct nps_model *model, uint32_t text)
{
	return nps_strings__get(model->strings, text);
}

/* The same, "N/A" for NPS_NONE. */
static inline const char *nps_model__text_or_na(const struct nps_model *model, uint32_t text)
{
	return text == NPS_NONE ? "N/A" : nps_strings__get(model->strings, text);
}

/* The same, NULL for NPS_NONE. */
static inline const char *nps_model__text_or_null(const struct nps_model *model, uint32_t text)
{
	return text == NPS_NONE ? NULL : nps_strings__get(model->strings, text);
}

/* The type of kernel ROW of `compute`, or its name if the type is not known (level 0). */
static inline uint32_t nps_model__kernel_type(const struct nps_model *model, size_t row)
{
	uint32_t type = model->compute.type[row];
	const char *text = nps_model__text(model, type);

	return type == NPS_NONE || (text[0] == 'N' && text[1] == '/' && text[2] == 'A' && !text[3])
		       ? model->compute.name[row]
		       : type;
}

static inline bool nps_model__task_measured(const struct nps_model *model, size_t row)
{
	return model->task.source[row] != NPS_TIME_HOST_BOUNDS;
}

/* Of a collective at least one task was; an importer that does not count tasks has them all measured. */
static inline bool nps_model__comm_measured(const struct nps_model *model, size_t row)
{
	return !model->comm_op.tasks[row] || model->comm_op.measured[row];
}

/*
 * The end of a task that was not measured, for viewers: Insight considers a row without length to take no
 * time, and refuses views whose lengths add up to nothing. 1 ns is the least length of its files.
 */
static inline uint64_t nps_model__task_end(const struct nps_model *model, size_t row)
{
	uint64_t start = model->task.start[row], end = model->task.end[row];

	return !nps_model__task_measured(model, row) && end <= start ? start + 1 : end;
}

/* The same of a collective; one without times keeps none. */
static inline uint64_t nps_model__comm_end(const struct nps_model *model, size_t row)
{
	const struct nps_comm_op_table *op = &model->comm_op;

	return !nps_model__comm_measured(model, row) && op->end[row] && op->end[row] <= op->start[row]
		       ? op->start[row] + 1
		       : op->end[row];
}

/* Rows [begin, end) of a table. */
struct nps_rows {
	size_t begin, end;
};

#define NPS_STEP_MARK "ProfilerStep#" /* then the step's number: the name of an operator that is a step */

/* Whether nps_derive__step_marks() added ROW of `torch`: what shows `step` itself leaves it out. */
bool nps_model__is_step_mark(const struct nps_model *model, size_t row);

/* The rows of `torch` that have TYPE (enum nps_api_type): they stand together. */
struct nps_rows nps_model__torch_rows(const struct nps_model *model, uint32_t type);

/*
 * A reader's step counter: at times it releases rows that were read, so that memory stays bounded, and
 * reports the progress of the present stage.
 */
struct nps_pace {
	const struct nps_model *model;
	uint32_t steps;
};

/* Releases the rows that were read; nps_pace__step() calls it. */
void nps_pace__rest(const struct nps_pace *pace);

static inline void nps_pace__step(struct nps_pace *pace)
{
	if (!(++pace->steps & (NPS_TABLE_HOT - 1)))
		nps_pace__rest(pace);
}

#endif
