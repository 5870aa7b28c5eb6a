/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CSV tables as rows of columns: what each format makes of a cell, which
 * columns there are, and where rows come from.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/table.h"

struct fixture {
	struct nps_model m;
	struct nps_export ex;
	char dir[40];
	int dirfd;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/npuscope-table-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->dirfd >= 0);
	assert_int_equal(nps_model__init(&f->m, f->dirfd, NULL), 0);
	f->ex = (struct nps_export){ .model = &f->m,
				     .generation = NPS_GENERATION_B,
				     .stamp = "20240101120000" };
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	nps_model__free(&f->m);
	close(f->dirfd);
	assert_int_equal(rmdir(f->dir), 0); /* a file that no test expected would be in it */
	free(f);
	return 0;
}

static bool exists(struct fixture *f, const char *name)
{
	return !faccessat(f->dirfd, name, F_OK, 0);
}

/* The file NAME must hold TEXT; it is removed. */
static void assert_file(struct fixture *f, const char *name, const char *text)
{
	char bytes[8192];
	int fd = openat(f->dirfd, name, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		fail_msg("%s is missing", name);
	len = read(fd, bytes, sizeof(bytes) - 1);
	assert_true(len >= 0);
	bytes[len] = 0;
	close(fd);
	assert_int_equal(unlinkat(f->dirfd, name, 0), 0);
	assert_string_equal(bytes, text);
}

static void assert_no_file(struct fixture *f)
{
	DIR *dir = fdopendir(openat(f->dirfd, ".", O_RDONLY | O_DIRECTORY));

	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));)
		if (e->d_name[0] != '.')
			fail_msg("%s is there", e->d_name);
	closedir(dir);
}

/* --- formats ------------------------------------------------------------------------------------------- */

struct cells {
	uint8_t u8;
	uint16_t u16;
	uint32_t u32, text;
	uint64_t u64;
	int64_t i64;
	double f64;
	const char *word;
};

#define CELL(format, member, ...) NPS_CSV_FIELD(#format, format, struct cells, member, ##__VA_ARGS__)

/* Writes the LEN CELLS with COLUMNS; the rows must be ROWS. */
static void assert_rows(struct fixture *f, struct nps_csv_columns columns, const struct cells *cells,
			size_t len, const char *rows)
{
	const struct nps_csv_table table = { "t", .columns = columns };
	const struct nps_csv_input input = { .sources[0] = { NULL, cells, sizeof(*cells) }, .len = len };
	char text[4096] = "";

	for (size_t i = 0; i < columns.len; i++) {
		strcat(text, i ? "," : "");
		strcat(text, columns.at[i].title);
	}
	strcat(text, "\n");
	strcat(text, rows);
	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &table, &input), 0);
	assert_file(f, "t.csv", text);
}

static void integers(void **state)
{
	static const struct nps_csv_column columns[] = {
		CELL(NUMBER, u8),	 CELL(NUMBER, u16),	 CELL(NUMBER, u32),
		CELL(NUMBER, u64),	 CELL(NUMBER, i64),	 CELL(ID, u32),
		CELL(NUMBER_NOT_0, u32), CELL(NUMBER_NOT_0, u8), CELL(NUMBER_OR_BLANK, i64),
		CELL(PID, u64),		 CELL(TID, u64),	 CELL(HEX, u64),
		CELL(DEVICE, u32),	 CELL(NPU, u32),
	};
	const struct cells cells[] = {
		{ 255, 65535, 7, 0, 5ULL << 32 | 9, -3, 0, NULL },
		{ 0, 0, 0, 0, 0, NPS_NULL, 0, NULL },
		{ 1, 1, UINT32_MAX, 0, UINT64_MAX, NPS_NULL + 1, 0, NULL },
	};

	assert_rows(*state, (struct nps_csv_columns)NPS_CSV_COLUMNS(columns), cells, NPS_ARRAY_SIZE(cells),
		    "255,65535,7,21474836489,-3,7,7,255,-3,5,9,0x500000009,7,NPU:7\n"
		    "0,0,0,0,N/A,0,N/A,N/A,,0,0,0x0,0,NPU:0\n"
		    "1,1,4294967295,18446744073709551615,-9223372036854775807,N/A,4294967295,1,"
		    "-9223372036854775807,4294967295,4294967295,0xffffffffffffffff,host,NPU:4294967295\n");
}

