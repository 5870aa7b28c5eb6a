/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry of our own sessions: one process of a joined session becomes a model. */
#ifndef NPS_IMPORT_PROCESS_H
#define NPS_IMPORT_PROCESS_H

#include "import/session/session_model.h"
#include "model/model.h"

/* Reads and joins the session in PATH. 0 or a negative errno; the reason has been printed. */
int nps_session__load(struct nps_session *session, const char *path);

/* True if process PROC_ROW did something that makes a result. */
bool nps_session__has_result(const struct nps_session *session, uint32_t proc_row);

/*
 * Fills MODEL, made with the recording's strings, from process PROC_ROW; the process's own
 * rows are sorted in place. 0 or a negative errno.
 */
int nps_import__process(struct nps_model *model, struct nps_session *session, uint32_t proc_row);

/*
 * Fills MODEL from the whole host of the session: its samples, and the system calls of all processes if
 * they were recorded. 0 or a negative errno.
 */
int nps_import__whole_host(struct nps_model *model, struct nps_session *session);

/* True if the recording has a result about the whole host. */
bool nps_session__has_host_result(const struct nps_session *session);

/* profiler_info_{rank}.json and profiler_metadata.json of the process, into MODEL. 0 or -ENOMEM. */
int nps_import__process_info(struct nps_model *model, const struct nps_session *session, uint32_t proc_row);

/* Counts in MODEL, and reports in a line, the kernels that have no name or no shapes as npuscope was late. */
void nps_late_kernels__count(struct nps_model *model, const struct nps_session *rec,
			     const struct nps_proc *proc);

#endif
