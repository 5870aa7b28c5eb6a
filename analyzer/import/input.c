/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/input.h"

#include "base/input_file.h"
#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_BEHIND_LINK 2 /* results are collected as links; what a link leads to may be large */

/* The kind of NAME in DIR, which may be a symbolic link; 0: there is none. */
static mode_t entry_mode(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
			       nps_input__stat(path, &st)
		       ? st.st_mode & S_IFMT
		       : 0;
}

static bool is_dir(const char *dir, const char *name)
{
	return entry_mode(dir, name) == S_IFDIR;
}

/* Also true for something other than a directory or file: opening it reports that. */
static bool entry_exists(const char *dir, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
	       nps_input__exists(AT_FDCWD, path);
}

/* Reports NAME in DIR, which is there and is none of KIND. */
static void report_other_kind(const char *dir, const char *name, mode_t kind)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		nps_input__unreadable(AT_FDCWD, name, -ENAMETOOLONG);
	else if (stat(path, &st))
		nps_input__unreadable(AT_FDCWD, path, -errno);
	else
		nps_input__unusable(AT_FDCWD, path,
				    kind == S_IFDIR ? "it is no directory" : "it is no regular file");
}

/* scandir(), whose errors are reported. */
static int directory_list(const char *path, struct dirent ***entries)
{
	int n = scandir(path, entries, NULL, alphasort);

	if (n < 0 && errno != ENOENT)
		nps_input__unreadable(AT_FDCWD, path, -errno);
	return n;
}

static bool is_database(const char *name)
{
	static const char *const patterns[] = { "ascend_pytorch_profiler.db",
						"ascend_pytorch_profiler_[0-9]*.db",
						"ascend_mindspore_profiler.db",
						"ascend_mindspore_profiler_[0-9]*.db", "msprof_[0-9]*.db" };

	for (size_t i = 0; i < NPS_ARRAY_SIZE(patterns); i++)
		if (!fnmatch(patterns[i], name, 0))
			return true;
	return false;
}