static void thousandths(void **state)
{
	static const struct nps_csv_column columns[] = {
		CELL(TIME, u64),  CELL(TIME, i64),	    CELL(TIME_NOT_0, u64), CELL(TIME_OR_BLANK, i64),
		CELL(MILLI, u64), CELL(MILLI, i64),	    CELL(SHORT, u64),	   CELL(SHORT_OR_BLANK, i64),
		CELL(SPAN, u64),  CELL(SPAN_OR_BLANK, i64),
	};
	const struct cells cells[] = {
		{ .u64 = 1700000000000001500, .i64 = 2500 },
		{ .u64 = 0, .i64 = NPS_NULL },
		{ .u64 = UINT64_MAX - 615, .i64 = -1 }, /* not negative */
	};
	struct fixture *f = *state;

	assert_rows(
		f, (struct nps_csv_columns)NPS_CSV_COLUMNS(columns), cells, 2,
		"1700000000000001.500\t,2.500\t,1700000000000001.500\t,2.500\t,1700000000000001.500,2.500,"
		"1700000000000001.5,2.5,1700000000000001.500,2.500\n"
		"0.000\t,N/A,N/A,,0.000,N/A,0.0,,0.000,\n");
	assert_rows(f, (struct nps_csv_columns){ columns, 2 }, cells + 2, 1, "18446744073709551.000\t,N/A\n");
	f->ex.generation = NPS_GENERATION_A;
	assert_rows(f, (struct nps_csv_columns){ columns + 8, 2 }, cells, 2,
		    "1700000000000001.5,2.5\n0.0,\n");
}

static void quotients(void **state)
{
	static const struct nps_csv_column columns[] = {
		CELL(FIXED, f64),
		CELL(DECIMAL, f64, .per = 2),
		CELL(DECIMAL, i64, .per = 1000),
		CELL(DECIMAL_INT_0, f64),
		CELL(FINE, f64),
		CELL(REPR, f64),
		CELL(REPR, u64, .per = 4),
		CELL(REPR_INT_0, f64),
		CELL(REPR_OR_BLANK, i64, .per = NPS_KB),
		CELL(COUNT, f64),
	};
	const struct cells cells[] = {
		{ .f64 = 12.3456, .i64 = 1536, .u64 = 2 },
		{ .f64 = 0, .i64 = NPS_NULL },
		{ .f64 = NPS_NAN, .i64 = -512 },
		{ .f64 = 2.5e18, .u64 = 1 },
	};

	assert_rows(*state, (struct nps_csv_columns)NPS_CSV_COLUMNS(columns), cells, NPS_ARRAY_SIZE(cells),
		    "12.346,6.173,1.536,12.346,12.3456,12.3456,0.5,12.3456,1.5,12\n"
		    "0.000,0.0,N/A,0,0.0,0.0,0.0,0,,0\n"
		    "N/A,N/A,0.0,N/A,N/A,N/A,0.0,N/A,-0.5,N/A\n"
		    "1000000000000000.000,1000000000000000.0,0.0,1000000000000000.0,2.5e+18,2.5e+18,0.25,2."
		    "5e+18,0.0,0\n");
}

static void put_twice(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	const struct cells *cells = ctx;

	nps_csv__u64(csv, 2 * cells[row->at[0]].u64);
}

/* As Python prints them in generation A; a row without a source has none. */
static void sums(void **state)
{
	static const struct nps_csv_column columns[] = {
		CELL(SUM_OF_ROW, f64),
		CELL(SUM_INT_0_OF_ROW, f64),
	};
	const struct cells cells[] = { { .f64 = 2.25 }, { .f64 = 0 }, { .f64 = NPS_NAN }, { .f64 = -1.5 } };
	const struct nps_csv_table table = { "t", .columns = NPS_CSV_COLUMNS(columns) };
	const struct nps_csv_input input = { .sources[0] = { NULL, cells, sizeof(*cells) } };
	struct fixture *f = *state;
	struct nps_csv_rows *rows;

	assert_rows(f, table.columns, cells, NPS_ARRAY_SIZE(cells),
		    "2.250,2.250\n0.000,0\nN/A,N/A\n-1.5,-1.5\n");
	f->ex.generation = NPS_GENERATION_A;
	assert_rows(f, table.columns, cells, NPS_ARRAY_SIZE(cells), "2.25,2.25\n0.0,0\nN/A,N/A\n-1.5,-1.5\n");
	assert_int_equal(nps_csv_rows__open(&rows, &f->ex, f->dirfd, &table, &input), 0);
	nps_csv_rows__put(rows, &(struct nps_csv_row){ .at = { NPS_CSV_NO_ROW } });
	assert_int_equal(nps_csv_rows__close(rows, 0), 0);
	assert_file(f, "t.csv", "SUM_OF_ROW,SUM_INT_0_OF_ROW\n,\n");
}

