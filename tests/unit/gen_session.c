/* SPDX-License-Identifier: BSD-2-Clause */
#include "gen_session.h"

#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BATCH 4096
#define FREQ_KHZ 50000

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	abort();
}

static FILE *create(const char *dir, const char *name)
{
	char path[2048];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "we");
	need(file != NULL, path);
	return file;
}

void gen_open(struct gen *gen, const char *dir)
{
	*gen = (struct gen){ .raw_ppm = 12, .device_ppm = 23, .last = GEN_T0 };
	snprintf(gen->dir, sizeof(gen->dir), "%s", dir);
	gen->events.file = create(dir, "events.nps");
	gen->strings.file = create(dir, "strings.nps");
	gen->clocks.file = create(dir, "clocks.nps");
	gen->batch = calloc(BATCH, sizeof(*gen->batch));
	need(gen->batch != NULL, "calloc");
}

static void chunk(struct gen_file *file, unsigned int type, const void *payload, size_t len)
{
	struct nps_chunk head = { .magic = NPS_CHUNK_MAGIC,
				  .version = NPS_SESSION_VERSION,
				  .type = type,
				  .seq = file->seq++,
				  .len = len,
				  .crc = crc32(crc32(0, NULL, 0), payload, len) };

	fwrite(&head, sizeof(head), 1, file->file);
	fwrite(payload, 1, len, file->file);
}

void gen_chunk(struct gen *gen, char which, unsigned int type, const void *payload, size_t len)
{
	if (which == 'd' && !gen->devices.file)
		gen->devices.file = create(gen->dir, "device.nps");
	chunk(which == 's'   ? &gen->strings
	      : which == 'c' ? &gen->clocks
	      : which == 'd' ? &gen->devices
			     : &gen->events,
	      type, payload, len);
}

static void flush(struct gen *gen)
{
	if (gen->nbatch)
		chunk(&gen->events, NPS_CHUNK_EVENTS, gen->batch, gen->nbatch * sizeof(*gen->batch));
	gen->nbatch = 0;
}

void gen_event(struct gen *gen, const struct nps_event *ev)
{
	gen->batch[gen->nbatch++] = *ev;
	if (ev->start + ev->dur > gen->last)
		gen->last = ev->start + ev->dur;
	if (gen->nbatch == BATCH)
		flush(gen);
}

uint64_t gen_text(struct gen *gen, const char *text)
{
	struct nps_string s = { .kind = NPS_STR_TEXT, .len = strlen(text), .id = 5381 };

	for (const char *p = text; *p; p++)
		s.id = s.id * 33 + (unsigned char)*p;
	memcpy(s.text, text, s.len < NPS_STR_MAX ? s.len : NPS_STR_MAX - 1);
	chunk(&gen->strings, NPS_CHUNK_STRINGS, &s, sizeof(s));
	return s.id;
}

void gen_comm(struct gen *gen, uint32_t tid, uint64_t time, const char *comm)
{
	struct nps_string s = { .kind = NPS_STR_COMM, .len = strlen(comm), .id = tid, .time = time };

	memcpy(s.text, comm, s.len);
	chunk(&gen->strings, NPS_CHUNK_STRINGS, &s, sizeof(s));
}

uint64_t gen_raw(const struct gen *gen, uint64_t mono)
{
	int64_t since = mono - GEN_T0;

	return mono + GEN_RAW_AHEAD + llround(since * gen->raw_ppm * 1e-6);
}

uint64_t gen_counter(const struct gen *gen, uint64_t mono)
{
	int64_t raw = gen_raw(gen, mono) - GEN_T0;

	return 987654321000ULL + llround(raw * (FREQ_KHZ / 1e6) * (1 + gen->device_ppm * 1e-6));
}

void gen_clock(struct gen *gen, uint64_t mono)
{
	struct nps_clock c = { .mono = mono,
			       .raw = gen_raw(gen, mono),
			       .real = mono - GEN_T0 + GEN_REAL0,
			       .boot = mono,
			       .raw_after = gen_raw(gen, mono) + 80 };

	chunk(&gen->clocks, NPS_CHUNK_CLOCKS, &c, sizeof(c));
}

