/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of sampled counters as rows of columns: a row has all that outputs need to know of a column. To add
 * a counter, add its row here and fill the cell in the importer.
 *
 *   C(kind, column, attributes)          a column of the model (nps_cell_KIND)
 *   V(table, name, value, attributes)    a value that is computed of row `i` of table `t` of model `m`
 *
 * Attributes, none of which has to be there, are divided by spaces:
 *
 *   SQL(name, type)                      column of the database; SQL_TEXT an id of STRING_IDS, SQL_B schema
 *                                        1.2.0 only, SQL_PLAIN text as it is, SQL_OR_0 with 0 for unknown
 *   TRACE(event, series, per)            series of a counter event of trace_view.json, divided by PER
 *   TRACE_A(event)                       the event's name in traces of generation A, if that differs
 *   TRACE_ID(series)                     series of all events of the table, as it is
 *   TRACK(name, unit)                    counter track of Perfetto
 *   CSV(title, per)                      column of the table's CSV file, or its row in a file of statistics
 *   CSV_RANGE(title, per)                the same, of three columns: least, most and, with this attribute,
 *                                        mean
 *
 * Names of events, series and tracks may contain cells of the row: {column}; {column|text} with a text for
 * what is not known; {column%3} with leading zeros; {column:ab=text|other} text for a cell that begins with
 * one of the letters, other for the rest; {} is the table's own name. A part in brackets, [ text {column}],
 * is left out if the cell is not known, which 0 of an unsigned column and a negative number are, too;
 * [! text {column}] is also left out where devices have one die.
 */
#ifndef NPS_COUNTER_TABLES_H
#define NPS_COUNTER_TABLES_H

/* --- memory of the device, bytes; its bandwidths, B/s --- */

#define NPS_NPU_MEM_COLUMNS(C)                                                                               \
	C(text, type,                                                                                        \
	  SQL_TEXT("type", INTEGER)) /* app, device; job: what is left of job_memory in databases */         \
	C(f64, ddr, SQL("ddr", NUMERIC) TRACK("Memory of {type}, DDR", "B"))                                 \
	C(f64, hbm, SQL("hbm", NUMERIC) TRACK("Memory of {type}, HBM", "B"))                                 \
	C(time, timestamp, SQL("timestampNs", INTEGER))                                                      \
	C(u32, device, SQL("deviceId", INTEGER))

#define NPS_NPU_MEM_VALUES(V)                                                                                \
	V(npu_mem, job, OF_JOB(i) ? t->hbm[i] : NPS_NAN, TRACE("Job/Device Memory", "KB", KB))               \
	V(npu_mem, ddr_kb, OF_JOB(i) ? NPS_NAN : t->ddr[i], TRACE("{type:a=APP|Device}/DDR", "KB", KB))      \
	V(npu_mem, hbm_kb, OF_JOB(i) ? NPS_NAN : t->hbm[i], TRACE("{type:a=APP|Device}/HBM", "KB", KB))      \
	V(npu_mem, both, OF_JOB(i) ? NPS_NAN : t->ddr[i] + t->hbm[i],                                        \
	  TRACE("{type:a=APP|Device}/Memory", "KB", KB))

/*
 * What the job itself allocated and freed since the capture began, after each change. kind: device, host
 * (pinned). unknown_frees: calls until then that freed what was allocated before. device: NPS_NO_ID
 * unknown.
 */
#define NPS_JOB_MEMORY_COLUMNS(C)                                                                            \
	C(time, timestamp, SQL("timestampNs", INTEGER))                                                      \
	C(u32, device, SQL("deviceId", INTEGER))                                                             \
	C(text, kind, SQL_TEXT("kind", INTEGER))                                                             \
	C(i64, delta, SQL("delta", INTEGER))                                                                 \
	C(i64, allocated,                                                                                    \
	  SQL("allocated", INTEGER) TRACE("{kind:h=Job/Pinned Host Memory|Job/Device Memory}", "KB", KB))    \
	C(i64, blocks, SQL("blocks", INTEGER))                                                               \
	C(i64, unknown_frees, SQL("unknownFrees", INTEGER))