static void texts_and_cells_of_no_format(void **state)
{
	static const struct nps_csv_column columns[] = {
		CELL(TEXT, text), CELL(TEXT_OR_BLANK, text), CELL(TEXT_OF_ROW, text),	  CELL(SHAPES, text),
		CELL(WORD, word), NPS_CSV_SAME("SAME", "x"), NPS_CSV_BY("BY", put_twice),
	};
	struct fixture *f = *state;
	const struct cells cells[] = {
		{ .text = nps_strings__addz(f->m.strings, "a, \"b\""), .word = "word", .u64 = 4 },
		{ .text = NPS_NONE, .word = "", .u64 = 5 },
	};
	const struct nps_csv_table table = { "t", .columns = NPS_CSV_COLUMNS(columns) };
	const struct nps_csv_input input = { .sources[0] = { NULL, cells, sizeof(cells[0]) },
					     .len = 2,
					     .ctx = (void *)cells };

	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &table, &input), 0);
	assert_file(f, "t.csv",
		    "TEXT,TEXT_OR_BLANK,TEXT_OF_ROW,SHAPES,WORD,SAME,BY\n"
		    "\"a, \"\"b\"\"\",\"a, \"\"b\"\"\",\"a, \"\"b\"\"\",\"\"\"a, \"\"b\"\"\"\"\",word,x,8\n"
		    "N/A,,N/A,N/A,,x,10\n");
}

/* --- columns ------------------------------------------------------------------------------------------- */

#define WIDE NPS_CSV_IF(0)

static void columns_of_their_generation_and_layout(void **state)
{
	static const struct nps_csv_column columns[] = {
		CELL(DEVICE, u32, .when = NPS_CSV_B),
		NPS_CSV_FIELD("Block Dim", NUMBER, struct cells, u8, .when = NPS_CSV_A),
		NPS_CSV_FIELD("Block Num", NUMBER, struct cells, u8, .when = NPS_CSV_B),
		NPS_CSV_FIELD("Name", WORD, struct cells, word, .msprof = "Op Name"),
		NPS_CSV_FIELD("Size(MB)", NUMBER, struct cells, u64, .when = NPS_CSV_TORCH),
		NPS_CSV_FIELD("Size(KB)", NUMBER, struct cells, i64, .when = NPS_CSV_MSPROF),
		NPS_CSV_FIELD("Mix", NUMBER, struct cells, u16, .when = WIDE | NPS_CSV_B),
	};
	const struct cells cells = { .u8 = 1, .u16 = 2, .u32 = 3, .u64 = 4, .i64 = 5, .word = "n" };
	const struct nps_csv_table table = { "kernel_details", "op_summary", .crlf = true,
					     .columns = NPS_CSV_COLUMNS(columns) };
	const struct nps_csv_table unstamped = { "own", .unstamped = true, .columns = { columns + 3, 1 } };
	struct nps_csv_input input = { .sources[0].structs = &cells, .len = 1 };
	struct fixture *f = *state;

	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &table, &input), 0);
	assert_file(f, "kernel_details.csv", "DEVICE,Block Num,Name,Size(MB)\n3,1,n,4\n");
	input.when = WIDE;
	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &table, &input), 0);
	assert_file(f, "kernel_details.csv", "DEVICE,Block Num,Name,Size(MB),Mix\n3,1,n,4,2\n");
	f->ex.generation = NPS_GENERATION_A;
	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &table, &input), 0);
	assert_file(f, "kernel_details.csv", "Block Dim,Name,Size(MB)\r\n1,n,4\r\n");
	f->m.layout = NPS_LAYOUT_MSPROF;
	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &table, &input), 0);
	assert_file(f, "op_summary_20240101120000.csv", "Block Dim,Op Name,Size(KB)\n1,n,5\n");
	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &unstamped, &input), 0);
	assert_file(f, "own.csv", "Op Name\nn\n");
}

