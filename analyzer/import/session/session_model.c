/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/session_model.h"

#include "base/memory.h"
#include "import/session/python_stacks.h"
#include "import/session/session_reader.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void nps_session__init(struct nps_session *model, int dirfd, int tmpfd)
{
	*model = (struct nps_session){ .dirfd = dirfd, .tmpfd = tmpfd };
	nps_strings__init(&model->strings, tmpfd);
	nps_history__init(&model->comms, tmpfd);
	nps_vec__init(&model->events, tmpfd, sizeof(struct nps_event));
	nps_tensors__init(&model->tensors, &model->strings, tmpfd);
	nps_vec__init(&model->clocks, tmpfd, sizeof(struct nps_clock));
	nps_npu_samples__init(&model->npu, tmpfd);
	nps_vec__init(&model->device_clocks, tmpfd, sizeof(struct nps_device_clock));
	nps_vec__init(&model->subs, tmpfd, sizeof(struct nps_sub));
	nps_vec__init(&model->syncs, tmpfd, sizeof(struct nps_sync));
	nps_vec__init(&model->cqes, tmpfd, sizeof(struct nps_cqe));
	nps_vec__init(&model->timings, tmpfd, sizeof(struct nps_timing));
	nps_vec__init(&model->tasks, tmpfd, sizeof(struct nps_task));
	nps_history__init(&model->agents, tmpfd);
	nps_vec__init(&model->bounds, tmpfd, sizeof(struct nps_bounds));
	nps_vec__init(&model->run_pmus, tmpfd, sizeof(struct nps_run_pmu));
	nps_vec__init(&model->blocks, tmpfd, sizeof(struct nps_task_block));
	nps_vec__init(&model->logs, tmpfd, sizeof(struct nps_device_log));
	nps_host_samples__init(&model->host, tmpfd);
	nps_python_stacks__init(&model->python, tmpfd);
}

static void free_proc(struct nps_proc *proc)
{
	nps_vec__free(&proc->cann);
	nps_vec__free(&proc->cann_order);
	nps_vec__free(&proc->comms);
	nps_vec__free(&proc->steps);
	nps_vec__free(&proc->os_calls);
	nps_vec__free(&proc->os_sums);
	nps_vec__free(&proc->os_spans);
	nps_vec__free(&proc->os_locks);
	nps_vec__free(&proc->os_threads);
	nps_map__free(&proc->os_sum_of);
	nps_map__free(&proc->os_thread_of);
	nps_vec__free(&proc->runs);
	nps_vec__free(&proc->irqs);
	nps_vec__free(&proc->drivers);
	nps_vec__free(&proc->torch);
	nps_vec__free(&proc->inputs);
	nps_vec__free(&proc->planned);
	nps_vec__free(&proc->py_entries);
	nps_vec__free(&proc->allocator);
	nps_vec__free(&proc->marks);
	nps_vec__free(&proc->allocs);
	nps_vec__free(&proc->memory);
}

void nps_session__free(struct nps_session *model)
{
	for (uint32_t i = 0; i < model->nprocs; i++)
		free_proc(&model->procs[i]);
	free(model->procs);
	nps_map__free(&model->proc_of);
	nps_map__free(&model->string_ids);
	nps_strings__free(&model->strings);
	nps_history__free(&model->comms);
	nps_history__free(&model->agents);
	nps_vec__free(&model->events);
	nps_tensors__free(&model->tensors);
	nps_vec__free(&model->clocks);
	nps_npu_samples__free(&model->npu);
	nps_vec__free(&model->device_clocks);
	nps_vec__free(&model->subs);
	nps_vec__free(&model->syncs);
	nps_vec__free(&model->cqes);
	nps_vec__free(&model->timings);
	nps_vec__free(&model->tasks);
	nps_vec__free(&model->bounds);
	nps_vec__free(&model->run_pmus);
	nps_vec__free(&model->blocks);
	for (size_t i = 0; i < model->logs.len; i++) {
		nps_clock_map__free(&NPS_AT(&model->logs, struct nps_device_log, i).clock);
		nps_vec__free(&NPS_AT(&model->logs, struct nps_device_log, i).task_breaks);
		nps_vec__free(&NPS_AT(&model->logs, struct nps_device_log, i).pmu_breaks);
	}
	nps_vec__free(&model->logs);
	nps_map__free(&model->helpers);
	nps_host_samples__free(&model->host);
	nps_python_stacks__free(&model->python);
	cJSON_Delete(model->json);
	model->json = NULL;
}

struct nps_proc *nps_session__proc(struct nps_session *model, uint32_t pid)
{
	uint32_t row = nps_map__get(&model->proc_of, pid);
	struct nps_proc *proc;