/* What the framework's allocators hold. */
#define NPS_MEMORY_RECORD_COLUMNS(C)                                                                         \
	C(text, component)                                                                                   \
	C(time, timestamp)                                                                                   \
	C(i64, allocated, TRACK("{component|N/A} allocated", "B"))                                           \
	C(i64, reserved, TRACK("{component|N/A} reserved", "B"))                                             \
	C(i64, active, TRACK("{component|N/A} active", "B"))                                                 \
	C(i64, stream)                                                                                       \
	C(u32, device)

#define NPS_HBM_COLUMNS(C)                                                                                   \
	C(u32, device, SQL("deviceId", INTEGER))                                                             \
	C(time, timestamp, SQL("timestampNs", INTEGER))                                                      \
	C(f64, bandwidth,                                                                                    \
	  SQL("bandwidth", NUMERIC) TRACE("HBM {id}/{type:wW=Write|Read}", "{type:wW=Write|Read}(MB/s)", MB) \
		  TRACK("HBM {id} {type}", "B/s"))                                                           \
	C(u32, id, SQL("hbmId", INTEGER))                                                                    \
	C(text, type, SQL_TEXT("type", INTEGER)) /* read, write */

#define NPS_HBM_VALUES(V)                                                                                    \
	V(hbm, read, WRITES(t->type[i]) ? NPS_NAN : t->bandwidth[i], CSV("Read(MB/s)", MB))                  \
	V(hbm, write, WRITES(t->type[i]) ? t->bandwidth[i] : NPS_NAN, CSV("Write(MB/s)", MB))

/* The trace has the hit rate as a fraction, in spite of the vendor's name for it. */
#define NPS_LLC_COLUMNS(C)                                                                                   \
	C(u32, device, SQL("deviceId", INTEGER))                                                             \
	C(u32, id, SQL("llcId", INTEGER))                                                                    \
	C(time, timestamp, SQL("timestampNs", INTEGER))                                                      \
	C(f64, hit_rate,                                                                                     \
	  SQL("hitRate", REAL) TRACK("LLC {id} {mode} hit rate", "%") CSV("Hit Rate(%)", 1)) /* percent */   \
	C(f64, throughput,                                                                                   \
	  SQL("throughput", INTEGER)                                                                         \
		  TRACE("LLC {id} {mode:wW=Write|Read}/Throughput", "Throughput(MB/s)", MB)                  \
			  TRACK("LLC {id} {mode} throughput", "B/s") CSV("Throughput(MB/s)", MB))            \
	C(text, mode, SQL_TEXT("mode", INTEGER)) /* read, write */

#define NPS_LLC_VALUES(V)                                                                                    \
	V(llc, hits, t->hit_rate[i], TRACE("LLC {id} {mode:wW=Write|Read}/Hit Rate", "Hit Rate(%)", 100))

#define NPS_DDR_COLUMNS(C)                                                                                   \
	C(u32, device, SQL("deviceId", INTEGER))                                                             \
	C(time, timestamp, SQL("timestampNs", INTEGER))                                                      \
	C(f64, read,                                                                                         \
	  SQL("read", NUMERIC) TRACE("DDR/Read", "Read(MB/s)", MB) TRACK("DDR read", "B/s")                  \
		  CSV("Read(MB/s)", MB))                                                                     \
	C(f64, write,                                                                                        \
	  SQL("write", NUMERIC) TRACE("DDR/Write", "Write(MB/s)", MB) TRACK("DDR write", "B/s")              \
		  CSV("Write(MB/s)", MB))

/* --- cores and chip --- */

#define NPS_FREQUENCY_COLUMNS(C)                                                                             \
	C(u32, device, SQL("deviceId", INTEGER))                                                             \
	C(time, timestamp, SQL("timestampNs", NUMERIC))                                                      \
	C(i64, mhz,                                                                                          \
	  SQL("freq", INTEGER) TRACE("AI Core Freq[! Die {die}]", "MHz", 1) TRACE_A("AI Core Freq")          \
		  TRACK("AI Core frequency[!, die {die}]", "MHz"))                                           \
	C(i64, die, SQL_B("dieId", NUMERIC))

/* What the AI cores, or the bus if it is 1, were supplied with from then on. */
#define NPS_VOLTAGE_COLUMNS(C)                                                                               \
	C(u32, device)                                                                                       \
	C(time, timestamp)                                                                                   \
	C(u32, mv, TRACE("{bus:0=Aicore|Bus} Voltage", "mV", 1) TRACK("{bus:0=AI Core|Bus} voltage", "mV"))  \
	C(u8, bus)