static void columns_that_are_known_only_now(void **state)
{
	static const struct nps_csv_column columns[] = { CELL(NUMBER, u8) };
	char title[] = "counter 1";
	const struct nps_csv_column more[] = {
		NPS_CSV_FIELD(title, DECIMAL, struct cells, f64),
		NPS_CSV_FIELD("gone", DECIMAL, struct cells, f64, .when = NPS_CSV_A),
		NPS_CSV_FIELD("last", NUMBER, struct cells, u32),
	};
	const struct cells cells = { .u8 = 1, .u32 = 3, .f64 = 0.25 };
	const struct nps_csv_table table = { "t", .columns = NPS_CSV_COLUMNS(columns) };
	const struct nps_csv_input input = { .sources[0].structs = &cells,
					     .len = 1,
					     .more = NPS_CSV_COLUMNS(more) };
	struct fixture *f = *state;

	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &table, &input), 0);
	assert_file(f, "t.csv", "NUMBER,counter 1,last\n1,0.25,3\n");
}

/* --- rows ---------------------------------------------------------------------------------------------- */

static const struct nps_csv_column dp_columns[] = {
	NPS_CSV_DEVICE_ID(dp),
	NPS_CSV_COL("Timestamp(us)", TIME, dp, timestamp),
	NPS_CSV_COL("Action", TEXT, dp, action),
	NPS_CSV_COL("Size", NUMBER, dp, size),
};

static const struct nps_csv_table dp_table = { "dp", NPS_CSV_OF(dp, dp_columns) };

/* Rows of `dp`: sizes 0, 10, 20, ... */
static void add_rows(struct fixture *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = 0;

		assert_int_equal(nps_table__add(&f->m.dp.t, &at), 0);
		f->m.dp.device[at] = (uint32_t)i;
		f->m.dp.timestamp[at] = 1000 * i;
		f->m.dp.action[at] = nps_strings__addz(f->m.strings, i & 1 ? "odd" : "even");
		f->m.dp.size[at] = 10 * i;
	}
}

static void rows_of_a_table_of_the_model(void **state)
{
	static const uint32_t order[] = { 2, 0 };
	struct fixture *f = *state;

	add_rows(f, 3);
	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &dp_table, NULL), 0);
	assert_file(f, "dp.csv",
		    "Device_id,Timestamp(us),Action,Size\n"
		    "0,0.000\t,even,0\n"
		    "1,1.000\t,odd,10\n"
		    "2,2.000\t,even,20\n");
	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &dp_table,
					      &(struct nps_csv_input){ .order = order, .len = 2 }),
			 0);
	assert_file(f, "dp.csv",
		    "Device_id,Timestamp(us),Action,Size\n"
		    "2,2.000\t,even,20\n"
		    "0,0.000\t,even,0\n");
}

static void no_file_without_rows(void **state)
{
	struct nps_csv_table requested = dp_table;
	struct fixture *f = *state;

	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &dp_table, NULL), 0);
	requested.requested = NPS_REQUESTED_OS;
	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &requested, NULL), 0);
	assert_no_file(f);
	f->m.requested = NPS_REQUESTED_OS;
	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &requested, NULL), 0);
	assert_file(f, "dp.csv", "Device_id,Timestamp(us),Action,Size\n");
}

static void tables_one_after_the_other(void **state)
{
	const struct nps_csv_table tables[] = { { "a", NPS_CSV_OF(dp, dp_columns) },
						{ "b", NPS_CSV_OF(dp, dp_columns) },
						{ "a", NPS_CSV_OF(dp, dp_columns) },
						{ "c", NPS_CSV_OF(dp, dp_columns) } };
	struct fixture *f = *state;

	add_rows(f, 1);
	/* the file of the third exists already */
	assert_int_equal(nps_csv_tables__write(&f->ex, f->dirfd, tables, 4), -EEXIST);
	assert_file(f, "a.csv", "Device_id,Timestamp(us),Action,Size\n0,0.000\t,even,0\n");
	assert_file(f, "b.csv", "Device_id,Timestamp(us),Action,Size\n0,0.000\t,even,0\n");
	assert_no_file(f);
}

enum { DP_SOURCE, STEP_SOURCE, OWN_SOURCE };

struct own {
	const struct nps_model *m;
	size_t next;
	uint64_t square;
};