void gen_device_clock(struct gen *gen, uint32_t pid, uint32_t device, uint64_t mono, uint64_t width)
{
	struct nps_device_clock c = { .device = device,
				      .pid = pid,
				      .raw_before = gen_raw(gen, mono) - width / 2,
				      .raw_after = gen_raw(gen, mono) + (width - width / 2),
				      .counter = gen_counter(gen, mono) };

	chunk(&gen->clocks, NPS_CHUNK_DEVICE_CLOCKS, &c, sizeof(c));
}

void gen_soc_open(struct gen *gen, uint32_t pid, unsigned int device)
{
	char path[768];

	snprintf(path, sizeof(path), "%s/PROF_%u", gen->dir, pid);
	mkdir(path, 0750);
	snprintf(path, sizeof(path), "%s/PROF_%u/device_%u", gen->dir, pid, device);
	mkdir(path, 0750);
	snprintf(path, sizeof(path), "%s/PROF_%u/device_%u/data", gen->dir, pid, device);
	mkdir(path, 0750);
	snprintf(path, sizeof(path), "PROF_%u/device_%u/data/stars_soc.data.%u.slice_0", pid, device, device);
	gen->soc = create(gen->dir, path);
	gen->soc_count = 0;
}

void gen_soc(struct gen *gen, unsigned int func, unsigned int sqe_type, unsigned int stream,
	     unsigned int task, uint64_t mono)
{
	unsigned char r[64] = { 0 };
	uint16_t head = func | (gen->soc_count++ & 15) << 6 | sqe_type << 10, magic = 0x6bd3, s = stream,
		 t = task;
	uint64_t counter = gen_counter(gen, mono);

	memcpy(r, &head, 2);
	memcpy(r + 2, &magic, 2);
	memcpy(r + 4, &s, 2);
	memcpy(r + 6, &t, 2);
	memcpy(r + 8, &counter, 8);
	fwrite(r, sizeof(r), 1, gen->soc);
}

void gen_soc_close(struct gen *gen)
{
	need(!fclose(gen->soc), "stars_soc");
}

void gen_api(struct gen *gen, uint32_t pid, uint32_t tid, unsigned int probe, uint64_t start, uint64_t end,
	     uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3)
{
	gen_event(gen, &(struct nps_event){ .kind = NPS_EV_API,
					    .probe = probe,
					    .pid = pid,
					    .tid = tid,
					    .start = start,
					    .dur = end - start,
					    .call.slot = { a0, a1, a2, a3 } });
}

void gen_mark(struct gen *gen, uint32_t pid, uint32_t tid, unsigned int probe, uint64_t at, uint64_t a0,
	      uint64_t a1, uint64_t a2)
{
	gen_event(gen, &(struct nps_event){ .kind = NPS_EV_MARK,
					    .probe = probe,
					    .pid = pid,
					    .tid = tid,
					    .start = at,
					    .call.slot = { a0, a1, a2 } });
}

void gen_sqe(struct gen *gen, uint32_t pid, uint32_t tid, uint64_t start, uint64_t end, unsigned int device,
	     unsigned int type, unsigned int stream, unsigned int task, unsigned int blocks)
{
	gen_event(gen, &(struct nps_event){ .kind = NPS_EV_SQE,
					    .probe = NPS_PROBE_SQ_TASK_SEND,
					    .pid = pid,
					    .tid = tid,
					    .start = start,
					    .dur = end - start,
					    .sqe = { .device = device,
						     .count = 1,
						     .sqe = { .type = type,
							      .blocks = blocks,
							      .stream = stream,
							      .task = task } } });
}

