/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of sampled counters: hand-made samples, and files with what they come to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/export.h"

#define MB 1048576.0

struct fixture {
	struct nps_model m;
	char dir[32];
	int dirfd;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/nps_counters_XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->dirfd >= 0);
	assert_int_equal(nps_model__init(&f->m, f->dirfd, NULL), 0);
	f->m.layout = NPS_LAYOUT_MSPROF;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close(f->dirfd);
	assert_int_equal(rmdir(f->dir), 0); /* a file that no test expected would be in it */
	nps_model__free(&f->m);
	free(f);
	return 0;
}

static void export(struct fixture *f)
{
	struct nps_export ex = { .model = &f->m, .formats = NPS_FORMAT_TEXT, .stamp = "20260101000000" };

	assert_int_equal(nps_export__counter_csv(&ex, f->dirfd), 0);
}

/* The file NAME must hold TEXT; it is removed. */
static void assert_file(struct fixture *f, const char *name, const char *text)
{
	char have[4096];
	int fd = openat(f->dirfd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		fail_msg("%s: %s", name, strerror(errno));
	n = read(fd, have, sizeof(have) - 1);
	assert_true(n >= 0);
	have[n] = '\0';
	close(fd);
	assert_string_equal(have, text);
	assert_int_equal(unlinkat(f->dirfd, name, 0), 0);
}

#define ADD(table) add_row(&f->m.table.t)

static size_t add_row(struct nps_table *table)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(table, &row), 0);
	return row;
}

static void nothing(void **state)
{
	struct fixture *f = *state;

	export(f); /* teardown could not remove the directory if there were a file */
}

static void links_of_the_device(void **state)
{
	struct fixture *f = *state;

	f->m.layout = NPS_LAYOUT_TORCH;
	for (int i = 0; i < 4; i++) {
		size_t row = ADD(hccs);

		f->m.hccs.device[row] = 1 - i / 2;
		f->m.hccs.tx[row] = (10 + i) * MB;
		f->m.hccs.rx[row] = i * MB / 3;
		row = ADD(pcie);
		f->m.pcie.tx_post_min[row] = 1048575 * MB; /* no transfer */
		f->m.pcie.latency_min[row] = 100 + i;
		f->m.pcie.latency_max[row] = 2000 + i;
		f->m.pcie.latency_avg[row] = 1000 + i;
		ADD(ddr); /* not in the torch layout */
	}
	export(f);
	assert_file(f, "hccs.csv",
		    "Device_id,Mode,Max,Min,Average\n"
		    "0,Tx (MB/s),13.0,12.0,12.5\n0,Rx (MB/s),1.0,0.667,0.833\n"
		    "1,Tx (MB/s),11.0,10.0,10.5\n1,Rx (MB/s),0.333,0.0,0.167\n");
	assert_file(f, "pcie.csv",
		    "Device_id,Mode,Min,Max,Avg\n"
		    "0,Tx_p_avg(MB/s),0.0,0.0,0.0\n0,Tx_np_avg(MB/s),0.0,0.0,0.0\n"
		    "0,Tx_cpl_avg(MB/s),0.0,0.0,0.0\n0,Tx_latency_avg(us),0.1,2.003,1.002\n"
		    "0,Rx_p_avg(MB/s),0.0,0.0,0.0\n0,Rx_np_avg(MB/s),0.0,0.0,0.0\n"
		    "0,Rx_cpl_avg(MB/s),0.0,0.0,0.0\n");
}

static void add_port(struct fixture *f, int64_t function, uint64_t time, int64_t packets)
{
	size_t row = ADD(nic);

	f->m.nic.function[row] = function;
	f->m.nic.timestamp[row] = time;
	f->m.nic.bandwidth[row] = 1000 * (int64_t)MB;
	f->m.nic.rx_packet_rate[row] = 7;
	f->m.nic.rx_packets[row] = packets;
	f->m.nic.rx_bytes[row] = packets * 1024;
	f->m.nic.rx_errors[row] = packets / 100;
	f->m.nic.tx_packets[row] = NPS_NULL;
	f->m.nic.tx_bytes[row] = NPS_NULL;
	f->m.nic.tx_errors[row] = NPS_NULL;
	f->m.nic.tx_dropped[row] = NPS_NULL;
}

