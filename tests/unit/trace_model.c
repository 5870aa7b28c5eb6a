/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace_model.h"

struct nps_model trace_model;

static uint32_t word(const char *s)
{
	uint32_t id = nps_strings__addz(trace_model.strings, s);

	assert_int_not_equal(id, NPS_NONE);
	return id;
}

static uint64_t gtid(uint32_t tid)
{
	return (uint64_t)TRACE_MODEL_PID << 32 | tid;
}

static void call(uint64_t at, uint64_t dur, uint32_t type, const char *name, const char *item,
		 uint32_t connection)
{
	uint32_t name_ = word(name), item_ = item ? word(item) : NPS_NONE;

	TRACE_MODEL_ADD(api);
	TRACE_MODEL_SET(api, start, TRACE_MODEL_T0 + at);
	TRACE_MODEL_SET(api, end, TRACE_MODEL_T0 + at + dur);
	TRACE_MODEL_SET(api, type, type);
	TRACE_MODEL_SET(api, gtid, gtid(TRACE_MODEL_PID));
	TRACE_MODEL_SET(api, connection, connection);
	TRACE_MODEL_SET(api, name, name_);
	TRACE_MODEL_SET(api, item, item_);
	TRACE_MODEL_SET(api, mode, NPS_NONE);
}

static void task(uint64_t at, uint64_t dur, uint8_t class, const char *name, const char *type,
		 uint32_t stream, uint32_t number, uint32_t connection)
{
	uint32_t name_ = word(name), type_ = word(type);

	TRACE_MODEL_ADD(task);
	TRACE_MODEL_SET(task, start, TRACE_MODEL_T0 + at);
	TRACE_MODEL_SET(task, end, TRACE_MODEL_T0 + at + dur);
	TRACE_MODEL_SET(task, connection, connection);
	TRACE_MODEL_SET(task, pid, TRACE_MODEL_PID);
	TRACE_MODEL_SET(task, context, NPS_NO_ID);
	TRACE_MODEL_SET(task, stream, stream);
	TRACE_MODEL_SET(task, task, number);
	TRACE_MODEL_SET(task, model, NPS_NO_ID);
	TRACE_MODEL_SET(task, name, name_);
	TRACE_MODEL_SET(task, hw_type, type_);
	TRACE_MODEL_SET(task, class, class);
}

static void fill_device(void)
{
	uint32_t group = word("group_name_0"), memcpy_ = word("Memcpy"), op = word("hcom_allReduce__865_0_1");

	call(0, 10000, NPS_API_ACL, "aclnnMatmul", NULL, 1);
	call(1000, 5000, NPS_API_NODE, "launch", "MatMul{\"V2\"", 2);
	call(20000, 3000, NPS_API_ACL, "aclrtMemcpyAsync", NULL, 3);
	call(30000, 9000, NPS_API_COMM, "launch", NULL, 4);
	call(40000, 100, NPS_API_RUNTIME, "EventRecord", NULL, 5);
	call(50000, 100, NPS_API_MODEL, "ModelExecute", NULL, 6);
	task(8000, 5000, NPS_CLASS_COMPUTE, "MatMul{\"V2\"", "AI_CORE", 2, 65535, 2);
	TRACE_MODEL_ADD(compute);
	TRACE_MODEL_SET(compute, grid, word("8"));
	TRACE_MODEL_SET(compute, block_dim, NPS_NONE);
	task(25000, 2000, NPS_CLASS_MEMCPY, "MEMCPY_ASYNC", "PCIE_DMA_SQE", 3, 8, 3);
	TRACE_MODEL_ADD(memcpy);
	TRACE_MODEL_SET(memcpy, task, 1);
	TRACE_MODEL_SET(memcpy, size, 4000);
	TRACE_MODEL_SET(memcpy, operation, 1);
	task(26000, 10, NPS_CLASS_PARENT, "FFTS_PLUS", "FFTS_PLUS", 2, 12, NPS_NO_ID);
	task(35000, 1000, NPS_CLASS_COMM, "SDMA", "SDMA", 7, 9, NPS_NO_ID);
	TRACE_MODEL_ADD(comm_task);
	TRACE_MODEL_SET(comm_task, task, 3);
	TRACE_MODEL_SET(comm_task, type, memcpy_);
	TRACE_MODEL_SET(comm_task, plane, 1);
	TRACE_MODEL_SET(comm_task, group, group);
	TRACE_MODEL_SET(comm_task, notify, NPS_NO_NOTIFY);
	TRACE_MODEL_SET(comm_task, dst, 1);
	TRACE_MODEL_SET(comm_task, dtype, 4);
	TRACE_MODEL_SET(comm_task, link, 1);
	TRACE_MODEL_SET(comm_task, size, 4096);
	TRACE_MODEL_SET(comm_task, bandwidth, 2.5e9);
	TRACE_MODEL_SET(comm_task, estimate, NPS_NAN);
	task(42000, 0, NPS_CLASS_EVENT, "EVENT_RECORD", "EVENT_RECORD_SQE", 2, 10, 5);
	task(43000, 20, NPS_CLASS_OTHER, "PROFILING_ENABLE", "PLACE_HOLDER_SQE", 0, 11, NPS_NO_ID);
	TRACE_MODEL_ADD(comm_op);
	TRACE_MODEL_SET(comm_op, name, op);
	TRACE_MODEL_SET(comm_op, start, TRACE_MODEL_T0 + 34000);
	TRACE_MODEL_SET(comm_op, end, TRACE_MODEL_T0 + 39000);
	TRACE_MODEL_SET(comm_op, connection, 4);
	TRACE_MODEL_SET(comm_op, group, group);
	TRACE_MODEL_SET(comm_op, id, 1);
	TRACE_MODEL_SET(comm_op, dtype, 4);
	TRACE_MODEL_SET(comm_op, algorithm, NPS_NONE);
	TRACE_MODEL_SET(comm_op, count, 1024);
	TRACE_MODEL_SET(comm_op, ranks, NPS_NULL);
	TRACE_MODEL_SET(comm_op, model, NPS_NO_ID);
	for (uint32_t type = 0; type < 4; type++) {
		TRACE_MODEL_ADD(overlap);
		TRACE_MODEL_SET(overlap, start, TRACE_MODEL_T0 + 8000 + type * 5000);
		TRACE_MODEL_SET(overlap, end, TRACE_MODEL_T0 + 13000 + type * 5000);
		TRACE_MODEL_SET(overlap, type, type);
	}
}