void gen_close(struct gen *gen, bool complete, const char *processes, const char *devices,
	       const char *step_marker)
{
	uint64_t end = gen->last + 1000000;
	FILE *json;

	flush(gen);
	free(gen->batch);
	need(!fclose(gen->events.file) && !fclose(gen->strings.file) && !fclose(gen->clocks.file) &&
		     (!gen->devices.file || !fclose(gen->devices.file)),
	     "close");
	json = create(gen->dir, "session.json");
	fprintf(json,
		"{\"format\": \"npuscope-session\", \"version\": %d, \"npuscope\": \"0.1.0\", \"complete\": "
		"%s, \"end_reason\": \"duration\",\n",
		NPS_SESSION_VERSION, complete ? "true" : "false");
	fprintf(json, "\"host\": {\"name\": \"node7\", \"uid\": \"3538958389648580163\", \"arch\": "
		      "\"x86_64\", \"cpus\": 2},\n");
	fprintf(json, "\"request\": {\"level\": 1, \"task_source\": \"auto\", \"step_marker\": %s},\n",
		step_marker ? step_marker : "null");
	fprintf(json, "\"capture\": {\"begin_monotonic\": %llu, \"end_monotonic\": %" PRIu64 "},\n", GEN_T0,
		end);
	fprintf(json,
		"\"start\": {\"monotonic\": %llu, \"monotonic_raw\": %" PRIu64
		", \"realtime\": %llu, \"boottime\": %llu},\n",
		GEN_T0, gen_raw(gen, GEN_T0), GEN_REAL0, GEN_T0);
	if (gen->devices.file)
		fprintf(json, "\"device_sampler\": {\"devices\": []},\n");
	fprintf(json,
		"\"processes\": [%s], \"devices\": [%s], \"drops\": {\"ring\": {}, \"agent\": {}, "
		"\"sqe\": 0}}\n",
		processes, devices);
	need(!fclose(json), "session.json");
}

/* --- the job --- */

/* Operators of PyTorch, and nodes of its backward passes. */
enum { LINEAR, ADDMM, ADD, SOFTMAX, EMPTY, NORM, ITEM, SCALAR, MUL, MATMUL, TORCH_OPS };
enum { ADDMM_BACKWARD, ACCUMULATE, CUSTOM, STRANGE, TORCH_NODES };

struct rank {
	struct gen *gen;
	struct gen_job *job;
	uint32_t pid, tid;
	unsigned int device;
	uint64_t now; /* of the host thread */
	uint64_t free_at[8]; /* when stream s is idle */
	uint32_t next[8]; /* its next task number */
	uint64_t names[8], l0s[8], kernels[4], comm_name;
	uint64_t ops[TORCH_OPS], nodes[TORCH_NODES], sequence;
	struct gen_task *truth;
	size_t ntruth;
};

static const char *const apis[] = { "aclnnMatmul", "aclnnAdd", "aclnnSoftmax", "aclnnLayerNorm" };
static const char *const torch_ops[TORCH_OPS] = {
	[LINEAR] = "aten::linear",    [ADDMM] = "aten::addmm",
	[ADD] = "aten::add.Tensor",   [SOFTMAX] = "aten::_softmax",
	[EMPTY] = "aten::empty_like", [NORM] = "aten::native_layer_norm",
	[ITEM] = "aten::item",	      [SCALAR] = "aten::_local_scalar_dense",
	[MUL] = "aten::mul_.Tensor",  [MATMUL] = "aten::matmul",
};
static const char *const torch_nodes[TORCH_NODES] = {
	[ADDMM_BACKWARD] = "N5torch8autograd9generated14AddmmBackward0E",
	[ACCUMULATE] = "N5torch8autograd14AccumulateGradE",
	[CUSTOM] = "N5torch8autograd7CppNodeI5ScaleEE",
	[STRANGE] = "no C++ name \"",
};
static const char *const l0s[] = { "MatMulV2", "Add", "SoftmaxV2", "LayerNormV3" };

/* The device takes the task as soon as its stream is idle, 3 us after the submission at the earliest. */
static struct gen_task *submit(struct rank *r, unsigned int stream, unsigned int type, uint64_t dur,
			       const char *name)
{
	struct gen_task *t = &r->truth[r->ntruth++];
	uint32_t number = r->next[stream]++;
	uint64_t at = r->now;

	*t = (struct gen_task){ .submit = at, .stream = stream, .task = number, .flip = number >> 16 };
	t->start = at + 3000 > r->free_at[stream] ? at + 3000 : r->free_at[stream];
	t->end = t->start + dur;
	r->free_at[stream] = t->end + 200;
	snprintf(t->name, sizeof(t->name), "%s", name);
	gen_sqe(r->gen, r->pid, r->tid, at, at + 600, r->device, type, stream, number, 24);
	return t;
}

