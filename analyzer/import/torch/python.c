/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * torch.python_tracer_func: calls and returns of Python and C functions; torch.python_tracer_hash: their
 * names. Rows are by start. As in the vendor's tools a call's id is its number among all calls and returns,
 * calls that never returned end with the last event, and modules are numbered by class in order of their
 * first call.
 */
#include "base/ext_sort.h"
#include "import/torch/framework.h"
#include "import/torch/records.h"

#include <errno.h>
#include <stdio.h>

#define KIND 4
#define FIXED 8
#define NAME 1
#define CALL_SIZE 33
#define NAMES (1UL << 20) /* names that are kept; a job has some thousands */
#define DEPTH 1024 /* open calls among which that of a return is looked for */
#define MODULE "######" /* separates a module's class from what identifies it in that class */

enum python_tag { CALL, RETURN, C_CALL, C_RETURN, TAGS };

struct python_event {
	struct nps_sort_key order; /* time; 0 */
	uint64_t gtid, key;
	uint32_t tag, unused;
};

/* What a key stands for. */
struct python_function {
	uint32_t name; /* of a module: its class until it is called first */
	bool is_module, called;
	uint32_t module; /* its number once it was called */
};

struct python_call {
	uint64_t key;
	int64_t id;
	uint32_t row, below;
	uint32_t tag, unused;
};

struct python_thread {
	uint64_t gtid;
	uint32_t top; /* innermost open call */
};

struct python {
	struct nps_framework *fw;
	struct nps_ext_sort events;
	struct nps_map by_key; /* -> function */
	struct nps_fw_memo by_name; /* raw name -> function */
	struct nps_vec functions; /* struct python_function */
	struct nps_map classes; /* text of the class -> modules that were called */
	struct nps_map by_gtid; /* -> thread */
	struct nps_vec threads; /* struct python_thread */
	struct nps_vec calls; /* struct python_call */
	uint32_t spare; /* first unused one of them */
	uint64_t last; /* time of the last event */
	uint64_t unpaired, nameless, surplus;
};

/* --- names --- */

static int add_function(struct python *p, const struct nps_fw_text *name, uint32_t *number)
{
	const char *stop = memmem(name->text, name->len, MODULE, sizeof(MODULE) - 1);
	struct python_function *function = nps_vec__push(&p->functions);
	size_t len = stop ? (size_t)(stop - name->text) : name->len;

	if (!function)
		return -errno;
	function->is_module = stop;
	function->name = nps_fw_intern(p->fw->model->strings, name->text, len);
	*number = p->functions.len - 1;
	return function->name == NPS_NONE ? -ENOMEM : 0;
}

static int read_names(struct python *p)
{
	struct nps_fw_record record;
	struct nps_fw_file file;
	int err = nps_fw_file__open(&file, p->fw->model, p->fw->dirfd, "torch.python_tracer_hash");

	if (err)
		return err == -ENOMEM ? err : 0;
	while (!err && nps_fw_file__typed(&file, KIND, FIXED, &record)) {
		const struct nps_fw_text *name = &record.fields[NAME];
		uint32_t *number;

		if (!name->there) {
			file.damaged++;
			continue;
		}
		if (p->functions.len >= NAMES || p->by_key.len >= NAMES) {
			p->surplus++;
			continue;
		}
		number = nps_fw_memo__at(&p->by_name, name->text, name->len);
		if (!number) {
			err = -ENOMEM;
			break;
		}
		if (*number == NPS_NONE)
			err = add_function(p, name, number);
		if (err)
			break;
		err = nps_map__put(&p->by_key, nps_fw_u64(record.fixed), *number);
	}
	nps_fw_file__close(&file);
	return err;
}

