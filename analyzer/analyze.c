/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of things: import, derive, export; one result a process of a session, one of any other input. */
#include "analyze.h"

#include "base/input_file.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/unfinished.h"
#include "import/import.h"
#include "import/input.h"
#include "import/session/import_process.h"
#include "import/session/session_reader.h"
#include "job.h"
#include "summary.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct analysis {
	const struct nps_input *input;
	struct nps_analyze_opts opts;
	struct nps_destination destination;
	struct nps_session *rec; /* SESSION */
	uint32_t *rows; /* processes of it that make results; NPS_NONE: the whole host */
	bool apart; /* results of processes and of the whole host */
	bool parallel; /* several results at once: progress of the first only */
	bool explained; /* an error, by the process that had it */
	struct nps_summary *out;
};

/* {host}_{pid}_{yyyymmddHHMMSSmmm}_ascend_pt, with what Insight refuses in paths replaced. */
static void session_result_name(const struct nps_session *rec, const struct nps_proc *proc, char *out,
				size_t size)
{
	const char *host = nps_proc__host_name(rec, proc);
	uint64_t begin = rec->begin_real;
	time_t seconds = begin / 1000000000;
	char stamp[32] = "", clean[128];
	struct tm tm;
	size_t n = 0;

	for (; *host && n < sizeof(clean) - 1; host++)
		clean[n++] = isalnum((unsigned char)*host) || *host == '.' || *host == '-' || *host == '_'
				     ? *host
				     : '-';
	clean[n] = 0;
	if (!n || clean[0] == '.')
		clean[0] = 'h', clean[n ? n : 1] = 0;
	if (localtime_r(&seconds, &tm))
		strftime(stamp, sizeof(stamp), "%Y%m%d%H%M%S", &tm);
	snprintf(out, size, "%s_%u_%s%03u_ascend_pt", clean, proc->pid, stamp,
		 (unsigned int)(begin / 1000000 % 1000));
}

/* Of system-wide data the vendor makes PROF_{number}_{yyyymmddHHMMSSmmm}_{16 letters}. */
static void host_result_name(const struct nps_session *rec, char *out, size_t size)
{
	time_t seconds = rec->begin_real / 1000000000;
	char stamp[32] = "";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(stamp, sizeof(stamp), "%Y%m%d%H%M%S", &tm);
	snprintf(out, size, "PROF_000001_%s%03u_NPUSCOPEHOSTWIDE", stamp,
		 (unsigned int)(rec->begin_real / 1000000 % 1000));
}

/*
 * Enters the directory SUB of the output directory, which it makes if it is missing; PATH gets its path.
 * The database of the whole host is in a directory of its own, because Insight counts it as one more rank
 * where it finds it beside those of ranks. 0 or a negative errno; the caller closes the fd.
 */
