/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of the device and the host (outputs 2.5). A counter without a value has no event. */
#include "export/trace_event.h"
#include "export/port_rates.h"

#include <errno.h>
#include <stdio.h>

#define MB 1048576.0

/* --- pieces --- */

/* The event that is being written. */
struct counter {
	struct nps_trace *t;
	uint64_t pid, time;
	bool first; /* no series yet */
};

static struct counter counter(struct nps_trace *t, enum nps_trace_layer layer, uint32_t device, uint64_t time)
{
	return (struct counter){ t, nps_trace__pid(t, layer, device), time, true };
}

/* The event's name comes in pieces, between these two. */
static void begin(struct counter *c)
{
	nps_writer__item(&c->t->w);
	nps_writer__lit(&c->t->w, "{\"name\":\"");
	c->first = true;
}

static void named(struct counter *c)
{
	struct nps_writer *w = &c->t->w;

	nps_writer__lit(w, "\"");
	if (c->t->gen_a)
		nps_trace__at(w, c->time);
	nps_trace__lane(w, c->pid, 0);
	if (!c->t->gen_a)
		nps_trace__at(w, c->time);
	nps_writer__lit(w, ",\"args\":{");
}

static void key(struct counter *c, const char *name)
{
	if (!c->first)
		nps_writer__lit(&c->t->w, ",");
	c->first = false;
	nps_writer__json(&c->t->w, name);
	nps_writer__lit(&c->t->w, ":");
}

static void end(struct counter *c)
{
	nps_writer__lit(&c->t->w, "},\"ph\":\"C\"}");
}

static void real(struct counter *c, const char *name, double value)
{
	if (!isfinite(value))
		return;
	key(c, name);
	nps_writer__number(&c->t->w, value);
}

static void whole(struct counter *c, const char *name, int64_t value)
{
	key(c, name);
	nps_writer__i64(&c->t->w, value);
}

/* A whole event of one series. */
static void one(struct counter *c, const char *name, const char *series, double value)
{
	if (!isfinite(value))
		return;
	begin(c);
	nps_writer__lit(&c->t->w, name);
	named(c);
	real(c, series, value);
	end(c);
}

static void one_whole(struct counter *c, const char *name, const char *series, int64_t value)
{
	if (value == NPS_NULL)
		return;
	begin(c);
	nps_writer__lit(&c->t->w, name);
	named(c);
	whole(c, series, value);
	end(c);
}

static bool is_write(const struct nps_trace *t, uint32_t text)
{
	const char *word = nps_trace__text(t, text);

	return *word == 'w' || *word == 'W';
}

/* --- the host --- */

static void cpu_usage(struct nps_trace *t, size_t i)
{
	const struct nps_cpu_usage_table *a = &t->m->cpu_usage;
	struct counter c = counter(t, NPS_TRACE_CPU_USAGE, 0, a->timestamp[i]);
	const char *cpu = nps_trace__text(t, a->cpu[i]);

	if (!isfinite(a->usage[i]))
		return;
	begin(&c);
	nps_writer__lit(&t->w, "CPU ");
	nps_writer__json_part(&t->w, cpu, strlen(cpu));
	named(&c);
	real(&c, "Usage(%)", a->usage[i]);
	end(&c);
}

static void host_mem(struct nps_trace *t, size_t i)
{
	struct counter c = counter(t, NPS_TRACE_MEMORY_USAGE, 0, t->m->host_mem.timestamp[i]);

	one(&c, "Memory Usage", "Usage(%)", t->m->host_mem.usage[i]);
}

static void host_network(struct nps_trace *t, size_t i)
{
	struct counter c = counter(t, NPS_TRACE_NETWORK_USAGE, 0, t->m->host_network.timestamp[i]);

	one(&c, "Network Usage", "Usage(%)", t->m->host_network.usage[i]);
}

static void host_disk(struct nps_trace *t, size_t i)
{
	struct counter c = counter(t, NPS_TRACE_DISK_USAGE, 0, t->m->host_disk.timestamp[i]);

	one(&c, "Disk Usage", "Usage(%)", t->m->host_disk.usage[i]);
}

/* --- the host, samples of our own --- */

