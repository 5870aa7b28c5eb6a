/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "derive/derive.h"
#include "derive/round4.h"

static size_t add_op(struct nps_model *m, uint32_t id, const char *name, uint64_t start, uint64_t end)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->comm_op.t, &row), 0);
	m->comm_op.id[row] = id;
	m->comm_op.name[row] = nps_strings__addz(m->strings, name);
	m->comm_op.group[row] = nps_strings__addz(m->strings, "group_name_0");
	m->comm_op.start[row] = start;
	m->comm_op.end[row] = end;
	m->comm_op.step[row] = NPS_NONE;
	return row;
}

/* A task of collective OP, from 0 to DST. */
static size_t add_task(struct nps_model *m, uint32_t op, const char *type, int64_t plane, uint64_t start,
		       uint64_t ns, int64_t size, uint32_t link)
{
	size_t task = 0, row = 0;

	assert_int_equal(nps_table__add(&m->task.t, &task), 0);
	m->task.start[task] = start;
	m->task.end[task] = start + ns;
	m->task.class[task] = NPS_CLASS_COMM;
	assert_int_equal(nps_table__add(&m->comm_task.t, &row), 0);
	m->comm_task.task[row] = task;
	m->comm_task.op[row] = op;
	m->comm_task.type[row] = nps_strings__addz(m->strings, type);
	m->comm_task.plane[row] = plane;
	m->comm_task.size[row] = size;
	m->comm_task.link[row] = link;
	m->comm_task.dst[row] = 1;
	m->comm_task.rdma_type[row] = 65535;
	return row;
}

static size_t find_matrix(const struct nps_model *m, const char *op, const char *dst)
{
	for (size_t i = 0; i < m->comm_matrix.t.len; i++)
		if (!strcmp(nps_model__text(m, m->comm_matrix.op[i]), op) &&
		    !strcmp(nps_model__text(m, m->comm_matrix.dst[i]), dst))
			return i;
	fail_msg("no link to %s in %s", dst, op);
	return 0;
}

static void assert_text(const struct nps_model *m, uint32_t text, const char *expected)
{
	assert_string_equal(nps_model__text(m, text), expected);
}

/* Two collectives that overlap; the master plane is known. */
static void one_collective(void **state)
{
	struct nps_model m;
	size_t at;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	add_op(&m, 7, "hcom_reduceScatter__612_0_1", 1000, 21000);
	add_op(&m, 9, "hcom_reduceScatter__612_1_1", 2000, 8000);
	add_task(&m, 7, "Notify_Wait", 3, 1000, 500, 0, 65535);
	add_task(&m, 9, "Memcpy", 0, 2000, 4000, 2000000, 1);
	at = add_task(&m, 7, "Memcpy", 3, 3000, 2000, 40000000, 1);
	m.comm_task.dst[at] = NPS_NO_ID;
	add_task(&m, 7, "Reduce_Inline", 2, 3500, 1000, 1000000, 5); /* HCCS_SW, another plane */
	add_task(&m, 7, "Memcpy", 2, 5000, 100, 8, 0); /* on the chip */
	add_task(&m, 7, "Memcpy", 3, 6000, 3000, 40000000, 2); /* PCIe */
	for (size_t i = 0; i < m.comm_task.t.len; i++)
		m.comm_task.master[i] = m.comm_task.plane[i] == 3;
	at = add_task(&m, 7, "Notify_Wait", 3, 20000, 1000, 0, 65535);
	m.comm_task.master[at] = 1;
	assert_int_equal(nps_derive__comm(&m), 0);

	assert_int_equal(m.comm_time.t.len, 2);
	assert_text(&m, m.comm_time.op[0], "hcom_reduceScatter__612_0_1");
	assert_text(&m, m.comm_time.group[0], "5862276093215481612"); /* outputs 0.3 */
	assert_text(&m, m.comm_time.step[0], "step");
	assert_text(&m, m.comm_time.type[0], "collective");
	assert_true(m.comm_time.start[0] == 1.0);
	assert_true(m.comm_time.elapse[0] == 20000 / 1e6);
	assert_true(m.comm_time.transit[0] == 2000 / 1e6 + 3000 / 1e6);
	assert_true(m.comm_time.wait[0] == 500 / 1e6 + 1000 / 1e6);
	assert_true(m.comm_time.synchronization[0] == 500 / 1e6);
	assert_true(m.comm_time.idle[0] == 20000 / 1e6 - m.comm_time.transit[0] - m.comm_time.wait[0]);
	assert_true(m.comm_time.transit[1] == 4000 / 1e6);

	/* HCCS: 40 MB and 1 MB, PCIE: 40 MB, their sum. */
	assert_int_equal(m.comm_bandwidth.t.len, 4 + 2);
	assert_text(&m, m.comm_bandwidth.transport[0], "HCCS");
	assert_true(m.comm_bandwidth.package[0] == 40 && m.comm_bandwidth.package[1] == 1);
	assert_true(m.comm_bandwidth.large_ratio[0] == 0.5);
	assert_true(m.comm_bandwidth.size[0] == 41);
	assert_true(m.comm_bandwidth.bandwidth[0] == 13666.6667); /* 41 MB in 3 us */
	assert_text(&m, m.comm_bandwidth.transport[2], "PCIE");
	assert_true(m.comm_bandwidth.large_ratio[2] == 1);
	assert_text(&m, m.comm_bandwidth.transport[3], "SDMA");
	assert_true(m.comm_bandwidth.size[3] == 81 && m.comm_bandwidth.count[3] == 0);

	/* The vendor's pattern takes the reduce out of reduceScatter. */
	at = find_matrix(&m, "reduce-top1", "0");
	assert_text(&m, m.comm_matrix.transport[at], "HCCS");
	at = find_matrix(&m, "reduce-total", "1");
	assert_text(&m, m.comm_matrix.name[at], "");
	assert_true(m.comm_matrix.size[at] == 43.000008); /* sorted: 41.000008 in 4.1 us, then 2 in 4 */
	at = find_matrix(&m, "reduce-bottom2", "1"); /* the better of the two */
	assert_text(&m, m.comm_matrix.name[at], "hcom_reduceScatter__612_0_1");
	at = find_matrix(&m, "reduce-middle", "1"); /* n / 2 */
	assert_text(&m, m.comm_matrix.name[at], "hcom_reduceScatter__612_1_1");
	for (size_t i = 0; i < m.comm_matrix.t.len; i++)
		assert_null(strstr(nps_model__text(&m, m.comm_matrix.op[i]), "bottom3"));
	nps_model__free(&m);
}

