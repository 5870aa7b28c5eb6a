/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/import.h"

#include "agent.h"
#include "base/progress.h"
#include "import/cann/control.h"
#include "import/session/catalog_info.h"
#include "import/session/completions.h"
#include "schema/tables.h"
#include "import/session/import_driver.h"
#include "import/session/os_calls.h"
#include "import/session/python_stacks.h"
#include "import/session/session_reader.h"
#include "import/session/torch_ops.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define DAY 86400000000000ULL

/* A text of which more records may come. */
struct long_text {
	bool open, cut;
	uint64_t id;
	size_t len;
	char bytes[NPS_TEXT_MAX + 8];
};

struct session_import {
	struct nps_session *model;
	struct nps_map loss_rows; /* kind << 32 | cpu -> row of losses */
	struct nps_vec losses; /* struct nps_loss */
	uint64_t last; /* latest time seen */
	uint64_t last_call; /* end of the last of model->events */
	uint64_t strange; /* events with impossible times or processes */
	uint64_t foreign; /* chunks of a file that belong into another */
	bool mapped; /* the session was recorded with another catalogue */
	struct nps_map probe_of; /* row of that one -> row of ours */
	uint64_t unlisted; /* events of probes that it does not list */
	struct long_text text;
};

/* A text is complete when another one begins, or the file ends. */
static int finish_text(struct session_import *in)
{
	static const char cut[] = " [cut]";
	struct long_text *t = &in->text;
	uint32_t text;

	if (!t->open)
		return 0;
	t->open = false;
	if (t->cut) {
		memcpy(t->bytes + t->len, cut, sizeof(cut) - 1);
		t->len += sizeof(cut) - 1;
	}
	text = nps_strings__add(&in->model->strings, t->bytes, t->len);
	return text == NPS_NONE ? -ENOMEM : nps_map__put(&in->model->string_ids, t->id, text);
}

static void long_text_add(struct long_text *t, const struct nps_string *s)
{
	size_t len = NPS_MIN(s->len, NPS_STR_MAX - 1);

	len = NPS_MIN(len, NPS_TEXT_MAX - t->len);
	memcpy(t->bytes + t->len, s->text, len);
	t->len += len;
	t->cut = s->flags & NPS_STR_CUT;
}

/* Whether TEXT is the name of a thread of the helper library, which the process PID may have. */
static bool is_helper_name(const struct nps_session *model, uint32_t pid, uint32_t text)
{
	uint32_t row = nps_map__get(&model->proc_of, pid);

	return !strcmp(nps_strings__get(&model->strings, text), NPS_AGENT_COMM) &&
	       (row == NPS_NONE || !model->procs[row].without_helper);
}

static int import_text(struct session_import *in, const struct nps_string *s)
{
	uint32_t text;
	int err;

	if (s->kind == NPS_STR_MORE) {
		if (in->text.open && in->text.id == s->id)
			long_text_add(&in->text, s);
		return 0;
	}
	err = finish_text(in);
	if (err)
		return err;
	if (s->kind == NPS_STR_TEXT) {
		in->text = (struct long_text){ .open = true, .id = s->id };
		long_text_add(&in->text, s);
		return 0;
	}
	text = nps_strings__add(&in->model->strings, s->text,
				strnlen(s->text, NPS_MIN(s->len, NPS_STR_MAX - 1)));
	if (text == NPS_NONE)
		return -ENOMEM;
	if (s->kind != NPS_STR_COMM)
		return 0;
	if (!in->model->show_self)
		err = nps_history__add(&in->model->agents, (uint64_t)s->pid << 32 | (uint32_t)s->id, s->time,
				       is_helper_name(in->model, s->pid, text));
	return err ? err : nps_history__add(&in->model->comms, (uint32_t)s->id, s->time, text);
}

/* A chunk of a kind that the file does not hold. */
static int foreign(struct session_import *in)
{
	in->foreign++;
	return 0;
}

static int on_strings(void *ctx, const struct nps_chunk *chunk, const void *payload)
{
	const struct nps_string *s = payload;
	int err = 0;

	if (chunk->type != NPS_CHUNK_STRINGS)
		return foreign(ctx);
	for (size_t i = 0; !err && i < chunk->len / sizeof(*s); i++)
		err = import_text(ctx, &s[i]);
	return err;
}