/* First entry of PATH, in order of names, that PICK accepts, into OUT. */
static bool first(const char *path, bool (*pick)(const char *dir, const char *name), char *out)
{
	struct dirent **entries;
	int n = directory_list(path, &entries);
	bool found = false;

	for (int i = 0; i < n; i++) {
		if (!found && pick(path, entries[i]->d_name))
			found = snprintf(out, PATH_MAX, "%s/%s", path, entries[i]->d_name) < PATH_MAX;
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return found;
}

static bool device_dir(const char *dir, const char *name)
{
	return !fnmatch("device_[0-9]*", name, 0) && is_dir(dir, name);
}

/* The last part of PATH. */
static const char *input_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* npuscope_{host}_{17 digits of its time} that `record` left without a whole session when it was killed. */
static bool is_unwritten_session(const char *path)
{
	const char *name = input_base_name(path), *stamp = strrchr(name, '_');
	struct dirent **entries;
	bool only_ours = true;
	int n;

	if (strncmp(name, "npuscope_", strlen("npuscope_")) || strlen(stamp) != 18 ||
	    strspn(stamp + 1, "0123456789") != 17)
		return false;
	n = scandir(path, &entries, NULL, NULL);
	for (int i = 0; i < n; i++) {
		const char *entry = entries[i]->d_name;

		only_ours &= !strcmp(entry, ".") || !strcmp(entry, "..") ||
			     !strcmp(entry, "session.json.new");
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return n >= 0 && only_ours;
}

/* An archive of such a directory has a dot in its name. */
static bool is_prof_name(const char *name)
{
	return !fnmatch("PROF_*", name, 0) && !strchr(name, '.');
}

/* Also one that lost a file: it is no directory of another kind. */
static bool is_session(const char *path)
{
	return entry_exists(path, "session.json") || entry_exists(path, "events.nps") ||
	       is_unwritten_session(path);
}

static bool is_prof(const char *path)
{
	char unused[PATH_MAX];

	return is_dir(path, "host") || first(path, device_dir, unused) ||
	       (is_prof_name(input_base_name(path)) && entry_exists(path, "host"));
}

static bool prof_dir(const char *dir, const char *name)
{
	char path[PATH_MAX];

	if (fnmatch("PROF_*", name, 0))
		return false;
	if (!is_dir(dir, name)) {
		if (is_prof_name(name))
			report_other_kind(dir, name, S_IFDIR);
		return false;
	}
	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) && is_prof(path);
}

static bool input_find_database(const char *dir, const char *name)
{
	if (!is_database(name))
		return false;
	if (entry_mode(dir, name) == S_IFREG)
		return true;
	report_other_kind(dir, name, S_IFREG);
	return false;
}

static int input_append(struct nps_vec *inputs, enum nps_input_kind kind, const char *path, const char *prof)
{
	struct nps_input *input;
	struct stat st = { 0 };

	/* Several links can lead to one. */
	if (stat(path, &st))
		return -errno;
	for (size_t i = 0; i < inputs->len; i++)
		if (NPS_AT(inputs, struct nps_input, i).dev == st.st_dev &&
		    NPS_AT(inputs, struct nps_input, i).ino == st.st_ino)
			return 0;
	input = nps_vec__push(inputs);
	if (!input)
		return -errno;
	input->kind = kind;
	input->dev = st.st_dev;
	input->ino = st.st_ino;
	snprintf(input->path, sizeof(input->path), "%s", path);
	snprintf(input->prof, sizeof(input->prof), "%s", prof);
	return 0;
}

/* Appends the databases in PATH: of several ranks, collected in one directory. */
static int databases(struct nps_vec *inputs, const char *path, bool *found)
{
	struct dirent **entries;
	size_t before = inputs->len;
	int n = directory_list(path, &entries), err = 0;

	for (int i = 0; i < n; i++) {
		char file[PATH_MAX];

		if (!err && input_find_database(path, entries[i]->d_name) &&
		    snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name) < (int)sizeof(file))
			err = input_append(inputs, NPS_INPUT_DB, file, "");
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	for (size_t i = before; i < inputs->len; i++)
		NPS_AT(inputs, struct nps_input, i).one_of_many = inputs->len - before > 1;
	*found = inputs->len > before;
	return err;
}

/* Appends what the directory PATH itself is; *FOUND: whether it was anything. */
static int directory(struct nps_vec *inputs, const char *path, bool *found)
{
	char output[PATH_MAX], other[PATH_MAX] = "";
	int err = 0;

	*found = true;
	if (is_session(path))
		return input_append(inputs, NPS_INPUT_SESSION, path, "");
	if (entry_exists(path, "FRAMEWORK") ||
	    (is_dir(path, "ASCEND_PROFILER_OUTPUT") && first(path, prof_dir, other))) {
		first(path, prof_dir, other);
		return input_append(inputs, NPS_INPUT_TORCH, path, other);
	}
	if (is_prof(path))
		return input_append(inputs, NPS_INPUT_CANN, path, "");
	*found = false;
	if (snprintf(output, sizeof(output), "%s/ASCEND_PROFILER_OUTPUT", path) < (int)sizeof(output))
		err = databases(inputs, output, found);
	return err || *found ? err : databases(inputs, path, found);
}

/* Such names are reported if they cannot be opened: a broken link among results of ranks, for example. */
static bool is_input_name(const char *name)
{
	return is_prof_name(name) || !fnmatch("*_ascend_[pm][ts]", name, 0);
}

int nps_inputs__leave_out_above(struct nps_map *visited, const char *path)
{
	char whole[PATH_MAX], *slash;
	struct stat st;

	if (!realpath(path, whole))
		return 0; /* it cannot be opened either */
	while ((slash = strrchr(whole, '/')) && whole[1]) {
		slash[slash == whole] = 0;
		if (!stat(whole, &st) && nps_map__put(visited, nps_hash2(st.st_dev, st.st_ino), 1))
			return -ENOMEM;
	}
	return 0;
}

bool nps_input__is_link(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISLNK(st.st_mode);
}

int nps_inputs__visit(struct nps_map *visited, const char *path, int *depth)
{
	struct stat st;
	uint64_t key;

	if (!nps_input__stat(path, &st))
		return 0;
	key = nps_hash2(st.st_dev, st.st_ino);
	if (nps_map__get(visited, key) != NPS_NONE)
		return 0;
	if (nps_map__put(visited, key, 1))
		return -ENOMEM;
	if (*depth != NPS_INPUT_DEPTH && nps_input__is_link(path))
		*depth = NPS_MIN(*depth, DEPTH_BEHIND_LINK);
	return 1;
}

static int input_search(struct nps_vec *inputs, struct nps_map *visited, const char *path, int depth);

/* Of the entries of a directory those that are links, or those that are not. */
static int search_entries(struct nps_vec *inputs, struct nps_map *visited, const char *path, int depth,
			  struct dirent **entries, int n, bool links)
{
	int err = 0;

	for (int i = 0; !err && i < n; i++) {
		const char *name = entries[i]->d_name;
		char below[PATH_MAX];

		if (name[0] == '.' ||
		    snprintf(below, sizeof(below), "%s/%s", path, name) >= (int)sizeof(below) ||
		    nps_input__is_link(below) != links)
			continue;
		if (is_dir(path, name))
			err = input_search(inputs, visited, below, depth - 1);
		else if (is_input_name(name))
			report_other_kind(path, name, S_IFDIR);
	}
	return err;
}

static int input_search(struct nps_vec *inputs, struct nps_map *visited, const char *path, int depth)
{
	bool found;
	struct dirent **entries;
	int err = nps_inputs__visit(visited, path, &depth), n;

	if (err <= 0)
		return err;
	if (access(path, X_OK)) { /* somebody else's, perhaps: one line, not one for each file looked for */
		nps_input__unreadable(AT_FDCWD, path, -errno);
		return 0;
	}
	/* Who may not list a session may still open its files, whose names are known. */
	err = directory(inputs, path, &found);
	if (err || found)
		return err;
	if (access(path, R_OK)) {
		nps_input__unreadable(AT_FDCWD, path, -errno);
		return 0;
	}
	if (!depth)
		return 0;
	n = directory_list(path, &entries);
	/* Links last: what one leads to is not searched as deep as where it is. */
	err = search_entries(inputs, visited, path, depth, entries, n, false);
	err = err ? err : search_entries(inputs, visited, path, depth, entries, n, true);
	for (int i = 0; i < n; i++)
		free(entries[i]);
	if (n >= 0)
		free(entries);
	return err;
}

bool nps_input__is_sqlite(const char *path)
{
	static const char magic[] = "SQLite format 3";
	char head[sizeof(magic)] = "";
	int fd = nps_input_file__open(AT_FDCWD, path, NULL);
	ssize_t len = fd < 0 ? 0 : read(fd, head, sizeof(head));

	if (len < 0)
		nps_input__unreadable_fd(fd, -errno);
	if (fd >= 0)
		close(fd);
	return len == (ssize_t)sizeof(head) && !memcmp(head, magic, sizeof(magic));
}

/* By its first bytes or its name: then a damaged database is reported as one. */
static bool is_database_path(const char *path)
{
	const char *dot = strrchr(path, '.');

	return nps_input__is_sqlite(path) || (dot && !strcmp(dot, ".db"));
}

int nps_inputs__find(struct nps_vec *inputs, const char *path)
{
	size_t before = inputs->len;
	struct nps_vec found; /* by this call: an input that is named twice is reported */
	struct nps_map visited = { 0 };
	char clean[PATH_MAX];
	struct stat st;
	size_t len;
	int err;

	if (snprintf(clean, sizeof(clean), "%s", path) >= (int)sizeof(clean))
		return -ENAMETOOLONG;
	for (len = strlen(clean); len > 1 && clean[len - 1] == '/'; len--)
		clean[len - 1] = 0;
	if (stat(clean, &st))
		return -errno;
	if (S_ISREG(st.st_mode))
		return is_database_path(clean) ? input_append(inputs, NPS_INPUT_DB, clean, "") : -ENOENT;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (access(clean, X_OK))
		return -errno;
	nps_vec__init(&found, AT_FDCWD, sizeof(struct nps_input));
	err = nps_inputs__leave_out_above(&visited, clean);
	err = err ? err : input_search(&found, &visited, clean, NPS_INPUT_DEPTH);
	nps_map__free(&visited);
	for (size_t i = 0; !err && i < found.len; i++) {
		struct nps_input *input = nps_vec__push(inputs);

		if (input)
			*input = NPS_AT(&found, struct nps_input, i);
		else
			err = -errno;
	}
	nps_vec__free(&found);
	if (err || inputs->len != before)
		return err;
	return access(clean, R_OK) ? -errno : -ENOENT;
}

int nps_input__result_name(const struct nps_input *input, char *out, size_t size)
{
	const char *name, *file = input_base_name(input->path);
	char path[PATH_MAX];
	char *slash;
	int len;

	snprintf(path, sizeof(path), "%s", input->path);
	if (input->kind == NPS_INPUT_DB) {
		slash = strrchr(path, '/');
		*(slash ? slash : path) = 0;
		slash = strrchr(path, '/');
		if (!strcmp(input_base_name(path), "ASCEND_PROFILER_OUTPUT"))
			*(slash ? slash : path) = 0;
	}
	name = input_base_name(path);
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		name = input->kind == NPS_INPUT_DB ? "result_ascend_pt" : "result";
	if (input->one_of_many)
		len = snprintf(out, size, "%s_%.*s", name, (int)strcspn(file, "."), file);
	else
		len = snprintf(out, size, "%s", name);
	return (size_t)len < size ? 0 : -ENAMETOOLONG;
}