static void torch(uint32_t type, uint64_t at, uint64_t dur, uint32_t tid, const char *name)
{
	uint32_t name_ = word(name);

	TRACE_MODEL_ADD(torch);
	TRACE_MODEL_SET(torch, start, TRACE_MODEL_T0 + at);
	TRACE_MODEL_SET(torch, end, TRACE_MODEL_T0 + at + dur);
	TRACE_MODEL_SET(torch, gtid, gtid(tid));
	TRACE_MODEL_SET(torch, type, type);
	TRACE_MODEL_SET(torch, name, name_);
	TRACE_MODEL_SET(torch, connection, NPS_NULL);
	TRACE_MODEL_SET(torch, sequence, NPS_NULL);
	TRACE_MODEL_SET(torch, forward_tid, NPS_NULL);
	TRACE_MODEL_SET(torch, callchain, NPS_NULL);
	TRACE_MODEL_SET(torch, correlation, NPS_NULL);
	TRACE_MODEL_SET(torch, input_types, NPS_NONE);
	TRACE_MODEL_SET(torch, input_shapes, NPS_NONE);
	TRACE_MODEL_SET(torch, modules, NPS_NONE);
	TRACE_MODEL_SET(torch, extra, NPS_NONE);
	TRACE_MODEL_SET(torch, python_id, NPS_NULL);
	TRACE_MODEL_SET(torch, python_parent, NPS_NULL);
	TRACE_MODEL_SET(torch, python_module, NPS_NULL);
}

static void frame(uint32_t id, const char *stack, uint32_t depth)
{
	uint32_t stack_ = word(stack);

	TRACE_MODEL_ADD(frame);
	TRACE_MODEL_SET(frame, id, id);
	TRACE_MODEL_SET(frame, stack, stack_);
	TRACE_MODEL_SET(frame, depth, depth);
}

static void link_(uint32_t id, uint32_t connection)
{
	TRACE_MODEL_ADD(link);
	TRACE_MODEL_SET(link, id, id);
	TRACE_MODEL_SET(link, connection, connection);
}