/* The vendor's parser stores each level under the name of the other, and readers of its files expect that. */
#define NPS_SOC_LEVEL_COLUMNS(C)                                                                             \
	C(u32, mata,                                                                                         \
	  SQL("l2BufferBwLevel", INTEGER) TRACE("L2 Buffer Bw Level", "L2 Buffer Bw Level", 1)               \
		  TRACK("Mata bandwidth level", ""))                                                         \
	C(u32, l2_buffer,                                                                                    \
	  SQL("mataBwLevel", INTEGER) TRACE("Mata Bw Level", "Mata Bw Level", 1)                             \
		  TRACK("L2 buffer bandwidth level", ""))                                                    \
	C(time, timestamp, SQL("timestampNs", NUMERIC))                                                      \
	C(u32, device, SQL("deviceId", INTEGER))

#define NPS_ACC_PMU_COLUMNS(C)                                                                               \
	C(u32, acc, SQL("accId", INTEGER) TRACE_ID("acc_id"))                                                \
	C(i64, read_bandwidth,                                                                               \
	  SQL("readBwLevel", INTEGER) TRACE("read_bandwidth", "value", 1)                                    \
		  TRACK("Accelerator {acc} read bandwidth", ""))                                             \
	C(i64, write_bandwidth,                                                                              \
	  SQL("writeBwLevel", INTEGER) TRACE("write_bandwidth", "value", 1) TRACE_A("write_band_width")      \
		  TRACK("Accelerator {acc} write bandwidth", ""))                                            \
	C(i64, read_ost,                                                                                     \
	  SQL("readOstLevel", INTEGER) TRACE("read_ost", "value", 1)                                         \
		  TRACK("Accelerator {acc} read OST", ""))                                                   \
	C(i64, write_ost,                                                                                    \
	  SQL("writeOstLevel", INTEGER) TRACE("write_ost", "value", 1)                                       \
		  TRACK("Accelerator {acc} write OST", ""))                                                  \
	C(time, timestamp, SQL("timestampNs", NUMERIC))                                                      \
	C(u32, device, SQL("deviceId", INTEGER))

#define NPS_QOS_COLUMNS(C)                                                                                   \
	C(u32, device, SQL("deviceId", INTEGER))                                                             \
	C(text, event, SQL_TEXT("eventName", NUMERIC))                                                       \
	C(f64, bandwidth,                                                                                    \
	  SQL("bandwidth", NUMERIC) TRACE("QoS {event}", "value", MB) TRACK("QoS {event}", "B/s"))           \
	C(time, timestamp, SQL("timestampNs", NUMERIC))                                                      \
	C(i64, die, SQL("dieId", NUMERIC))

#define NPS_SAMPLE_PMU_COLUMNS(C)                                                                            \
	C(u32, device, SQL("deviceId", INTEGER))                                                             \
	C(time, timestamp, SQL("timestampNs", INTEGER))                                                      \
	C(i64, total_cycle, SQL("totalCycle", INTEGER))                                                      \
	C(f64, usage, SQL("usage", NUMERIC))                                                                 \
	C(f64, mhz, SQL("freq", NUMERIC))                                                                    \
	C(u32, core, SQL("coreId", INTEGER))                                                                 \
	C(text, core_type, SQL_TEXT("coreType", INTEGER))

#define NPS_SAMPLE_SUMMARY_COLUMNS(C)                                                                        \
	C(u32, device, SQL("deviceId", INTEGER))                                                             \
	C(text, metric, SQL_TEXT("metric", INTEGER))                                                         \
	C(f64, value, SQL("value", NUMERIC))                                                                 \
	C(u32, core, SQL("coreId", INTEGER))                                                                 \
	C(text, core_type, SQL_TEXT("coreType", INTEGER))

/* --- links, B/s --- */

#define NPS_HCCS_COLUMNS(C)                                                                                  \
	C(u32, device, SQL("deviceId", INTEGER))                                                             \
	C(time, timestamp, SQL("timestampNs", INTEGER))                                                      \
	C(f64, tx,                                                                                           \
	  SQL("txThroughput", NUMERIC) TRACE("Tx", "Tx(MB/s)", MB) TRACK("HCCS transmitted", "B/s")          \
		  CSV("Tx (MB/s)", MB))                                                                      \
	C(f64, rx,                                                                                           \
	  SQL("rxThroughput", NUMERIC) TRACE("Rx", "Rx(MB/s)", MB) TRACK("HCCS received", "B/s")             \
		  CSV("Rx (MB/s)", MB))

