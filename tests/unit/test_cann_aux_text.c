/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Auxiliary files of lines of text: ports, and what the host's tools report of CPUs, disks, cards, calls and
 * processes.
 */
#include "cann_aux_capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void hccs_that_goes_back_has_no_rate(void **state)
{
	struct cann_aux_capture *f = *state;

	cann_aux_text(
		f, 0, "hccs.data",
		"timestamp tx rx\n0:000001000 100 200\n0:001001000 1100 2200\n0:002001000 5 3000\nrubbish\n"
		"0:003001000 1005 4000\n0:9999999999 1 1\n0:004001000 2005 "
		"99999999999999999999999\n0:0050010");
	cann_aux_import(f);
	assert_int_equal(f->m.hccs.t.len, 2);
	assert_int_equal(f->m.hccs.timestamp[0], CANN_AUX_UNIX + 1000000);
	assert_true(f->m.hccs.tx[0] == 1000000);
	assert_true(f->m.hccs.rx[0] == 2000000);
	assert_true(f->m.hccs.tx[1] == 1000000);
	assert_int_equal(cann_aux_lost(f, "records of hccs.data.0"), 4);
}

static void ports_have_what_the_chip_reports(void **state)
{
	struct cann_aux_capture *f = *state;
	const struct nps_port_table *t = &f->m.nic;

	cann_aux_text(f, 0, "nic.data",
		      "time bandwidth rxPacket/s x\n"
		      "0:000001000 100 1.5 2.25 3 99999999999999 5 6 7 8 9 10 11 12 4\n"
		      "0:000001001 100 1 2 3 4 5 6 7 8 9 10 11 12\n"
		      "0:000001002 1 2 3 4 5 6 7 8 9 10 11 12\n"
		      "0:000001003 1 2 3 4 5 6 7 8 9 10 11\n"
		      "0:000001004 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n");
	cann_aux_import(f);
	assert_int_equal(t->t.len, 3);
	assert_int_equal(t->bandwidth[0], 100 << 20);
	assert_true(t->rx_packet_rate[0] == 1.5);
	assert_int_equal(t->rx_bytes[0], 99999999999999);
	assert_int_equal(t->tx_dropped[0], 12);
	assert_int_equal(t->function[0], 4);
	assert_int_equal(t->tx_dropped[1], 12);
	assert_int_equal(t->function[1], 0);
	assert_int_equal(t->bandwidth[2], NPS_NULL);
	assert_int_equal(t->tx_dropped[2], 12);
	assert_int_equal(cann_aux_lost(f, "records of nic.data.0"), 2);
}

static void rows_of_netdev_have_what_grew(void **state)
{
	struct cann_aux_capture *f = *state;
	const struct nps_netdev_table *t = &f->m.netdev;

	cann_aux_text(f, 0, "netdev_stats.data",
		      "5000001000 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n5000001000 1\n"
		      "5001001000 2 4 1003 2004 0 6 7 8 9 10 11 12 14 3014 4015\n");
	cann_aux_import(f);
	assert_int_equal(t->t.len, 1);
	assert_int_equal(t->timestamp[0], CANN_AUX_UNIX + 1001000);
	assert_int_equal(t->mac_tx_pfc[0], 1);
	assert_int_equal(t->mac_rx_pfc[0], 2);
	assert_int_equal(t->mac_tx_bytes[0], 1000);
	assert_int_equal(t->mac_tx_bad[0], 0);
	assert_int_equal(t->roce_retries[0], 1);
	assert_true(t->nic_rx_bandwidth[0] == 4000000);
	assert_int_equal(cann_aux_lost(f, "records of netdev_stats.data.0"), 1);
}

#define STAT(tid, comm, user, cpu)                                                                           \
	tid " (" comm ") R 1 1 1 0 -1 0 0 0 0 0 " user                                                       \
	    " 0 0 0 20 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 " cpu " 0 0\n"

