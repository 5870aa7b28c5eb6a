/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/trace/import_trace_tables.h"

#include "base/csv_reader.h"
#include "base/input_file.h"
#include "base/util.h"
#include "import/trace/import_trace_read.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST_JSON (256L << 20)
#define ROUNDING 1 /* ns: tables cut what traces round */

/* us with decimals as ns. */
static bool time_of(const char *text, uint64_t *ns)
{
	return nps_trace__ns(&(struct nps_trace_text){ text, (uint32_t)strlen(text) }, ns);
}

/* --- kernels -------------------------------------------------------------------------------------- */

struct kernel_columns {
	int name, type, core, start, blocks, shapes[2], types[2], formats[2];
};

static int either(const struct nps_csv_reader *r, const char *title, const char *other)
{
	int column = nps_csv_reader__column(r, title);

	return column >= 0 ? column : nps_csv_reader__column(r, other);
}

/* As the PyTorch profiler and as msprof name them. */
static bool kernel_columns(const struct nps_csv_reader *r, struct kernel_columns *c)
{
	*c = (struct kernel_columns){
		.name = either(r, "Name", "Op Name"),
		.type = either(r, "Type", "OP Type"),
		.core = either(r, "Accelerator Core", "Task Type"),
		.start = either(r, "Start Time(us)", "Task Start Time(us)"),
		.blocks = either(r, "Block Dim", "Block Num"),
		.shapes = { nps_csv_reader__column(r, "Input Shapes"),
			    nps_csv_reader__column(r, "Output Shapes") },
		.types = { nps_csv_reader__column(r, "Input Data Types"),
			   nps_csv_reader__column(r, "Output Data Types") },
		.formats = { nps_csv_reader__column(r, "Input Formats"),
			     nps_csv_reader__column(r, "Output Formats") },
	};
	return c->name >= 0 && c->type >= 0 && c->start >= 0;
}