static int on_clocks(void *ctx, const struct nps_chunk *chunk, const void *payload)
{
	struct session_import *in = ctx;
	struct nps_vec *to;
	size_t n, have;
	int err;

	if (chunk->type == NPS_CHUNK_CLOCKS)
		to = &in->model->clocks;
	else if (chunk->type == NPS_CHUNK_DEVICE_CLOCKS)
		to = &in->model->device_clocks;
	else
		return foreign(in);
	n = chunk->len / to->elem;
	if (!n)
		return 0; /* an empty array has no address to copy to */
	have = to->len;
	err = nps_vec__resize(to, have + n);
	if (err)
		return err;
	memcpy((char *)to->data + have * to->elem, payload, chunk->len);
	/* Clocks that run backwards or are of another time cannot be interpolated. */
	if (chunk->type == NPS_CHUNK_CLOCKS) {
		const struct nps_clock *c = payload;

		to->len = have;
		for (size_t i = 0; i < n; i++) {
			if ((to->len && NPS_AT(to, struct nps_clock, to->len - 1).raw >= c[i].raw) ||
			    c[i].mono > in->model->begin + 30 * DAY || c[i].raw > INT64_MAX / 2)
				continue;
			NPS_AT(to, struct nps_clock, to->len++) = c[i];
			in->last = NPS_MAX(in->last, c[i].mono);
		}
	}
	return 0;
}

static int on_loss(struct session_import *in, const struct nps_loss *loss)
{
	uint64_t key = (uint64_t)loss->kind << 32 | loss->cpu;
	uint32_t row = nps_map__get(&in->loss_rows, key);
	struct nps_loss *copy;
	int err;

	if (row == NPS_NONE) {
		copy = nps_vec__push(&in->losses);
		if (!copy)
			return -errno;
		err = nps_map__put(&in->loss_rows, key, in->losses.len - 1);
		if (err)
			return err;
	} else {
		copy = &NPS_AT(&in->losses, struct nps_loss, row);
	}
	*copy = *loss; /* running totals: the last one counts */
	return 0;
}

/* What threads did, and how they ran: neither what the job called of CANN nor what the device completed. */
static bool is_of_thread(unsigned int kind)
{
	return kind == NPS_EV_SYSCALL || (kind >= NPS_EV_SYSCALL_SUM && kind <= NPS_EV_IO) ||
	       kind == NPS_EV_SCHED || kind == NPS_EV_IRQ ||
	       (kind >= NPS_EV_DRIVER && kind <= NPS_EV_DRIVER_DMA);
}

/* Keeps a call, or a tensor, with the number of the probe that it has in our catalogue. */
static int call_keep(struct session_import *in, struct nps_proc *proc, const struct nps_event *ev)
{
	struct nps_vec *events = &in->model->events;
	uint32_t probe = ev->probe;
	int err;

	if (ev->kind != NPS_EV_TENSOR && in->mapped) {
		probe = nps_map__get(&in->probe_of, ev->probe);
		in->unlisted += probe == NPS_NONE;
		probe = probe == NPS_NONE ? NPS_PROBE_NONE : probe;
	}
	/* Operators are around calls of CANN, and the calls in them are no parts of them. */
	if (ev->kind == NPS_EV_API && nps_torch_ops__is_probe(probe))
		events = &proc->torch;
	if (events->len >= NPS_NONE - 1)
		return -EOVERFLOW;
	err = nps_event__keep(events, ev);
	if (!err && ev->kind != NPS_EV_TENSOR)
		NPS_AT(events, struct nps_event, events->len - 1).probe = probe;
	return err;
}

/* Has it something else in the header than a duration? */
static bool is_moment(unsigned int kind)
{
	return kind == NPS_EV_TENSOR || kind == NPS_EV_MEMORY;
}