static void threads_of_one_cpu_are_summed(void **state)
{
	struct cann_aux_capture *f = *state;
	const struct nps_cpu_usage_table *t = &f->m.cpu_usage;

	cann_aux_text(f, NPS_CANN_HOST, "host_cpu.data",
		      "7 (lost) R 1\ntime 5000001000\n10.00 99.0\n" STAT("7", "a", "100", "1")
			      STAT("8", "b) (c 1", "0", "1")
				      STAT("9", "d", "0",
					   "3") "time 6000001000\n11.00 99.0\n" STAT("7", "a", "130", "1")
					      STAT("8", "b) (c 1", "20", "1") STAT("9", "d", "0", "3")
						      STAT("10", "new", "500", "0") "9 (short) R 1 2\n");
	cann_aux_import(f);
	assert_int_equal(t->t.len, 3);
	assert_int_equal(t->timestamp[0], CANN_AUX_UNIX + 1000);
	assert_string_equal(cann_aux_name(f, t->cpu[0]), "1");
	assert_true(t->usage[0] == 50);
	assert_string_equal(cann_aux_name(f, t->cpu[1]), "3");
	assert_true(t->usage[1] == 0);
	assert_string_equal(cann_aux_name(f, t->cpu[2]), "Avg");
	assert_true(t->usage[2] == 12.5);
	assert_int_equal(cann_aux_lost(f, "records of host_cpu.data"), 2);
}

static void cards_without_a_speed_do_not_count(void **state)
{
	struct cann_aux_capture *f = *state;

	cann_aux_text(f, NPS_CANN_HOST, "host_network.data",
		      "time 5000001000\n  eth0: 1000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n    lo: 9 1 0 0 0 0 0 "
		      "0 9 1 0 0 "
		      "0 0 0 0\n"
		      "time 6000001000\n  eth0: 101000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n    lo: 99999 1 0 0 "
		      "0 0 0 0 "
		      "9\n"
		      "eth0: 1 2\n");
	cann_aux_import(f);
	assert_int_equal(f->m.host_network.t.len, 1);
	assert_int_equal(f->m.host_network.timestamp[0], CANN_AUX_UNIX + 1000);
	assert_true(f->m.host_network.speed[0] == 100000);
	assert_true(f->m.host_network.usage[0] == 10);
	assert_int_equal(f->m.host.t.len, 1);
	assert_true(f->m.host.network[0] == 1000000);
	assert_int_equal(cann_aux_lost(f, "records of host_network.data"), 1);
}

static void disk_samples_follow_their_rate(void **state)
{
	struct cann_aux_capture *f = *state;
	const struct nps_host_disk_table *t = &f->m.host_disk;

	cann_aux_text(f, NPS_CANN_HOST, "host_disk.data",
		      "1 be/4 root 1.00 K/s 0.00 B/s 0.00 % 1.00 % too early\nstart_time 5000000500\n"
		      "Total DISK READ: 0.00 B/s\n 77 be/4 root 1.50 K/s 2.00 M/s  0.00 %  3.25 % python3 "
		      "train.py -x "
		      "3 K/s\n"
		      "77 be/4 root 1.50 X/s 2.00 M/s  0.00 %  3.25 % x\n77 be/4 root 0.00 B/s 1.00 G/s 0.00 "
		      "% 99.99 "
		      "% x\n");
	cann_aux_import(f);
	assert_int_equal(t->t.len, 2);
	assert_int_equal(t->timestamp[0], CANN_AUX_UNIX + 500);
	assert_int_equal(t->timestamp[1], CANN_AUX_UNIX + 500 + 250000000);
	assert_true(t->read[0] == 1536);
	assert_true(t->write[0] == 2 << 20);
	assert_true(t->usage[0] == 3.25);
	assert_true(t->write[1] == 1 << 30);
	assert_int_equal(cann_aux_lost(f, "records of host_disk.data"), 2);
}

/*
 * What iotop 0.6 writes as msprof calls it, `-b -d 0.02 -P -t -p PID`:
 * heads and rows begin with the time of day.
 */