/* The first kernel that starts at NS or later. */
static size_t kernel_from(const struct nps_model *m, uint64_t ns)
{
	size_t low = 0, high = m->compute.t.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->task.start[m->compute.task[mid]] < ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The kernel NAME that starts at NS and has no type yet, NPS_NONE if there is none. */
static uint32_t find_kernel(const struct nps_model *m, const char *name, uint64_t ns)
{
	const struct nps_compute_table *t = &m->compute;

	for (size_t i = kernel_from(m, ns > ROUNDING ? ns - ROUNDING : 0);
	     i < t->t.len && m->task.start[t->task[i]] <= nps_add_sat(ns, ROUNDING); i++)
		if (t->type[i] == NPS_NONE && !strcmp(nps_model__text(m, t->name[i]), name))
			return i;
	return NPS_NONE;
}

/* The text of a cell, without quotes that are part of it; NPS_NONE: it is empty. */
static int cell_text(struct nps_model *m, struct nps_csv_reader *r, int column, uint32_t *text)
{
	const char *cell = nps_csv_reader__cell(r, column);
	size_t len = strlen(cell);

	if (len >= 2 && cell[0] == '"' && cell[len - 1] == '"') {
		cell++;
		len -= 2;
	}
	if (!len || !strcmp(cell, "N/A"))
		return 0;
	*text = nps_strings__add(m->strings, cell, len);
	return *text == NPS_NONE ? -ENOMEM : 0;
}

/* Texts of the kernel of row I. */
static int kernel_texts(struct nps_model *m, struct nps_csv_reader *r, const struct kernel_columns *c,
			uint32_t i)
{
	struct nps_compute_table *t = &m->compute;
	const struct {
		int column;
		uint32_t *text;
	} cells[] = {
		{ c->type, &t->type[i] },
		{ c->core, &t->core[i] },
		{ c->shapes[0], &t->input_shapes[i] },
		{ c->shapes[1], &t->output_shapes[i] },
		{ c->types[0], &t->input_types[i] },
		{ c->types[1], &t->output_types[i] },
		{ c->formats[0], &t->input_formats[i] },
		{ c->formats[1], &t->output_formats[i] },
	};

	for (size_t k = 0; k < NPS_ARRAY_SIZE(cells); k++) {
		int err = cell_text(m, r, cells[k].column, cells[k].text);

		if (err)
			return err;
	}
	return 0;
}

static int kernel_read_row(struct nps_model *m, struct nps_csv_reader *r, const struct kernel_columns *c)
{
	struct nps_compute_table *t = &m->compute;
	uint64_t ns;
	uint32_t i;

	if (!time_of(nps_csv_reader__cell(r, c->start), &ns)) {
		r->damaged++;
		return 0;
	}
	i = find_kernel(m, nps_csv_reader__cell(r, c->name), ns);
	if (i == NPS_NONE)
		return 0; /* a collective, or not in this trace */
	t->blocks[i] = (uint32_t)strtoul(nps_csv_reader__cell(r, c->blocks), NULL, 10);
	return kernel_texts(m, r, c, i);
}

static int kernels_read(struct nps_model *m, struct nps_csv_reader *r)
{
	struct kernel_columns c;
	int err;

	if (!kernel_columns(r, &c))
		return -EILSEQ;
	while ((err = nps_csv_reader__next(r)) > 0) {
		err = kernel_read_row(m, r, &c);
		if (err)
			return err;
	}
	return err;
}

/* --- memory --------------------------------------------------------------------------------------- */

/* Bytes of a cell of so many MIB or KIB; NPS_NULL: empty. */
static int64_t cell_bytes(const char *cell, double unit)
{
	char *end;
	double value = strtod(cell, &end);

	if (end == cell || *end || !isfinite(value) || fabs(value * unit) > 9e18)
		return NPS_NULL;
	return llround(value * unit);
}

static uint32_t cell_device(const char *cell)
{
	unsigned int device = 0;

	return sscanf(cell, "NPU:%5u", &device) == 1 ? device : 0;
}

static int memory_read(struct nps_model *m, struct nps_csv_reader *r)
{
	static const char *const titles[2][3] = {
		{ "Total Allocated(MB)", "Total Reserved(MB)", "Total Active(MB)" },
		{ "Total Allocated(KB)", "Total Reserved(KB)", "Total Active(KB)" }
	};
	int component = nps_csv_reader__column(r, "Component"),
	    time = nps_csv_reader__column(r, "Timestamp(us)");
	bool kib = nps_csv_reader__column(r, titles[1][1]) >= 0;
	int sizes[3], device = either(r, "Device Type", "Device"), err;
	double unit = kib ? 1024 : 1048576;

	for (int i = 0; i < 3; i++)
		sizes[i] = nps_csv_reader__column(r, titles[kib][i]);
	if (component < 0 || time < 0 || sizes[1] < 0)
		return -EILSEQ;
	while ((err = nps_csv_reader__next(r)) > 0) {
		struct nps_memory_record_table *t = &m->memory_record;
		uint32_t text = NPS_NONE;
		uint64_t ns;
		size_t row;

		if (!time_of(nps_csv_reader__cell(r, time), &ns)) {
			r->damaged++;
			continue;
		}
		err = cell_text(m, r, component, &text);
		if (err)
			return err;
		err = nps_table__add(&t->t, &row);
		if (err)
			return err;
		t->component[row] = text;
		t->timestamp[row] = ns;
		t->allocated[row] = cell_bytes(nps_csv_reader__cell(r, sizes[0]), unit);
		t->reserved[row] = cell_bytes(nps_csv_reader__cell(r, sizes[1]), unit);
		t->active[row] = cell_bytes(nps_csv_reader__cell(r, sizes[2]), unit);
		t->stream[row] = NPS_NULL;
		t->device[row] = cell_device(nps_csv_reader__cell(r, device));
	}
	return err;
}

/* --- collectives ---------------------------------------------------------------------------------- */

static double json_number(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsNumber(item) && isfinite(item->valuedouble) ? item->valuedouble : 0;
}

/* Texts of a collective: OP@GROUP of a step. */
struct comm_texts {
	uint32_t op, group, step, type;
};

static int comm_texts(struct nps_model *m, const cJSON *op, const cJSON *type, const cJSON *step,
		      struct comm_texts *texts)
{
	const char *at = strrchr(op->string, '@');
	size_t len = at ? (size_t)(at - op->string) : strlen(op->string);

	*texts = (struct comm_texts){ .op = nps_strings__add(m->strings, op->string, len),
				      .group = nps_strings__addz(m->strings, at ? at + 1 : ""),
				      .step = nps_strings__addz(m->strings, step->string),
				      .type = nps_strings__addz(m->strings, type->string) };
	return texts->op == NPS_NONE || texts->group == NPS_NONE || texts->step == NPS_NONE ||
			       texts->type == NPS_NONE
		       ? -ENOMEM
		       : 0;
}

/* communication.json: sums of a step have no group. */
static int comm_times(struct nps_model *m, const cJSON *op, const struct comm_texts *texts)
{
	const cJSON *info = cJSON_GetObjectItemCaseSensitive(op, "Communication Time Info");
	struct nps_comm_time_table *t = &m->comm_time;
	size_t row;
	int err;

	if (!cJSON_IsObject(info) || !strncmp(op->string, "Total ", 6))
		return 0;
	err = nps_table__add(&t->t, &row);
	if (err)
		return err;
	t->op[row] = texts->op;
	t->group[row] = texts->group;
	t->start[row] = json_number(info, "Start Timestamp(us)");
	t->elapse[row] = json_number(info, "Elapse Time(ms)");
	t->transit[row] = json_number(info, "Transit Time(ms)");
	t->wait[row] = json_number(info, "Wait Time(ms)");
	t->synchronization[row] = json_number(info, "Synchronization Time(ms)");
	t->idle[row] = json_number(info, "Idle Time(ms)");
	t->step[row] = texts->step;
	t->type[row] = texts->type;
	return 0;
}

static int add_link(struct nps_model *m, const cJSON *link, const struct comm_texts *texts)
{
	struct nps_comm_matrix_table *t = &m->comm_matrix;
	const char *transport =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(link, "Transport Type"));
	const char *dash = strchr(link->string, '-');
	size_t row;
	int err;

	if (!dash || !transport)
		return 0;
	err = nps_table__add(&t->t, &row);
	if (err)
		return err;
	t->op[row] = texts->op;
	t->group[row] = texts->group;
	t->src[row] = nps_strings__add(m->strings, link->string, (size_t)(dash - link->string));
	t->dst[row] = nps_strings__addz(m->strings, dash + 1);
	t->transport[row] = nps_strings__addz(m->strings, transport);
	t->size[row] = json_number(link, "Transit Size(MB)");
	t->time[row] = json_number(link, "Transit Time(ms)");
	t->bandwidth[row] = json_number(link, "Bandwidth(GB/s)");
	t->step[row] = texts->step;
	t->type[row] = texts->type;
	t->name[row] = NPS_NONE;
	return t->src[row] == NPS_NONE || t->dst[row] == NPS_NONE || t->transport[row] == NPS_NONE ? -ENOMEM
												   : 0;
}

