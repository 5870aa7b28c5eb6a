/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of /proc, as kernels write them and as nobody should. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sources/host/host_parse.h"

#define TICK 10000000ULL
#define TEXT(s) (s), sizeof(s) - 1

/* In a buffer of its own size, so that a sanitizer sees a read past the end. */
static char *exact(const char *text, size_t len)
{
	char *copy = malloc(len ? len : 1);

	memcpy(copy, text, len);
	return copy;
}

static const char stat_text[] =
	"cpu  30 2 10 400 5 1 2 3 0 0\n"
	"cpu0 10 1 4 200 5 0 1 0 0 0\n"
	"cpu17 20 1 6 200 0 1 1\n"
	"intr 1234 5 6 7\n"
	"ctxt 987654\nbtime 1700000000\nprocesses 4242\nprocs_running 3\nprocs_blocked 1\n"
	"softirq 1 2 3\n";

static void cpus(void **state)
{
	struct nps_host_system system;
	struct nps_host_cpu cpus[4];

	(void)state;
	assert_int_equal(nps_host_parse__stat(TEXT(stat_text), TICK, cpus, 4, &system), 3);
	assert_int_equal(cpus[0].cpu, NPS_HOST_ALL_CPUS);
	assert_int_equal(cpus[0].user, 32 * TICK);
	assert_int_equal(cpus[0].steal, 3 * TICK);
	assert_int_equal(cpus[1].cpu, 0);
	assert_int_equal(cpus[1].iowait, 5 * TICK);
	assert_int_equal(cpus[2].cpu, 17);
	assert_int_equal(cpus[2].soft, TICK);
	assert_int_equal(cpus[2].steal, 0); /* kernels before 2.6.11 have none */
	assert_int_equal(system.switches, 987654);
	assert_int_equal(system.forks, 4242);
	assert_int_equal(system.running, 3);
	assert_int_equal(system.blocked, 1);
	assert_int_equal(nps_host_parse__stat(TEXT(stat_text), TICK, cpus, 2, &system), 2);
}

static void bad_cpus(void **state)
{
	static const char text[] =
		"cpu0 1 2\ncpu99999999999999999999999 1 2 3 4 5 6 7 8\ncpu70000 1 2 3 4 5 6 7 8\n"
		"cpux 1 2 3 4 5 6 7 8\nctxt\nctxt -1\nprocs_running 99999999999\ncpu";
	struct nps_host_system system;
	struct nps_host_cpu cpus[4];

	(void)state;
	assert_int_equal(nps_host_parse__stat(TEXT(text), TICK, cpus, 4, &system), 0);
	assert_int_equal(system.switches, NPS_HOST_UNKNOWN);
	assert_int_equal(system.running, UINT32_MAX);
	assert_int_equal(nps_host_parse__stat(TEXT("cpu3 18446744073709551615 0 3 4 5 6 7\n"), TICK, cpus, 4,
					      &system),
			 1);
	assert_int_equal(cpus[0].user, NPS_HOST_UNKNOWN); /* not a product that wrapped */
}

static const char task_text[] =
	"77 (a) R 1 (b\n) S 1 77 77 0 -1 4194304 1 2 3 4 120 30 7 8 20 0 5 0 123456 1 2 3 4 5 6 7 8 "
	"9 10 11 12 13 14 15 17 6 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

static void tasks(void **state)
{
	struct nps_task_stat task;

	(void)state;
	assert_true(nps_host_parse__task(TEXT(task_text), &task));
	assert_string_equal(task.comm, "a) R 1 (b\n");
	assert_int_equal(task.state, 'S');
	assert_int_equal(task.ticks, 150);
	assert_int_equal(task.start, 123456);
	assert_int_equal(task.cpu, 6);
}

static void bad_tasks(void **state)
{
	static const char *const texts[] = { "",
					     "1",
					     "1 (x",
					     "1 x)",
					     ")(",
					     "1 (x) S",
					     "1 (x) S 1 1 1 1 1 1 1 1 1 1 a 1 1 1",
					     "1 (x)",
					     "1 () R -1 -1" };
	struct nps_task_stat task;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_false(nps_host_parse__task(texts[i], strlen(texts[i]), &task));
}

static void small_files(void **state)
{
	struct nps_host_process p = { .read = 1 };
	struct nps_host_thread t = { .run = 1 };

	(void)state;
	assert_true(nps_host_parse__schedstat(TEXT("123456789 987 42\n"), &t));
	assert_int_equal(t.run, 123456789);
	assert_int_equal(t.wait, 987);
	assert_int_equal(t.switches, 42);
	assert_false(nps_host_parse__schedstat(TEXT("123456789 987"), &t));
	assert_false(nps_host_parse__schedstat(TEXT("18446744073709551616 1 1"), &t));
	assert_int_equal(t.run, 123456789);
	assert_true(nps_host_parse__statm(TEXT("100 25 3 1 0 9 0\n"), 65536, &p));
	assert_int_equal(p.resident, 25 * 65536);
	assert_false(nps_host_parse__statm(TEXT("100\n"), 4096, &p));
	assert_true(nps_host_parse__io(TEXT("rchar: 9\nwchar: 8\nread_bytes: 4096\nwrite_bytes: 8192\n"
					    "cancelled_write_bytes: 512\n"),
				       &p));
	assert_int_equal(p.read, 4096);
	assert_int_equal(p.written, 8192);
	assert_int_equal(p.cancelled, 512);
	/* half of a number is a smaller number: it is none */
	assert_false(nps_host_parse__io(TEXT("read_bytes: 4096\nwrite_bytes: 81"), &p));
	assert_false(nps_host_parse__io(TEXT(""), &p));
	assert_int_equal(p.written, 8192);
}

