/* SPDX-License-Identifier: BSD-2-Clause */
#include "job.h"

#include "base/memory.h"
#include "base/output_dir.h"
#include "base/pool.h"
#include "derive/derive.h"
#include "derive/host.h"
#include "export/export.h"
#include "export/table.h"
#include "findings/findings.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Directories of a result, made only if they get files. */
enum place { ROOT, OUTPUT, ANALYZE, PLACES };

struct job {
	struct nps_export ex;
	const char *names[PLACES]; /* NULL: the result's own directory */
	int fds[PLACES];
	cJSON *findings;
	char root[PATH_MAX]; /* path of the unfinished result */
};

static int with_path(struct job *job, enum place place,
		     int (*fn)(const struct nps_export *ex, int dirfd, const char *path))
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s%s%s", job->root, job->names[place] ? "/" : "",
		 job->names[place] ? job->names[place] : "");
	return fn(&job->ex, job->fds[place], path);
}

static bool torch(const struct job *job)
{
	return job->ex.model->layout == NPS_LAYOUT_TORCH;
}

static int database(struct job *job)
{
	return with_path(job, torch(job) ? OUTPUT : ROOT, nps_export__db);
}

static int analysis_database(struct job *job)
{
	return with_path(job, torch(job) ? OUTPUT : ANALYZE, nps_export__analysis_db);
}

static int ftrace_database(struct job *job)
{
	return with_path(job, OUTPUT, nps_export__ftrace_db);
}

static int trace(struct job *job)
{
	return nps_export__trace(&job->ex, job->fds[OUTPUT]);
}

static int tables(struct job *job)
{
	nps_csv_write_fn *const writers[] = { torch(job) ? nps_export__torch_csv : nps_export__msprof_csv,
					      nps_export__counter_csv, nps_export__host_csv,
					      nps_export__driver_csv };

	return nps_csv__write_each(&job->ex, job->fds[OUTPUT], writers, NPS_ARRAY_SIZE(writers));
}

static int communication(struct job *job)
{
	return nps_export__communication(&job->ex, job->fds[torch(job) ? OUTPUT : ANALYZE]);
}

static int perfetto(struct job *job)
{
	return nps_export__perfetto(&job->ex, job->fds[OUTPUT]);
}

static int findings(struct job *job)
{
	return nps_findings__write(job->findings, job->fds[OUTPUT]);
}

static int notes(struct job *job)
{
	return nps_export__notes(&job->ex, job->fds[OUTPUT]);
}

static int folded(struct job *job)
{
	return nps_export__folded(&job->ex, job->fds[OUTPUT]);
}

static int stacks(struct job *job)
{
	return nps_export__stacks(&job->ex, job->fds[OUTPUT]);
}

/* The longest first. */
static const struct writer {
	unsigned int format;
	int (*write)(struct job *job);
} writers[] = {
	{ NPS_FORMAT_DB, database },
	{ NPS_FORMAT_DB | NPS_FORMAT_TEXT, ftrace_database },
	{ NPS_FORMAT_TEXT, trace },
	{ NPS_FORMAT_PERFETTO, perfetto },
	{ NPS_FORMAT_TEXT, tables },
	{ NPS_FORMAT_DB, analysis_database },
	{ NPS_FORMAT_TEXT, communication },
	{ NPS_FORMAT_FOLDED, folded },
	{ NPS_FORMAT_TEXT | NPS_FORMAT_FOLDED, stacks },
	{ NPS_FORMAT_TEXT | NPS_FORMAT_DB, notes },
	{ ~0U, findings },
};

static int write_one(void *ctx, size_t i)
{
	struct job *job = ctx;

	return job->ex.formats & writers[i].format ? writers[i].write(job) : 0;
}