/* The event's name: a word, a text of the job or the host, and a number that tells it from others, 0 none. */
static void begin_named(struct counter *c, const char *word, uint32_t name, uint32_t number, const char *of)
{
	const char *text = nps_trace__text(c->t, name);

	begin(c);
	nps_writer__lit(&c->t->w, word);
	nps_writer__json_part(&c->t->w, text, strlen(text));
	if (number)
		nps_trace__u64(&c->t->w, " ", number);
	nps_writer__lit(&c->t->w, of);
	named(c);
}

/* One series, or two; a NaN is left out. */
static void pair(struct counter *c, const char *word, uint32_t name, uint32_t number, const char *of,
		 const char *first_key, double first, const char *second_key, double second)
{
	if (!isfinite(first) && !isfinite(second))
		return;
	begin_named(c, word, name, number, of);
	real(c, first_key, first);
	real(c, second_key, second);
	end(c);
}

static void host_process(struct nps_trace *t, size_t i)
{
	const struct nps_host_process_table *a = &t->m->host_process;
	struct counter c = counter(t, NPS_TRACE_HOST_USAGE, 0, a->timestamp[i]);

	pair(&c, "Process ", a->name[i], a->pid[i], " CPU", "Usage(%)", a->cpu[i], "", NPS_NAN);
	pair(&c, "Process ", a->name[i], a->pid[i], " Memory", "Resident(MB)", a->resident[i] / MB, "",
	     NPS_NAN);
	pair(&c, "Process ", a->name[i], a->pid[i], " Disk", "Read(MB/s)", a->read[i] / MB, "Write(MB/s)",
	     a->write[i] / MB);
	pair(&c, "Process ", a->name[i], a->pid[i], " Network", "Rx(MB/s)", a->received[i] / MB, "Tx(MB/s)",
	     a->sent[i] / MB);
}

static void host_thread(struct nps_trace *t, size_t i)
{
	const struct nps_host_thread_table *a = &t->m->host_thread;
	struct counter c = counter(t, NPS_TRACE_HOST_USAGE, 0, a->timestamp[i]);

	pair(&c, "Thread ", a->name[i], a->tid[i], " CPU", "Running(%)", a->cpu[i], "Waiting(%)", a->wait[i]);
	pair(&c, "Thread ", a->name[i], a->tid[i], " Switches", "Switches(/s)", a->switches[i], "", NPS_NAN);
}

static void host_device(struct nps_trace *t, size_t i)
{
	const struct nps_host_device_table *a = &t->m->host_device;
	struct counter c = counter(t, NPS_TRACE_HOST_USAGE, 0, a->timestamp[i]);

	if (a->card[i]) {
		pair(&c, "Network ", a->name[i], 0, "", "Rx(MB/s)", a->in[i] / MB, "Tx(MB/s)",
		     a->out[i] / MB);
		return;
	}
	pair(&c, "Disk ", a->name[i], 0, "", "Read(MB/s)", a->in[i] / MB, "Write(MB/s)", a->out[i] / MB);
	pair(&c, "Disk ", a->name[i], 0, " Busy", "Usage(%)", a->busy[i], "", NPS_NAN);
}

static void host_load(struct nps_trace *t, size_t i)
{
	const struct nps_host_load_table *a = &t->m->host_load;
	struct counter c = counter(t, NPS_TRACE_HOST_USAGE, 0, a->timestamp[i]);

	one(&c, "Host CPU", "Usage(%)", a->cpu[i]);
	one(&c, "Host Switches", "Switches(/s)", a->switches[i]);
	begin(&c);
	nps_writer__lit(&t->w, "Host Threads");
	named(&c);
	whole(&c, "Running", a->running[i]);
	whole(&c, "Blocked", a->blocked[i]);
	end(&c);
}

/* --- the device --- */

static void mhz(struct counter *c, int64_t die, int64_t value, bool bare)
{
	struct nps_writer *w = &c->t->w;

	begin(c);
	nps_writer__lit(w, "AI Core Freq");
	if (c->t->dies && die >= 0)
		nps_trace__u64(w, " Die ", die);
	if (bare) { /* generation A prints the sample at the end of the capture without decimals */
		nps_trace__u64(w, "\",\"ts\":\"", c->time / 1000);
		nps_writer__lit(w, "\"");
		nps_trace__lane(w, c->pid, 0);
		nps_writer__lit(w, ",\"args\":{");
	} else {
		named(c);
	}
	whole(c, "MHz", value);
	end(c);
}

