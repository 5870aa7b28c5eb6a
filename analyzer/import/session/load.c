/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of the joins that make a recording of a session's files. */
#include "import/session/import_process.h"

#include "import/session/import.h"
#include "import/session/join.h"
#include "import/session/steps.h"

#include <string.h>

static int nest_calls(struct nps_session *rec)
{
	struct nps_names names;
	int err = nps_names__build(&names, rec);

	if (err)
		goto out;
	err = nps_nest__run(rec, &names);
out:
	nps_names__free(&names);
	return err;
}

/* What follows from the events alone. */
static int join_events(struct nps_session *rec)
{
	int err = nps_import__chips(rec);

	if (err)
		return err;
	err = nest_calls(rec);
	if (err)
		return err;
	err = nps_nest__number(rec);
	if (err)
		return err;
	return nps_steps__build(rec);
}

/* Frees events and submissions as soon as they are joined: they are most of the recording. */
static int load_joins(struct nps_session *rec)
{
	int err = join_events(rec);

	nps_vec__free(&rec->events);
	if (err)
		return err;
	err = nps_join__tasks(rec);
	nps_vec__free(&rec->subs);
	if (err)
		return err;
	err = nps_comm__finish(rec);
	if (err || !rec->host.all)
		return err;
	return nps_host_samples__contend(&rec->host, rec->begin, rec->end);
}

int nps_session__load(struct nps_session *rec, const char *path)
{
	int err = nps_import__session(rec, path);

	if (err)
		return err;
	nps_vec__cool(&rec->events);
	err = load_joins(rec);
	if (err)
		nps_msg_failure("cannot analyse %s: %s: is there room in the output directory?", path,
				strerror(-err));
	return err;
}

static bool has_cann(const struct nps_proc *proc)
{
	return proc->cann.len || proc->tasks;
}

bool nps_session__has_host_result(const struct nps_session *rec)
{
	bool any = rec->host.requested;

	for (uint32_t p = 0; p < rec->nprocs && !any; p++)
		any = rec->procs[p].os_calls.len || rec->procs[p].runs.len;
	return rec->host.all && any;
}

bool nps_session__has_result(const struct nps_session *rec, uint32_t proc_row)
{
	const struct nps_proc *proc = &rec->procs[proc_row];

	for (uint32_t p = 0; p < rec->nprocs; p++)
		if (has_cann(&rec->procs[p]))
			return has_cann(proc);
	/* Of the whole host only processes that use an NPU have results of their own. */
	if (rec->host.all)
		return proc->known;
	/* Without any CANN call in the whole session it is a trace of the host. */
	return proc->os_calls.len || proc->os_sums.len || proc->runs.len || proc->known;
}
