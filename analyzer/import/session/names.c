/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/names.h"

#include "import/session/plans.h"
#include "import/session/session_reader.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

uint64_t nps_names__key(uint32_t proc, uint64_t handle)
{
	return nps_hash2(handle, proc);
}

static uint32_t text_arg(const struct nps_session *model, const struct nps_event *ev,
			 enum nps_meaning meaning)
{
	uint64_t id;

	return nps_event_arg(ev, meaning, &id) ? nps_session__text(model, id) : NPS_NONE;
}

bool nps_names__handle(const struct nps_event *ev, uint64_t *handle, uint32_t *name,
		       const struct nps_session *model)
{
	uint64_t key;

	*handle = 0;
	*name = text_arg(model, ev, NPS_M_NAME);
	if (*name != NPS_NONE)
		return false;
	/* Kernels that have no handle of their own are known by their binary's and a key. */
	if (!nps_event_arg(ev, NPS_M_FUNC, handle))
		nps_event_arg(ev, NPS_M_BIN, handle);
	if (nps_event_arg(ev, NPS_M_KEY, &key) && key)
		*handle = nps_hash2(*handle, key);
	return true;
}

static unsigned int event_call(const struct nps_event *ev)
{
	const struct nps_probe_info *info = nps_probe_info(ev->probe);

	return info && ev->kind == NPS_EV_API ? info->call : NPS_CALL_OTHER;
}

/* From when on the content of EV holds: a handle that a call returns means something else until then. */
static uint64_t record_time(const struct nps_event *ev)
{
	unsigned int call = event_call(ev);
	bool returns = call == NPS_CALL_FUNC_NAME || call == NPS_CALL_COMM_NEW ||
		       (ev->kind == NPS_EV_API && nps_plans__wants(ev));

	return returns ? ev->start + ev->dur : ev->start;
}

static int on_registration(struct nps_names *names, uint32_t proc, const struct nps_event *ev)
{
	uint32_t name = text_arg(names->model, ev, NPS_M_NAME);
	uint64_t handle;

	if (ev->ret || name == NPS_NONE || !nps_event_arg(ev, NPS_M_FUNC, &handle))
		return 0;
	return nps_history__add(&names->funcs, nps_names__key(proc, handle), record_time(ev), name);
}

static int on_communicator(struct nps_names *names, uint32_t proc, const struct nps_event *ev)
{
	uint32_t name = text_arg(names->model, ev, NPS_M_NAME);
	unsigned int call = event_call(ev);
	uint64_t comm, ranks, key;
	int err;

	if (ev->ret || !nps_event_arg(ev, NPS_M_COMM, &comm))
		return 0;
	key = nps_names__key(proc, comm);
	if (call == NPS_CALL_COMM_NEW || call == NPS_CALL_COMM_END) {
		err = nps_history__reset(&names->groups, key, record_time(ev));
		if (err)
			return err;
		err = nps_history__reset(&names->ranks, key, record_time(ev));
		if (err)
			return err;
	}
	if (name != NPS_NONE && *nps_strings__get(&names->model->strings, name)) {
		err = nps_history__add(&names->groups, key, record_time(ev), name);
		if (err)
			return err;
	}
	if (!nps_event_arg(ev, NPS_M_RANKS, &ranks))
		return 0;
	return nps_history__add(&names->ranks, key, record_time(ev), (uint32_t)ranks);
}

static bool is_naming(const struct nps_event *ev)
{
	unsigned int call = event_call(ev);

	return nps_plans__wants(ev) || (call >= NPS_CALL_FUNC_NAME && call <= NPS_CALL_COMM_FACT);
}

static int names_on_event(struct nps_names *names, struct nps_plans *plans, struct nps_event *ev)
{
	uint32_t proc = nps_map__get(&names->model->proc_of, ev->pid);

	if (nps_plans__wants(ev))
		return nps_plans__event(plans, proc, ev);
	if (event_call(ev) == NPS_CALL_FUNC_NAME)
		return on_registration(names, proc, ev);
	return on_communicator(names, proc, ev);
}