/* A module gets its number with its first call. */
static int number_module(struct python *p, struct python_function *function)
{
	struct nps_strings *strings = p->fw->model->strings;
	uint32_t number = nps_map__get(&p->classes, function->name);
	size_t len = strlen(nps_strings__get(strings, function->name));
	struct nps_vec text;
	char *to;
	int err;

	number = number == NPS_NONE ? 0 : number;
	err = nps_map__put(&p->classes, function->name, number + 1);
	if (err)
		return err;
	nps_vec__init(&text, p->fw->model->tmpfd, 1);
	err = nps_vec__resize(&text, len + 16);
	if (err)
		goto out;
	to = text.data;
	memcpy(to, nps_strings__get(strings, function->name), len);
	len += snprintf(to + len, 16, "_%u", number);
	function->name = nps_fw_intern(strings, to, len);
	function->module = number;
	err = function->name == NPS_NONE ? -ENOMEM : 0;
out:
	nps_vec__free(&text);
	return err;
}

/* --- calls --- */

static int python_read_events(struct python *p)
{
	struct nps_fw_file file;
	const uint8_t *bytes;
	int err = nps_fw_file__open(&file, p->fw->model, p->fw->dirfd, "torch.python_tracer_func");

	if (err)
		return err == -ENOMEM ? err : 0;
	while (!err && (bytes = nps_fw_file__plain(&file, CALL_SIZE))) {
		struct python_event *event;
		uint64_t ns;

		if (bytes[32] >= TAGS || !nps_framework__ns(p->fw, nps_fw_i64(bytes), &ns)) {
			file.damaged++;
			continue;
		}
		event = nps_ext_sort__add(&p->events);
		if (!event) {
			err = p->events.err;
			break;
		}
		*event = (struct python_event){
			.order.high = ns,
			.gtid = nps_framework__gtid(p->fw, nps_fw_u64(bytes + 16), nps_fw_u64(bytes + 8)),
			.key = nps_fw_u64(bytes + 24),
			.tag = bytes[32],
		};
		p->last = NPS_MAX(p->last, ns);
	}
	nps_fw_file__close(&file);
	return err;
}

static struct python_call *python_call(const struct python *p, uint32_t i)
{
	return &NPS_AT(&p->calls, struct python_call, i);
}

static struct python_thread *python_thread(struct python *p, uint64_t gtid)
{
	uint32_t i = nps_map__get(&p->by_gtid, gtid);
	struct python_thread *thread;

	if (i != NPS_NONE)
		return &NPS_AT(&p->threads, struct python_thread, i);
	thread = nps_vec__push(&p->threads);
	if (!thread || nps_map__put(&p->by_gtid, gtid, p->threads.len - 1))
		return NULL;
	*thread = (struct python_thread){ gtid, NPS_NONE };
	return thread;
}

static int python_name_call(struct python *p, uint64_t key, uint32_t *name, int64_t *module)
{
	uint32_t i = nps_map__get(&p->by_key, key);
	struct python_function *function;
	int err = 0;

	*name = NPS_NONE;
	*module = NPS_NULL;
	if (i == NPS_NONE) {
		p->nameless++;
		return 0;
	}
	function = &NPS_AT(&p->functions, struct python_function, i);
	if (function->is_module && !function->called)
		err = number_module(p, function);
	function->called = true;
	*name = function->name;
	if (function->is_module)
		*module = function->module;
	return err;
}

/* The outermost call of a thread has no parent; that of the first thread is its own, as with the vendor. */
static int64_t parent_of(const struct python *p, const struct python_thread *thread, int64_t id)
{
	if (thread->top != NPS_NONE)
		return python_call(p, thread->top)->id;
	return id ? NPS_NULL : 0;
}

static int python_call_begin(struct python *p, struct python_thread *thread, const struct python_event *event,
			     int64_t id)
{
	struct nps_torch_table *t = &p->fw->model->torch;
	uint32_t name, at = p->spare;
	int64_t module;
	size_t row;
	int err = python_name_call(p, event->key, &name, &module);

	if (err)
		return err;
	err = nps_torch_rows__add(p->fw->model, event->order.high, event->order.high, event->gtid, name,
				  NPS_API_PYTHON, &row);
	if (err)
		return err;
	t->python_id[row] = id;
	t->python_parent[row] = parent_of(p, thread, id);
	t->python_module[row] = module;
	if (at != NPS_NONE) {
		p->spare = python_call(p, at)->below;
	} else {
		at = p->calls.len;
		if (!nps_vec__push(&p->calls))
			return -errno;
	}
	*python_call(p, at) = (struct python_call){ event->key, id, row, thread->top, event->tag, 0 };
	thread->top = at;
	return 0;
}