static void op(struct rank *r, unsigned int i)
{
	uint64_t executor = 0x7000 + i % 64 * 0x100, handle = 0x500000 + i % 4 * 0x40, begin;
	char name[96];

	snprintf(name, sizeof(name), "%s_%s", apis[i % 4], l0s[i % 4]);
	gen_mark(r->gen, r->pid, r->tid, NPS_PROBE_NN_PHASE1, r->now, r->names[i % 4], 0, 0);
	gen_mark(r->gen, r->pid, r->tid, NPS_PROBE_NN_L0, r->now + 500, r->l0s[i % 4], executor, 0);
	gen_mark(r->gen, r->pid, r->tid, NPS_PROBE_NN_PHASE2, r->now + 1500, r->names[i % 4], executor, 0);
	gen_mark(r->gen, r->pid, r->tid, NPS_PROBE_NN_RUN, r->now + 1700, executor, 0x99000002, 0);
	begin = r->now + 2000;
	r->now = begin + 400;
	submit(r, 2, 0, 5000 + i % 7 * 1000, name);
	gen_api(r->gen, r->pid, r->tid, NPS_PROBE_LAUNCH_HOST_ARGS, begin, r->now + 1000, handle, 24,
		0x99000002, 0);
	r->now += 2500;
}

static void copy_in(struct rank *r)
{
	uint64_t begin = r->now;

	r->now += 300;
	submit(r, 2, 17, 20000, "MEMCPY_ASYNC");
	gen_api(r->gen, r->pid, r->tid, NPS_PROBE_MEMCPY_ASYNC, begin, r->now + 900, 1 << 20, 1, 0x99000002,
		0xdead000);
	r->now += 2000;
}

static void event_record(struct rank *r)
{
	uint64_t begin = r->now;

	r->now += 200;
	submit(r, 2, 4, 100, "EVENT_RECORD");
	gen_api(r->gen, r->pid, r->tid, NPS_PROBE_RECORD_EVENT, begin, r->now + 700, 0xe0e0, 0x99000002, 0,
		0);
	r->now += 1500;
}

static void all_reduce(struct rank *r)
{
	static const unsigned int types[] = { 6, 7, 11, 7, 11, 6 };
	static const char *const names[] = { "NOTIFY_RECORD", "NOTIFY_WAIT", "SDMA",
					     "NOTIFY_WAIT",   "SDMA",	     "NOTIFY_RECORD" };
	uint64_t begin = r->now;

	for (unsigned int i = 0; i < 6; i++) {
		r->now += 900;
		submit(r, i % 2 ? 6 : 5, types[i], types[i] == 11 ? 30000 : 400, names[i]);
	}
	gen_api(r->gen, r->pid, r->tid, NPS_PROBE_HCCL_ALL_REDUCE, begin, r->now + 1500, 4096, 4, 0xc0c0,
		0x99000005);
	r->now += 3000;
}

static void synchronize(struct rank *r)
{
	uint64_t begin = r->now, end = begin + 2000;

	for (unsigned int s = 0; s < 8; s++)
		end = r->free_at[s] + 1000 > end ? r->free_at[s] + 1000 : end;
	gen_api(r->gen, r->pid, r->tid, NPS_PROBE_SYNC_DEVICE, begin, end, 0, 0, 0, 0);
	r->now = end + 1000;
}

static void os_noise(struct rank *r, unsigned int i)
{
	uint64_t at = r->now;

	gen_event(r->gen, &(struct nps_event){ .kind = NPS_EV_SYSCALL,
					       .nr = i % 3 ? 16 : 202,
					       .pid = r->pid,
					       .tid = r->tid + 1,
					       .start = at,
					       .dur = 700 });
	gen_event(r->gen, &(struct nps_event){ .kind = NPS_EV_SCHED,
					       .pid = r->pid,
					       .tid = r->tid + 1,
					       .waker = r->tid,
					       .start = at - 500,
					       .dur = 1500,
					       .sched = { .off = at - 4000,
							  .runnable = i % 2 ? at - 1000 : 0,
							  .cpu = i % 4,
							  .next = 77,
							  .state = i % 2,
							  .prio = 120 } });
}