/* Payloads through RDMA: one transfer until the wait that closes the group. */
static void payloads(void **state)
{
	struct nps_model m;
	size_t at;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	add_op(&m, 1, "hcom_send__612_0_1", 1000, 5000);
	add_task(&m, 1, "Notify_Wait", 0, 1000, 100, 0, 65535);
	for (int i = 0; i < 2; i++) {
		size_t row = add_task(&m, 1, "RDMASend", 0, 1200 + 100 * i, 50, 600000, 3);

		m.comm_task.rdma_type[row] = 1;
		m.comm_task.transport[row] = 1;
	}
	at = add_task(&m, 1, "RDMASend", 0, 1500, 50, 4, 3);
	m.comm_task.rdma_type[at] = 0;
	add_task(&m, 1, "Notify_Wait", 0, 1600, 400, 0, 65535);
	/* A group that nothing closes is none. */
	at = add_task(&m, 1, "RDMASend", 0, 4000, 50, 700000, 3);
	m.comm_task.rdma_type[at] = 1;
	assert_int_equal(nps_derive__comm(&m), 0);
	assert_int_equal(m.comm_time.t.len, 1);
	assert_text(&m, m.comm_time.type[0], "p2p");
	assert_true(m.comm_time.transit[0] == 800 / 1e6);
	assert_true(m.comm_time.wait[0] == 100 / 1e6);
	assert_true(m.comm_time.synchronization[0] == 100 / 1e6);
	assert_int_equal(m.comm_bandwidth.t.len, 1);
	assert_text(&m, m.comm_bandwidth.transport[0], "RDMA");
	assert_true(m.comm_bandwidth.package[0] == 1.2 && m.comm_bandwidth.count[0] == 1);
	assert_true(m.comm_bandwidth.large_ratio[0] == 1);
	assert_text(&m, m.comm_matrix.op[0], "send-top1");
	assert_text(&m, m.comm_matrix.transport[0], "RDMA");
	nps_model__free(&m);
}

/*
 * A collective lasts as long as its master plane; what the others moved
 * before and after it counts as traffic.
 */
static void other_planes_reach_beyond(void **state)
{
	const uint64_t ms = 1000000, at = 100 * ms;
	struct nps_model m;
	size_t row;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	add_op(&m, 1, "hcom_allReduce__612_0_1", at, at + ms);
	add_op(&m, 2, "hcom_allReduce__612_1_1", at + 2 * ms, at + 3 * ms);
	add_task(&m, 1, "Memcpy", 1, at - ms / 2, 1000, 1000, 1);
	row = add_task(&m, 1, "Memcpy", 0, at, ms, 1000, 1);
	m.comm_task.master[row] = 1;
	add_task(&m, 1, "Memcpy", 1, at + 3 * ms / 2, 1000, 1000, 1);
	row = add_task(&m, 2, "Memcpy", 0, at + 2 * ms, ms, 1000, 1);
	m.comm_task.master[row] = 1;
	assert_int_equal(nps_derive__comm(&m), 0);
	assert_int_equal(m.comm_time.t.len, 2);
	assert_true(m.comm_time.elapse[0] == 1 && m.comm_time.transit[0] == 1);
	assert_int_equal(m.comm_bandwidth.count[0], 3);
	assert_int_equal(m.comm_bandwidth.count[2], 1);
	nps_model__free(&m);
}