/* Odd rows only; every other one is of variant 1, and has no row of `step`. */
static bool next_odd(void *ctx, struct nps_csv_row *row)
{
	struct own *own = ctx;
	size_t i = own->next + 1;

	own->next += 2;
	if (i >= own->m->dp.t.len)
		return false;
	own->square = i * i;
	row->at[DP_SOURCE] = i;
	row->variant = i / 2 & 1;
	row->at[STEP_SOURCE] = row->variant ? NPS_CSV_NO_ROW : 0;
	return true;
}

static void put_row(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	const struct own *own = ctx;

	assert_ptr_equal(csv->model, own->m);
	nps_csv__u64(csv, row->at[DP_SOURCE]);
}

static void chosen_rows_of_several_sources(void **state)
{
	static const struct nps_csv_column columns[] = {
		NPS_CSV_COL("Size", NUMBER, dp, size),
		NPS_CSV_SAME(NULL, "big", .variant = 1),
		NPS_CSV_COL("Step", NUMBER, step, id, .source = STEP_SOURCE),
		NPS_CSV_COL("Step or blank", NUMBER_OR_BLANK, step, id, .source = STEP_SOURCE),
		NPS_CSV_FIELD("Square", NUMBER, struct own, square, .source = OWN_SOURCE),
		NPS_CSV_NA(1),
		NPS_CSV_BY("Row", put_row),
		NPS_CSV_FIELD(NULL, SHORT, struct own, square, .source = OWN_SOURCE, .variant = 1),
		NPS_CSV_COL("Old", NUMBER, dp, size, .when = NPS_CSV_A),
		NPS_CSV_SAME(NULL, "none", .variant = 1), /* of no column here */
		NPS_CSV_COL("Action", TEXT, dp, action),
		NPS_CSV_SAME(NULL, "older", .variant = 1, .when = NPS_CSV_A),
		NPS_CSV_SAME(NULL, "newer", .variant = 1, .when = NPS_CSV_B),
		NPS_CSV_SAME("Same", "x", .source = STEP_SOURCE),
	};
	const struct nps_csv_table table = { "t", NPS_CSV_OF(dp, columns) };
	struct fixture *f = *state;
	struct own own = { .m = &f->m };
	const struct nps_csv_input input = {
		.sources = { [STEP_SOURCE].table = &f->m.step.t, [OWN_SOURCE].structs = &own },
		.next = next_odd,
		.ctx = &own
	};
	size_t step = 0;

	add_rows(f, 7);
	assert_int_equal(nps_table__add(&f->m.step.t, &step), 0);
	f->m.step.id[step] = -7;
	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &table, &input), 0);
	assert_file(f, "t.csv",
		    "Size,Step,Step or blank,Square,Row,Action,Same\n"
		    "10,-7,-7,1,1,odd,x\n"
		    "big,N/A,,N/A,0.009,newer,x\n"
		    "50,-7,-7,25,5,odd,x\n");
}

static bool next_without_source(void *ctx, struct nps_csv_row *row)
{
	size_t *left = ctx;

	row->at[0] = row->at[STEP_SOURCE] = NPS_CSV_NO_ROW;
	return (*left)--;
}

/* Collectives without kernels, as in a capture of level 0: no row, of a table that has no memory. */
static void rows_without_any_source(void **state)
{
	static const struct nps_csv_column columns[] = {
		NPS_CSV_COL("Size", NUMBER, dp, size),
		NPS_CSV_COL("Step or blank", NUMBER_OR_BLANK, step, id, .source = STEP_SOURCE),
		NPS_CSV_SAME("Same", "x"),
	};
	const struct nps_csv_table table = { "t", NPS_CSV_OF(dp, columns) };
	struct fixture *f = *state;
	size_t left = 2;
	const struct nps_csv_input input = { .sources = { [STEP_SOURCE].table = &f->m.step.t },
					     .next = next_without_source,
					     .ctx = &left };

	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &table, &input), 0);
	assert_file(f, "t.csv", "Size,Step or blank,Same\nN/A,,x\nN/A,,x\n");
}

static void rows_one_by_one(void **state)
{
	static const struct nps_csv_column columns[] = { CELL(NUMBER, u64) };
	const struct nps_csv_table table = { "t", .columns = NPS_CSV_COLUMNS(columns) };
	struct cells cells = { .u64 = 1 };
	const struct nps_csv_input input = { .sources[0].structs = &cells };
	struct nps_csv_rows *rows;
	struct fixture *f = *state;

	assert_int_equal(nps_csv_rows__open(&rows, &f->ex, f->dirfd, &table, &input), 0);
	assert_false(exists(f, "t.csv"));
	for (; cells.u64 < 4; cells.u64++)
		nps_csv_rows__put(rows, &(struct nps_csv_row){ .variant = 0 });
	assert_int_equal(nps_csv_rows__close(rows, 0), 0);
	assert_file(f, "t.csv", "NUMBER\n1\n2\n3\n");
}