static void frequency(struct nps_trace *t, size_t i)
{
	const struct nps_frequency_table *a = &t->m->frequency;
	struct counter c = counter(t, NPS_TRACE_FREQUENCY, a->device[i], a->timestamp[i]);
	struct nps_trace_mhz *last = NULL;

	if (a->mhz[i] == NPS_NULL)
		return;
	mhz(&c, a->die[i], a->mhz[i], t->gen_a && a->timestamp[i] >= t->m->end);
	for (size_t k = 0; k < t->last_mhz.len && !last; k++) {
		last = &NPS_AT(&t->last_mhz, struct nps_trace_mhz, k);
		if (last->device != a->device[i] || last->die != a->die[i])
			last = NULL;
	}
	if (!last && t->last_mhz.len < NPS_TRACE_DEVICES) {
		last = nps_vec__push(&t->last_mhz);
		if (!last && !t->w.err)
			t->w.err = -errno;
	}
	if (last)
		*last = (struct nps_trace_mhz){ a->device[i], a->die[i], a->mhz[i], a->timestamp[i] };
}

void nps_trace__close_counters(struct nps_trace *t)
{
	for (size_t k = 0; k < t->last_mhz.len; k++) {
		const struct nps_trace_mhz *last = &NPS_AT(&t->last_mhz, struct nps_trace_mhz, k);
		struct counter c = counter(t, NPS_TRACE_FREQUENCY, last->device, t->m->end);

		if (t->m->end > last->last)
			mhz(&c, last->die, last->mhz, t->gen_a && !k);
	}
}

static void voltage(struct nps_trace *t, size_t i)
{
	const struct nps_voltage_table *a = &t->m->voltage;
	const char *name = a->bus[i] ? "Bus Voltage" : "Aicore Voltage";
	struct counter c = counter(t, NPS_TRACE_VOLTAGE, a->device[i], a->timestamp[i]);

	one_whole(&c, name, "mV", a->mv[i]);
}

static void npu_mem(struct nps_trace *t, size_t i)
{
	const struct nps_npu_mem_table *a = &t->m->npu_mem;
	struct counter c = counter(t, NPS_TRACE_NPU_MEM, a->device[i], a->timestamp[i]);
	const char *type = nps_trace__text(t, a->type[i]);
	bool app = *type == 'a';

	if (!strcmp(type,
		    "job")) { /* of a database of npuscope: it is all that is left of Job/Device Memory */
		one(&c, "Job/Device Memory", "KB", a->hbm[i] / 1024);
		return;
	}
	one(&c, app ? "APP/DDR" : "Device/DDR", "KB", a->ddr[i] / 1024);
	one(&c, app ? "APP/HBM" : "Device/HBM", "KB", a->hbm[i] / 1024);
	one(&c, app ? "APP/Memory" : "Device/Memory", "KB", (a->ddr[i] + a->hbm[i]) / 1024);
}

static void job_memory(struct nps_trace *t, size_t i)
{
	const struct nps_job_memory_table *a = &t->m->job_memory;
	struct counter c = counter(t, NPS_TRACE_NPU_MEM, a->device[i], a->timestamp[i]);
	bool host = *nps_trace__text(t, a->kind[i]) == 'h';

	one(&c, host ? "Job/Pinned Host Memory" : "Job/Device Memory", "KB", (double)a->allocated[i] / 1024);
}

static void ddr(struct nps_trace *t, size_t i)
{
	const struct nps_ddr_table *a = &t->m->ddr;
	struct counter c = counter(t, NPS_TRACE_DDR, a->device[i], a->timestamp[i]);

	one(&c, "DDR/Read", "Read(MB/s)", a->read[i] / MB);
	one(&c, "DDR/Write", "Write(MB/s)", a->write[i] / MB);
}