static int import_on_event(struct session_import *in, const struct nps_event *ev)
{
	struct nps_session *model = in->model;
	uint64_t end = is_moment(ev->kind) ? ev->start : nps_add_sat(ev->start, ev->dur);
	struct nps_proc *proc;

	if (ev->kind == NPS_EV_PROC || ev->kind == NPS_EV_NONE || ev->kind >= NPS_EV_KIND_MAX)
		return 0;
	if (ev->start + DAY < model->begin || end > model->begin + 30 * DAY || !ev->start || !ev->pid ||
	    ev->pid > INT32_MAX) {
		in->strange++;
		return 0;
	}
	proc = nps_session__proc(model, ev->pid);
	if (!proc) {
		model->losses.pids++;
		return 0;
	}
	in->last = NPS_MAX(in->last, end);
	if (is_of_thread(ev->kind) && nps_session__is_helper(model, ev->pid, ev->tid, ev->start))
		return 0;
	if (ev->kind == NPS_EV_SYSCALL || (ev->kind >= NPS_EV_SYSCALL_SUM && ev->kind <= NPS_EV_IO))
		return nps_os_calls__keep(proc, ev);
	if (ev->kind == NPS_EV_SCHED)
		return nps_event__keep(&proc->runs, ev);
	if (ev->kind == NPS_EV_IRQ)
		return nps_event__keep(&proc->irqs, ev);
	if (ev->kind >= NPS_EV_DRIVER && ev->kind <= NPS_EV_DRIVER_DMA)
		return nps_event__keep(&proc->drivers, ev);
	if (ev->kind == NPS_EV_CQE)
		return nps_completions__keep(model, proc - model->procs, ev);
	if (ev->kind == NPS_EV_PYSTACK)
		return nps_event__keep(&proc->py_entries, ev);
	if (ev->kind == NPS_EV_INPUT)
		return nps_event__keep(&proc->inputs, ev);
	if (ev->kind == NPS_EV_MEMORY)
		return nps_event__keep(&proc->allocator, ev);
	if (ev->kind > NPS_EV_PROC && ev->kind != NPS_EV_TENSOR)
		return 0; /* of no call */
	in->last_call = NPS_MAX(in->last_call, end);
	return call_keep(in, proc, ev);
}

static int on_events(void *ctx, const struct nps_chunk *chunk, const void *payload)
{
	const struct nps_loss *loss = payload;
	const struct nps_event *ev = payload;
	struct session_import *in = ctx;
	int err = 0;

	nps_progress__add(in->model->progress, chunk->len);
	if (chunk->type == NPS_CHUNK_LOSS)
		for (size_t i = 0; !err && i < chunk->len / sizeof(*loss); i++)
			err = on_loss(ctx, &loss[i]);
	else if (chunk->type == NPS_CHUNK_EVENTS)
		for (size_t i = 0; !err && i < chunk->len / sizeof(*ev); i++)
			err = import_on_event(ctx, &ev[i]);
	else
		err = foreign(in);
	return err;
}

static int on_host(void *ctx, const struct nps_chunk *chunk, const void *payload)
{
	struct session_import *in = ctx;
	struct nps_session *model = in->model;
	uint64_t first = model->begin > DAY ? model->begin - DAY : 1;
	int err = nps_host_samples__add(&model->host, &model->strings, chunk, payload, first,
					model->begin + 30 * DAY);

	nps_progress__add(model->progress, chunk->len);
	return err > 0 ? foreign(in) : err;
}

static int on_device(void *ctx, const struct nps_chunk *chunk, const void *payload)
{
	struct session_import *in = ctx;
	struct nps_session *model = in->model;
	uint64_t first = model->begin > DAY ? model->begin - DAY : 1;
	int err = nps_npu_samples__add(&model->npu, chunk, payload, first, model->begin + 30 * DAY);

	nps_progress__add(model->progress, chunk->len);
	return err > 0 ? foreign(in) : err;
}

static int import_python(struct session_import *in, bool stacks, const struct nps_chunk *chunk,
			 const void *payload)
{
	int err = nps_python_stacks__add(in->model, stacks, chunk, payload);

	nps_progress__add(in->model->progress, chunk->len);
	return err > 0 ? foreign(in) : err;
}

static int on_python_codes(void *ctx, const struct nps_chunk *chunk, const void *payload)
{
	return import_python(ctx, false, chunk, payload);
}

static int on_python_stacks(void *ctx, const struct nps_chunk *chunk, const void *payload)
{
	return import_python(ctx, true, chunk, payload);
}