#define NPS_PCIE_RANGE(C, column, sql, title, per, track, unit)                                              \
	C(f64, column##_min, SQL(sql "Min", NUMERIC))                                                        \
	C(f64, column##_max, SQL(sql "Max", NUMERIC))                                                        \
	C(f64, column##_avg, SQL(sql "Avg", NUMERIC) TRACK(track, unit) CSV_RANGE(title, per))

#define NPS_PCIE_COLUMNS(C)                                                                                  \
	C(u32, device, SQL("deviceId", INTEGER))                                                             \
	C(time, timestamp, SQL("timestampNs", INTEGER))                                                      \
	NPS_PCIE_RANGE(C, tx_post, "txPost", "Tx_p_avg(MB/s)", MB, "PCIe posted out", "B/s")                 \
	NPS_PCIE_RANGE(C, tx_nonpost, "txNonpost", "Tx_np_avg(MB/s)", MB, "PCIe not posted out", "B/s")      \
	NPS_PCIE_RANGE(C, tx_cpl, "txCpl", "Tx_cpl_avg(MB/s)", MB, "PCIe completions out", "B/s")            \
	NPS_PCIE_RANGE(C, latency, "txNonpostLatency", "Tx_latency_avg(us)", 1000,                           \
		       "PCIe latency of not posted", "ns")                                                   \
	NPS_PCIE_RANGE(C, rx_post, "rxPost", "Rx_p_avg(MB/s)", MB, "PCIe posted in", "B/s")                  \
	NPS_PCIE_RANGE(C, rx_nonpost, "rxNonpost", "Rx_np_avg(MB/s)", MB, "PCIe not posted in", "B/s")       \
	NPS_PCIE_RANGE(C, rx_cpl, "rxCpl", "Rx_cpl_avg(MB/s)", MB, "PCIe completions in", "B/s")

#define NPS_PCIE_VALUES(V)                                                                                   \
	V(pcie, cpl_tx, t->tx_cpl_avg[i], TRACE("PCIe_cpl", "Tx", MB))                                       \
	V(pcie, cpl_rx, t->rx_cpl_avg[i], TRACE("PCIe_cpl", "Rx", MB))                                       \
	V(pcie, nonpost_tx, t->tx_nonpost_avg[i], TRACE("PCIe_nonpost", "Tx", MB))                           \
	V(pcie, nonpost_rx, t->rx_nonpost_avg[i], TRACE("PCIe_nonpost", "Rx", MB))                           \
	V(pcie, latency_tx, t->latency_avg[i], TRACE("PCIe_nonpost_latency", "Tx", 1000))                    \
	V(pcie, latency_rx, 0, TRACE("PCIe_nonpost_latency", "Rx", 1000))                                    \
	V(pcie, post_tx, t->tx_post_avg[i], TRACE("PCIe_post", "Tx", MB))                                    \
	V(pcie, post_rx, t->rx_post_avg[i], TRACE("PCIe_post", "Rx", MB))

/* NIC and RoCE; packets, bytes, errors, dropped only grow. bandwidth: of the port, as the vendor has it. */
#define NPS_PORT_COLUMNS(C)                                                                                  \
	C(u32, device, SQL("deviceId", INTEGER))                                                             \
	C(time, timestamp, SQL("timestampNs", INTEGER))                                                      \
	C(i64, bandwidth, SQL("bandwidth", INTEGER))                                                         \
	C(f64, rx_packet_rate, SQL("rxPacketRate", NUMERIC))                                                 \
	C(f64, rx_byte_rate, SQL("rxByteRate", NUMERIC) TRACK("{} {function|0} received", "B/s"))            \
	C(i64, rx_packets, SQL("rxPackets", INTEGER))                                                        \
	C(i64, rx_bytes, SQL("rxBytes", INTEGER))                                                            \
	C(i64, rx_errors, SQL("rxErrors", INTEGER))                                                          \
	C(i64, rx_dropped, SQL("rxDropped", INTEGER))                                                        \
	C(f64, tx_packet_rate, SQL("txPacketRate", NUMERIC))                                                 \
	C(f64, tx_byte_rate, SQL("txByteRate", NUMERIC) TRACK("{} {function|0} transmitted", "B/s"))         \
	C(i64, tx_packets, SQL("txPackets", INTEGER))                                                        \
	C(i64, tx_bytes, SQL("txBytes", INTEGER))                                                            \
	C(i64, tx_errors, SQL("txErrors", INTEGER))                                                          \
	C(i64, tx_dropped, SQL("txDropped", INTEGER))                                                        \
	C(i64, function, SQL("funcId", INTEGER))

#define NPS_PORT_DIRECTION(V, way, name)                                                                     \
	V(port, way##_efficiency, nps_port_efficiency(t->way##_byte_rate[i], t->bandwidth[i]),               \
	  TRACE("Port {function|0}/" name, name " Bandwidth Efficiency", 1))                                 \
	V(port, way##_rate, t->way##_packet_rate[i], TRACE("Port {function|0}/" name, name " Packets", 1))   \
	V(port, way##_error_rate, nps_port_share(t->way##_errors[i], t->way##_packets[i]),                   \
	  TRACE("Port {function|0}/" name, name " Error Rate", 1))                                           \
	V(port, way##_dropped_rate, nps_port_share(t->way##_dropped[i], t->way##_packets[i]),                \
	  TRACE("Port {function|0}/" name, name " Dropped Rate", 1))

#define NPS_PORT_VALUES(V)                                                                                   \
	NPS_PORT_DIRECTION(V, rx, "Rx")                                                                      \
	NPS_PORT_DIRECTION(V, tx, "Tx")

#define NPS_NETDEV_COLUMNS(C)                                                                                \
	C(u32, device, SQL("deviceId", INTEGER))                                                             \
	C(time, timestamp, SQL("timestampNs", INTEGER))                                                      \
	C(i64, mac_tx_pfc, SQL("macTxPfcPkt", INTEGER))                                                      \
	C(i64, mac_rx_pfc, SQL("macRxPfcPkt", INTEGER))                                                      \
	C(i64, mac_tx_bytes, SQL("macTxByte", INTEGER))                                                      \
	C(f64, mac_tx_bandwidth, SQL("macTxBandwidth", NUMERIC))                                             \
	C(i64, mac_rx_bytes, SQL("macRxByte", INTEGER))                                                      \
	C(f64, mac_rx_bandwidth, SQL("macRxBandwidth", NUMERIC))                                             \
	C(i64, mac_tx_bad, SQL("macTxBadByte", INTEGER))                                                     \
	C(i64, mac_rx_bad, SQL("macRxBadByte", INTEGER))                                                     \
	C(i64, roce_tx, SQL("roceTxPkt", INTEGER))                                                           \
	C(i64, roce_rx, SQL("roceRxPkt", INTEGER))                                                           \
	C(i64, roce_tx_errors, SQL("roceTxErrPkt", INTEGER))                                                 \
	C(i64, roce_rx_errors, SQL("roceRxErrPkt", INTEGER))                                                 \
	C(i64, roce_tx_cnp, SQL("roceTxCnpPkt", INTEGER))                                                    \
	C(i64, roce_rx_cnp, SQL("roceRxCnpPkt", INTEGER))                                                    \
	C(i64, roce_retries, SQL("roceNewPktRty", INTEGER))                                                  \
	C(i64, nic_tx_bytes, SQL("nicTxByte", INTEGER))                                                      \
	C(f64, nic_tx_bandwidth, SQL("nicTxBandwidth", NUMERIC))                                             \
	C(i64, nic_rx_bytes, SQL("nicRxByte", INTEGER))                                                      \
	C(f64, nic_rx_bandwidth, SQL("nicRxBandwidth", NUMERIC))

#define NPS_SIO_COLUMNS(C)                                                                                   \
	C(u32, device, SQL("deviceId", NUMERIC))                                                             \
	C(text, name, SQL_TEXT("name", NUMERIC))                                                             \
	C(time, timestamp, SQL("timestampNs", NUMERIC))                                                      \
	C(f64, rx_req,                                                                                       \
	  SQL("rxReq", NUMERIC) TRACE("req_rx", "{name}", MB) TRACK("SIO {name} requests received", "B/s"))  \
	C(f64, rx_rsp,                                                                                       \
	  SQL("rxRsp", NUMERIC) TRACE("rsp_rx", "{name}", MB) TRACK("SIO {name} responses received", "B/s")) \
	C(f64, rx_snp,                                                                                       \
	  SQL("rxSnp", NUMERIC) TRACE("snp_rx", "{name}", MB) TRACK("SIO {name} snoops received", "B/s"))    \
	C(f64, rx_dat,                                                                                       \
	  SQL("rxDat", NUMERIC) TRACE("dat_rx", "{name}", MB) TRACK("SIO {name} data received", "B/s"))      \
	C(f64, tx_req,                                                                                       \
	  SQL("txReq", NUMERIC) TRACE("req_tx", "{name}", MB)                                                \
		  TRACK("SIO {name} requests transmitted", "B/s"))                                           \
	C(f64, tx_rsp,                                                                                       \
	  SQL("txRsp", NUMERIC) TRACE("rsp_tx", "{name}", MB)                                                \
		  TRACK("SIO {name} responses transmitted", "B/s"))                                          \
	C(f64, tx_snp,                                                                                       \
	  SQL("txSnp", NUMERIC) TRACE("snp_tx", "{name}", MB) TRACK("SIO {name} snoops transmitted", "B/s")) \
	C(f64, tx_dat,                                                                                       \
	  SQL("txDat", NUMERIC) TRACE("dat_tx", "{name}", MB) TRACK("SIO {name} data transmitted", "B/s"))

#define NPS_UB_COLUMNS(C)                                                                                    \
	C(u32, device, SQL("deviceId", NUMERIC))                                                             \
	C(u32, port, SQL("portId", NUMERIC) CSV("PortId", 1))                                                \
	C(time, timestamp, SQL("timestampNs", NUMERIC) CSV("TimeStamp", 1))                                  \
	C(f64, rx,                                                                                           \
	  SQL("rxUdmaBind", NUMERIC) TRACE("UB Port{port%3}", "bandwidth_rx(MB/s)", MB)                      \
		  TRACK("UB {port} received", "B/s") CSV("UBRxPortBandWidth(MB/s)", MB))                     \
	C(f64, tx,                                                                                           \
	  SQL("txUdmaBind", NUMERIC) TRACE("UB Port{port%3}", "bandwidth_tx(MB/s)", MB)                      \
		  TRACK("UB {port} transmitted", "B/s") CSV("UBTxPortBandWidth(MB/s)", MB))

/* Stars Chip Trans: kind 0 PA link (rx, tx), 1 PCIe (write, read). */
#define NPS_CHIP_TRANS_COLUMNS(C)                                                                            \
	C(u32, device)                                                                                       \
	C(time, timestamp)                                                                                   \
	C(u32, kind)                                                                                         \
	C(u32, id, TRACE_ID("{kind:0=PA Link|PCIE} ID"))                                                     \
	C(u64, first,                                                                                        \
	  TRACE("{kind:0=PA Link Rx|PCIE Write Bandwidth}", "{kind:0=PA Link Rx|PCIE Write Bandwidth}", 1)   \
		  TRACK("{kind:0=PA link|PCIe} {id} {kind:0=received|write}", ""))                           \
	C(u64, second,                                                                                       \
	  TRACE("{kind:0=PA Link Tx|PCIE Read Bandwidth}", "{kind:0=PA Link Tx|PCIE Read Bandwidth}", 1)     \
		  TRACK("{kind:0=PA link|PCIe} {id} {kind:0=transmitted|read}", ""))

/* --- what npu-smi shows: percent, degrees, W, bytes --- */

#define NPS_NPU_USAGE_COLUMNS(C)                                                                             \
	C(time, timestamp, SQL("timestampNs", INTEGER) CSV("Timestamp(us)", 1))                              \
	C(u32, device, SQL("deviceId", INTEGER))                                                             \
	C(f64, ai_core, SQL("aiCore", NUMERIC) TRACE("AI Core", "Usage(%)", 1) CSV("AI Core(%)", 1))         \
	C(f64, vector,                                                                                       \
	  SQL("vectorCore", NUMERIC) TRACE("Vector Core", "Usage(%)", 1) CSV("Vector Core(%)", 1))           \
	C(f64, ai_cpu, SQL("aiCpu", NUMERIC) TRACE("AI CPU", "Usage(%)", 1) CSV("AI CPU(%)", 1))             \
	C(f64, ctrl_cpu,                                                                                     \
	  SQL("ctrlCpu", NUMERIC) TRACE("Control CPU", "Usage(%)", 1) CSV("Control CPU(%)", 1))              \
	C(f64, memory, SQL("memory", NUMERIC) TRACE("Memory", "Usage(%)", 1) CSV("Memory(%)", 1))            \
	C(f64, bandwidth,                                                                                    \
	  SQL("memoryBandwidth", NUMERIC) TRACE("Memory Bandwidth", "Usage(%)", 1)                           \
		  CSV("Memory Bandwidth(%)", 1))                                                             \
	C(f64, hbm_bandwidth,                                                                                \
	  SQL("hbmBandwidth", NUMERIC) TRACE("HBM Bandwidth", "Usage(%)", 1) CSV("HBM Bandwidth(%)", 1))     \
	C(f64, temperature,                                                                                  \
	  SQL("temperature", NUMERIC) TRACE("Temperature", "Celsius", 1) CSV("Temperature(C)", 1))           \
	C(f64, hbm_temperature,                                                                              \
	  SQL("hbmTemperature", NUMERIC) TRACE("HBM Temperature", "Celsius", 1)                              \
		  CSV("HBM Temperature(C)", 1))                                                              \
	C(f64, power, SQL("power", NUMERIC) TRACE("Power", "W", 1) CSV("Power(W)", 1))                       \
	C(i64, health, SQL("health", INTEGER) TRACE("Health", "level", 1) CSV("Health", 1))                  \
	C(i64, hbm_total, SQL("hbmTotal", INTEGER) CSV("HBM Total(KB)", KB))                                 \
	C(i64, hbm_used, SQL("hbmUsed", INTEGER) TRACE("HBM", "KB", KB) CSV("HBM Used(KB)", KB))

/* Memory of a device that a process held. */
#define NPS_NPU_PROCESS_COLUMNS(C)                                                                           \
	C(time, timestamp, SQL("timestampNs", INTEGER))                                                      \
	C(u32, device, SQL("deviceId", INTEGER))                                                             \
	C(u32, pid, SQL("pid", INTEGER))                                                                     \
	C(i64, bytes, SQL("bytes", INTEGER) TRACE("Memory of process {pid}", "KB", KB))

/* --- the host, as the vendor samples it: percent, B/s --- */

#define NPS_CPU_USAGE_COLUMNS(C)                                                                             \
	C(time, timestamp, SQL("timestampNs", NUMERIC))                                                      \
	C(text, cpu, SQL_PLAIN("cpuId", NUMERIC)) /* its number, or Avg */                                   \
	C(f64, usage, SQL_OR_0("usage", NUMERIC) TRACE("CPU {cpu}", "Usage(%)", 1) TRACK("CPU {cpu}", "%"))

#define NPS_HOST_MEM_COLUMNS(C)                                                                              \
	C(time, timestamp, SQL("timestampNs", NUMERIC))                                                      \
	C(f64, usage,                                                                                        \
	  SQL_OR_0("usage", NUMERIC) TRACE("Memory Usage", "Usage(%)", 1) TRACK("Memory usage", "%"))

#define NPS_HOST_DISK_COLUMNS(C)                                                                             \
	C(time, timestamp, SQL("timestampNs", NUMERIC))                                                      \
	C(f64, read, SQL("readRate", NUMERIC) TRACK("Disk read", "B/s"))                                     \
	C(f64, write, SQL("writeRate", NUMERIC) TRACK("Disk written", "B/s"))                                \
	C(f64, usage, SQL_OR_0("usage", NUMERIC) TRACE("Disk Usage", "Usage(%)", 1) TRACK("Disk usage", "%"))

#define NPS_HOST_NETWORK_COLUMNS(C)                                                                          \
	C(time, timestamp, SQL("timestampNs", NUMERIC))                                                      \
	C(f64, usage,                                                                                        \
	  SQL_OR_0("usage", NUMERIC) TRACE("Network Usage", "Usage(%)", 1) TRACK("Network usage", "%"))      \
	C(f64, speed, SQL("speed", NUMERIC) TRACK("Network", "B/s"))

/* --- the host, only npuscope's samples: rates from `timestamp` to the next row. NaN: not sampled --- */

/* All CPUs together. cpu: percent of them; switches: a second; running, blocked: threads. */
#define NPS_HOST_LOAD_COLUMNS(C)                                                                             \
	C(time, timestamp)                                                                                   \
	C(f64, cpu, TRACE("Host CPU", "Usage(%)", 1) TRACK("Host CPU", "%"))                                 \
	C(f64, switches, TRACE("Host Switches", "Switches(/s)", 1) TRACK("Host switches", "/s"))             \
	C(u32, running, TRACE("Host Threads", "Running", 1) TRACK("Host threads running", "threads"))        \
	C(u32, blocked, TRACE("Host Threads", "Blocked", 1) TRACK("Host threads blocked", "threads"))

/* cpu: percent of one CPU. resident: bytes; the others bytes a second. */
#define NPS_HOST_PROCESS_COLUMNS(C)                                                                          \
	C(time, timestamp)                                                                                   \
	C(u32, pid)                                                                                          \
	C(text, name)                                                                                        \
	C(f64, cpu,                                                                                          \
	  TRACE("Process {name}[ {pid}] CPU", "Usage(%)", 1) TRACK("Process {name}[ {pid}] CPU", "%"))       \
	C(f64, resident,                                                                                     \
	  TRACE("Process {name}[ {pid}] Memory", "Resident(MB)", MB)                                         \
		  TRACK("Process {name}[ {pid}] resident", "B"))                                             \
	C(f64, read,                                                                                         \
	  TRACE("Process {name}[ {pid}] Disk", "Read(MB/s)", MB)                                             \
		  TRACK("Process {name}[ {pid}] read", "B/s"))                                               \
	C(f64, write,                                                                                        \
	  TRACE("Process {name}[ {pid}] Disk", "Write(MB/s)", MB)                                            \
		  TRACK("Process {name}[ {pid}] written", "B/s"))                                            \
	C(f64, received,                                                                                     \
	  TRACE("Process {name}[ {pid}] Network", "Rx(MB/s)", MB)                                            \
		  TRACK("Process {name}[ {pid}] received", "B/s"))                                           \
	C(f64, sent,                                                                                         \
	  TRACE("Process {name}[ {pid}] Network", "Tx(MB/s)", MB)                                            \
		  TRACK("Process {name}[ {pid}] sent", "B/s"))

/* wait: percent of the time in which it could run and had no CPU; switches: a second. */
#define NPS_HOST_THREAD_COLUMNS(C)                                                                           \
	C(time, timestamp)                                                                                   \
	C(u32, pid)                                                                                          \
	C(u32, tid)                                                                                          \
	C(text, name)                                                                                        \
	C(f64, cpu,                                                                                          \
	  TRACE("Thread {name}[ {tid}] CPU", "Running(%)", 1) TRACK("Thread {name}[ {tid}] CPU", "%"))       \
	C(f64, wait,                                                                                         \
	  TRACE("Thread {name}[ {tid}] CPU", "Waiting(%)", 1)                                                \
		  TRACK("Thread {name}[ {tid}] waiting for a CPU", "%"))                                     \
	C(f64, switches,                                                                                     \
	  TRACE("Thread {name}[ {tid}] Switches", "Switches(/s)", 1)                                         \
		  TRACK("Thread {name}[ {tid}] switches", "/s"))

/* A disk or an interface (card 1): bytes a second in and out; busy: percent, NaN of interfaces. */
#define NPS_HOST_DEVICE_COLUMNS(C)                                                                           \
	C(time, timestamp)                                                                                   \
	C(text, name)                                                                                        \
	C(u8, card)                                                                                          \
	C(f64, in,                                                                                           \
	  TRACE("{card:0=Disk|Network} {name}", "{card:0=Read|Rx}(MB/s)", MB)                                \
		  TRACK("{card:0=Disk|Network} {name} {card:0=read|received}", "B/s"))                       \
	C(f64, out,                                                                                          \
	  TRACE("{card:0=Disk|Network} {name}", "{card:0=Write|Tx}(MB/s)", MB)                               \
		  TRACK("{card:0=Disk|Network} {name} {card:0=written|sent}", "B/s"))                        \
	C(f64, busy, TRACE("Disk {name} Busy", "Usage(%)", 1) TRACK("{card:0=Disk|Network} {name} busy", "%"))

#endif