static void acc(struct counter *c, const char *name, int64_t value, uint32_t id)
{
	if (value == NPS_NULL)
		return;
	begin(c);
	nps_writer__lit(&c->t->w, name);
	named(c);
	whole(c, "value", value);
	whole(c, "acc_id", id);
	end(c);
}

static void acc_pmu(struct nps_trace *t, size_t i)
{
	const struct nps_acc_pmu_table *a = &t->m->acc_pmu;
	struct counter c = counter(t, NPS_TRACE_ACC_PMU, a->device[i], a->timestamp[i]);

	acc(&c, "read_bandwidth", a->read_bandwidth[i], a->acc[i]);
	acc(&c, t->gen_a ? "write_band_width" : "write_bandwidth", a->write_bandwidth[i], a->acc[i]);
	acc(&c, "read_ost", a->read_ost[i], a->acc[i]);
	acc(&c, "write_ost", a->write_ost[i], a->acc[i]);
}

static void hccs(struct nps_trace *t, size_t i)
{
	const struct nps_hccs_table *a = &t->m->hccs;
	struct counter c = counter(t, NPS_TRACE_HCCS, a->device[i], a->timestamp[i]);

	one(&c, "Tx", "Tx(MB/s)", a->tx[i] / MB);
	one(&c, "Rx", "Rx(MB/s)", a->rx[i] / MB);
}

/* Share of PART in WHOLE; nothing of nothing is nothing. */
static double percent(int64_t part, int64_t all)
{
	return part == NPS_NULL || all == NPS_NULL || all <= 0 ? 0 : 100.0 * part / all;
}

static void direction(struct counter *c, int64_t function, bool rx, double packets, double efficiency,
		      double errors, double dropped)
{
	begin(c);
	nps_writer__lit(&c->t->w, "Port ");
	nps_writer__i64(&c->t->w, function == NPS_NULL ? 0 : function);
	nps_writer__lit(&c->t->w, rx ? "/Rx" : "/Tx");
	named(c);
	real(c, rx ? "Rx Bandwidth Efficiency" : "Tx Bandwidth Efficiency", efficiency);
	real(c, rx ? "Rx Packets" : "Tx Packets", packets);
	real(c, rx ? "Rx Error Rate" : "Tx Error Rate", errors);
	real(c, rx ? "Rx Dropped Rate" : "Tx Dropped Rate", dropped);
	end(c);
}

static void port(struct nps_trace *t, const struct nps_port_table *a, enum nps_trace_layer layer, size_t i)
{
	struct counter c = counter(t, layer, a->device[i], a->timestamp[i]);

	direction(&c, a->function[i], true, a->rx_packet_rate[i],
		  nps_port_efficiency(a->rx_byte_rate[i], a->bandwidth[i]),
		  percent(a->rx_errors[i], a->rx_packets[i]), percent(a->rx_dropped[i], a->rx_packets[i]));
	direction(&c, a->function[i], false, a->tx_packet_rate[i],
		  nps_port_efficiency(a->tx_byte_rate[i], a->bandwidth[i]),
		  percent(a->tx_errors[i], a->tx_packets[i]), percent(a->tx_dropped[i], a->tx_packets[i]));
}

static void nic(struct nps_trace *t, size_t i)
{
	port(t, &t->m->nic, NPS_TRACE_NIC, i);
}

static void roce(struct nps_trace *t, size_t i)
{
	port(t, &t->m->roce, NPS_TRACE_ROCE, i);
}

static void both(struct counter *c, const char *name, double tx, double rx)
{
	if (!isfinite(tx) && !isfinite(rx))
		return;
	begin(c);
	nps_writer__lit(&c->t->w, name);
	named(c);
	real(c, "Tx", tx);
	real(c, "Rx", rx);
	end(c);
}

static void pcie(struct nps_trace *t, size_t i)
{
	const struct nps_pcie_table *a = &t->m->pcie;
	struct counter c = counter(t, NPS_TRACE_PCIE, a->device[i], a->timestamp[i]);

	both(&c, "PCIe_cpl", a->tx_cpl_avg[i] / MB, a->rx_cpl_avg[i] / MB);
	both(&c, "PCIe_nonpost", a->tx_nonpost_avg[i] / MB, a->rx_nonpost_avg[i] / MB);
	both(&c, "PCIe_nonpost_latency", a->latency_avg[i] / 1000, 0);
	both(&c, "PCIe_post", a->tx_post_avg[i] / MB, a->rx_post_avg[i] / MB);
}