static int read_chunks(struct session_import *in, const char *path, const char *name, nps_chunk_fn fn)
{
	struct nps_chunks result;
	struct stat st;
	int err;

	nps_progress__stage(in->model->progress, "reading",
			    fstatat(in->model->dirfd, name, &st, 0) ? 0 : st.st_size, NULL);
	err = nps_chunks__read(in->model->dirfd, name, fn, in, &result);

	if (err) {
		nps_msg_failure("cannot read %s/%s: %s: is the disk full, or memory?", path, name,
				strerror(-err));
		return err;
	}
	if (in->foreign) {
		nps_msg("%s/%s holds %" PRIu64 " chunks of another file: they are left out", path, name,
			in->foreign);
		in->model->losses.cut = true;
		in->foreign = 0;
	}
	if (result.unknown) {
		nps_msg("%s/%s holds %" PRIu64
			" chunks of types that this program does not know: they are left "
			"out: is there a newer npuscope?",
			path, name, result.unknown);
		in->model->losses.cut = true;
	}
	switch (result.end) {
	case NPS_CHUNKS_COMPLETE:
		return 0;
	case NPS_CHUNKS_VERSION:
		nps_msg_failure(
			"cannot read %s/%s: it has version %u, this program reads version %d: use a matching "
			"npuscope",
			path, name, result.version, NPS_SESSION_VERSION);
		return -EPROTO;
	case NPS_CHUNKS_MISSING:
		nps_msg("%s/%s is missing: the session is incomplete: what is there is used", path, name);
		break;
	case NPS_CHUNKS_UNREADABLE:
		break;
	case NPS_CHUNKS_CUT:
	case NPS_CHUNKS_DAMAGED:
		nps_msg("%s/%s is %s after %" PRIu64 " bytes (%" PRIu64
			" chunks): the capture was interrupted: what is before it is used",
			path, name, result.end == NPS_CHUNKS_CUT ? "cut off" : "damaged", result.bytes,
			result.chunks);
		break;
	}
	in->model->losses.cut = true;
	return 0;
}

/* Did it exit before `record` could read it? */
static bool was_unread(const cJSON *json)
{
	return strcmp(nps_json_str(json, "known_from", "proc"), "proc") != 0;
}

/*
 * Whether the process of JSON is known not to have the helper library: then a thread with the name of the
 * library's thread is the job's. It is not known where mappings were left out, or were read before the
 * loader was done.
 */
static bool is_without_helper(const cJSON *json)
{
	const cJSON *maps = cJSON_GetObjectItemCaseSensitive(json, "maps"), *mapping;
	bool loaded = false;

	if (cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "left_out")) ||
	    !strcmp(nps_json_str(json, "task_source", ""), "agent"))
		return false;
	cJSON_ArrayForEach(mapping, maps)
	{
		const char *path = nps_json_str(mapping, "path", ""), *slash = strrchr(path, '/');
		const char *file = slash ? slash + 1 : path;

		if (!strncmp(file, NPS_AGENT_LIBRARY, strlen(NPS_AGENT_LIBRARY)))
			return false;
		loaded |= !strncmp(file, "libc.so", 7) || !strncmp(file, "libc-", 5);
	}
	return loaded;
}

/* *REUSED counts those that have a pid of one before them. */
static int import_process(struct nps_session *model, const cJSON *json, uint64_t *reused)
{
	struct nps_proc *proc;
	uint64_t pid, rank;
	bool first;

	if (!nps_json_has_u64(json, "pid", &pid) || !pid || pid > INT32_MAX)
		return 0;
	proc = nps_session__proc(model, pid);
	if (!proc)
		return model->nprocs >= NPS_MAX_PROCS ? 0 : -ENOMEM;
	if (proc->json && cJSON_HasObjectItem(json, "known_from"))
		*reused += 1;
	first = !proc->json;
	if (!first && was_unread(json))
		return 0; /* the pid is better known as another's */
	/* One that lived for a moment is worth a result only if it left any event. */
	proc->known = !was_unread(json);
	proc->json = json;
	/* Events of all that had the pid are shown as one's. */
	proc->without_helper = (first || proc->without_helper) && is_without_helper(json);
	proc->has_rank = nps_json_has_u64(json, "rank", &rank) &&
			 rank < 100000; /* five digits in file names */
	proc->rank = proc->has_rank ? rank : 0;
	proc->world_size = nps_json_u64(json, "world_size", 0);
	proc->comm = nps_strings__addz(&model->strings, nps_json_str(json, "comm", "unknown"));
	return 0;
}

