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
enum directory { ROOT, OUTPUT, ANALYZE, DIRECTORIES };

struct analysis_job {
	struct nps_export ex;
	const char *names[DIRECTORIES]; /* NULL: the result's own directory */
	int fds[DIRECTORIES];
	cJSON *findings;
	char root[PATH_MAX]; /* path of the unfinished result */
};

static int with_path(struct analysis_job *job, enum directory directory,
		     int (*fn)(const struct nps_export *ex, int dirfd, const char *path))
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s%s%s", job->root, job->names[directory] ? "/" : "",
		 job->names[directory] ? job->names[directory] : "");
	return fn(&job->ex, job->fds[directory], path);
}

static bool job_write_torch(const struct analysis_job *job)
{
	return job->ex.model->layout == NPS_LAYOUT_TORCH;
}

static int write_database(struct analysis_job *job)
{
	return with_path(job, job_write_torch(job) ? OUTPUT : ROOT, nps_export__db);
}

static int analysis_database(struct analysis_job *job)
{
	return with_path(job, job_write_torch(job) ? OUTPUT : ANALYZE, nps_export__analysis_db);
}

static int ftrace_database(struct analysis_job *job)
{
	return with_path(job, OUTPUT, nps_export__ftrace_db);
}

static int trace(struct analysis_job *job)
{
	return nps_export__trace(&job->ex, job->fds[OUTPUT]);
}

static int tables(struct analysis_job *job)
{
	nps_csv_write_fn *const writers[] = { job_write_torch(job) ? nps_export__torch_csv
								   : nps_export__msprof_csv,
					      nps_export__counter_csv, nps_export__host_csv,
					      nps_export__driver_csv };

	return nps_csv__write_each(&job->ex, job->fds[OUTPUT], writers, NPS_ARRAY_SIZE(writers));
}

static int write_communication(struct analysis_job *job)
{
	return nps_export__communication(&job->ex, job->fds[job_write_torch(job) ? OUTPUT : ANALYZE]);
}

static int perfetto(struct analysis_job *job)
{
	return nps_export__perfetto(&job->ex, job->fds[OUTPUT]);
}

static int write_findings(struct analysis_job *job)
{
	return nps_findings__write(job->findings, job->fds[OUTPUT]);
}

static int notes(struct analysis_job *job)
{
	return nps_export__notes(&job->ex, job->fds[OUTPUT]);
}

static int folded(struct analysis_job *job)
{
	return nps_export__folded(&job->ex, job->fds[OUTPUT]);
}

static int stacks(struct analysis_job *job)
{
	return nps_export__stacks(&job->ex, job->fds[OUTPUT]);
}

static int python(struct analysis_job *job)
{
	return nps_export__python(&job->ex, job->fds[OUTPUT]);
}

/* The longest first. */
static const struct writer {
	unsigned int format;
	int (*write)(struct analysis_job *job);
} writers[] = {
	{ NPS_FORMAT_DB, write_database },
	{ NPS_FORMAT_DB | NPS_FORMAT_TEXT, ftrace_database },
	{ NPS_FORMAT_TEXT, trace },
	{ NPS_FORMAT_PERFETTO, perfetto },
	{ NPS_FORMAT_TEXT, tables },
	{ NPS_FORMAT_DB, analysis_database },
	{ NPS_FORMAT_TEXT, write_communication },
	{ NPS_FORMAT_FOLDED, folded },
	{ NPS_FORMAT_TEXT | NPS_FORMAT_FOLDED, stacks },
	{ NPS_FORMAT_TEXT | NPS_FORMAT_FOLDED, python },
	{ NPS_FORMAT_TEXT | NPS_FORMAT_DB, notes },
	{ ~0U, write_findings },
};

static int write_one(void *ctx, size_t i)
{
	struct analysis_job *job = ctx;

	return job->ex.formats & writers[i].format ? writers[i].write(job) : 0;
}