/* communication_matrix.json. */
static int comm_links(struct nps_model *m, const cJSON *op, const struct comm_texts *texts)
{
	const cJSON *link;
	int err = 0;

	cJSON_ArrayForEach(link, op)
	{
		if (!err && cJSON_IsObject(link))
			err = add_link(m, link, texts);
	}
	return err;
}

typedef int collective_fn(struct nps_model *m, const cJSON *op, const struct comm_texts *texts);

/* Both files: step, p2p or collective, operator. */
static int each_collective(struct nps_model *m, const cJSON *json, collective_fn *fn)
{
	const cJSON *step, *type, *op;
	struct comm_texts texts;

	cJSON_ArrayForEach(step, json)
	{
		cJSON_ArrayForEach(type, step)
		{
			cJSON_ArrayForEach(op, type)
			{
				int err;

				if (!step->string || !type->string || !op->string)
					continue;
				err = comm_texts(m, op, type, step, &texts);
				if (err)
					return err;
				err = fn(m, op, &texts);
				if (err)
					return err;
			}
		}
	}
	return 0;
}

/* --- files ---------------------------------------------------------------------------------------- */

/* NAME in DIRFD as JSON; NULL with *ERR 0 if that was reported, else < 0: -EILSEQ: no JSON, -EFBIG. */
static cJSON *read_json(int dirfd, const char *name, int *err)
{
	struct stat st;
	int fd = nps_input_file__open(dirfd, name, &st);
	cJSON *json = NULL;
	char *text = NULL;
	ssize_t n = 0;

	*err = 0;
	if (fd < 0)
		return NULL;
	if (st.st_size > LARGEST_JSON)
		*err = -EFBIG;
	if (!*err) {
		text = malloc((size_t)st.st_size + 1);
		*err = text ? 0 : -ENOMEM;
	}
	for (off_t at = 0; !*err && at < st.st_size; at += n) {
		n = pread(fd, text + at, (size_t)(st.st_size - at), at);
		if (n <= 0)
			*err = n ? -errno : -EILSEQ;
	}
	if (!*err) {
		json = cJSON_ParseWithLength(text, (size_t)st.st_size);
		*err = json ? 0 : -EILSEQ;
	}
	free(text);
	close(fd);
	return json;
}