static int add_symbols(struct nps_names *names, uint32_t proc)
{
	const cJSON *item, *json = names->model->procs[proc].json;
	int err = 0;

	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "symbols"))
	{
		const char *name = nps_json_str(item, "name", NULL);
		const char *hex = nps_json_str(item, "address", "");
		uint64_t address = nps_json_u64(item, "address", 0);

		if (hex[0] == '0' && hex[1] == 'x')
			address = strtoull(hex, NULL, 16);
		if (name && address)
			err = nps_map__put(&names->symbols, nps_names__key(proc, address),
					   nps_strings__addz(&names->model->strings, name));
		if (err)
			return err;
	}
	return 0;
}

/* The naming events in order of time. */
static int names_collect(const struct nps_session *model, struct nps_vec *keys, size_t *n)
{
	for (size_t i = 0; i < model->events.len; i++) {
		const struct nps_event *ev = &NPS_AT(&model->events, struct nps_event, i);
		struct nps_key *key;

		if (!is_naming(ev))
			continue;
		key = nps_vec__push(keys);
		if (!key)
			return -errno;
		*key = (struct nps_key){ .key = record_time(ev), .row = i };
	}
	*n = keys->len;
	return nps_vec__resize(keys, 2 * keys->len);
}

/* Applies the naming events, in order of time. */
static int names_on_events(struct nps_names *names, struct nps_plans *plans)
{
	struct nps_session *model = names->model;
	struct nps_vec keys;
	size_t n = 0;
	int err;

	nps_vec__init(&keys, model->tmpfd, sizeof(struct nps_key));
	err = names_collect(model, &keys, &n);
	if (err)
		goto out;
	if (n)
		nps_sort_keys(keys.data, (struct nps_key *)keys.data + n, n);
	for (size_t i = 0; !err && i < n; i++) {
		struct nps_event *ev =
			&NPS_AT(&model->events, struct nps_event, NPS_AT(&keys, struct nps_key, i).row);

		err = names_on_event(names, plans, ev);
	}
out:
	nps_vec__free(&keys);
	return err;
}

static int names_fill(struct nps_names *names, struct nps_plans *plans)
{
	int err = names_on_events(names, plans);

	for (uint32_t p = 0; !err && p < names->model->nprocs; p++)
		err = add_symbols(names, p);
	if (err)
		return err;
	err = nps_history__finish(&names->funcs);
	if (err)
		return err;
	err = nps_history__finish(&names->groups);
	if (err)
		return err;
	err = nps_history__finish(&names->ranks);
	if (err)
		return err;
	return nps_plans__finish(plans);
}

int nps_names__build(struct nps_names *names, struct nps_session *model)
{
	struct nps_plans plans;
	int err;

	*names = (struct nps_names){ .model = model };
	nps_history__init(&names->funcs, model->tmpfd);
	nps_history__init(&names->groups, model->tmpfd);
	nps_history__init(&names->ranks, model->tmpfd);
	nps_vec__init(&names->runs, model->tmpfd, sizeof(struct nps_op_run));
	nps_vec__init(&names->l0s, model->tmpfd, sizeof(struct nps_l0));
	nps_loss_intervals__init(&names->loss_intervals, model->tmpfd);
	nps_plans__init(&plans, names);
	err = names_fill(names, &plans);
	nps_plans__free(&plans);
	return err;
}

uint32_t nps_names__kernel(struct nps_names *names, uint32_t proc, uint64_t handle, uint64_t time)
{
	uint64_t key = nps_names__key(proc, handle), value;
	uint32_t name;

	if (nps_history__at(&names->funcs, key, time, &value))
		return value;
	name = nps_map__get(&names->symbols, key);
	if (name != NPS_NONE)
		return name;
	if (nps_history__near(&names->funcs, key, time, &value))
		return value;
	return nps_strings__addf(&names->model->strings, "kernel@0x%" PRIx64, handle);
}

void nps_names__free(struct nps_names *names)
{
	nps_history__free(&names->funcs);
	nps_history__free(&names->groups);
	nps_history__free(&names->ranks);
	nps_map__free(&names->symbols);
	nps_map__free(&names->learned);
	nps_vec__free(&names->runs);
	nps_vec__free(&names->l0s);
	nps_loss_intervals__free(&names->loss_intervals);
}