/* An allocation and its end, and values of npu-smi in between. */
static void use_memory(struct rank *r, unsigned int i)
{
	uint64_t address = 0x7000000000 + ((uint64_t)i << 20), bytes = 1 << 20;
	struct nps_npu_usage usage = { .time = r->now + 3000,
				       .device = r->device,
				       .hbm_total = 64ULL << 30,
				       .hbm_used = (2ULL << 30) + bytes,
				       .ai_core = 40,
				       .health = 0 };
	struct nps_npu_process process = { usage.time, bytes, r->device, r->pid };

	gen_api(r->gen, r->pid, r->tid, NPS_PROBE_MALLOC, r->now, r->now + 2000, address, bytes, 0, 0);
	gen_chunk(r->gen, 'd', NPS_CHUNK_NPU_USAGE, &usage, sizeof(usage));
	gen_chunk(r->gen, 'd', NPS_CHUNK_NPU_PROCESSES, &process, sizeof(process));
	gen_api(r->gen, r->pid, r->tid, NPS_PROBE_FREE, r->now + 4000, r->now + 5000, address, 0, 0, 0);
	r->now += 6000;
}

/* --- PyTorch: each record is written when its call ends --- */

#define AUTOGRAD 7 /* added to the tid of the rank's thread: threads of backward passes, and of another job */
#define OTHER 8
#define FIRST_SEQUENCE 40 /* as if there had been others before the capture */

static void torch_call(struct rank *r, unsigned int probe, unsigned int flags, uint64_t start, uint64_t end,
		       uint64_t a0, uint64_t a1, uint64_t a2)
{
	gen_event(r->gen, &(struct nps_event){ .kind = NPS_EV_API,
					       .flags = NPS_F_NO_RESULT | flags,
					       .probe = probe,
					       .pid = r->pid,
					       .tid = r->tid,
					       .start = start,
					       .dur = end - start,
					       .call.slot = { a0, a1, a2 } });
}

static void torch_op_end(struct rank *r, unsigned int name, uint64_t start)
{
	r->now += 150;
	torch_call(r, NPS_PROBE_TORCH_OP, 0, start, r->now, r->ops[name], 0, 0);
	r->now += 50;
}

static void get_sequence(struct rank *r, uint64_t number)
{
	gen_api(r->gen, r->pid, r->tid, NPS_PROBE_TORCH_SEQUENCE, r->now, r->now + 30, number, 0, 0, 0);
	r->now += 60;
}

/* An operator that launches kernel I; *SEQUENCE NULL: nothing is to be differentiated. */
static void torch_launch(struct rank *r, unsigned int name, unsigned int i, uint64_t *sequence)
{
	uint64_t start = r->now;

	r->now += 100;
	if (sequence)
		get_sequence(r, (*sequence)++);
	op(r, i);
	torch_op_end(r, name, start);
}

/* aten::item fails: the inner operator is left by an exception, and the next call shows that. */
static void torch_failure(struct rank *r)
{
	uint64_t outer = r->now, inner = r->now + 70;

	r->now += 400;
	torch_call(r, NPS_PROBE_TORCH_OP, NPS_F_UNWOUND, inner, r->now + 300, r->ops[SCALAR], 0, 0);
	torch_call(r, NPS_PROBE_TORCH_OP, NPS_F_UNWOUND, outer, r->now, r->ops[ITEM], 0, 0);
	r->now += 500;
}

/* Operator I of the forward pass. */
static void torch_forward(struct rank *r, unsigned int i)
{
	uint64_t start = r->now;

	switch (i % 4) {
	case 0:
		r->now += 200;
		torch_launch(r, ADDMM, i, &r->sequence);
		torch_op_end(r, LINEAR, start);
		return;
	case 1:
		torch_launch(r, ADD, i, &r->sequence);
		return;
	case 2:
		torch_launch(r, SOFTMAX, i, NULL);
		return;
	default:
		r->now += 300;
		torch_op_end(r, EMPTY, start);
		start = r->now;
		get_sequence(r, r->sequence++);
		get_sequence(r, r->sequence++); /* of a second node */
		op(r, i);
		torch_op_end(r, NORM, start);
		if (i % 20 == 3)
			torch_failure(r);
	}
}