static int read_collectives(struct nps_model *m, int dirfd, const char *name, collective_fn *fn)
{
	int err;
	cJSON *json = read_json(dirfd, name, &err);

	if (json)
		err = each_collective(m, json, fn);
	cJSON_Delete(json);
	return err;
}

static int read_csv(struct nps_model *m, int dirfd, const char *name,
		    int (*fn)(struct nps_model *m, struct nps_csv_reader *r))
{
	int fd = nps_input_file__open(dirfd, name, NULL), err;
	struct nps_csv_reader r;

	if (fd < 0)
		return 0; /* reported */
	err = nps_csv_reader__open(&r, fd);
	if (err)
		return err;
	err = fn(m, &r);
	nps_model__lost(m, r.damaged, "%.64s: rows that are damaged", name);
	nps_csv_reader__close(&r);
	return err;
}

/* What msprof ends the names of its files with: the time of the export; "" without. */
static const char *stamp_of(const char *name)
{
	const char *last = strrchr(name, '_');

	return last && last[1] >= '0' && last[1] <= '9' ? last + 1 : "";
}

/* The length of a stamp, before what follows it: .json, .json.gz, .csv. */
static size_t stamp_length(const char *stamp)
{
	return strspn(stamp, "0123456789");
}

static bool is_memory(const char *name)
{
	return !strcmp(name, "memory_record.csv") || !fnmatch("memory_record_[0-9]*.csv", name, 0) ||
	       !fnmatch("memory_record_slice_[0-9]*_[0-9]*.csv", name, 0);
}

static bool same_stamp(const char *a, const char *b)
{
	return stamp_length(a) == stamp_length(b) && !strncmp(a, b, stamp_length(a));
}

/*
 * The stamp of the export whose memory is read beside TRACE, among N names in order: that of the trace,
 * else the last. Other exports have the same rows.
 */
static const char *stamp_of_memory(const char *trace, struct dirent **names, int n)
{
	const char *of_trace = stamp_of(trace), *latest = "";

	for (int i = 0; i < n; i++) {
		const char *stamp = stamp_of(names[i]->d_name);

		if (!is_memory(names[i]->d_name))
			continue;
		if (same_stamp(stamp, of_trace))
			return of_trace;
		if (strcmp(stamp, latest) > 0)
			latest = stamp;
	}
	return latest;
}

static int table_read(struct nps_model *m, int dirfd, const char *name, const char *memory_stamp)
{
	if (!strcmp(name, "kernel_details.csv") || !fnmatch("op_summary_*.csv", name, 0))
		return read_csv(m, dirfd, name, kernels_read);
	if (is_memory(name) && same_stamp(stamp_of(name), memory_stamp))
		return read_csv(m, dirfd, name, memory_read);
	if (!strcmp(name, "communication.json"))
		return read_collectives(m, dirfd, name, comm_times);
	if (!strcmp(name, "communication_matrix.json"))
		return read_collectives(m, dirfd, name, comm_links);
	return 0;
}

/* A table that cannot be read is lost, the rest of the trace is not: returns only -ENOMEM and -ENOSPC. */
static int table_try(struct nps_model *m, int dirfd, const char *name, const char *memory_stamp)
{
	int err = table_read(m, dirfd, name, memory_stamp);

	if (!err || err == -ENOMEM || err == -ENOSPC)
		return err;
	if (err == -EILSEQ || err == -EFBIG)
		nps_model__lost(m, 1, "%.64s, which cannot be read", name);
	else
		nps_input__unreadable(dirfd, name, err);
	return 0;
}

int nps_trace__import_tables(struct nps_model *m, const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];
	const char *memory_stamp;
	struct dirent **names;
	int fd, n, err = 0;

	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	fd = nps_input_dir__open(AT_FDCWD, dir);
	if (fd < 0)
		return 0; /* the trace can be read, what is beside it cannot */
	n = scandirat(fd, ".", &names, NULL, alphasort);
	if (n < 0 && errno == ENOMEM)
		err = -ENOMEM;
	else if (n < 0)
		nps_input__unreadable(fd, ".", -errno);
	memory_stamp = stamp_of_memory(slash ? slash + 1 : path, names, n);
	for (int i = 0; !err && i < n; i++)
		err = table_try(m, fd, names[i]->d_name, memory_stamp);
	for (int i = 0; i < n; i++)
		free(names[i]);
	if (n >= 0)
		free(names);
	close(fd);
	m->comm_analyzed = m->comm_time.t.len || m->comm_matrix.t.len;
	return err;
}