/* Processes that exited at once come last: there may be more than there is room for. */
static int session_import_processes(struct nps_session *model, const char *path)
{
	const cJSON *item, *list = cJSON_GetObjectItemCaseSensitive(model->json, "processes");
	uint64_t reused = 0;
	int err = 0;

	for (int unread = 0; unread < 2; unread++)
		cJSON_ArrayForEach(item, list)
		{
			if (!err && was_unread(item) == (unread != 0))
				err = import_process(model, item, &reused);
		}
	if (reused) {
		nps_msg("%" PRIu64
			" processes of %s had the pid of another one that had ended: what these did is "
			"shown as one, under one of their names",
			reused, path);
		model->losses.cut = true;
	}
	return err;
}

static void import_drops(struct nps_session *model)
{
	static const struct {
		const char *name;
		unsigned int kind;
#define KIND(id, name, words) { name, id },
	} kinds[] = { NPS_EVENT_KINDS(KIND){ "strings", NPS_STR_TEXT } };
#undef KIND
	const cJSON *drops = cJSON_GetObjectItemCaseSensitive(model->json, "drops"), *agent;
	const cJSON *ring = cJSON_GetObjectItemCaseSensitive(drops, "ring");

	for (size_t i = 0; i < NPS_ARRAY_SIZE(kinds); i++) {
		uint64_t *lost = &model->losses.ring[kinds[i].kind];

		*lost = NPS_MAX(*lost, nps_json_u64(ring, kinds[i].name, 0));
	}
	model->losses.agent_bytes = NPS_MIN(nps_json_u64(drops, "profiler", 0), 1000000000000000000ULL);
	model->losses.sqe = nps_json_u64(drops, "sqe", 0);
	model->losses.host = nps_json_u64(drops, "host", 0);
	model->losses.device_samples = nps_json_u64(drops, "device", 0);
	cJSON_ArrayForEach(agent,
			   cJSON_GetObjectItemCaseSensitive(drops, "agent")) if (cJSON_IsNumber(agent) &&
										 agent->valuedouble > 0)
		model->losses.agent_bytes =
		nps_add_sat(model->losses.agent_bytes, NPS_MIN(agent->valuedouble, 1e18));
}

/*
 * The session lists the function of each number in its events, as catalogues grow. If it was written with
 * the same catalogue, or before sessions had lists, the numbers are ours.
 */
static int map_probes(struct session_import *in)
{
	const cJSON *item, *list = cJSON_GetObjectItemCaseSensitive(in->model->json, "probes");
	uint64_t ours = crc32(0, (const Bytef *)NPS_CATALOG_TEXT, sizeof(NPS_CATALOG_TEXT) - 1);
	int err = 0;

	in->mapped = cJSON_IsArray(list) && nps_json_u64(in->model->json, "catalogue", 0) != ours;
	if (!in->mapped)
		return 0;
	cJSON_ArrayForEach(item, list)
	{
		uint64_t id = nps_json_u64(item, "id", 0);
		const char *symbol = nps_json_str(item, "symbol", NULL);

		if (!err && symbol && id && id <= UINT16_MAX)
			err = nps_map__put(&in->probe_of, id, nps_probe_of(symbol));
	}
	return err;
}

static void import_device(struct nps_session *model, const cJSON *item)
{
	uint64_t id = nps_json_u64(item, "id", NPS_MAX_DEVICES), platform;
	struct nps_device *device;

	if (id >= NPS_MAX_DEVICES)
		return;
	device = &model->devices[id];
	device->freq_khz = NPS_MIN(nps_json_u64(item, "freq_khz", 0), 10000000U);
	device->chip = nps_json_str(item, "chip", NULL);
	device->json = item;
	device->has_platform = nps_json_has_u64(item, "platform", &platform) && nps_chip_known(platform);
	device->platform = device->has_platform ? (uint32_t)platform : 0;
	if (!device->has_platform && nps_json_has_u64(item, "platform", &platform))
		nps_msg("device %" PRIu64 ": its chip has the number %" PRIu64
			", which is unknown: its log is read as it "
			"looks: is there a newer npuscope?",
			id, platform);
}

