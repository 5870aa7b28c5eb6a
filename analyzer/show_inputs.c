/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace files as inputs: results that came as text only. */
#include "base/util.h"
#include "input.h"
#include "show.h"
#include "trace_slices.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_trace(const char *name)
{
	static const char *const patterns[] = { "trace_view.json", "trace_view.json.gz", "msprof_[0-9]*.json",
						"msprof_[0-9]*.json.gz" };

	for (size_t i = 0; i < NPS_ARRAY_SIZE(patterns); i++)
		if (!fnmatch(patterns[i], name, 0))
			return true;
	return nps_trace_slices__is_one(name);
}

/* Slices of one trace are one input. */
static bool is_known(const struct nps_vec *inputs, const char *path)
{
	for (size_t i = 0; i < inputs->len; i++)
		if (nps_trace_slices__same(NPS_AT(inputs, struct nps_input, i).path, path))
			return true;
	return false;
}

static int append(struct nps_vec *inputs, const char *path)
{
	struct nps_input *input;

	if (is_known(inputs, path))
		return 0;
	input = nps_vec__push(inputs);
	if (!input)
		return -errno;
	*input = (struct nps_input){ .kind = NPS_INPUT_TRACE };
	snprintf(input->path, sizeof(input->path), "%s", path);
	return 0;
}

static int search(struct nps_vec *inputs, struct nps_map *visited, const char *path, int depth)
{
	bool top = depth == NPS_INPUT_DEPTH;
	struct dirent **entries;
	int err = nps_inputs__visit(visited, path, &depth), n;

	if (err <= 0)
		return err;
	n = scandir(path, &entries, NULL, alphasort);
	if (n < 0)
		return top ? -errno : 0;
	err = 0;
	/* Links last: what one leads to is not searched as deep as where it is. */
	for (int k = 0; k < 2 * n && !err; k++) {
		const char *name = entries[k < n ? k : k - n]->d_name;
		char below[PATH_MAX];
		struct stat st;

		if (name[0] == '.' ||
		    snprintf(below, sizeof(below), "%s/%s", path, name) >= (int)sizeof(below) ||
		    nps_input__is_link(below) != (k >= n) || stat(below, &st))
			continue;
		if (S_ISREG(st.st_mode) && is_trace(name))
			err = append(inputs, below);
		else if (S_ISDIR(st.st_mode) && depth)
			err = search(inputs, visited, below, depth - 1);
	}
	for (int i = 0; i < n; i++)
		free(entries[i]);
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
		return nps_input__is_sqlite(path) ? -ENOENT : append(inputs, path);
	err = S_ISDIR(st.st_mode) ? nps_inputs__leave_out_above(&visited, path) : -ENOTDIR;
	if (!err)
		err = search(inputs, &visited, path, NPS_INPUT_DEPTH);
	nps_map__free(&visited);
	return !err && inputs->len == before ? -ENOENT : err;
}