static void disk_samples_of_iotop(void **state)
{
	struct cann_aux_capture *f = *state;
	const struct nps_host_disk_table *t = &f->m.host_disk;

	cann_aux_text(
		f, NPS_CANN_HOST, "host_disk.data",
		"start_time 5000000000\n"
		"14:07:31 Total DISK READ :       0.00 B/s | Total DISK WRITE :       7.85 K/s\n"
		"14:07:31 Actual DISK READ:       0.00 B/s | Actual DISK WRITE:       0.00 B/s\n"
		"    TIME    PID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN      IO    COMMAND\n"
		"14:07:31   4242 be/4 root        1.50 K/s    7.85 K/s  0.00 %  2.50 % python3 train.py\n"
		"14:07:31 Total DISK READ :       0.00 B/s | Total DISK WRITE :       0.00 B/s\n"
		"14:07:31   4242 be/4 root        0.00 B/s    2.00 M/s ?unavailable?  python3 train.py\n"
		"14:07:32   4242 be/4 root        0.00 B/s    2.00 M/s  0.00 % x % python3 train.py\n"
		"14:07:32\n");
	cann_aux_import(f);
	assert_int_equal(t->t.len, 2);
	assert_int_equal(t->timestamp[0], CANN_AUX_UNIX);
	assert_int_equal(t->timestamp[1], CANN_AUX_UNIX + 250000000);
	assert_true(t->read[0] == 1536);
	assert_true(t->write[0] == 7.85 * 1024);
	assert_true(t->usage[0] == 2.5);
	assert_true(t->write[1] == 2 << 20);
	assert_true(isnan(t->usage[1]));
	assert_int_equal(cann_aux_lost(f, "records of host_disk.data"), 1);
}

static void calls_begin_with_the_collection(void **state)
{
	struct cann_aux_capture *f = *state;
	const struct nps_osrt_table *t = &f->m.osrt;

	cann_aux_text(f, NPS_CANN_HOST, "host_syscall.data",
		      " 123.456 (  0.002 ms): py/1 (x/99 futex(uaddr: 0x7f/8 x(1)) = 0\n"
		      " 123.956 (         ): py/99 read(fd: 3</dev/null>\n 124.456 (  1.000 ms): py/98 "
		      "read(fd: 3) = "
		      "1\n");
	cann_aux_text(f, NPS_CANN_HOST, "host_pthreadcall.data",
		      "[pid 98] 1736408999.000001 lib->pthread_once(0x1, 0) = 0 <0.000001>\n"
		      "[pid 98] 1736408999.000501 lib->pthread_mutex_lock(0x1, \"<\") = 0 <0.000250>\n"
		      "1736408999.002001 lib->pthread_cond_wait(0x1) = 0 <0.5>\n[pid 98] 1 lib->pthread_x( "
		      "<unfinished ...>\n");
	cann_aux_import(f);
	assert_int_equal(t->t.len, 4);
	assert_string_equal(cann_aux_name(f, t->name[0]), "futex");
	assert_int_equal(t->start[0], CANN_AUX_UNIX);
	assert_int_equal(t->end[0], CANN_AUX_UNIX + 2000);
	assert_int_equal(t->gtid[0], 77ULL << 32 | 99);
	assert_string_equal(cann_aux_name(f, t->name[1]), "pthread_mutex_lock");
	assert_int_equal(t->start[1], CANN_AUX_UNIX + 500000);
	assert_int_equal(t->end[1], CANN_AUX_UNIX + 750000);
	assert_int_equal(t->start[2], CANN_AUX_UNIX + 1000000);
	assert_int_equal(t->gtid[3], 77ULL << 32 | 77);
	assert_int_equal(t->end[3], CANN_AUX_UNIX + 502000000);
	assert_int_equal(cann_aux_lost(f, "records of host_syscall.data"), 1);
	assert_int_equal(cann_aux_lost(f, "records of host_pthreadcall.data"), 1);
}