static int import_json(struct nps_session *model, const char *path)
{
	const cJSON *start, *capture, *request, *item;
	uint64_t mono, version;
	int err;

	model->json = nps_session__json(model->dirfd, "session.json");
	if (!model->json && errno == ENOENT && faccessat(model->dirfd, "events.nps", F_OK, 0)) {
		nps_msg_failure(
			"cannot analyse %s: nothing was recorded: npuscope record was killed before it "
			"began: remove it, and record again",
			path);
		return -ENOENT;
	}
	if (!model->json) {
		err = errno;
		nps_msg_failure(
			"cannot read %s/session.json: %s: is this a session directory of npuscope record?",
			path, err == EILSEQ ? "it is not valid JSON" : strerror(err));
		return -err;
	}
	if (strcmp(nps_json_str(model->json, "format", ""), "npuscope-session")) {
		nps_msg_failure(
			"cannot read %s: its session.json is not of format npuscope-session: name a session "
			"directory",
			path);
		return -EPROTO;
	}
	version = nps_json_u64(model->json, "version", 0);
	if (version != NPS_SESSION_VERSION) {
		nps_msg_failure("cannot read %s: the session has version %" PRIu64
				", this program reads version %d: use a matching npuscope",
				path, version, NPS_SESSION_VERSION);
		return -EPROTO;
	}
	request = cJSON_GetObjectItemCaseSensitive(model->json, "request");
	model->host.all = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(request, "all"));
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(request, "host_sys"))
	{
		const char *part = cJSON_GetStringValue(item);

		model->host.requested |= part && strcmp(part, "osrt") != 0;
	}
	model->npu.requested =
		cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(model->json, "device_sampler"));
	model->has_python = *nps_json_str(request, "py_stacks", "");
	model->complete = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(model->json, "complete"));
	start = cJSON_GetObjectItemCaseSensitive(model->json, "start");
	capture = cJSON_GetObjectItemCaseSensitive(model->json, "capture");
	mono = nps_json_u64(start, "monotonic", 0);
	model->begin = nps_json_u64(capture, "begin_monotonic", mono);
	model->end = nps_json_u64(capture, "end_monotonic", 0);
	model->begin_real = nps_json_u64(start, "realtime", 0) + (model->begin - mono);
	if (!strcmp(nps_json_str(model->json, "end_reason", ""), "starting")) {
		nps_msg_failure("cannot analyse %s: nothing was recorded: npuscope record was killed before "
				"recording began, or has not begun yet: wait, or record again",
				path);
		return -ENODATA;
	}
	if (!mono || !model->begin || model->begin > INT64_MAX / 2 ||
	    model->begin_real - DAY > INT64_MAX / 2) {
		nps_msg_failure(
			"cannot read %s: session.json has no usable start times: the capture ended before it "
			"began",
			path);
		return -EPROTO;
	}
	err = session_import_processes(model, path);
	if (err)
		return err;
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(model->json, "devices"))
		import_device(model, item);
	return 0;
}

/*
 * BPF programs are stopped one after the other: calls can return after the moment at which the open ones
 * were cut, and the calls around them cannot have returned earlier.
 */
static void extend_open_calls(const struct session_import *in, const struct nps_vec *events)
{
	for (size_t i = 0; i < events->len; i++) {
		struct nps_event *ev = &NPS_AT(events, struct nps_event, i);

		if (ev->kind == NPS_EV_API && ev->flags & NPS_F_UNFINISHED && ev->start < in->last_call)
			ev->dur = in->last_call - ev->start;
	}
}

/* The end of the capture: as recorded, or, after a cut, the last thing that was seen. */
static void set_end(struct session_import *in, const char *path)
{
	struct nps_session *model = in->model;

	if (!model->complete) {
		const char *reason = nps_json_str(model->json, "end_reason", "");

		model->losses.cut = true;
		nps_msg("%s is not complete: %s: its end is the last event", path,
			!strcmp(reason, "running") || !*reason
				? "the capture was killed, could not write its end, or still runs"
			: !strcmp(reason, "disk full") ? "the disk was full"
						       : "part of it could not be written");
	}
	if (!model->complete || model->end < model->begin || model->end > model->begin + 30 * DAY)
		model->end = NPS_MAX(in->last, model->begin);
}

