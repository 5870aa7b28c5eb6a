/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace files as inputs: results that came as text only. */
#include "base/input_file.h"
#include "base/util.h"
#include "cli/show.h"
#include "import/input.h"
#include "import/trace/trace_slices.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_trace(const char *name)
{
	static const char *const patterns[] = { "trace_view.json", "trace_view.json.gz", "msprof_[0-9]*.json",
						"msprof_[0-9]*.json.gz" };

	for (size_t i = 0; i < NPS_ARRAY_SIZE(patterns); i++)
		if (!fnmatch(patterns[i], name, 0))
			return true;
	return nps_trace_slices__is_one(name);
}

/* Slices of one trace are one input, and so is what several links lead to. */
static bool input_is_known(const struct nps_vec *inputs, const char *path, const struct stat *st)
{
	for (size_t i = 0; i < inputs->len; i++) {
		const struct nps_input *input = &NPS_AT(inputs, struct nps_input, i);

		if (nps_trace_slices__same(input->path, path) ||
		    (input->dev == st->st_dev && input->ino == st->st_ino))
			return true;
	}
	return false;
}

static int show_append(struct nps_vec *inputs, const char *path, const struct stat *st)
{
	struct nps_input *input;

	if (input_is_known(inputs, path, st))
		return 0;
	input = nps_vec__push(inputs);
	if (!input)
		return -errno;
	*input = (struct nps_input){ .kind = NPS_INPUT_TRACE, .dev = st->st_dev, .ino = st->st_ino };
	snprintf(input->path, sizeof(input->path), "%s", path);
	return 0;
}

static int show_search(struct nps_vec *inputs, struct nps_map *visited, const char *path, int depth);

static int search_entry(struct nps_vec *inputs, struct nps_map *visited, const char *path, const char *name,
			int depth, bool links)
{
	char below[PATH_MAX];
	struct stat st;
	bool link;

	if (name[0] == '.' || snprintf(below, sizeof(below), "%s/%s", path, name) >= (int)sizeof(below))
		return 0;
	link = nps_input__is_link(below);
	if (link != links)
		return 0;
	if (!nps_input__stat(below, &st))
		st.st_mode = 0;
	if (is_trace(name) && S_ISREG(st.st_mode))
		return show_append(inputs, below, &st);
	if (is_trace(name))
		nps_input__unusable(AT_FDCWD, below, "it is no regular file");
	return S_ISDIR(st.st_mode) && depth && !is_trace(name)
		       ? show_search(inputs, visited, below, depth - 1)
		       : 0;
}

static int show_search(struct nps_vec *inputs, struct nps_map *visited, const char *path, int depth)
{
	struct dirent **entries;
	int err = nps_inputs__visit(visited, path, &depth), n;

	if (err <= 0)
		return err;
	if (access(path, X_OK)) { /* one line, not one for each entry */
		nps_input__unreadable(AT_FDCWD, path, -errno);
		return 0;
	}
	n = scandir(path, &entries, NULL, alphasort);
	if (n < 0)
		nps_input__unreadable(AT_FDCWD, path, -errno);
	err = 0;
	/* Links last: what one leads to is not searched as deep as where it is. */
	for (int links = 0; links < 2; links++)
		for (int i = 0; i < n && !err; i++)
			err = search_entry(inputs, visited, path, entries[i]->d_name, depth, links);
	for (int i = 0; i < n; i++)
		free(entries[i]);
	if (n >= 0)
		free(entries);
	return err;
}

int nps_show__find_traces(struct nps_vec *inputs, const char *path)
{
	size_t before = inputs->len;
	struct nps_map visited = { 0 };
	struct stat st;
	int err;

	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (stat(path, &st))
		return -errno;
	if (S_ISREG(st.st_mode))
		return nps_input__is_sqlite(path) ? -ENOENT : show_append(inputs, path, &st);
	if (S_ISDIR(st.st_mode) && access(path, R_OK))
		return -ENOENT; /* nps_inputs__find() reports it */
	err = S_ISDIR(st.st_mode) ? nps_inputs__leave_out_above(&visited, path) : -ENOTDIR;
	err = err ? err : show_search(inputs, &visited, path, NPS_INPUT_DEPTH);
	nps_map__free(&visited);
	return !err && inputs->len == before ? -ENOENT : err;
}