/* The vendor's rule: the counters of all samples, from the start of the system on, are summed up. */
static void shares_are_of_all_samples(void **state)
{
	struct cann_aux_capture *f = *state;
	const struct nps_cpu_share_table *t = &f->m.cpu_share;

	cann_aux_text(f, NPS_CANN_HOST, "host_sys_cpu.data",
		      "TimeStamp:1\nIndex:0\nDataLen:9\ncpu  100 0 100 800 0 0 0 0 0 0\ncpu0 9 9\n\n"
		      "TimeStamp:2\nIndex:1\nDataLen:9\ncpu  150 0 100 750 0 0 0 0 0 0\n\n");
	cann_aux_text(f, 1, "SystemCpuUsage.data",
		      "TimeStamp:1\nIndex:0\nDataLen:9\ncpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 0 0 3 0 0 0 0 0 0\n"
		      "cpu2 1 0 0 1 0 0 0 0 0 0\ncpu3 0 0 2 0 0 0 0 0 0 0\n\n"
		      "TimeStamp:2\nIndex:1\nDataLen:9\ncpu  9 9 9 9 9 9 9 9 9 9\ncpu0 3 0 0 5 0 0 0 0 0 0\n"
		      "cpu2 2 0 0 2 0 0 0 0 0 0\ncpu3 0 0 4 0 0 0 0 0 0 0\n");
	cann_aux_text(
		f, 0, "SystemCpuUsage.data",
		"TimeStamp:1\nIndex:0\nDataLen:9\ncpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 0 0 2 0 0 0 0 0 1\n");
	cann_aux_import(f);
	assert_int_equal(t->t.len, 4);
	assert_int_equal(t->device[0], NPS_NONE);
	assert_string_equal(cann_aux_name(f, t->type[0]), "host");
	assert_true(t->user[0] == 12.5 && t->sys[0] == 10 && t->idle[0] == 77.5);
	assert_string_equal(cann_aux_name(f, t->type[1]), "ctrlcpu");
	assert_true(t->user[1] == 25 && t->idle[1] == 50);
	assert_string_equal(cann_aux_name(f, t->type[2]), "aicpu");
	assert_int_equal(t->device[2], 1);
	assert_true(t->user[2] == 25 && t->sys[2] == 50 && t->idle[2] == 25);
	assert_string_equal(cann_aux_name(f, t->type[3]), "ctrlcpu");
	assert_true(t->user[3] == 100.0 / 3);
	assert_int_equal(cann_aux_lost(f, "records of host_sys_cpu.data"), 1);
}

static void processes_have_files_of_their_own(void **state)
{
	struct cann_aux_capture *f = *state;

	cann_aux_text(
		f, NPS_CANN_HOST, "77-CpuUsage.data",
		"TimeStamp:1000000000\nIndex:0\nDataLen:9\n77 (py) R 1 1 1 0 -1 0 0 0 0 0 100 0 0 0 20 0\n"
		"ProcessName:py\n\nTimeStamp:3000000000\nIndex:1\nDataLen:9\n"
		"77 (py) R 1 1 1 0 -1 0 0 0 0 0 120 20 0 10 20 0\nProcessName:py\n\n");
	cann_aux_text(f, NPS_CANN_HOST, "78-Memory.data",
		      "TimeStamp:1\nIndex:0\nDataLen:9\n10 20 30 4 0 5 0\nProcessName:a b\n\n"
		      "TimeStamp:2\nIndex:1\nDataLen:9\n20 40 30 4 0 5 0\nProcessName:a b\n\n");
	cann_aux_text(
		f, 0, "Memory.data",
		"TimeStamp:1\nIndex:0\nDataLen:9\nMemTotal: 100 kB\nMemFree: 10 kB\nOther: 5\nnonsense\n\n"
		"TimeStamp:2\nIndex:1\nDataLen:9\nMemTotal: 100 kB\nMemFree: 21 kB\n\n");
	cann_aux_import(f);
	assert_int_equal(f->m.process_cpu.t.len, 1);
	assert_int_equal(f->m.process_cpu.pid[0], 77);
	assert_true(f->m.process_cpu.cpu[0] == 25);
	assert_int_equal(f->m.process_mem.t.len, 1);
	assert_int_equal(f->m.process_mem.size[0], 15);
	assert_int_equal(f->m.process_mem.resident[0], 30);
	assert_string_equal(cann_aux_name(f, f->m.process_mem.name[0]), "a b");
	assert_int_equal(f->m.sys_mem.t.len, 1);
	assert_int_equal(f->m.sys_mem.free[0], 15);
	assert_int_equal(cann_aux_lost(f, "records of Memory.data.0"), 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, cann_aux_setup, cann_aux_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(hccs_that_goes_back_has_no_rate),
		TEST(ports_have_what_the_chip_reports),
		TEST(rows_of_netdev_have_what_grew),
		TEST(threads_of_one_cpu_are_summed),
		TEST(cards_without_a_speed_do_not_count),
		TEST(disk_samples_follow_their_rate),
		TEST(disk_samples_of_iotop),
		TEST(calls_begin_with_the_collection),
		TEST(shares_are_of_all_samples),
		TEST(processes_have_files_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