/* Threads of the helper library, by their name, which the kernel reported. */
static int find_helpers(struct nps_session *model)
{
	int err = nps_history__finish(&model->agents);

	if (err)
		return err;
	err = nps_history__keys(&model->agents, 1, &model->helpers);
	if (err)
		return err;
	for (size_t i = 0; i < model->helpers.size; i++) {
		const struct nps_map_slot *slot = &model->helpers.slots[i];
		uint32_t row = slot->used ? nps_map__get(&model->proc_of, slot->key >> 32) : NPS_NONE;

		if (row != NPS_NONE)
			model->procs[row].helper_threads++;
	}
	return 0;
}

/* Twice: a stack may be stored before a code object in it. */
static int read_python(struct session_import *in, const char *path)
{
	int err = read_chunks(in, path, "python.nps", on_python_codes);

	if (err)
		return err;
	err = read_chunks(in, path, "python.nps", on_python_stacks);
	if (in->model->python.damaged) {
		nps_msg("%s/python.nps holds %" PRIu64
			" chunks that make no sense: the rest of each is left out",
			path, in->model->python.damaged);
		in->model->losses.cut = true;
	}
	if (in->model->python.unsearched)
		nps_msg("%s/python.nps: lines of %" PRIu64 " frames are 0: line tables are too large", path,
			in->model->python.unsearched);
	return err;
}

/* Reads the session's files: those that events refer to come first. */
static int read_files(struct session_import *in, const char *path)
{
	struct nps_session *model = in->model;
	int err = map_probes(in);

	if (err)
		return err;
	err = read_chunks(in, path, "clocks.nps", on_clocks);
	if (err)
		return err;
	err = read_chunks(in, path, "strings.nps", on_strings);
	if (err)
		return err;
	err = finish_text(in);
	if (err)
		return err;
	err = nps_history__finish(&model->comms);
	if (err)
		return err;
	err = find_helpers(model);
	if (err)
		return err;
	err = read_chunks(in, path, "events.nps", on_events);
	if (err)
		return err;
	extend_open_calls(in, &model->events);
	for (uint32_t p = 0; p < model->nprocs; p++)
		extend_open_calls(in, &model->procs[p].torch);
	if (model->host.requested)
		err = read_chunks(in, path, "host.nps", on_host);
	if (err)
		return err;
	if (model->npu.requested)
		err = read_chunks(in, path, "device.nps", on_device);
	return err || !model->has_python ? err : read_python(in, path);
}

int nps_import__session(struct nps_session *model, const char *path)
{
	struct session_import in = { .model = model };
	int err = import_json(model, path);

	if (err)
		return err;
	nps_vec__init(&in.losses, model->tmpfd, sizeof(struct nps_loss));
	err = read_files(&in, path);
	for (size_t i = 0; i < in.losses.len; i++) {
		const struct nps_loss *loss = &NPS_AT(&in.losses, struct nps_loss, i);

		if (loss->kind < NPS_ARRAY_SIZE(model->losses.ring))
			model->losses.ring[loss->kind] =
				nps_add_sat(model->losses.ring[loss->kind], loss->lost);
	}
	import_drops(model);
	for (size_t i = 0; i < model->host.processes.len; i++)
		in.last = NPS_MAX(in.last, NPS_AT(&model->host.processes, struct nps_host_process, i).time);
	set_end(&in, path);
	in.strange += model->host.strange + model->npu.strange;
	if (in.strange)
		nps_msg("%" PRIu64
			" events of %s have impossible times or processes: they are damaged: left out",
			in.strange, path);
	if (in.unlisted)
		nps_msg("%" PRIu64
			" events of %s are of probes that its session.json does not list: it was cut short: "
			"left out",
			in.unlisted, path);
	if (model->losses.pids)
		nps_msg("%" PRIu64 " events of %s belong to more than %d processes: left out",
			model->losses.pids, path, NPS_MAX_PROCS);
	model->losses.cut |= in.strange || in.unlisted;
	nps_map__free(&in.loss_rows);
	nps_map__free(&in.probe_of);
	nps_vec__free(&in.losses);
	return err;
}