static int open_places(struct job *job, int root)
{
	int err = 0;

	job->fds[ROOT] = root;
	for (int place = OUTPUT; !err && place < PLACES; place++) {
		if (!job->names[place]) {
			job->fds[place] = root;
			continue;
		}
		if (mkdirat(root, job->names[place], 0750))
			return -errno;
		job->fds[place] =
			openat(root, job->names[place], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (job->fds[place] < 0 || fchmod(job->fds[place], 0750))
			err = -errno;
	}
	return err;
}

/* Closes the directories, and removes those that stayed empty. */
static void close_places(struct job *job)
{
	for (int place = OUTPUT; place < PLACES; place++) {
		if (!job->names[place])
			continue;
		if (job->fds[place] >= 0)
			close(job->fds[place]);
		unlinkat(job->fds[ROOT], job->names[place], AT_REMOVEDIR);
	}
}

static void stamp(const struct nps_model *model, char *out, size_t size)
{
	time_t seconds = model->start / 1000000000;
	struct tm tm;

	if (model->start > model->end || !localtime_r(&seconds, &tm) ||
	    !strftime(out, size, "%Y%m%d%H%M%S", &tm))
		snprintf(out, size, "00000000000000");
}

/* About how many rows the writers step over, for the time that is left. */
static uint64_t rows_to_write(const struct nps_export *ex)
{
	const struct nps_model *m = ex->model;
	uint64_t rows = m->task.t.len + m->api.t.len + m->compute.t.len + m->comm_task.t.len +
			m->torch.t.len + m->osrt.t.len + m->run.t.len + m->pmu.t.len + m->memory_record.t.len;
	unsigned int half_passes =
		(ex->formats & NPS_FORMAT_DB ? 5 : 0) + (ex->formats & NPS_FORMAT_TEXT ? 7 : 0) +
		(ex->formats & NPS_FORMAT_PERFETTO ? 2 : 0) + (ex->formats & NPS_FORMAT_FOLDED ? 5 : 0);

	return rows * half_passes / 2;
}

/* Notes the input, so that this result does not replace that of another input of the same name elsewhere. */
static int note_input(const char *input, int root)
{
	int fd = openat(root, NPS_RESULT_INPUT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	int err = 0;

	if (!file) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	if (fputs(input, file) < 0)
		err = -EIO;
	if (fclose(file) && !err)
		err = -errno;
	return err;
}

static int write_all(struct job *job, int root, bool info)
{
	int err;

	nps_progress__stage_of_readers(job->ex.model->progress, "writing", rows_to_write(&job->ex), "rows");
	err = open_places(job, root);
	err = err ? err : info ? nps_export__info(&job->ex, root) : 0;
	err = err ? err : nps_threads__run(NPS_ARRAY_SIZE(writers), NPS_MIN(nps_cpus(), 4UL), write_one, job);
	close_places(job);
	return err;
}

static enum nps_generation generation(const struct nps_model *model, enum nps_compat compat)
{
	return compat == NPS_COMPAT_AUTO ? model->generation
	       : compat == NPS_COMPAT_A	 ? NPS_GENERATION_A
					 : NPS_GENERATION_B;
}

/* Fills DIR, and puts it, or what is in it, where it belongs. */
static int write_result(struct job *job, struct nps_output_dir *dir, const struct nps_place *place)
{
	int err;

	snprintf(job->root, sizeof(job->root), "%s/%s", place->parent, dir->temp);
	err = write_all(job, dir->fd, torch(job) && !place->entries); /* else they are there */
	if (err)
		goto abort;
	err = place->input[0] && !place->entries ? note_input(place->input, dir->fd) : 0;
	err = err ? err : nps_memory__failure();
	if (err)
		goto abort;
	return place->entries ? nps_output_dir__commit_entries(dir) : nps_output_dir__commit(dir);
abort:
	nps_output_dir__abort(dir);
	return err;
}

int nps_job__export(struct nps_model *model, const struct nps_analyze_opts *opts,
		    const struct nps_place *place, char path[PATH_MAX])
{
	struct job job = { .ex = { .model = model,
				   .formats = opts->formats,
				   .generation = generation(model, opts->compat),
				   .gzip = opts->gzip },
			   .fds = { -1, -1, -1 } };
	struct nps_output_dir dir;
	int err;

	job.names[OUTPUT] = torch(&job) ? "ASCEND_PROFILER_OUTPUT" : "mindstudio_profiler_output";
	job.names[ANALYZE] = torch(&job) ? NULL : "analyze";
	stamp(model, job.ex.stamp, sizeof(job.ex.stamp));
	nps_progress__stage_of_readers(model->progress, "findings", 0, "rows");
	errno = 0;
	job.findings = nps_findings__make(model);
	err = job.findings ? nps_output_dir__open(&dir, place->fd, place->name) : -(errno ? errno : ENOMEM);
	err = err ? err : write_result(&job, &dir, place);
	cJSON_Delete(job.findings);
	if (err)
		nps_msg_failure("cannot write %s/%s: %s: %s", place->parent,
				place->entries ? "" : place->name, strerror(-err),
				err == -ENOSPC ? "free some space or name another directory with -o"
					       : "check the directory or name another with -o");
	else
		snprintf(path, PATH_MAX, "%s%s%s", place->parent, place->entries ? "" : "/",
			 place->entries ? "" : place->name);
	return err;
}

int nps_job__derive(struct nps_model *model)
{
	static const struct {
		const char *name;
		int (*derive)(struct nps_model *model);
	} steps[] = { { "linking operators", nps_derive__links },
		      { "steps", nps_derive__steps },
		      { "overlap", nps_derive__overlap },
		      { "communication", nps_derive__comm },
		      { "names of tasks", nps_derive__task_names },
		      { "scheduling", nps_derive__threads },
		      { "host time", nps_derive__host } };
	int err = 0;

	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(steps); i++) {
		nps_progress__stage_of_readers(model->progress, steps[i].name, 0, "rows");
		err = steps[i].derive(model);
		nps_model__cool(model);
	}
	return err;
}