static void hbm(struct nps_trace *t, size_t i)
{
	const struct nps_hbm_table *a = &t->m->hbm;
	struct counter c = counter(t, NPS_TRACE_HBM, a->device[i], a->timestamp[i]);
	bool write = is_write(t, a->type[i]);

	if (!isfinite(a->bandwidth[i]))
		return;
	begin(&c);
	nps_trace__u64(&t->w, "HBM ", a->id[i]);
	nps_writer__lit(&t->w, write ? "/Write" : "/Read");
	named(&c);
	real(&c, write ? "Write(MB/s)" : "Read(MB/s)", a->bandwidth[i] / MB);
	end(&c);
}

static void soc_level(struct nps_trace *t, size_t i)
{
	const struct nps_soc_level_table *a = &t->m->soc_level;
	struct counter c = counter(t, NPS_TRACE_SOC, a->device[i], a->timestamp[i]);

	/* The vendor's timeline shows each level under the name of the other. */
	one_whole(&c, "L2 Buffer Bw Level", "L2 Buffer Bw Level", a->mata[i]);
	one_whole(&c, "Mata Bw Level", "Mata Bw Level", a->l2_buffer[i]);
}

static void chip_trans(struct nps_trace *t, size_t i)
{
	static const char *const names[][3] = {
		{ "PA Link Rx", "PA Link Tx", "PA Link ID" },
		{ "PCIE Write Bandwidth", "PCIE Read Bandwidth", "PCIE ID" },
	};
	const struct nps_chip_trans_table *a = &t->m->chip_trans;
	struct counter c = counter(t, NPS_TRACE_CHIP_TRANS, a->device[i], a->timestamp[i]);
	const char *const *name = names[a->kind[i] != 0];

	for (int second = 0; second < 2; second++) {
		begin(&c);
		nps_writer__lit(&t->w, name[second]);
		named(&c);
		key(&c, name[second]);
		nps_writer__u64(&t->w, second ? a->second[i] : a->first[i]);
		whole(&c, name[2], a->id[i]);
		end(&c);
	}
}

static void llc_event(struct counter *c, size_t i, const char *what, const char *series, double value)
{
	const struct nps_llc_table *a = &c->t->m->llc;

	if (!isfinite(value))
		return;
	begin(c);
	nps_trace__u64(&c->t->w, "LLC ", a->id[i]);
	nps_writer__lit(&c->t->w, is_write(c->t, a->mode[i]) ? " Write/" : " Read/");
	nps_writer__lit(&c->t->w, what);
	named(c);
	real(c, series, value);
	end(c);
}

static void llc(struct nps_trace *t, size_t i)
{
	const struct nps_llc_table *a = &t->m->llc;
	struct counter c = counter(t, NPS_TRACE_LLC, a->device[i], a->timestamp[i]);

	llc_event(&c, i, "Throughput", "Throughput(MB/s)", a->throughput[i] / MB);
	/* A fraction in the vendor's traces, whatever the key says. */
	llc_event(&c, i, "Hit Rate", "Hit Rate(%)", a->hit_rate[i] / 100);
}

static void sio(struct nps_trace *t, size_t i)
{
	const struct nps_sio_table *a = &t->m->sio;
	struct counter c = counter(t, NPS_TRACE_SIO, a->device[i], a->timestamp[i]);
	const char *die = nps_trace__text(t, a->name[i]);

	one(&c, "req_rx", die, a->rx_req[i] / MB);
	one(&c, "rsp_rx", die, a->rx_rsp[i] / MB);
	one(&c, "snp_rx", die, a->rx_snp[i] / MB);
	one(&c, "dat_rx", die, a->rx_dat[i] / MB);
	one(&c, "req_tx", die, a->tx_req[i] / MB);
	one(&c, "rsp_tx", die, a->tx_rsp[i] / MB);
	one(&c, "snp_tx", die, a->tx_snp[i] / MB);
	one(&c, "dat_tx", die, a->tx_dat[i] / MB);
}

