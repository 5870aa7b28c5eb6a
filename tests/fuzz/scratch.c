/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuzz.h"

#include "analyze.h"
#include "job.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static char root[96];

static void remove_root(void)
{
	remove_tree(root);
}

static int fresh(char *path, size_t size, const char *name)
{
	int fd;

	if (!*root) {
		const char *parent = getenv("FUZZ_TMP");

		snprintf(root, sizeof(root), "%s/nps-fuzz-%d", parent ? parent : "/dev/shm", (int)getpid());
		if (mkdir(root, 0700))
			abort();
		atexit(remove_root);
	}
	snprintf(path, size, "%s/%s", root, name);
	mkdir(path, 0750);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		abort();
	return fd;
}

bool fuzz_begin(struct fuzz_scratch *scratch, struct fuzz_archive *archive, const uint8_t *data, size_t size)
{
	if (!fuzz_archive__read(archive, data, size))
		return false;
	scratch->infd = fresh(scratch->in, sizeof(scratch->in), "in");
	scratch->outfd = fresh(scratch->out, sizeof(scratch->out), "out");
	fuzz_archive__unpack(archive, scratch->infd);
	return true;
}

void fuzz_end(struct fuzz_scratch *scratch, struct fuzz_archive *archive)
{
	close(scratch->infd);
	close(scratch->outfd);
	remove_tree(scratch->in);
	remove_tree(scratch->out);
	fuzz_archive__free(archive);
}

void fuzz_one(const uint8_t *data, size_t size, const char *below, fuzz_import_fn import)
{
	struct fuzz_archive archive;
	struct fuzz_scratch scratch;
	struct nps_model model;
	char path[256];

	if (!fuzz_begin(&scratch, &archive, data, size))
		return;
	snprintf(path, sizeof(path), "%s/%s", scratch.in, below);
	if (nps_model__init(&model, scratch.outfd, NULL))
		abort();
	if (!import(&model, path)) {
		fuzz_check_model(&model);
		fuzz_finish(&model, &scratch, archive.options);
	}
	nps_model__free(&model);
	fuzz_end(&scratch, &archive);
}

void fuzz_finish(struct nps_model *model, const struct fuzz_scratch *scratch, uint8_t options)
{
	struct nps_analyze_opts opts = {
		.size = sizeof(opts),
		.formats = NPS_FORMAT_TEXT | NPS_FORMAT_DB | NPS_FORMAT_PERFETTO | NPS_FORMAT_FOLDED,
		.compat = options & FUZZ_COMPAT_A ? NPS_COMPAT_A : NPS_COMPAT_AUTO,
		.gzip = options & FUZZ_GZIP,
		.progress = NPS_PROGRESS_NEVER,
	};
	struct nps_destination to = { .parent = scratch->out, .fd = scratch->outfd, .name = "result" };
	static char path[PATH_MAX];

	/* Memory and space are plenty here: whatever fails was made to fail by the input. */
	if (nps_job__derive(model))
		abort();
	if (nps_job__export(model, &opts, &to, path))
		abort();
	fuzz_check_result(path);
}