/* Node NUMBER, with an operator that launches kernel I in it. */
static void torch_node(struct rank *r, unsigned int node, uint64_t number, unsigned int i)
{
	uint64_t start = r->now;

	r->now += 120;
	if (node == ADDMM_BACKWARD)
		torch_launch(r, MUL, i, NULL);
	torch_call(r, NPS_PROBE_TORCH_NODE, 0, start, r->now, r->nodes[node], number, 0x7f00 + number * 64);
	r->now += 90;
}

/* Backward pass of the last numbers, in another thread. */
static void torch_backward(struct rank *r, unsigned int i)
{
	uint64_t start = r->now, same = r->sequence - 2;

	r->tid += OTHER; /* gets a number that the rank's thread has got, too */
	torch_launch(r, MUL, i, &same);
	r->tid += AUTOGRAD - OTHER;
	r->now += 500;
	for (unsigned int n = 1; n <= 10; n++)
		torch_node(r, n == 4 ? CUSTOM : ADDMM_BACKWARD, r->sequence - n, i + n);
	torch_node(r, ACCUMULATE, ~0ULL, i);
	torch_node(r, STRANGE, 3, i); /* its number is from before the capture */
	r->tid -= AUTOGRAD;
	torch_call(r, NPS_PROBE_TORCH_BACKWARD, 0, start, r->now, 0, 0, 0);
	r->now += 400;
}

/* Open when the capture ends. */
static void torch_open(struct rank *r)
{
	torch_call(r, NPS_PROBE_TORCH_OP, NPS_F_UNFINISHED, r->now + 100, r->now + 900, r->ops[MATMUL], 0, 0);
}

static int by_start(const void *a, const void *b)
{
	const struct {
		uint64_t time;
	} *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

static void device_log(struct rank *r, const uint8_t *types)
{
	struct record {
		uint64_t time;
		uint32_t row, end;
	} *records = calloc(2 * r->ntruth + 1, sizeof(*records));

	need(records != NULL, "calloc");
	for (size_t i = 0; i < r->ntruth; i++) {
		records[2 * i] = (struct record){ r->truth[i].start, i, 0 };
		records[2 * i + 1] = (struct record){ r->truth[i].end, i, 1 };
	}
	qsort(records, 2 * r->ntruth, sizeof(*records), by_start);
	gen_soc_open(r->gen, r->pid, r->device);
	for (size_t i = 0; i < 2 * r->ntruth; i++) {
		const struct gen_task *t = &r->truth[records[i].row];

		if (r->job->lose_every && records[i].row % r->job->lose_every == 0)
			continue;
		gen_soc(r->gen, records[i].end, types[records[i].row], t->stream, t->task, records[i].time);
	}
	gen_soc_close(r->gen);
	free(records);
}

static uint8_t type_of(const struct gen_task *t)
{
	static const struct {
		const char *name;
		uint8_t type;
	} types[] = { { "MEMCPY_ASYNC", 17 },
		      { "EVENT_RECORD", 4 },
		      { "NOTIFY_RECORD", 6 },
		      { "NOTIFY_WAIT", 7 },
		      { "SDMA", 11 } };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(t->name, types[i].name))
			return types[i].type;
	return 0;
}