static void qos(struct nps_trace *t, size_t i)
{
	const struct nps_qos_table *a = &t->m->qos;
	struct counter c = counter(t, NPS_TRACE_QOS, a->device[i], a->timestamp[i]);
	const char *event = nps_trace__text(t, a->event[i]);

	if (!isfinite(a->bandwidth[i]))
		return;
	begin(&c);
	nps_writer__lit(&t->w, "QoS ");
	nps_writer__json_part(&t->w, event, strlen(event));
	named(&c);
	real(&c, "value", a->bandwidth[i] / MB);
	end(&c);
}

static void ub(struct nps_trace *t, size_t i)
{
	const struct nps_ub_table *a = &t->m->ub;
	struct counter c = counter(t, NPS_TRACE_UB, a->device[i], a->timestamp[i]);
	char name[32];

	if (!isfinite(a->rx[i]) && !isfinite(a->tx[i]))
		return;
	snprintf(name, sizeof(name), "UB Port%03u", a->port[i]);
	begin(&c);
	nps_writer__lit(&t->w, name);
	named(&c);
	real(&c, "bandwidth_rx(MB/s)", a->rx[i] / MB);
	real(&c, "bandwidth_tx(MB/s)", a->tx[i] / MB);
	end(&c);
}

/* --- what npu-smi tells --- */

static void npu_usage(struct nps_trace *t, size_t i)
{
	const struct nps_npu_usage_table *a = &t->m->npu_usage;
	struct counter c = counter(t, NPS_TRACE_NPU_USAGE, a->device[i], a->timestamp[i]);

	one(&c, "AI Core", "Usage(%)", a->ai_core[i]);
	one(&c, "Vector Core", "Usage(%)", a->vector[i]);
	one(&c, "AI CPU", "Usage(%)", a->ai_cpu[i]);
	one(&c, "Control CPU", "Usage(%)", a->ctrl_cpu[i]);
	one(&c, "Memory", "Usage(%)", a->memory[i]);
	one(&c, "Memory Bandwidth", "Usage(%)", a->bandwidth[i]);
	one(&c, "HBM Bandwidth", "Usage(%)", a->hbm_bandwidth[i]);
	one(&c, "Temperature", "Celsius", a->temperature[i]);
	one(&c, "HBM Temperature", "Celsius", a->hbm_temperature[i]);
	one(&c, "Power", "W", a->power[i]);
	one_whole(&c, "Health", "level", a->health[i]);
	one(&c, "HBM", "KB", a->hbm_used[i] == NPS_NULL ? NPS_NAN : (double)a->hbm_used[i] / 1024);
}

static void npu_process(struct nps_trace *t, size_t i)
{
	const struct nps_npu_process_table *a = &t->m->npu_process;
	struct counter c = counter(t, NPS_TRACE_NPU_USAGE, a->device[i], a->timestamp[i]);
	char name[48];

	snprintf(name, sizeof(name), "Memory of process %u", a->pid[i]);
	one(&c, name, "KB", (double)a->bytes[i] / 1024);
}

/* --- all of them --- */

#define TABLE(field) offsetof(struct nps_model, field)
#define OF(field) TABLE(field), TABLE(field.timestamp)