/* --- errors -------------------------------------------------------------------------------------------- */

static void the_first_error_is_reported(void **state)
{
	const struct rlimit none = { 0, RLIM_INFINITY };
	struct nps_csv_table requested = dp_table;
	struct fixture *f = *state;
	struct nps_csv_rows *rows;
	struct rlimit before;
	void (*handler)(int);
	int err;

	add_rows(f, 1);
	assert_int_equal(mkdirat(f->dirfd, "dp.csv", 0700), 0);
	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &dp_table, NULL), -EEXIST);
	assert_int_equal(nps_csv_rows__open(&rows, &f->ex, f->dirfd, &dp_table, NULL), 0);
	nps_csv_rows__put(rows, &(struct nps_csv_row){ .variant = 0 });
	assert_int_equal(nps_csv_rows__close(rows, -EDOM), -EDOM); /* of the caller */
	assert_int_equal(unlinkat(f->dirfd, "dp.csv", AT_REMOVEDIR), 0);
	f->m.requested = requested.requested = NPS_REQUESTED_OS;
	assert_int_equal(nps_csv_rows__open(&rows, &f->ex, f->dirfd, &requested, NULL), 0);
	assert_int_equal(nps_csv_rows__close(rows, -EDOM), -EDOM);
	assert_no_file(f); /* as if there were no rows */

	handler = signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	err = nps_csv_table__write(&f->ex, f->dirfd, &dp_table, NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, handler);
	assert_int_equal(err, -EFBIG);
	assert_file(f, "dp.csv", "");
}

static void columns_that_do_not_fit_their_source(void **state)
{
	const struct nps_csv_column beyond = { .title = "x", .kind = NPS_COLUMN_u64, .offset = 5 },
				    other_kind = { .title = "x", .kind = NPS_COLUMN_u32, .offset = 1 },
				    no_source = CELL(NUMBER, u8, .source = 1),
				    no_such_source = { .title = "x",
						       .kind = NPS_COLUMN_u32,
						       .source = NPS_CSV_SOURCES },
				    no_variant = NPS_CSV_NA(NPS_CSV_VARIANTS);
	const struct nps_csv_column of_table[] = { beyond, other_kind, no_source, no_such_source };
	const struct nps_csv_column two[] = { dp_columns[3], no_variant };
	const struct nps_csv_column last = { .title = "x",
					     .kind = NPS_COLUMN_u8,
					     .offset = sizeof(struct cells) };
	struct nps_csv_table table = { "dp", NPS_CSV_OF(dp, dp_columns) };
	const struct cells cells = { 0 };
	struct fixture *f = *state;

	add_rows(f, 1);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(of_table); i++) {
		table.columns = (struct nps_csv_columns){ &of_table[i], 1 };
		assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &table, NULL), -EINVAL);
	}
	table.columns = (struct nps_csv_columns)NPS_CSV_COLUMNS(two);
	assert_int_equal(nps_csv_table__write(&f->ex, f->dirfd, &table, NULL), -EINVAL);
	table = (struct nps_csv_table){ "dp", .columns = { &last, 1 } };
	assert_int_equal(
		nps_csv_table__write(&f->ex, f->dirfd, &table,
				     &(struct nps_csv_input){ .sources[0] = { NULL, &cells, sizeof(cells) },
							      .len = 1 }),
		-EINVAL);
	assert_no_file(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(integers),
		TEST(thousandths),
		TEST(quotients),
		TEST(sums),
		TEST(texts_and_cells_of_no_format),
		TEST(columns_of_their_generation_and_layout),
		TEST(columns_that_are_known_only_now),
		TEST(rows_of_a_table_of_the_model),
		TEST(no_file_without_rows),
		TEST(tables_one_after_the_other),
		TEST(chosen_rows_of_several_sources),
		TEST(rows_without_any_source),
		TEST(rows_one_by_one),
		TEST(the_first_error_is_reported),
		TEST(columns_that_do_not_fit_their_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