static void memory(void **state)
{
	struct nps_host_memory m;

	(void)state;
	assert_true(
		nps_host_parse__meminfo(TEXT("MemTotal:   1000 kB\nMemFree: 10 kB\nMemAvailable:\nCached: x\n"
					     "HugePages_Total:  5\n: 3\nnonsense\nDirty: 7"),
					&m));
	assert_int_equal(m.total, 1000);
	assert_int_equal(m.free, 10);
	assert_int_equal(m.available, NPS_HOST_UNKNOWN);
	assert_int_equal(m.cached, NPS_HOST_UNKNOWN);
	assert_int_equal(m.huge_total, 5);
	assert_int_equal(m.dirty, 7);
	assert_false(nps_host_parse__meminfo(TEXT("MemFree: 10 kB\n"), &m));
	assert_false(nps_host_parse__meminfo(TEXT(""), &m));
}

static void disks(void **state)
{
	static const char text[] = " 254 0 vda 10 1 100 5 20 2 300 6 0 70 80 1 2 3 4\n"
				   "   7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n" /* never used */
				   " 259 3 nvme0n1p-with-a-name-of-more-than-31-bytes 1 0 8 0 0 0 0 0 0 1 1\n"
				   " 99999 0 big 1 1 1 1 1 1 1 1 1 1 1\n"
				   " 8 0 short 1 2 3\n 8 1\n";
	struct nps_named_disk d[8];

	(void)state;
	assert_int_equal(nps_host_parse__disks(TEXT(text), d, 8), 2);
	assert_string_equal(d[0].name, "vda");
	assert_int_equal(d[0].disk.id, 254 << 20);
	assert_int_equal(d[0].disk.read, 100 * 512);
	assert_int_equal(d[0].disk.written, 300 * 512);
	assert_int_equal(d[0].disk.busy, 70000000);
	assert_int_equal(d[0].disk.queue, 80000000);
	assert_int_equal(strlen(d[1].name), NPS_HOST_NAME_MAX - 1);
	assert_int_equal(nps_host_parse__disks(TEXT(text), d, 1), 1);
}

static void cards(void **state)
{
	static const char text[] = "Inter-|   Receive  |  Transmit\n face |bytes packets errs\n"
				   "    lo: 1000 10 0 0 0 0 0 0 2000 20 0 0 0 0 0 0\n"
				   "eth0:1:3 4 5 6 0 0 0 0 7 8 9 10 0 0 0 0\n"
				   "bad: 1 2 3\n: 1 2 3 4 5 6 7 8 9 10 11 12\n";
	struct nps_named_card c[4];

	(void)state;
	assert_int_equal(nps_host_parse__cards(TEXT(text), c, 4), 2);
	assert_string_equal(c[0].name, "lo");
	assert_int_equal(c[0].card.received, 1000);
	assert_int_equal(c[0].card.sent, 2000);
	assert_int_equal(c[0].card.sent_packets, 20);
	assert_string_equal(c[1].name, "eth0:1"); /* an alias */
	assert_int_equal(c[1].card.receive_drops, 6);
	assert_int_equal(c[1].card.send_errors, 9);
}

/* Every text cut at every offset, and with every byte replaced: nothing is read past the end. */
static void cut_and_damaged(void **state)
{
	static const char *const texts[] = { stat_text,
					     task_text,
					     "1 2 3\n",
					     " 254 0 vda 10 1 100 5 20 2 300 6 0 70 80\n",
					     "lo: 1 2 3 4 5 6 7 8 9 10 11 12 13\n",
					     "MemTotal: 5 kB\nDirty: 7\n" };
	struct nps_host_system system;
	struct nps_host_cpu cpus[2];
	struct nps_named_disk d[2];
	struct nps_named_card c[2];
	struct nps_task_stat task;
	struct nps_host_process p;
	struct nps_host_memory m;
	struct nps_host_thread t;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		for (size_t len = 0; len <= strlen(texts[i]); len++)
			for (int damage = 0; damage < 4; damage++) {
				static const char bad[] = { 0, ':', '9', (char)0xff };
				char *text = exact(texts[i], len);

				if (len)
					text[len / 2] = bad[damage];
				assert_in_range(nps_host_parse__stat(text, len, TICK, cpus, 2, &system), 0,
						2);
				assert_in_range(nps_host_parse__disks(text, len, d, 2), 0, 2);
				assert_in_range(nps_host_parse__cards(text, len, c, 2), 0, 2);
				if (nps_host_parse__task(text, len, &task))
					assert_int_equal(task.comm[15], 0);
				nps_host_parse__schedstat(text, len, &t);
				nps_host_parse__statm(text, len, 4096, &p);
				nps_host_parse__io(text, len, &p);
				nps_host_parse__meminfo(text, len, &m);
				free(text);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpus),	     cmocka_unit_test(bad_cpus),    cmocka_unit_test(tasks),
		cmocka_unit_test(bad_tasks), cmocka_unit_test(small_files), cmocka_unit_test(memory),
		cmocka_unit_test(disks),     cmocka_unit_test(cards),	    cmocka_unit_test(cut_and_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
