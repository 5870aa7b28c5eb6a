/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>

#include "base/index.h"
#include "derive/derive.h"

#define MAIN 1
#define QUEUE 2 /* thread that takes from the task queue */
#define BACKWARD 3
#define OWN (5U << 28)

static size_t add(struct nps_model *m, uint32_t type, const char *name, uint64_t gtid, uint64_t start,
		  uint64_t end)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->torch.t, &row), 0);
	m->torch.type[row] = type;
	m->torch.name[row] = nps_strings__addz(m->strings, name);
	m->torch.gtid[row] = gtid;
	m->torch.start[row] = start;
	m->torch.end[row] = end;
	m->torch.sequence[row] = -1;
	m->torch.correlation[row] = NPS_NULL;
	m->torch.connection[row] = 77;
	return row;
}

static void add_queue(struct nps_model *m, const char *name, uint64_t gtid, uint64_t start, uint64_t end,
		      int64_t correlation)
{
	size_t row = add(m, NPS_API_TORCH_QUEUE, name, gtid, start, end);

	m->torch.correlation[row] = correlation;
}

static void add_op(struct nps_model *m, uint64_t gtid, uint64_t start, uint64_t end, int64_t sequence,
		   int64_t forward_tid)
{
	size_t row = add(m, NPS_API_TORCH_OP, "op", gtid, start, end);

	m->torch.sequence[row] = sequence;
	m->torch.forward_tid[row] = forward_tid;
}

/* A call that launched something, if KIND is not NPS_CLASS_OTHER. */
static void add_call(struct nps_model *m, uint64_t gtid, uint64_t start, uint32_t connection, uint8_t kind)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->api.t, &row), 0);
	m->api.start[row] = start;
	m->api.end[row] = start + 1;
	m->api.gtid[row] = gtid;
	m->api.connection[row] = connection;
	assert_int_equal(nps_table__add(&m->task.t, &row), 0);
	m->task.start[row] = start + 100;
	m->task.end[row] = start + 101;
	m->task.connection[row] = connection;
	m->task.class[row] = kind;
}

/* The links of torch row ROW must be the N numbers that follow. */
static void assert_links(const struct nps_model *m, size_t row, size_t n, uint32_t first, uint32_t second)
{
	const uint32_t expected[] = { first, second };
	size_t found = 0;

	assert_true(n <= NPS_ARRAY_SIZE(expected));
	if (!n)
		assert_true(m->torch.connection[row] == NPS_NULL);
	for (size_t i = 0; n && i < m->link.t.len; i++) {
		if (m->link.id[i] != m->torch.connection[row])
			continue;
		if (found < NPS_ARRAY_SIZE(expected))
			assert_int_equal(m->link.connection[i], expected[found]);
		found++;
	}
	assert_int_equal(found, n);
}

static void fill(struct nps_model *m)
{
	add_queue(m, "Enqueue@aclnnAdd", MAIN, 110, 112, 40); /* 0: in the inner operator */
	add_queue(m, "Enqueue@aclnnMul", MAIN, 130, 131, 41); /* 1: in the outer one */
	add_queue(m, "Enqueue@aclnnSum", BACKWARD, 300, 302, 42); /* 2 */
	add_queue(m, "Dequeue@aclnnAdd", QUEUE, 150, 160, 40); /* 3 */
	add_queue(m, "Dequeue@aclnnMul", QUEUE, 161, 170, 41); /* 4 */
	add_queue(m, "Dequeue@aclnnSum", QUEUE, 310, 320, 42); /* 5 */
	add(m, NPS_API_PYTHON, "train.py(1): step", MAIN, 90, 400); /* 6 */
	add_op(m, MAIN, 100, 140, 8, 0); /* 7: outer */
	add_op(m, MAIN, 105, 120, 8, 0); /* 8: inner */
	add_op(m, MAIN, 200, 210, 9, 0); /* 9: launches without the queue */
	add_op(m, BACKWARD, 290, 330, 8, MAIN); /* 10 */
	add_op(m, MAIN, 340, 350, 10, 0); /* 11: forward and backward on one thread */
	add_op(m, MAIN, 360, 370, 10, MAIN); /* 12 */
	add_op(m, MAIN, 380, 390, 11, 0); /* 13: no backward */
	add_call(m, QUEUE, 151, 1001, NPS_CLASS_COMPUTE);
	add_call(m, QUEUE, 160, 1002, NPS_CLASS_MEMCPY);
	add_call(m, QUEUE, 162, 1003, NPS_CLASS_COMPUTE);
	add_call(m, QUEUE, 164, 1004, NPS_CLASS_OTHER);
	add_call(m, MAIN, 205, 1005, NPS_CLASS_MEMCPY);
	add_call(m, MAIN, 215, 1006, NPS_CLASS_COMPUTE); /* in no operator */
	add_call(m, QUEUE, 311, 1007, NPS_CLASS_COMPUTE);
}

static void check(const struct nps_model *m, uint32_t base)
{
	assert_links(m, 0, 1, base + 40, 0);
	assert_links(m, 3, 1, base + 40, 0);
	assert_links(m, 5, 1, base + 42, 0);
	assert_true(m->torch.connection[0] != m->torch.connection[3]);
	assert_links(m, 6, 0, 0, 0);
	assert_links(m, 7, 2, base + 43, 1003);
	assert_links(m, 8, 2, 1001, 1002);
	assert_links(m, 9, 1, 1005, 0);
	assert_links(m, 10, 2, base + 43, 1007);
	assert_links(m, 11, 0, 0, 0);
	assert_links(m, 12, 0, 0, 0);
	assert_links(m, 13, 0, 0, 0);
	for (size_t i = 1; i < m->link.t.len; i++)
		assert_true(m->link.id[i] == m->link.id[i - 1] || m->link.id[i] == m->link.id[i - 1] + 1);
}