static int enter_directory(struct nps_destination *destination, const char *sub, char path[PATH_MAX])
{
	bool made = !mkdirat(destination->fd, sub, 0750);

	if (!made && errno != EEXIST)
		return -errno;
	if (snprintf(path, PATH_MAX, "%s/%s", destination->parent, sub) >= PATH_MAX)
		return -ENAMETOOLONG;
	destination->fd = openat(destination->fd, sub, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (destination->fd < 0 || (made && fchmod(destination->fd, 0750)))
		return -errno;
	destination->parent = path;
	return 0;
}

static int export_apart(struct nps_model *model, const struct analysis *a, struct nps_destination destination,
			const char *sub, char path[PATH_MAX])
{
	int outer = destination.fd, err;
	char parent[PATH_MAX];

	err = enter_directory(&destination, sub, parent);
	if (err)
		nps_msg_failure("cannot write into %s/%s: %s: name a directory with -o",
				a->destination.parent, sub, strerror(-err));
	else
		err = nps_job__export(model, &a->opts, &destination, path);
	if (destination.fd >= 0 && destination.fd != outer)
		close(destination.fd);
	return err;
}

static int input_import(struct nps_model *model, const struct analysis *a, size_t i)
{
	int err;

	nps_progress__stage(model->progress, "reading", 0, NULL);
	switch (a->input->kind) {
	case NPS_INPUT_SESSION:
		assert(a->rec);
		if (a->rows[i] == NPS_NONE) {
			err = nps_import__whole_host(model, a->rec);
			if (err)
				nps_msg_cannot(a->input->path, err);
			return err;
		}
		err = nps_import__process(model, a->rec, a->rows[i]);
		if (err)
			nps_msg_failure(
				"cannot analyse process %u: %s: is there room in the output directory?",
				a->rec->procs[a->rows[i]].pid, strerror(-err));
		return err;
	case NPS_INPUT_CANN:
		return nps_import__cann(model, a->input->path);
	case NPS_INPUT_TORCH:
		err = a->input->prof[0] ? nps_import__cann(model, a->input->prof) : 0;
		return err ? err : nps_import__torch(model, a->input->path);
	case NPS_INPUT_DB:
		return nps_import__ascend_db(model, a->input->path);
	case NPS_INPUT_TRACE:
		return nps_import__trace(model, a->input->path);
	}
	return -EINVAL;
}

static int export(struct nps_model *model, const struct analysis *a, size_t i,
		  struct nps_destination *destination, char path[PATH_MAX])
{
	/* If raw data was deleted, the results that were made of it must stay. */
	if (destination->entries && model->start > model->end) {
		nps_msg_failure("cannot write into %s: nothing in it has a time: name a directory with -o",
				a->input->path);
		return -ENODATA;
	}
	if (a->apart)
		return export_apart(model, a, *destination,
				    a->rows[i] == NPS_NONE ? NPS_RESULTS_HOST : NPS_RESULTS_RANKS, path);
	return nps_job__export(model, &a->opts, destination, path);
}

/* What was imported: derived, summed up, written. */
static int evaluate(struct nps_model *model, struct analysis *a, size_t i, struct nps_summary_proc *proc)
{
	struct nps_destination destination = a->destination;
	int err = nps_job__derive(model);

	if (err) {
		nps_msg_failure("cannot analyse %s: %s: is there room in the output directory?",
				a->input->path, strerror(-err));
		return err;
	}
	nps_model__lost(model, nps_input__drain_unreadable(),
			"files or directories that cannot be read, as was reported");
	err = nps_summary__fill(proc, model);
	if (err)
		return err;
	if (a->rec && a->rows[i] == NPS_NONE) {
		host_result_name(a->rec, destination.name, sizeof(destination.name));
	} else if (a->rec) {
		nps_summary__process(proc, a->rec, a->rows[i]);
		session_result_name(a->rec, &a->rec->procs[a->rows[i]], destination.name,
				    sizeof(destination.name));
	}
	err = nps_memory__failure();
	if (err)
		return err;
	err = a->opts.inspect ? a->opts.inspect(a->opts.ctx, model) : 0;
	return err || !a->opts.formats ? err : export(model, a, i, &destination, proc->path);
}

static int analyze_one(struct analysis *a, size_t i, struct nps_summary_proc *proc)
{
	struct nps_progress progress;
	struct nps_model model;
	int err;

	nps_progress__init(&progress, a->parallel && i ? NPS_PROGRESS_NEVER : a->opts.progress);
	err = nps_model__init(&model, a->destination.fd, a->rec ? &a->rec->strings : NULL);
	if (err)
		return err;
	model.progress = &progress;
	model.step_source = a->opts.steps;
	model.marks_steps = a->input->kind == NPS_INPUT_SESSION;
	if (a->opts.steps == NPS_STEPS_AUTO && a->input->kind != NPS_INPUT_SESSION)
		model.step_source = NPS_STEPS_MARKER; /* its steps keep the meaning of its profiler */
	err = input_import(&model, a, i);
	nps_model__cool(&model);
	err = err ? err : evaluate(&model, a, i, proc);
	nps_progress__end(&progress);
	nps_model__free(&model);
	return err;
}

static int run(void *ctx, size_t i, FILE *out)
{
	struct analysis *a = ctx;
	unsigned int failures = nps_msg_failures();
	struct nps_summary_proc proc;
	int err = a->parallel ? nps_strings__own(&a->rec->strings) : 0;

	err = err ? err : analyze_one(a, i, &proc);
	err = err || fwrite(&proc, sizeof(proc), 1, out) == 1 ? err : -EIO;
	if (err && nps_msg_failures() == failures)
		nps_msg_cannot(a->input->path, err);
	return err;
}

static int input_done(void *ctx, size_t i, int err, FILE *in)
{
	struct analysis *a = ctx;
	struct nps_summary_proc proc;

	(void)i;
	if (err) {
		a->explained = true;
		return err;
	}
	if (fread(&proc, sizeof(proc), 1, in) != 1)
		return -EIO;
	return nps_summary__add(a->out, &proc);
}

static size_t process_limit(const struct nps_analyze_opts *opts)
{
	return opts->processes ? opts->processes : NPS_MAX(nps_cpus() / 2, 1UL);
}

static int session(struct analysis *a, int dirfd)
{
	struct nps_session *rec = calloc(1, sizeof(*rec));
	struct nps_progress progress;
	bool unreadable;
	size_t n = 0;
	int err;

	if (!rec)
		return -ENOMEM;
	a->rec = rec;
	nps_session__init(rec, dirfd, a->destination.fd);
	rec->show_self = a->opts.show_self;
	nps_progress__init(&progress, a->opts.progress);
	rec->progress = &progress;
	err = nps_session__load(rec, a->input->path);
	nps_progress__end(&progress);
	unreadable = nps_input__drain_unreadable() > 0;
	if (err)
		goto out;
	a->rows = calloc(rec->nprocs + 2, sizeof(*a->rows));
	if (!a->rows) {
		err = -ENOMEM;
		goto out;
	}
	for (uint32_t p = 0; p < rec->nprocs; p++)
		if (nps_session__has_result(rec, p))
			a->rows[n++] = p;
	if (nps_session__has_host_result(rec)) {
		a->apart = n > 0;
		a->rows[n++] = NPS_NONE;
	}
	a->parallel = n > 1 && process_limit(&a->opts) > 1;
	err = nps_pool__run(n, process_limit(&a->opts), run, input_done, a, a->destination.fd);
out:
	nps_summary__losses(a->out, rec);
	a->out->incomplete |= unreadable;
	nps_summary__neighbours(a->out, rec);
	free(a->rows);
	nps_session__free(rec);
	free(rec);
	return err;
}

/* True if PATH is the directory NAME in FD or lies below it, whatever links and dots are in its text. */
static bool lies_in(int fd, const char *name, const char *path)
{
	char whole[PATH_MAX], *slash;
	struct stat dir, st;
	bool found = false;

	if (fstatat(fd, name, &dir, 0) || !realpath(path, whole))
		return false;
	do {
		found = !stat(whole, &st) && st.st_dev == dir.st_dev && st.st_ino == dir.st_ino;
		slash = strrchr(whole, '/');
		*slash = 0;
	} while (!found && slash != whole);
	return found;
}

/* True if DIR, which this closes, has an entry that matches none of the N patterns, or cannot be read. */
static bool has_other(DIR *dir, const char *const *patterns, size_t n)
{
	struct dirent *entry;
	bool other = false;

	while (!other) {
		errno = 0;
		entry = readdir(dir);
		if (!entry) {
			other = errno != 0;
			break;
		}
		other = true;
		for (size_t i = 0; other && i < n; i++)
			other = fnmatch(patterns[i], entry->d_name, 0) != 0;
	}
	closedir(dir);
	return other;
}

/* True if NAME in FD has files that no result has: a new result would replace a capture or a user's files. */
static bool holds_other(int fd, const char *name)
{
	static const char *const ours[] = { ".",
					    "..",
					    "ASCEND_PROFILER_OUTPUT",
					    "profiler_info*.json",
					    "profiler_metadata.json",
					    "analyze",
					    NPS_RESULT_INPUT,
					    "msprof_*.db",
					    "mindstudio_profiler_output" };
	int sub = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = sub < 0 ? NULL : fdopendir(sub);
	bool there;

	if (dir)
		return has_other(dir, ours, NPS_ARRAY_SIZE(ours));
	there = errno != ENOENT;
	if (sub >= 0)
		close(sub);
	return there;
}

/* True if the directory NAME in PATH holds files that no profiler writes: a new result would delete them. */
static bool holds_notes(const char *path, const char *name)
{
	static const char *const results[] = { "*.csv", "*.json",    "*.json.gz", "*.db", "*.txt",
					       ".*",	"*.pftrace", "*.folded",  "*.svg" };
	char whole[PATH_MAX];
	DIR *dir;

	if (snprintf(whole, sizeof(whole), "%s/%s", path, name) >= (int)sizeof(whole))
		return false;
	dir = opendir(whole);
	return dir ? has_other(dir, results, NPS_ARRAY_SIZE(results)) : errno != ENOENT;
}

static bool path_exists(const char *path, const char *name)
{
	char whole[PATH_MAX];

	return snprintf(whole, sizeof(whole), "%s/%s", path, name) < (int)sizeof(whole) &&
	       !access(whole, F_OK);
}

/* Why the results beside INPUT must stay as they are; NULL: they need not. */
static const char *keeps_results(const struct nps_input *input)
{
	if (input->kind == NPS_INPUT_TORCH && !path_exists(input->path, "FRAMEWORK"))
		return "without FRAMEWORK the results there could not be made again";
	if (input->kind == NPS_INPUT_TORCH && !input->prof[0] &&
	    path_exists(input->path, "ASCEND_PROFILER_OUTPUT"))
		return "without PROF_* the results there could not be made again";
	if (holds_notes(input->path, "ASCEND_PROFILER_OUTPUT") ||
	    holds_notes(input->path, "mindstudio_profiler_output"))
		return "there are other files among the old results";
	return NULL;
}

/* True if NAME in FD is the result of something else than INPUT; OTHER: its path. */
static bool is_of_other(int fd, const char *name, const char *input, char other[PATH_MAX])
{
	char path[300];
	ssize_t len;
	int file;

	snprintf(path, sizeof(path), "%s/" NPS_RESULT_INPUT, name);
	file = openat(fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	len = file < 0 ? -1 : read(file, other, PATH_MAX - 1);
	if (file >= 0)
		close(file);
	if (len <= 0)
		return false; /* the result does not record its input */
	other[len] = 0;
	return strcmp(other, input) != 0;
}

/* Decides where the result of INPUT goes. 0, or negative errno after printing the reason. */
static int choose_destination(struct analysis *a)
{
	const struct nps_input *input = a->input;
	struct nps_destination *destination = &a->destination;
	char other[PATH_MAX];
	const char *why;
	int err;

	destination->parent = a->opts.output ? a->opts.output : input->path;
	if (input->kind == NPS_INPUT_DB && !a->opts.output && a->opts.formats) {
		nps_msg_failure(
			"cannot write beside %s: the result would replace it: name a directory with -o",
			input->path);
		return -EEXIST;
	}
	why = a->opts.output || !a->opts.formats ? NULL : keeps_results(input);
	if (why) {
		nps_msg_failure("cannot write into %s: %s: name a directory with -o", input->path, why);
		return -EEXIST;
	}
	if (input->kind == NPS_INPUT_DB && !a->opts.output)
		destination->parent = "/tmp"; /* for temporary files: nothing is written */
	destination->fd = open(destination->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (destination->fd < 0) {
		err = -errno;
		nps_msg_failure("cannot write into %s: %s: name a directory with -o", destination->parent,
				strerror(-err));
		return err;
	}
	if (input->kind == NPS_INPUT_SESSION)
		return 0;
	destination->entries = !a->opts.output;
	if (destination->entries) {
		snprintf(destination->name, sizeof(destination->name), "npuscope");
		return 0;
	}
	err = nps_input__result_name(input, destination->name, sizeof(destination->name));
	if (!realpath(input->path, destination->input))
		destination->input[0] = 0; /* reading it fails too, which is reported then */
	if (!err && a->opts.formats &&
	    is_of_other(destination->fd, destination->name, destination->input, other)) {
		nps_msg_failure(
			"cannot write %s/%s: it is the result of %s: name another directory with -o, or "
			"remove it",
			destination->parent, destination->name, other);
		return -EEXIST;
	}
	if (!err && a->opts.formats &&
	    (lies_in(destination->fd, destination->name, input->path) ||
	     holds_other(destination->fd, destination->name)))
		err = -EEXIST;
	if (err)
		nps_msg_failure("cannot write %s/%s: %s: name another directory with -o", destination->parent,
				destination->name,
				err == -EEXIST ? "raw data, the input or other files are there"
					       : strerror(-err));
	return err;
}

int nps_analyze_input(const struct nps_input *input, const struct nps_analyze_opts *opts,
		      struct nps_summary *out)
{
	static const char *const below[] = { NPS_RESULTS_RANKS, NPS_RESULTS_HOST, NULL };
	struct nps_summary unused = { 0 };
	struct analysis a = { .input = input,
			      .opts = { .size = sizeof(a.opts), .formats = NPS_FORMAT_DEFAULT },
			      .destination = { .fd = -1 },
			      .out = out ? out : &unused };
	unsigned int failures = nps_msg_failures();
	int dirfd = -1, err;

	nps_memory__watch();
	nps_memory__reset();
	nps_input__begin();
	if (opts)
		memcpy(&a.opts, opts, NPS_MIN(opts->size, sizeof(a.opts)));
	*a.out = (struct nps_summary){ 0 };
	if (input->kind == NPS_INPUT_SESSION) {
		/* Files in a directory that may not be listed may still be readable. */
		dirfd = open(input->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (dirfd < 0) {
			err = -errno;
			nps_msg_failure("cannot open %s: %s: name a session directory", input->path,
					strerror(-err));
			return err;
		}
	}
	err = choose_destination(&a);
	if (err)
		goto out;
	if (a.opts.formats)
		nps_unfinished__begin(input->path, a.destination.fd, below);
	err = dirfd >= 0 ? session(&a, dirfd) : nps_pool__run(1, 1, run, input_done, &a, a.destination.fd);
out:
	if (a.destination.fd >= 0)
		close(a.destination.fd);
	if (dirfd >= 0)
		close(dirfd);
	nps_summary_free(&unused);
	if (err && !a.explained && nps_msg_failures() == failures)
		nps_msg_cannot(input->path, err);
	return err;
}

int nps_analyze(const char *session_dir, const struct nps_analyze_opts *opts, struct nps_summary *out)
{
	struct nps_input input = { .kind = NPS_INPUT_SESSION };

	snprintf(input.path, sizeof(input.path), "%s", session_dir);
	return nps_analyze_input(&input, opts, out);
}