static const struct kind {
	enum nps_trace_layer layer;
	size_t table, time;
	size_t device; /* 0: of the host */
	void (*write)(struct nps_trace *t, size_t row);
} kinds[] = {
	{ NPS_TRACE_CPU_USAGE, OF(cpu_usage), 0, cpu_usage },
	{ NPS_TRACE_MEMORY_USAGE, OF(host_mem), 0, host_mem },
	{ NPS_TRACE_NETWORK_USAGE, OF(host_network), 0, host_network },
	{ NPS_TRACE_DISK_USAGE, OF(host_disk), 0, host_disk },
	{ NPS_TRACE_FREQUENCY, OF(frequency), TABLE(frequency.device), frequency },
	{ NPS_TRACE_VOLTAGE, OF(voltage), TABLE(voltage.device), voltage },
	{ NPS_TRACE_NPU_MEM, OF(npu_mem), TABLE(npu_mem.device), npu_mem },
	{ NPS_TRACE_NPU_MEM, OF(job_memory), TABLE(job_memory.device), job_memory },
	{ NPS_TRACE_DDR, OF(ddr), TABLE(ddr.device), ddr },
	{ NPS_TRACE_ACC_PMU, OF(acc_pmu), TABLE(acc_pmu.device), acc_pmu },
	{ NPS_TRACE_HCCS, OF(hccs), TABLE(hccs.device), hccs },
	{ NPS_TRACE_NIC, OF(nic), TABLE(nic.device), nic },
	{ NPS_TRACE_ROCE, OF(roce), TABLE(roce.device), roce },
	{ NPS_TRACE_PCIE, OF(pcie), TABLE(pcie.device), pcie },
	{ NPS_TRACE_HBM, OF(hbm), TABLE(hbm.device), hbm },
	{ NPS_TRACE_SOC, OF(soc_level), TABLE(soc_level.device), soc_level },
	{ NPS_TRACE_CHIP_TRANS, OF(chip_trans), TABLE(chip_trans.device), chip_trans },
	{ NPS_TRACE_LLC, OF(llc), TABLE(llc.device), llc },
	{ NPS_TRACE_SIO, OF(sio), TABLE(sio.device), sio },
	{ NPS_TRACE_QOS, OF(qos), TABLE(qos.device), qos },
	{ NPS_TRACE_UB, OF(ub), TABLE(ub.device), ub },
	{ NPS_TRACE_HOST_USAGE, OF(host_load), 0, host_load },
	{ NPS_TRACE_HOST_USAGE, OF(host_process), 0, host_process },
	{ NPS_TRACE_HOST_USAGE, OF(host_thread), 0, host_thread },
	{ NPS_TRACE_HOST_USAGE, OF(host_device), 0, host_device },
	{ NPS_TRACE_NPU_USAGE, OF(npu_usage), TABLE(npu_usage.device), npu_usage },
	{ NPS_TRACE_NPU_USAGE, OF(npu_process), TABLE(npu_process.device), npu_process },
};

static const struct nps_table *table_of(const struct nps_trace *t, const struct kind *kind)
{
	return (const struct nps_table *)((const char *)t->m + kind->table);
}

/* The cells of the column whose pointer is at OFFSET of the model. */
static const void *cells(const struct nps_trace *t, size_t offset)
{
	return *(void *const *)((const char *)t->m + offset);
}

void nps_trace__scan_counters(struct nps_trace *t)
{
	for (size_t i = 0; i < t->m->frequency.t.len; i++)
		t->dies |= !t->gen_a && t->m->frequency.die[i] > 0;
	for (size_t k = 0; k < NPS_ARRAY_SIZE(kinds); k++) {
		const struct nps_table *table = table_of(t, &kinds[k]);
		const uint32_t *device = kinds[k].device ? cells(t, kinds[k].device) : NULL;

		for (size_t i = 0; i < table->len; i++) {
			t->counted_on[k] |= 1ULL << (device ? nps_trace__device(t, device[i]) : 0);
			nps_pace__step(&t->pace);
			if (!device)
				break;
		}
	}
}

void nps_trace__name_counters(struct nps_trace *t)
{
	uint64_t done = 0; /* devices of the present layer: kinds of one stand together */

	for (size_t k = 0; k < NPS_ARRAY_SIZE(kinds); k++) {
		done = k && kinds[k].layer == kinds[k - 1].layer ? done : 0;
		for (uint32_t d = 0; d < NPS_TRACE_DEVICES; d++)
			if (t->counted_on[k] & ~done & 1ULL << d)
				nps_trace__name_layer(t, kinds[k].layer, d);
		done |= t->counted_on[k];
	}
}

void nps_trace__add_counters(struct nps_trace *t)
{
	_Static_assert(NPS_ARRAY_SIZE(kinds) <= NPS_TRACE_COUNTERS, "a field of each");
	for (size_t k = 0; k < NPS_ARRAY_SIZE(kinds); k++)
		nps_trace__add(t, table_of(t, &kinds[k]), cells(t, kinds[k].time), NULL, kinds[k].write);
}