	if (row != NPS_NONE)
		return &model->procs[row];
	if (model->nprocs >= NPS_MAX_PROCS)
		return NULL;
	/* Room for all at once: rows never move, so that pointers to them stay good. */
	if (!model->procs)
		model->procs = calloc(NPS_MAX_PROCS, sizeof(*model->procs));
	if (!model->procs)
		nps_memory__fail(-ENOMEM);
	if (!model->procs || nps_map__put(&model->proc_of, pid, model->nprocs))
		return NULL;
	proc = &model->procs[model->nprocs++];
	proc->pid = pid;
	proc->comm = NPS_NONE;
	nps_vec__init(&proc->cann, model->tmpfd, sizeof(struct nps_cann));
	nps_vec__init(&proc->cann_order, model->tmpfd, sizeof(uint32_t));
	nps_vec__init(&proc->comms, model->tmpfd, sizeof(struct nps_comm_op));
	nps_vec__init(&proc->steps, model->tmpfd, sizeof(struct nps_step));
	nps_vec__init(&proc->os_calls, model->tmpfd, sizeof(struct nps_event));
	nps_vec__init(&proc->os_sums, model->tmpfd, sizeof(struct nps_os_sum));
	nps_vec__init(&proc->os_spans, model->tmpfd, sizeof(struct nps_event));
	nps_vec__init(&proc->os_locks, model->tmpfd, sizeof(struct nps_event));
	nps_vec__init(&proc->os_threads, model->tmpfd, sizeof(struct nps_os_thread));
	nps_vec__init(&proc->runs, model->tmpfd, sizeof(struct nps_event));
	nps_vec__init(&proc->irqs, model->tmpfd, sizeof(struct nps_event));
	nps_vec__init(&proc->drivers, model->tmpfd, sizeof(struct nps_event));
	nps_vec__init(&proc->torch, model->tmpfd, sizeof(struct nps_event));
	nps_vec__init(&proc->inputs, model->tmpfd, sizeof(struct nps_event));
	nps_vec__init(&proc->planned, model->tmpfd, sizeof(struct nps_planned_call));
	nps_vec__init(&proc->py_entries, model->tmpfd, sizeof(struct nps_event));
	nps_vec__init(&proc->allocator, model->tmpfd, sizeof(struct nps_event));
	nps_vec__init(&proc->marks, model->tmpfd, sizeof(struct nps_mstx_mark));
	nps_vec__init(&proc->allocs, model->tmpfd, sizeof(struct nps_alloc));
	nps_vec__init(&proc->memory, model->tmpfd, sizeof(struct nps_memory_total));
	return proc;
}

int nps_event__keep(struct nps_vec *events, const struct nps_event *ev)
{
	struct nps_event *kept = nps_vec__push(events);

	if (!kept)
		return -errno;
	*kept = *ev;
	return 0;
}

uint32_t nps_session__comm_at(const struct nps_session *model, uint32_t tid, uint64_t time)
{
	uint64_t text;

	return nps_history__near(&model->comms, tid, time, &text) ? (uint32_t)text : NPS_NONE;
}

/*
 * A thread of the helper library sets its name first of all, and keeps it. What had its number longer
 * before was another thread, as numbers are used again only after all others.
 */
#define UNNAMED 1000000000ULL /* ns */

bool nps_session__is_helper(const struct nps_session *model, uint32_t pid, uint32_t tid, uint64_t time)
{
	uint64_t key = (uint64_t)pid << 32 | tid, is = 0;

	if (tid == pid || nps_map__get(&model->helpers, key) == NPS_NONE)
		return false;
	if (nps_history__at(&model->agents, key, time, &is) && is)
		return true;
	return nps_history__at(&model->agents, key, nps_add_sat(time, UNNAMED), &is) && is;
}

int nps_session__level(const struct nps_session *model)
{
	const cJSON *request = cJSON_GetObjectItemCaseSensitive(model->json, "request");
	const cJSON *level = cJSON_GetObjectItemCaseSensitive(request, "level");

	return cJSON_IsNumber(level) && level->valuedouble >= -1 && level->valuedouble <= 2
		       ? (int)level->valuedouble
		       : 1;
}

uint32_t nps_session__text(const struct nps_session *model, uint64_t id)
{
	return nps_map__get(&model->string_ids, id);
}

struct nps_device_log *nps_session__find_log(const struct nps_session *model, uint32_t proc,
					     unsigned int device)
{
	struct nps_device_log *logs = model->logs.data;

	for (size_t i = 0; i < model->logs.len; i++)
		if (logs[i].proc == proc && logs[i].device == device)
			return &logs[i];
	return NULL;
}

struct nps_device_log *nps_session__log(struct nps_session *model, uint32_t proc, unsigned int device)
{
	struct nps_device_log *log = nps_session__find_log(model, proc, device);

	if (log)
		return log;
	log = nps_vec__push(&model->logs);
	if (log) {
		log->proc = proc;
		log->device = device;
		nps_vec__init(&log->task_breaks, model->tmpfd, sizeof(uint64_t));
		nps_vec__init(&log->pmu_breaks, model->tmpfd, sizeof(uint64_t));
	}
	return log;
}

const char *nps_proc__host_name(const struct nps_session *model, const struct nps_proc *proc)
{
	const cJSON *host = cJSON_GetObjectItemCaseSensitive(model->json, "host"),
		    *own = cJSON_GetObjectItemCaseSensitive(proc->json, "host_name");

	return own ? nps_json_str(proc->json, "host_name", "unknown") : nps_json_str(host, "name", "unknown");
}

bool nps_proc__in_container(const struct nps_proc *proc)
{
	return !strcmp(nps_json_str(proc->json, "device_numbers", "host"), "container");
}