static void fill_torch(void)
{
	uint32_t shapes = word("2,2;2,2;"), types = word("float;\r\nfloat"), extra = word("flops:16;"),
		 modules = word("nn.Module: Linear_0");

	torch(NPS_API_TORCH_QUEUE, 500, 100, TRACE_MODEL_PID, "Enqueue@aclnnMatmul");
	TRACE_MODEL_SET(torch, correlation, 8234);
	torch(NPS_API_TORCH_QUEUE, 600, 100, TRACE_MODEL_PID, "Enqueue@lost");
	TRACE_MODEL_SET(torch, correlation, 8235);
	torch(NPS_API_TORCH_QUEUE, 900, 300, TRACE_MODEL_PID + 1, "Dequeue@aclnnMatmul");
	TRACE_MODEL_SET(torch, correlation, 8234);
	torch(NPS_API_PYTHON, 100, 60000, TRACE_MODEL_PID, "train.py(3): <module>");
	TRACE_MODEL_SET(torch, python_id, 1);
	torch(NPS_API_PYTHON, 200, 50000, TRACE_MODEL_PID, "nn.Module: Linear_0");
	TRACE_MODEL_SET(torch, python_id, 2);
	TRACE_MODEL_SET(torch, python_parent, 1);
	TRACE_MODEL_SET(torch, python_module, 0);
	torch(NPS_API_TORCH_OP, 300, 9000, TRACE_MODEL_PID, "aten::linear");
	TRACE_MODEL_SET(torch, sequence, 7);
	torch(NPS_API_TORCH_OP, 400, 8000, TRACE_MODEL_PID, "aten::addmm");
	TRACE_MODEL_SET(torch, sequence, 7);
	TRACE_MODEL_SET(torch, connection, 5);
	TRACE_MODEL_SET(torch, callchain, 1);
	TRACE_MODEL_SET(torch, input_shapes, shapes);
	TRACE_MODEL_SET(torch, input_types, types);
	TRACE_MODEL_SET(torch, extra, extra);
	TRACE_MODEL_SET(torch, modules, modules);
	torch(NPS_API_TORCH_OP, 15000, 9000, TRACE_MODEL_PID + 2, "AddmmBackward0");
	TRACE_MODEL_SET(torch, sequence, 7);
	TRACE_MODEL_SET(torch, forward_tid, 1);
	TRACE_MODEL_SET(torch, connection, 6);
	frame(0, "other.py(1): f", 0);
	frame(1, "inner.py(1): f", 0);
	frame(1, "outer.py(2): g", 1);
	link_(5, 2);
	link_(5, 1342177280);
	link_(6, 3);
	link_(6, 4);
	link_(6, 1342177280);
	TRACE_MODEL_ADD(gc);
	TRACE_MODEL_SET(gc, start, TRACE_MODEL_T0 + 52000);
	TRACE_MODEL_SET(gc, end, TRACE_MODEL_T0 + 53000);
	TRACE_MODEL_SET(gc, gtid, gtid(TRACE_MODEL_PID));
}

static void fill_host(void)
{
	uint32_t name = word("futex"), comm = word("wor:ker"), message = word("step"),
		 domain = word("default");

	TRACE_MODEL_ADD(osrt);
	TRACE_MODEL_SET(osrt, name, name);
	TRACE_MODEL_SET(osrt, gtid, gtid(TRACE_MODEL_PID + 3));
	TRACE_MODEL_SET(osrt, start, TRACE_MODEL_T0 + 700);
	TRACE_MODEL_SET(osrt, end, TRACE_MODEL_T0 + 1400);
	for (uint32_t i = 0; i < 2; i++) {
		TRACE_MODEL_ADD(run);
		TRACE_MODEL_SET(run, start, TRACE_MODEL_T0 + 1000 + i * 5000);
		TRACE_MODEL_SET(run, end, TRACE_MODEL_T0 + 3000 + i * 5000);
		TRACE_MODEL_SET(run, left, i ? TRACE_MODEL_T0 + 3000 : 0);
		TRACE_MODEL_SET(run, woken, i ? TRACE_MODEL_T0 + 4000 : 0);
		TRACE_MODEL_SET(run, tid, TRACE_MODEL_PID + 3);
		TRACE_MODEL_SET(run, prio, 120);
		TRACE_MODEL_SET(run, state, 1);
		TRACE_MODEL_SET(run, comm, comm);
		TRACE_MODEL_SET(run, next_comm, NPS_NONE);
	}
	TRACE_MODEL_ADD(mstx);
	TRACE_MODEL_SET(mstx, start, TRACE_MODEL_T0 + 5000);
	TRACE_MODEL_SET(mstx, end, TRACE_MODEL_T0 + 5000);
	TRACE_MODEL_SET(mstx, message, message);
	TRACE_MODEL_SET(mstx, gtid, gtid(TRACE_MODEL_PID));
	TRACE_MODEL_SET(mstx, domain, domain);
	TRACE_MODEL_SET(mstx, connection, 4000000000U);
	TRACE_MODEL_SET(mstx, device_start, TRACE_MODEL_T0 + 6000);
	TRACE_MODEL_SET(mstx, device_end, TRACE_MODEL_T0 + 6100);
	TRACE_MODEL_SET(mstx, stream, 2);
	TRACE_MODEL_ADD(mstx); /* one that no device came to */
	TRACE_MODEL_SET(mstx, start, TRACE_MODEL_T0 + 5500);
	TRACE_MODEL_SET(mstx, end, TRACE_MODEL_T0 + 5500);
	TRACE_MODEL_SET(mstx, message, message);
	TRACE_MODEL_SET(mstx, gtid, gtid(TRACE_MODEL_PID));
	TRACE_MODEL_SET(mstx, domain, domain);
	TRACE_MODEL_SET(mstx, connection, 4000000009U);
	for (uint32_t i = 0; i < 2; i++) {
		TRACE_MODEL_ADD(iteration);
		TRACE_MODEL_SET(iteration, model, 13);
		TRACE_MODEL_SET(iteration, id, i + 1);
		TRACE_MODEL_SET(iteration, start, TRACE_MODEL_T0 + i * 20000);
		TRACE_MODEL_SET(iteration, fp_start, TRACE_MODEL_T0 + 1000 + i * 20000);
		TRACE_MODEL_SET(iteration, bp_end, TRACE_MODEL_T0 + 15000 + i * 20000);
		TRACE_MODEL_SET(iteration, end, TRACE_MODEL_T0 + 19000 + i * 20000);
		TRACE_MODEL_ADD(iteration_part);
		TRACE_MODEL_SET(iteration_part, model, 13);
		TRACE_MODEL_SET(iteration_part, id, 1);
		TRACE_MODEL_SET(iteration_part, kind, i);
		TRACE_MODEL_SET(iteration_part, start, TRACE_MODEL_T0 + 2000 + i);
		TRACE_MODEL_SET(iteration_part, end, TRACE_MODEL_T0 + 2100 + i);
	}
}

