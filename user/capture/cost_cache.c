/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/cost_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "attach/capability.h"
#include "core/run_directory.h"

#define FORMAT "npuscope costs 1"
#define FILE_NAME "costs"
#define NEW_NAME "costs.new"
#define MOST_BYTES 4096 /* of a file: twice what one of ours has */
#define MOST_PS 1000000000000ULL

static const char *const here[] = { "run", "npuscope", NULL };
const struct nps_cost_cache nps_cost_cache_here = { .top = "/", .path = here, .owner = 0 };

/* --- the key --- */

/* The value in the first line of /proc/cpuinfo that begins with NAME; "" if there is none. */
static void find_in(const char *text, const char *name, char *value, size_t size)
{
	size_t len = strlen(name);

	*value = '\0';
	for (const char *line = text; line; line = strchr(line, '\n'), line += line ? 1 : 0) {
		const char *at = line + len;

		if (strncmp(line, name, len))
			continue;
		at += strspn(at, " \t:");
		snprintf(value, size, "%.*s", (int)strcspn(at, "\n"), at);
		return;
	}
}

static int cache_read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	close(fd);
	if (n <= 0)
		return -EIO;
	text[n] = '\0';
	return 0;
}

/* x86-64 names the model, arm64 has numbers. */
static int read_processor(char *out, size_t size)
{
	static const char *const names[] = { "model name",  "microcode", "CPU implementer",
					     "CPU variant", "CPU part",	 "CPU revision" };
	char text[4096], value[96];
	int err = cache_read_text("/proc/cpuinfo", text, sizeof(text));
	size_t at = 0;

	*out = '\0';
	for (size_t i = 0; !err && i < sizeof(names) / sizeof(*names); i++) {
		find_in(text, names[i], value, sizeof(value));
		if (*value && at < size)
			at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", value);
	}
	return err;
}