static int open_directories(struct analysis_job *job, int root)
{
	int err = 0;

	job->fds[ROOT] = root;
	for (int directory = OUTPUT; !err && directory < DIRECTORIES; directory++) {
		if (!job->names[directory]) {
			job->fds[directory] = root;
			continue;
		}
		if (mkdirat(root, job->names[directory], 0750))
			return -errno;
		job->fds[directory] =
			openat(root, job->names[directory], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (job->fds[directory] < 0 || fchmod(job->fds[directory], 0750))
			err = -errno;
	}
	return err;
}

/* Closes the directories, and removes those that stayed empty. */
static void close_directories(struct analysis_job *job)
{
	for (int directory = OUTPUT; directory < DIRECTORIES; directory++) {
		if (!job->names[directory])
			continue;
		if (job->fds[directory] >= 0)
			close(job->fds[directory]);
		unlinkat(job->fds[ROOT], job->names[directory], AT_REMOVEDIR);
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

static int write_results(struct analysis_job *job, int root, bool info)
{
	int err;

	nps_progress__stage_of_readers(job->ex.model->progress, "writing", rows_to_write(&job->ex), "rows");
	err = open_directories(job, root);
	err = err ? err : info ? nps_export__info(&job->ex, root) : 0;
	err = err ? err : nps_threads__run(NPS_ARRAY_SIZE(writers), NPS_MIN(nps_cpus(), 4UL), write_one, job);
	close_directories(job);
	return err;
}

static enum nps_generation result_generation(const struct nps_model *model, enum nps_compat compat)
{
	return compat == NPS_COMPAT_AUTO ? model->generation
	       : compat == NPS_COMPAT_A	 ? NPS_GENERATION_A
					 : NPS_GENERATION_B;
}

/* Fills DIR, and puts it, or what is in it, where it belongs. */
static int write_result(struct analysis_job *job, struct nps_output_dir *dir,
			const struct nps_destination *directory)
{
	int err;

	snprintf(job->root, sizeof(job->root), "%s/%s", directory->parent, dir->temp);
	err = write_results(job, dir->fd,
			    job_write_torch(job) && !directory->entries); /* else they are there */
	if (err)
		goto abort;
	err = directory->input[0] && !directory->entries ? note_input(directory->input, dir->fd) : 0;
	err = err ? err : nps_memory__failure();
	if (err)
		goto abort;
	return directory->entries ? nps_output_dir__commit_entries(dir) : nps_output_dir__commit(dir);
abort:
	nps_output_dir__abort(dir);
	return err;
}

int nps_job__export(struct nps_model *model, const struct nps_analyze_opts *opts,
		    const struct nps_destination *directory, char path[PATH_MAX])
{
	struct analysis_job job = { .ex = { .model = model,
					    .formats = opts->formats,
					    .generation = result_generation(model, opts->compat),
					    .gzip = opts->gzip },
				    .fds = { -1, -1, -1 } };
	struct nps_output_dir dir;
	int err;

	job.names[OUTPUT] = job_write_torch(&job) ? "ASCEND_PROFILER_OUTPUT" : "mindstudio_profiler_output";
	job.names[ANALYZE] = job_write_torch(&job) ? NULL : "analyze";
	stamp(model, job.ex.stamp, sizeof(job.ex.stamp));
	nps_progress__stage_of_readers(model->progress, "findings", 0, "rows");
	errno = 0;
	job.findings = nps_findings__make(model);
	err = job.findings ? nps_output_dir__open(&dir, directory->fd, directory->name)
			   : -(errno ? errno : ENOMEM);
	err = err ? err : write_result(&job, &dir, directory);
	cJSON_Delete(job.findings);
	if (err)
		nps_msg_failure("cannot write %s/%s: %s: %s", directory->parent,
				directory->entries ? "" : directory->name, strerror(-err),
				err == -ENOSPC ? "free some space or name another directory with -o"
					       : "check the directory or name another with -o");
	else
		snprintf(path, PATH_MAX, "%s%s%s", directory->parent, directory->entries ? "" : "/",
			 directory->entries ? "" : directory->name);
	return err;
}

int nps_job__derive(struct nps_model *model)
{
	static const struct {
		const char *name;
		int (*derive)(struct nps_model *model);
	} steps[] = { { "linking operators", nps_derive__links },
		      { "repetitions", nps_derive__step_periods },
		      { "steps", nps_derive__steps },
		      { "overlap", nps_derive__overlap },
		      { "communication", nps_derive__comm },
		      { "names of tasks", nps_derive__task_names },
		      { "scheduling", nps_derive__threads },
		      { "host time", nps_derive__host },
		      { "marks of steps", nps_derive__step_marks } };
	int err = 0;

	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(steps); i++) {
		nps_progress__stage_of_readers(model->progress, steps[i].name, 0, "rows");
		err = steps[i].derive(model);
		nps_model__cool(model);
	}
	return err;
}