#define COUNT(table)                                                                                         \
	do {                                                                                                 \
		TRACE_MODEL_ADD(table);                                                                      \
		TRACE_MODEL_SET(table, timestamp, TRACE_MODEL_T0 + 100);                                     \
	} while (0)

static void fill_counters(void)
{
	uint32_t avg = word("Avg"), read = word("read"), write = word("write"), app = word("app"),
		 others = word("OTHERS"), die = word("die 0");

	COUNT(cpu_usage);
	TRACE_MODEL_SET(cpu_usage, cpu, avg);
	TRACE_MODEL_SET(cpu_usage, usage, 12.5);
	COUNT(host_mem);
	TRACE_MODEL_SET(host_mem, usage, 40);
	COUNT(host_disk);
	COUNT(host_network);
	COUNT(frequency);
	TRACE_MODEL_SET(frequency, mhz, 1800);
	COUNT(npu_mem);
	TRACE_MODEL_SET(npu_mem, type, app);
	TRACE_MODEL_SET(npu_mem, hbm, 2160232.0 * 1024);
	COUNT(ddr);
	COUNT(acc_pmu);
	COUNT(hccs);
	COUNT(nic);
	TRACE_MODEL_SET(nic, bandwidth, 1000);
	TRACE_MODEL_SET(nic, rx_byte_rate, 500);
	TRACE_MODEL_SET(nic, tx_packets, 4);
	TRACE_MODEL_SET(nic, tx_errors, 1);
	COUNT(roce);
	COUNT(pcie);
	TRACE_MODEL_SET(pcie, latency_avg, 1500);
	COUNT(hbm);
	TRACE_MODEL_SET(hbm, bandwidth, 21.25 * 1048576);
	TRACE_MODEL_SET(hbm, type, write);
	COUNT(voltage);
	TRACE_MODEL_SET(voltage, mv, 850);
	COUNT(voltage);
	TRACE_MODEL_SET(voltage, mv, 900);
	TRACE_MODEL_SET(voltage, bus, 1);
	COUNT(soc_level);
	TRACE_MODEL_SET(soc_level, mata, 3);
	TRACE_MODEL_SET(soc_level, l2_buffer, 5);
	COUNT(chip_trans);
	COUNT(llc);
	TRACE_MODEL_SET(llc, mode, read);
	TRACE_MODEL_SET(llc, hit_rate, 84);
	TRACE_MODEL_SET(llc, throughput, NPS_NAN);
	COUNT(sio);
	TRACE_MODEL_SET(sio, name, die);
	COUNT(qos);
	TRACE_MODEL_SET(qos, event, others);
	TRACE_MODEL_SET(qos, bandwidth, 1876.0 * 1048576);
	COUNT(ub);
	TRACE_MODEL_SET(ub, port, 3);
}

void trace_model_init(int dirfd)
{
	assert_int_equal(nps_model__init(&trace_model, dirfd, NULL), 0);
	trace_model.pid = TRACE_MODEL_PID;
	trace_model.level = 1;
	trace_model.start = TRACE_MODEL_T0;
	trace_model.end = TRACE_MODEL_T0 + 1000000;
	fill_device();
	fill_torch();
	fill_host();
	fill_counters();
}