static void run_rank(struct gen *gen, struct gen_job *job, unsigned int number, const uint64_t *names,
		     const uint64_t *l0_names, uint64_t comm_name)
{
	struct rank r = { .gen = gen,
			  .job = job,
			  .pid = 4000 + number * 100,
			  .tid = 4000 + number * 100,
			  .device = number,
			  .now = GEN_T0 + 5000000 + number * 1000,
			  .truth = job->truth + number * job->stride };
	uint8_t *types;

	r.sequence = FIRST_SEQUENCE;
	for (unsigned int i = 0; job->ops && i < TORCH_OPS; i++)
		r.ops[i] = gen_text(gen, torch_ops[i]);
	for (unsigned int i = 0; job->ops && i < TORCH_NODES; i++)
		r.nodes[i] = gen_text(gen, torch_nodes[i]);
	memcpy(r.names, names, 4 * sizeof(*names));
	memcpy(r.l0s, l0_names, 4 * sizeof(*names));
	gen_comm(gen, r.tid, GEN_T0, "python3");
	gen_comm(gen, r.tid + 1, GEN_T0, "worker \"x\"");
	gen_api(gen, r.pid, r.tid, NPS_PROBE_SET_DEVICE, r.now, r.now + 9000, r.device, 0, 0, 0);
	r.now += 10000;
	gen_api(gen, r.pid, r.tid, NPS_PROBE_HCCL_COMM_NAME, r.now, r.now + 2000, 0xc0c0, comm_name, 0, 0);
	gen_api(gen, r.pid, r.tid, NPS_PROBE_HCCL_RANK_SIZE, r.now + 2500, r.now + 3000, 0xc0c0, job->ranks,
		0, 0);
	r.now += 10000;
	for (unsigned int i = 0; i < job->launches; i++) {
		if (i % 100 == 0)
			gen_mark(gen, r.pid, r.tid, NPS_PROBE_STEP_MARKER, r.now - 100, 0, 10 + i / 100, 0);
		if (job->ops)
			torch_forward(&r, i);
		else
			op(&r, i);
		if (i % 50 == 49)
			copy_in(&r);
		if (job->ops && i % 50 == 49)
			torch_backward(&r, i);
		if (i % 100 == 99) {
			event_record(&r);
			all_reduce(&r);
			synchronize(&r);
		}
		if (job->os && i % 10 == 0)
			os_noise(&r, i / 10);
		if (job->memory && i % 10 == 5)
			use_memory(&r, i / 10);
	}
	synchronize(&r);
	gen_mark(gen, r.pid, r.tid, NPS_PROBE_STEP_MARKER, r.now, 0, 10 + job->launches / 100, 0);
	if (job->ops)
		torch_open(&r);
	job->per_rank = r.ntruth;
	for (uint64_t t = GEN_T0; job->agent && t < r.now + 500000000; t += 500000000)
		gen_device_clock(gen, r.pid, r.device, t, t % 3 ? 4000 : 2500);
	if (!job->agent)
		return;
	types = calloc(r.ntruth + 1, 1);
	need(types != NULL, "calloc");
	for (size_t i = 0; i < r.ntruth; i++)
		types[i] = type_of(&r.truth[i]);
	device_log(&r, types);
	free(types);
}

void gen_job(const char *dir, struct gen_job *job)
{
	uint64_t names[4], l0_names[4], comm;
	char processes[8192] = "", devices[1024] = "";
	struct gen gen;

	job->stride = job->launches + job->launches / 50 * (job->ops ? 12 : 1) + job->launches / 100 * 7 + 16;
	job->truth = calloc(job->stride * job->ranks, sizeof(*job->truth));
	need(job->truth != NULL, "calloc");
	gen_open(&gen, dir);
	for (unsigned int i = 0; i < 4; i++) {
		names[i] = gen_text(&gen, apis[i]);
		l0_names[i] = gen_text(&gen, l0s[i]);
	}
	comm = gen_text(&gen, "group_name_0");
	for (unsigned int r = 0; r < job->ranks; r++) {
		run_rank(&gen, job, r, names, l0_names, comm);
		snprintf(processes + strlen(processes), sizeof(processes) - strlen(processes),
			 "%s{\"pid\": %u, \"comm\": \"python3\", \"rank\": %u, \"world_size\": %u, "
			 "\"task_source\": \"%s\", \"prof_dir\": \"PROF_%u\", "
			 "\"env\": {\"ASCEND_LAUNCH_BLOCKING\": \"0\"}}",
			 r ? ", " : "", 4000 + r * 100, r, job->ranks, job->agent ? "agent" : "host",
			 4000 + r * 100);
		snprintf(devices + strlen(devices), sizeof(devices) - strlen(devices),
			 "%s{\"id\": %u, \"freq_khz\": 50000, \"chip\": \"Ascend910B\"}", r ? ", " : "", r);
	}
	for (uint64_t t = GEN_T0; t < gen.last + 1000000000; t += 1000000000)
		gen_clock(&gen, t);
	gen_close(&gen, true, processes, devices, "\"libdemo.so:step@2\"");
}

char *gen_temp_dir(void)
{
	const char *root = getenv("TMPDIR");
	char path[512];

	snprintf(path, sizeof(path), "%s/npuscope-test.XXXXXX", root && *root ? root : "/tmp");
	need(mkdtemp(path) != NULL, path);
	return strdup(path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

void gen_remove(char *dir)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(dir);
}