/* Collectives of which only their being there is known have no numbers; several steps have their own. */
static void details_and_steps(void **state)
{
	struct nps_model m;
	size_t row = 0, at;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	for (int64_t id = 5; id < 7; id++) {
		assert_int_equal(nps_table__add(&m.step.t, &row), 0);
		m.step.id[row] = id;
		m.step.start[row] = 1000 * id;
		m.step.end[row] = 1000 * id + 1000;
	}
	add_op(&m, 1, "hcom_allReduce__612_0_1", 5000, 5100);
	m.comm_op.step[0] = 0;
	add_op(&m, 2, "hcom_allReduce__612_1_1", 5200, 5300);
	m.comm_op.step[1] = 0;
	add_op(&m, 3, "hcom_allReduce__612_2_1", 6000, 6100);
	m.comm_op.step[2] = 1;
	add_op(&m, 4, "hcom_allReduce__612_3_1", 9000, 9100); /* in no step */
	add_task(&m, 1, "Memcpy", 0, 5000, 100, 1000, 1);
	at = add_task(&m, 2, "N/A", 0, 5200, 100, -1, 65534);
	m.comm_task.transport[at] = 65534;
	add_task(&m, 3, "Memcpy", 0, 6000, 100, 1000, 1);
	add_task(&m, 4, "Memcpy", 0, 9000, 100, 1000, 1);
	assert_int_equal(nps_derive__comm(&m), 0);
	assert_int_equal(m.comm_time.t.len, 2);
	assert_text(&m, m.comm_time.step[0], "step5");
	assert_text(&m, m.comm_time.step[1], "step6");
	assert_int_equal(m.comm_matrix.t.len, 8);
	nps_model__free(&m);
}

/* Many collectives one after the other, some under way for long; ids that come twice. */
static void many(void **state)
{
	struct nps_model m;
	double sum = 0;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	for (uint32_t i = 0; i < 20000; i++)
		add_op(&m, i < 19990 ? i : 0, "hcom_allGather__612_0_1", 1000000ULL * i,
		       1000000ULL * i + (i % 5000 ? 5000 : 300000000));
	for (uint32_t i = 0; i < 19990; i++)
		add_task(&m, i, "Memcpy", i % 3, 1000000ULL * i, 1000, 1000000 + i, 1);
	assert_int_equal(nps_derive__comm(&m), 0);
	assert_int_equal(m.comm_time.t.len, 19990);
	for (size_t i = 0; i < m.comm_bandwidth.t.len; i += 2) {
		assert_true(m.comm_bandwidth.package[i] == (1000000.0 + (double)(i >> 1)) / 1e6);
		sum += m.comm_bandwidth.package[i];
	}
	assert_int_equal(m.comm_matrix.t.len, 6);
	assert_true(m.comm_matrix.size[3] > sum - 1e-3 && m.comm_matrix.size[3] < sum + 1e-3);
	assert_true(m.comm_matrix.size[0] == 1019989 / 1e6); /* the best is the largest */
	assert_true(m.comm_matrix.size[2] == 1000000 / 1e6);
	nps_model__free(&m);
}

/* The step's name is added while the collective's is looked at: the table of texts may move. */
static void texts_that_move(void **state)
{
	const size_t moves = 256 << 10; /* into a file, whatever lies behind it */
	char filler[1024];

	(void)state;
	for (size_t fill = moves - 250; fill < moves; fill++) {
		struct nps_model m;
		size_t row = 0;

		assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
		for (int64_t id = 50; id < 52; id++) {
			assert_int_equal(nps_table__add(&m.step.t, &row), 0);
			m.step.id[row] = id;
		}
		row = add_op(&m, 7, "hcom_send__612_0_1", 2000, 9000);
		m.comm_op.step[row] = 0;
		add_task(&m, 7, "Memcpy", 0, 2000, 7000, 8, 1);
		for (int i = 0; m.strings->text.len < fill; i++) {
			size_t left = fill - m.strings->text.len;
			int width = left > 900 ? 800 : (int)NPS_MAX(left, (size_t)7) - 1;

			snprintf(filler, sizeof(filler), "%0*d", width, i);
			nps_strings__addz(m.strings, filler);
		}
		assert_int_equal(nps_derive__comm(&m), 0);
		assert_int_equal(m.comm_time.t.len, 1);
		assert_text(&m, m.comm_time.step[0], "step50");
		assert_text(&m, m.comm_time.type[0], "p2p");
		nps_model__free(&m);
	}
}

static void rounding(void **state)
{
	(void)state;
	/* As Python's round(x, 4) gives them; the ties are not what they seem in binary. */
	assert_true(nps_round4(15.767549999) == 15.7675);
	assert_true(nps_round4(0.00005) == 0.0001);
	assert_true(nps_round4(0.00015) == 0.0001);
	assert_true(nps_round4(2.67565) == 2.6757);
	assert_true(nps_round4(1.00005) == 1.0001);
	assert_true(nps_round4(0.5) == 0.5);
	assert_true(nps_round4(0) == 0);
	assert_true(nps_round4(1e300) == 1e300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_collective),
		cmocka_unit_test(payloads),
		cmocka_unit_test(other_planes_reach_beyond),
		cmocka_unit_test(details_and_steps),
		cmocka_unit_test(many),
		cmocka_unit_test(texts_that_move),
		cmocka_unit_test(rounding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