static void ports(void **state)
{
	struct fixture *f = *state;

	add_port(f, 1, 1000000000, 5);
	add_port(f, 0, 2000000000, 100);
	add_port(f, 0, 4000000000, 12900);
	export(f);
	/* 12,800 packets of 1 KiB in 2 s: 6400 a second, 50 Mbit/s of 1000 */
	assert_file(f, "nic_20260101000000.csv",
		    "Device_id,Timestamp(us),Bandwidth(MB/s),Rx Bandwidth efficiency(%),rxPacket/s,"
		    "rxError rate(%),rxDropped rate(%),Tx Bandwidth efficiency(%),txPacket/s,"
		    "txError rate(%),txDropped rate(%),funcId\n"
		    "0,4000000.000\t,1000.0,0.05,6400.0,1.0,0.0,0.0,0.0,0.0,0.0,0\n"
		    "0,1000000.000\t,1000.0,0.0,7.0,0.0,0.0,0.0,0.0,0.0,0.0,1\n");
}

static void memory_of_the_device(void **state)
{
	struct fixture *f = *state;
	uint32_t read = nps_strings__addz(f->m.strings, "read"),
		 write = nps_strings__addz(f->m.strings, "write");

	for (int i = 0; i < 6; i++) {
		size_t row = ADD(hbm);

		f->m.hbm.id[row] = i % 2;
		f->m.hbm.type[row] = i < 4 ? read : write;
		f->m.hbm.bandwidth[row] = i * MB;
		row = ADD(llc);
		f->m.llc.id[row] = i % 2;
		f->m.llc.mode[row] = i < 4 ? write : read;
		f->m.llc.hit_rate[row] = 10 * i;
		f->m.llc.throughput[row] = i * MB;
	}
	ADD(ddr);
	f->m.ddr.read[0] = 3 * MB;
	f->m.ddr.write[0] = NPS_NAN;
	export(f);
	assert_file(f, "ddr_20260101000000.csv",
		    "Device_id,Metric,Read(MB/s),Write(MB/s)\n0,Average,3.0,N/A\n");
	assert_file(f, "hbm_20260101000000.csv",
		    "Device_id,Metric,Read(MB/s),Write(MB/s)\n"
		    "0,Average,1.5,4.5\n0,0,1.0,4.0\n0,1,2.0,5.0\n");
	assert_file(f, "llc_read_write_20260101000000.csv",
		    "Device_id,Mode,Task,Hit Rate(%),Throughput(MB/s)\n"
		    "0,read,Average,45.0,4.5\n0,read,0,40.0,4.0\n0,read,1,50.0,5.0\n"
		    "0,write,Average,15.0,1.5\n0,write,0,10.0,1.0\n0,write,1,20.0,2.0\n");
}

static void cores(void **state)
{
	static const struct {
		const char *metric, *type;
		uint32_t core;
		double value;
	} cells[] = { { "mte2_ratio", "AIC", 1, 0.5 },
		      { "mac_ratio", "AIC", 1, 0.25 },
		      { "mte2_ratio", "AIC", 0, 0.1 },
		      { "mac_ratio", "AIC", 0, 0.4 },
		      { "vec_ratio", "AIV", 3, 0.75 } };
	struct fixture *f = *state;

	for (size_t i = 0; i < NPS_ARRAY_SIZE(cells); i++) {
		size_t row = ADD(sample_summary);

		f->m.sample_summary.metric[row] = nps_strings__addz(f->m.strings, cells[i].metric);
		f->m.sample_summary.core_type[row] = nps_strings__addz(f->m.strings, cells[i].type);
		f->m.sample_summary.core[row] = cells[i].core;
		f->m.sample_summary.value[row] = cells[i].value;
	}
	export(f);
	assert_file(f, "ai_core_utilization_20260101000000.csv",
		    "Device_id,Core ID,mte2_ratio,mac_ratio,memory_bound\n"
		    "0,Core0,0.1,0.4,0.25\n0,Core1,0.5,0.25,2.0\n0,Average,0.3,0.325,0.923\n");
	assert_file(f, "ai_vector_core_utilization_20260101000000.csv",
		    "Device_id,Core ID,vec_ratio\n0,Core3,0.75\n0,Average,0.75\n");
}

/*
 * Of 101 samples of which 100 are positive the 98th percentile is the 99th
 * of them in order: ceil(99 * 0.98) = 98.
 */
