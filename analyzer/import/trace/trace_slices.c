/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/trace/trace_slices.h"

#include "base/input_file.h"
#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* STEM_slice_NUMBER REST. */
struct slice_name {
	size_t stem; /* bytes before the number */
	unsigned int number;
	const char *rest;
};

static bool slice_name_split(const char *name, struct slice_name *parts)
{
	static const char *const stems[] = { "msprof_slice_", "trace_view_slice_" };
	size_t end;

	for (size_t i = 0; i < NPS_ARRAY_SIZE(stems); i++) {
		parts->stem = strlen(stems[i]);
		if (strncmp(name, stems[i], parts->stem) != 0)
			continue;
		end = strspn(name + parts->stem, "0123456789");
		if (!end || end > 9)
			return false;
		parts->number = (unsigned int)strtoul(name + parts->stem, NULL, 10);
		parts->rest = name + parts->stem + end;
		end = strlen(parts->rest);
		return (end >= 5 && !strcmp(parts->rest + end - 5, ".json")) ||
		       (end >= 8 && !strcmp(parts->rest + end - 8, ".json.gz"));
	}
	return false;
}

static const char *slice_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool nps_trace_slices__is_one(const char *name)
{
	struct slice_name parts;

	return slice_name_split(name, &parts);
}

static bool same_trace(const char *name, const struct slice_name *a, const char *other,
		       const struct slice_name *b)
{
	return a->stem == b->stem && !strncmp(name, other, a->stem) && !strcmp(a->rest, b->rest);
}

bool nps_trace_slices__same(const char *a, const char *b)
{
	const char *x = slice_base_name(a), *y = slice_base_name(b);
	struct slice_name of_a, of_b;

	return x - a == y - b && !strncmp(a, b, (size_t)(x - a)) && slice_name_split(x, &of_a) &&
	       slice_name_split(y, &of_b) && same_trace(x, &of_a, y, &of_b);
}

static int slice_add(struct nps_vec *slices, unsigned int number, const char *dir, int len, const char *name)
{
	struct nps_trace_slice *slice = nps_vec__push(slices);

	if (!slice)
		return -errno;
	slice->number = number;
	return snprintf(slice->path, sizeof(slice->path), "%.*s%s", len, dir, name) < (int)sizeof(slice->path)
		       ? 0
		       : -ENAMETOOLONG;
}

static int by_number(const void *a, const void *b)
{
	const struct nps_trace_slice *x = a, *y = b;

	return x->number != y->number ? (x->number > y->number ? 1 : -1) : strcmp(x->path, y->path);
}

int nps_trace_slices__find(struct nps_vec *slices, const char *path)
{
	const char *name = slice_base_name(path);
	char dir[PATH_MAX];
	struct slice_name mine, parts;
	struct dirent *entry;
	DIR *listed;
	int fd, err;

	if (!slice_name_split(name, &mine))
		return slice_add(slices, 0, "", 0, path);
	snprintf(dir, sizeof(dir), "%.*s", name == path ? 1 : (int)(name - path), name == path ? "." : path);
	err = slice_add(slices, mine.number, "", 0, path); /* who may not list it may still open this one */
	fd = nps_input_dir__open(AT_FDCWD, dir);
	listed = fd < 0 ? NULL : nps_input_dir__list(fd);
	while (!err && listed && (entry = nps_input_dir__next(listed)))
		if (strcmp(entry->d_name, name) != 0 && slice_name_split(entry->d_name, &parts) &&
		    same_trace(name, &mine, entry->d_name, &parts))
			err = slice_add(slices, parts.number, path, (int)(name - path), entry->d_name);
	if (listed)
		closedir(listed);
	if (fd >= 0)
		close(fd);
	if (err)
		return err;
	qsort(slices->data, slices->len, sizeof(struct nps_trace_slice), by_number);
	return 0;
}