int nps_cost_key__fill(const struct nps_capability *cap, struct nps_cost_key *key)
{
	char boot[64], processor[256];
	struct utsname u;
	struct stat exe;
	int err, n;

	if (uname(&u) || stat("/proc/self/exe", &exe))
		return -errno;
	err = cache_read_text("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	if (err)
		return err;
	err = read_processor(processor, sizeof(processor));
	if (err)
		return err;
	boot[strcspn(boot, "\n")] = '\0';
	n = snprintf(key->text, sizeof(key->text),
		     FORMAT "\nboot %s\nkernel %s %s %s\nbuild %s, %lld bytes of %lld.%09ld\nprocessor %s\n"
			    "probes %s%s%s%s\n",
		     boot, u.release, u.version, u.machine, NPS_VERSION, (long long)exe.st_size,
		     (long long)exe.st_mtim.tv_sec, exe.st_mtim.tv_nsec, processor,
		     nps_uprobe_row__name(cap->uprobe), cap->cookie ? "" : ", no cookies",
		     cap->task_storage ? "" : ", no task storage",
		     nps_capability__is_legacy(cap) ? ", legacy" : "");
	return n < 0 || (size_t)n >= sizeof(key->text) ? -EOVERFLOW : 0;
}

/* --- the directory --- */

static bool is_safe(int fd, uid_t owner, mode_t type)
{
	struct stat st;

	return !fstat(fd, &st) && (st.st_mode & S_IFMT) == type && st.st_uid == owner &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * Opens the directory, whose path only the owner can change; MAKE:
 * creates its last component if it is missing.
 */
static int open_directory(const struct nps_cost_cache *cache, bool make)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(cache->top, flags), next;

	for (size_t i = 0; fd >= 0; i++) {
		const char *name = cache->path[i];

		if (!is_safe(fd, cache->owner, S_IFDIR)) {
			close(fd);
			return -EPERM;
		}
		if (!name)
			return fd;
		if (make && !cache->path[i + 1]) {
			next = nps_run_directory__open(fd, name);
		} else {
			next = openat(fd, name, flags);
			if (next < 0)
				next = errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
		}
		close(fd);
		fd = next;
		if (fd < 0)
			return fd;
	}
	return -errno;
}

/* --- the contents --- */

/* Parses "NAME 12345\n", in thousandths of ns, or "NAME -\n": unknown. Returns the next line, or NULL. */
static const char *cache_parse_line(const char *at, const char *name, double *ns)
{
	size_t len = strlen(name);
	uint64_t ps = 0;

	if (strncmp(at, name, len) || at[len] != ' ')
		return NULL;
	at += len + 1;
	if (at[0] == '-' && at[1] == '\n') {
		*ns = -1;
		return at + 2;
	}
	if (*at < '0' || *at > '9')
		return NULL;
	for (; *at >= '0' && *at <= '9'; at++) {
		ps = 10 * ps + (uint64_t)(*at - '0');
		if (ps > MOST_PS)
			return NULL;
	}
	*ns = (double)ps / 1000;
	return *at == '\n' ? at + 1 : NULL;
}

static int parse(const char *text, size_t size, const struct nps_cost_key *key, struct nps_cost *cost)
{
	size_t len = strlen(key->text);
	struct nps_cost found;
	const char *at;

	if (strlen(text) != size || strncmp(text, FORMAT "\n", sizeof(FORMAT)))
		return -EBADMSG;
	if (strncmp(text, key->text, len))
		return -ESTALE;
	at = text + len;
	for (size_t i = 0; at && i < NPS_COST_MEMBERS; i++)
		at = cache_parse_line(at, nps_cost__name(i), nps_cost__member(&found, i));
	if (!at || *at || !nps_cost__is_valid(&found))
		return -EBADMSG;
	*cost = found;
	return 0;
}

static int cache_read_file(int fd, uid_t owner, char text[MOST_BYTES + 1], size_t *size)
{
	ssize_t n = 0;

	if (!is_safe(fd, owner, S_IFREG))
		return -EPERM;
	for (*size = 0; *size < MOST_BYTES; *size += (size_t)n) {
		n = read(fd, text + *size, MOST_BYTES - *size);
		if (n < 0)
			return -errno;
		if (!n)
			break;
	}
	text[*size] = '\0';
	return *size < MOST_BYTES ? 0 : -EBADMSG;
}

int nps_cost_cache__read(const struct nps_cost_cache *cache, const struct nps_cost_key *key,
			 struct nps_cost *cost)
{
	int dir = open_directory(cache, false), fd, err;
	char text[MOST_BYTES + 1];
	size_t size;

	if (dir < 0)
		return dir;
	/* O_NONBLOCK: do not wait for the writer of a pipe. */
	fd = openat(dir, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	err = fd >= 0 ? 0 : errno == ELOOP ? -EPERM : -errno;
	close(dir);
	if (err)
		return err;
	err = cache_read_file(fd, cache->owner, text, &size);
	close(fd);
	if (err)
		return err;
	return parse(text, size, key, cost);
}

static int write_file(int fd, const struct nps_cost_key *key, const struct nps_cost *cost)
{
	struct nps_cost copy = *cost;
	char text[MOST_BYTES];
	int n = snprintf(text, sizeof(text), "%s", key->text);

	for (size_t i = 0; i < NPS_COST_MEMBERS && n < MOST_BYTES; i++) {
		double ns = *nps_cost__member(&copy, i);
		char value[32] = "-";

		if (ns >= 0)
			snprintf(value, sizeof(value), "%" PRIu64, (uint64_t)(ns * 1000 + 0.5));
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s %s\n", nps_cost__name(i), value);
	}
	if (n >= MOST_BYTES)
		return -EOVERFLOW;
	if (fchmod(fd, 0644))
		return -errno;
	return write(fd, text, (size_t)n) == n ? 0 : -EIO;
}

/* Does the name of the new file refer to FD? */
static bool is_named(int dir, int fd)
{
	struct stat named, open;

	return !fstat(fd, &open) && S_ISREG(open.st_mode) &&
	       !fstatat(dir, NEW_NAME, &named, AT_SYMLINK_NOFOLLOW) && named.st_dev == open.st_dev &&
	       named.st_ino == open.st_ino;
}

int nps_cost_cache__write(const struct nps_cost_cache *cache, const struct nps_cost_key *key,
			  const struct nps_cost *cost)
{
	int dir, fd, err = 0;

	if (geteuid() != cache->owner)
		return -EPERM;
	dir = open_directory(cache, true);
	if (dir < 0)
		return dir;
	/*
	 * One writer at a time: the new file has a fixed name, so that one left by a killed process is
	 * overwritten. No other user can open it before it is complete, or lock it.
	 */
	fd = openat(dir, NEW_NAME, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0 && errno == ELOOP && !unlinkat(dir, NEW_NAME, 0)) /* a link was put there: remove it */
		fd = openat(dir, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		err = -errno;
	else if (flock(fd, LOCK_EX | LOCK_NB))
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	else if (!is_named(dir, fd))
		err = -EBUSY; /* the previous owner of the lock has renamed it */
	if (err) {
		if (fd >= 0)
			close(fd);
		close(dir);
		return err;
	}
	err = ftruncate(fd, 0) ? -errno : write_file(fd, key, cost);
	if (!err && fchmod(fd, 0644))
		err = -errno;
	if (!err && renameat(dir, NEW_NAME, dir, FILE_NAME))
		err = -errno;
	if (err)
		unlinkat(dir, NEW_NAME, 0);
	if (close(fd) && !err)
		err = -errno;
	close(dir);
	return err;
}