static void launches_and_pairs(void **state)
{
	struct nps_model m;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	fill(&m);
	assert_int_equal(nps_derive__links(&m), 0);
	check(&m, OWN);
	assert_int_equal(nps_derive__links(&m), 0); /* what is there stays */
	check(&m, OWN);
	nps_model__free(&m);

	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	m.generation = NPS_GENERATION_A;
	fill(&m);
	assert_int_equal(nps_derive__links(&m), 0);
	check(&m, 0);
	nps_model__free(&m);
}

/* A mark with a damaged number costs its own links only. */
static void damaged_number(void **state)
{
	struct nps_model m;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	add_queue(&m, "Enqueue", MAIN, 110, 120, INT64_MAX);
	add_queue(&m, "Enqueue", MAIN, 130, 140, 40);
	add_queue(&m, "Dequeue", QUEUE, 150, 160, INT64_MAX);
	add_op(&m, MAIN, 100, 125, 7, 0);
	add_op(&m, BACKWARD, 200, 210, 7, MAIN);
	add_call(&m, QUEUE, 155, 1001, NPS_CLASS_COMPUTE);
	assert_int_equal(nps_derive__links(&m), 0);
	assert_links(&m, 0, 0, 0, 0);
	assert_links(&m, 1, 1, OWN + 40, 0);
	assert_links(&m, 3, 2, OWN + 41, 1001);
	assert_links(&m, 4, 1, OWN + 41, 0);
	nps_model__free(&m);
}

static void nonsense(void **state)
{
	struct nps_model m;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	add_queue(&m, "Enqueue", MAIN, 200, 100, INT64_MAX);
	add_queue(&m, "Enqueue", MAIN, 110, 100, 0);
	add_queue(&m, "Dequeue", MAIN, 0, UINT64_MAX, INT64_MAX - 1);
	add_op(&m, MAIN, 100, 0, INT64_MAX, INT64_MAX);
	add_op(&m, MAIN, 50, UINT64_MAX, 0, 0);
	add_op(&m, MAIN, 50, UINT64_MAX, INT64_MAX, 0);
	add_call(&m, MAIN, 60, 0, NPS_CLASS_COMPUTE);
	add_call(&m, MAIN, 20, NPS_NO_ID - 1, NPS_CLASS_COMPUTE);
	add_call(&m, MAIN, 20, NPS_NO_ID, NPS_CLASS_COMPUTE);
	assert_int_equal(nps_derive__links(&m), 0);
	assert_true(m.losses.len > 0);
	for (size_t i = 0; i < m.link.t.len; i++)
		assert_true(m.link.connection[i] != NPS_NO_ID);
	nps_model__free(&m);
}

static void index_dense_and_sparse(void **state)
{
	(void)state;
	for (int sparse = 0; sparse < 2; sparse++) {
		uint64_t step = sparse ? 1000003 : 3, low = 1ULL << 40;
		struct nps_index index;

		nps_index__init(&index, AT_FDCWD, low, low + 50000 * step, 50000);
		assert_int_equal(index.sparse, sparse);
		for (uint32_t i = 0; i < 50000; i += 2)
			assert_int_equal(nps_index__put(&index, low + i * step, i), 0);
		nps_index__cool(&index);
		for (uint32_t i = 0; i < 50000; i++)
			assert_int_equal(nps_index__get(&index, low + i * step), i % 2 ? NPS_NONE : i);
		assert_int_equal(nps_index__get(&index, 0), NPS_NONE);
		assert_int_equal(nps_index__get(&index, UINT64_MAX), NPS_NONE);
		nps_index__free(&index);
	}
}

struct copies {
	uint32_t ops[4], connections[4];
	size_t n;
};

static int note_copy(void *ctx, uint32_t op, uint32_t connection)
{
	struct copies *c = ctx;

	assert_true(c->n < NPS_ARRAY_SIZE(c->ops));
	c->ops[c->n] = op;
	c->connections[c->n++] = connection;
	return 0;
}

/* Databases of torch_npu list no copies: who ran them follows from the calls, with and without the queue. */
static void copies_that_are_not_listed(void **state)
{
	struct copies found = { .n = 0 };
	struct nps_model m;
	size_t row = 0;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	fill(&m);
	for (size_t i = 0; i < m.task.t.len; i++)
		m.task.type[i] = NPS_NONE;
	add_call(&m, MAIN, 385, 1008, NPS_CLASS_OTHER); /* without MEMCPY_INFO */
	m.task.type[m.task.t.len - 1] = nps_strings__addz(m.strings, "MEMCPY_ASYNC");
	add_call(&m, MAIN, 386, 1009, NPS_CLASS_MEMCPY);
	m.task.type[m.task.t.len - 1] = NPS_NONE;
	assert_int_equal(nps_table__add(&m.link.t, &row), 0);
	m.link.connection[row] = 1009; /* one that is listed */
	assert_int_equal(nps_derive__visit_unlisted_copies(&m, &found, note_copy), 0);
	assert_int_equal(found.n, 3);
	assert_int_equal(found.ops[0], 8);
	assert_int_equal(found.connections[0], 1002);
	assert_int_equal(found.ops[1], 9);
	assert_int_equal(found.connections[1], 1005);
	assert_int_equal(found.ops[2], 13);
	assert_int_equal(found.connections[2], 1008);
	nps_model__free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launches_and_pairs),	  cmocka_unit_test(copies_that_are_not_listed),
		cmocka_unit_test(damaged_number),	  cmocka_unit_test(nonsense),
		cmocka_unit_test(index_dense_and_sparse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
