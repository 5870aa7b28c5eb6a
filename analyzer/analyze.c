/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of things: import, names, nesting, steps, tasks, collectives; then one result a process. */
#include "analyze.h"

#include "export.h"
#include "import.h"
#include "join.h"
#include "output_dir.h"
#include "session_reader.h"
#include "steps.h"
#include "summary.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int build(struct nps_model *model, const char *path)
{
	struct nps_names names = { 0 };
	int err = nps_import__session(model, path);

	if (err)
		return err;
	nps_vec__cool(&model->events);
	err = nps_names__build(&names, model);
	if (!err)
		err = nps_nest__run(model, &names);
	nps_names__free(&names);
	if (!err)
		err = nps_nest__number(model);
	if (!err)
		err = nps_steps__build(model);
	nps_vec__free(&model->events);
	if (!err)
		err = nps_join__tasks(model);
	nps_vec__free(&model->subs);
	if (!err)
		err = nps_comm__finish(model);
	if (err)
		nps_msg("cannot analyse %s: %s: is there room in the output directory?", path,
			strerror(-err));
	return err;
}

static bool has_cann(const struct nps_proc *proc)
{
	return proc->cann.len || proc->tasks;
}

/* {host}_{pid}_{yyyymmddHHMMSSmmm}_ascend_pt, with what Insight refuses in paths replaced. */
static void result_name(const struct nps_result *r, char *out, size_t size)
{
	const char *host = nps_json_str(r->proc->json, "host_name", NULL);
	uint64_t begin = r->model->begin_real;
	time_t seconds = begin / 1000000000;
	char stamp[32] = "", clean[128];
	struct tm tm;
	size_t n = 0;

	if (!host)
		host = nps_json_str(cJSON_GetObjectItemCaseSensitive(r->model->json, "host"), "name", "host");
	for (; *host && n < sizeof(clean) - 1; host++)
		clean[n++] = isalnum((unsigned char)*host) || *host == '.' || *host == '-' || *host == '_'
				     ? *host
				     : '-';
	clean[n] = 0;
	if (!n || clean[0] == '.')
		clean[0] = 'h', clean[n ? n : 1] = 0;
	if (localtime_r(&seconds, &tm))
		strftime(stamp, sizeof(stamp), "%Y%m%d%H%M%S", &tm);
	snprintf(out, size, "%s_%u_%s%03u_ascend_pt", clean, r->proc->pid, stamp,
		 (unsigned int)(begin / 1000000 % 1000));
}

static int write_files(const struct nps_result *r, struct nps_output_dir *dir, const char *parent,
		       unsigned int what)
{
	static const char sub[] = "ASCEND_PROFILER_OUTPUT";
	char path[4096];
	int fd, err;

	if (mkdirat(dir->fd, sub, 0750))
		return -errno;
	fd = openat(dir->fd, sub, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	fchmod(fd, 0750);
	err = nps_export__info(r, dir->fd, what & NPS_EXPORT_TEXT, what & NPS_EXPORT_DB);
	if (!err && what & NPS_EXPORT_TEXT)
		err = nps_export__trace(r, fd);
	if (!err && what & NPS_EXPORT_TEXT)
		err = nps_export__csv(r, fd);
	snprintf(path, sizeof(path), "%s/%s/%s", parent, dir->temp, sub);
	if (!err && what & NPS_EXPORT_DB)
		err = nps_export__db(r, fd, path);
	close(fd);
	return err;
}

static int write_result(const struct nps_result *r, int outfd, const char *parent, unsigned int what,
			char **path)
{
	struct nps_output_dir dir;
	char name[256];
	int err;

	result_name(r, name, sizeof(name));
	err = nps_output_dir__open(&dir, outfd, name);
	if (!err) {
		err = write_files(r, &dir, parent, what);
		if (err)
			nps_output_dir__abort(&dir);
		else
			err = nps_output_dir__commit(&dir);
	}
	if (err) {
		nps_msg("cannot write %s/%s: %s: %s", parent, name, strerror(-err),
			err == -ENOSPC ? "free some space or name another directory with -o"
				       : "check the directory or name another with -o");
		return err;
	}
	return asprintf(path, "%s/%s", parent, name) < 0 ? -ENOMEM : 0;
}

static int export_all(struct nps_model *model, int outfd, const char *parent, unsigned int what,
		      struct nps_summary *out)
{
	bool any = false;
	int err = 0;

	for (uint32_t p = 0; p < model->nprocs; p++)
		any |= has_cann(&model->procs[p]);
	for (uint32_t p = 0; !err && p < model->nprocs; p++) {
		const struct nps_proc *proc = &model->procs[p];
		struct nps_result result;
		char *path = NULL;

		/* Without any CANN call in the whole session it is a trace of the host. */
		if (any ? !has_cann(proc) : !proc->os_calls.len && !proc->runs.len && !proc->known)
			continue;
		err = nps_result__init(&result, model, p);
		if (err)
			nps_msg("cannot analyse process %u: %s: is there room in the output directory?",
				proc->pid, strerror(-err));
		if (!err && what)
			err = write_result(&result, outfd, parent, what, &path);
		if (!err)
			err = nps_summary__add(out, &result, path);
		if (err)
			free(path);
		nps_result__free(&result);
	}
	return err;
}

static int open_output(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		nps_msg("cannot write into %s: %s: name a directory with -o", path, strerror(errno));
	return fd < 0 ? -errno : fd;
}

int nps_analyze(const char *session_dir, const struct nps_analyze_opts *opts, struct nps_summary *out)
{
	const char *output = opts && opts->output ? opts->output : session_dir;
	unsigned int what = opts ? opts->export : NPS_EXPORT_DEFAULT;
	struct nps_summary unused = { 0 };
	struct nps_model *model;
	int dirfd, outfd, err;

	if (!out)
		out = &unused;
	*out = (struct nps_summary){ 0 };
	dirfd = open(session_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0) {
		err = -errno;
		nps_msg("cannot open %s: %s: name a session directory", session_dir, strerror(-err));
		return err;
	}
	outfd = open_output(output);
	model = outfd < 0 ? NULL : calloc(1, sizeof(*model));
	if (!model) {
		err = outfd < 0 ? outfd : -ENOMEM;
		goto out;
	}
	nps_model__init(model, dirfd, outfd);
	err = build(model, session_dir);
	if (!err)
		err = export_all(model, outfd, output, what, out);
	nps_summary__losses(out, model);
	nps_model__free(model);
	free(model);
out:
	if (outfd >= 0)
		close(outfd);
	close(dirfd);
	nps_summary_free(&unused);
	return err;
}