static void end_top(struct python *p, struct python_thread *thread, uint64_t time)
{
	struct python_call *call = python_call(p, thread->top);
	uint32_t top = thread->top;

	p->fw->model->torch.end[call->row] = time;
	nps_model__cover(p->fw->model, 0, time);
	thread->top = call->below;
	call->below = p->spare;
	p->spare = top;
}

/* The open call that EVENT ends, NPS_NONE if there is none. */
static uint32_t python_open_call(const struct python *p, const struct python_thread *thread,
				 const struct python_event *event)
{
	uint32_t at = thread->top, function = nps_map__get(&p->by_key, event->key);

	for (int depth = 0; at != NPS_NONE && depth < DEPTH; depth++, at = python_call(p, at)->below)
		if (python_call(p, at)->key == event->key)
			return at;
	if (function != NPS_NONE && NPS_AT(&p->functions, struct python_function, function).called)
		return NPS_NONE;
	/* A return whose function was not called ends the innermost call of its language. */
	at = thread->top;
	for (int depth = 0; at != NPS_NONE && depth < DEPTH; depth++, at = python_call(p, at)->below)
		if (python_call(p, at)->tag + 1 == event->tag)
			return at;
	return NPS_NONE;
}

/* A call whose return was not seen ends with the one around it. */
static void python_call_end(struct python *p, struct python_thread *thread, const struct python_event *event)
{
	uint32_t at = python_open_call(p, thread, event);

	if (at == NPS_NONE) {
		p->unpaired++;
		return;
	}
	while (thread->top != at)
		end_top(p, thread, event->order.high);
	end_top(p, thread, event->order.high);
}

static int replay(struct python *p)
{
	const struct python_event *event;
	int64_t id = 0;
	int err = nps_ext_sort__finish(&p->events);

	for (; !err && (event = nps_ext_sort__next(&p->events)); id++) {
		struct python_thread *thread = python_thread(p, event->gtid);

		err = thread ? 0 : -ENOMEM;
		if (thread && (event->tag == CALL || event->tag == C_CALL))
			err = python_call_begin(p, thread, event, id);
		else if (thread)
			python_call_end(p, thread, event);
	}
	err = err ? err : p->events.err;
	for (size_t i = 0; !err && i < p->threads.len; i++)
		while (NPS_AT(&p->threads, struct python_thread, i).top != NPS_NONE)
			end_top(p, &NPS_AT(&p->threads, struct python_thread, i), p->last);
	return err;
}

int nps_framework__python(struct nps_framework *fw)
{
	struct python p = { .fw = fw, .spare = NPS_NONE };
	int tmpfd = fw->model->tmpfd, err;

	nps_ext_sort__init(&p.events, tmpfd, sizeof(struct python_event));
	nps_fw_memo__init(&p.by_name, tmpfd);
	nps_vec__init(&p.functions, tmpfd, sizeof(struct python_function));
	nps_vec__init(&p.threads, tmpfd, sizeof(struct python_thread));
	nps_vec__init(&p.calls, tmpfd, sizeof(struct python_call));
	err = read_names(&p);
	err = err ? err : python_read_events(&p);
	err = err ? err : replay(&p);
	nps_model__lost(fw->model, p.surplus, "names of Python functions beyond the first %lu", NAMES);
	nps_model__lost(fw->model, p.nameless, "calls of Python functions without a name");
	nps_model__lost(fw->model, p.unpaired, "returns of Python functions without a call");
	nps_ext_sort__free(&p.events);
	nps_fw_memo__free(&p.by_name);
	nps_vec__free(&p.functions);
	nps_vec__free(&p.threads);
	nps_vec__free(&p.calls);
	nps_map__free(&p.by_key);
	nps_map__free(&p.classes);
	nps_map__free(&p.by_gtid);
	return err;
}