static void host(void **state)
{
	struct fixture *f = *state;
	size_t row = ADD(host);

	f->m.layout = NPS_LAYOUT_TORCH;
	f->m.host.cpus[row] = 128;
	f->m.host.memory[row] = 1000000;
	for (int i = 0; i <= 100; i++) {
		row = ADD(host_mem);
		f->m.host_mem.usage[row] = i / 2.0;
		row = ADD(host_disk);
		f->m.host_disk.read[row] = i * 1024;
		row = ADD(host_network);
		f->m.host_network.speed[row] = i == 7 ? 512 : NPS_NAN;
	}
	for (int i = 0; i < 4; i++) {
		row = ADD(cpu_usage);
		f->m.cpu_usage.cpu[row] = nps_strings__addf(f->m.strings, i < 3 ? "%d" : "Avg", i / 2);
		f->m.cpu_usage.usage[row] = i == 1 ? 3.5 : 0;
	}
	export(f);
	assert_file(f, "host_cpu_usage.csv",
		    "Device_id,Total Cpu Numbers,Occupied Cpu Numbers,Recommend Cpu Numbers\nhost,128,2,1\n");
	assert_file(f, "host_mem_usage.csv",
		    "Device_id,Total Memory(KB),Peak Used Memory(KB),Recommend Memory(KB)\n"
		    "host,1000000,500000.0,618750.0\n");
	assert_file(f, "host_disk_usage.csv",
		    "Device_id,Peak Disk Read(KB/s),Recommend Disk Read(KB/s),Peak Disk Write(KB/s),"
		    "Recommend Disk Write(KB/s)\nhost,100.0,123.75,0,0\n");
	assert_file(f, "host_network_usage.csv",
		    "Device_id,Netcard Speed(KB/s),Peak Used Speed(KB/s),Recommend Speed(KB/s)\n"
		    "host,N/A,0.5,0.625\n");
}

static void calls(void **state)
{
	static const struct {
		const char *name;
		uint64_t tid, start, ns;
	} rows[] = { { "read", 7, 100, 1000 },
		     { "futex", 7, 200, 5000 },
		     { "read", 8, 300, 500 },
		     { "read", 7, 400, 3500 } };
	struct fixture *f = *state;

	for (size_t i = 0; i < NPS_ARRAY_SIZE(rows); i++) {
		size_t row = ADD(osrt);

		f->m.osrt.name[row] = nps_strings__addz(f->m.strings, rows[i].name);
		f->m.osrt.gtid[row] = 5ULL << 32 | rows[i].tid;
		f->m.osrt.start[row] = rows[i].start;
		f->m.osrt.end[row] = rows[i].start + rows[i].ns;
	}
	export(f);
	assert_file(f, "os_runtime_statistic_20260101000000.csv",
		    "Device_id,Process ID,Thread ID,Name,Time(%),Time(us),Count,Avg(us),Max(us),Min(us)\n"
		    "host,5,7,futex,0.5,5.0,1,5.0,5.0,5.0\n"
		    "host,5,7,read,0.45,4.5,2,2.25,3.5,1.0\n"
		    "host,5,8,read,0.05,0.5,1,0.5,0.5,0.5\n");
}

static void whole_system(void **state)
{
	struct fixture *f = *state;
	size_t row = ADD(cpu_share);

	f->m.cpu_share.device[row] = NPS_NONE;
	f->m.cpu_share.type[row] = nps_strings__addz(f->m.strings, "host");
	f->m.cpu_share.user[row] = 12.3456;
	row = ADD(process_cpu);
	f->m.process_cpu.pid[row] = 42;
	f->m.process_cpu.name[row] = nps_strings__addz(f->m.strings, "a,b");
	row = ADD(ub);
	f->m.ub.timestamp[row] = 1234567;
	f->m.ub.rx[row] = MB / 2;
	row = ADD(dvpp);
	f->m.dvpp.engine[row] = 2;
	f->m.dvpp.frames[row] = 30;
	row = ADD(dvpp);
	f->m.dvpp.engine_type[row] = 6;
	row = ADD(dvpp);
	f->m.dvpp.engine_type[row] = 7;
	export(f);
	assert_file(f, "cpu_usage_20260101000000.csv",
		    "Device_id,Cpu Type,User(%),Sys(%),IoWait(%),Irq(%),Soft(%),Idle(%)\n"
		    "host,host,12.346,0.000,0.000,0.000,0.000,0.000\n");
	assert_file(f, "process_cpu_usage_20260101000000.csv",
		    "Device_id,PID,Name,CPU(%)\n0,42,\"a,b\",0.0\n");
	assert_file(f, "ub_20260101000000.csv",
		    "Device_id,PortId,TimeStamp,UBRxPortBandWidth(MB/s),UBTxPortBandWidth(MB/s)\n"
		    "0,0,1234.567\t,0.5,0.0\n");
	assert_file(f, "dvpp_20260101000000.csv",
		    "Device_id,Dvpp Id,Engine Type,Engine ID,All Time(us),All Frame,All Utilization(%)\n"
		    "0,0,VDEC,2,0.0,30.0,0.0\n0,0,SCD,0,0.0,0.0,0.0\n0,0,7,0,0.0,0.0,0.0\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing), TEST(links_of_the_device),
		TEST(ports),   TEST(memory_of_the_device),
		TEST(cores),   TEST(host),
		TEST(calls),   TEST(whole_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
