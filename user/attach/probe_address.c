/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/probe_address.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/capability.h"
#include "attach/landing_pads.h"
#include "core/log.h"
#include "core/proc_maps.h"

#define MAX_BODY 65536 /* bytes of a function searched for branches */

struct function_body {
	const struct nps_elf *elf;
	const struct nps_elf_function *fn;
};

static int read_near(void *arg, int64_t at, uint8_t *buf, size_t len)
{
	const struct function_body *body = arg;

	if (at < 0 && (uint64_t)-at > body->fn->offset)
		return -EINVAL;
	return nps_elf__code(body->elf, body->fn->offset + (uint64_t)at, buf, len);
}

static int each_pad(void *arg, void (*each)(int64_t at, void *arg), void *each_arg)
{
	const struct function_body *body = arg;

	return nps_landing_pads__each(body->elf, body->fn, each, each_arg);
}

struct nps_probe_address nps_probe_address__find_for(uint32_t kernel, const struct nps_elf *elf,
						     const struct nps_elf_function *fn,
						     const struct nps_probe_row *row, bool returns)
{
	struct function_body body = { elf, fn };
	struct nps_probe_need need = { row ? nps_probe_rows__arguments(row) : UINT32_MAX,
				       !row || nps_probe_rows__reads_memory(row),
				       returns,
				       read_near,
				       &body,
				       each_pad };
	struct nps_probe_address address = { fn->offset, fn->offset, NPS_PROBE_STEPPED, true,
					     "its code cannot be read" };
	size_t len = fn->size && fn->size < MAX_BODY ? fn->size : MAX_BODY, skip = 0;
	int n, machine = nps_elf__machine(elf);
	uint8_t *code = malloc(len);

	n = code ? nps_elf__code(elf, fn->offset, code, len) : -ENOMEM;
	if (n > 0) {
		/* A body of unknown length cannot be searched for branches back. */
		address.why = "its length is not known, or too large";
		if ((uint64_t)n == fn->size)
			skip = nps_probe_point__explain(machine, code, (size_t)n, &need, &address.why);
		address.offset += skip;
		address.class = nps_probe_point__class(machine, code, (size_t)n, skip);
	}
	address.stepped = nps_probe_class__is_stepped(address.class, kernel);
	if (!address.stepped)
		address.why = NULL;
	else if (address.class == NPS_PROBE_NOP)
		address.why = "a nop, which kernels single-step up to 6.17";
	free(code);
	return address;
}

struct nps_probe_address nps_probe_address__find(const struct nps_elf *elf, const struct nps_elf_function *fn,
						 const struct nps_probe_row *row, bool returns)
{
	return nps_probe_address__find_for(nps_kernel_version(), elf, fn, row, returns);
}

struct listing {
	struct nps_elf *elf;
	const char *path;
	uint32_t lib;
	FILE *out;
	bool seen[NPS_PROBE_MAX];
};

static int print_function(const struct nps_elf_function *fn, void *arg)
{
	static const char *const levels[] = { "none", "0", "1", "2" };
	struct listing *l = arg;
	const struct nps_probe_row *row = nps_probe_rows__find(fn->name);
	struct nps_probe_address address;
	bool returns;

	if (!row || !(row->libs & l->lib) || l->seen[row->id])
		return 0;
	l->seen[row->id] = true;
	returns = nps_probe_rows__returns(row, false);
	address = nps_probe_address__find(l->elf, fn, row, returns);
	fprintf(l->out, "%s\t%s\t%s\t%s\t%llu\t%s\t%s\n", row->symbol, l->path,
		levels[nps_probe_rows__level(row) + 1], returns ? "call" : "entry",
		(unsigned long long)(address.offset - fn->offset), nps_probe_class__name(address.class),
		address.why ? address.why : "");
	return 0;
}

static int print_file(int fd, const char *path, FILE *out)
{
	struct listing l = { .path = path, .out = out, .lib = nps_probe_rows__library(nps_basename(path)) };
	int err = nps_elf__open(fd, NULL, &l.elf);

	if (!err)
		err = nps_elf__for_each_function(l.elf, false, print_function, &l);
	nps_elf__close(l.elf);
	if (err)
		nps_warn("cannot read %s: %s", path, strerror(-err));
	return err;
}

static bool is_first_of_file(const struct nps_maps *maps, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (maps->v[k].dev == maps->v[i].dev && maps->v[k].ino == maps->v[i].ino)
			return false;
	return true;
}

static int print_process(pid_t pid, FILE *out)
{
	struct nps_maps maps;
	unsigned n = 0;
	int err = nps_maps__read(pid, NULL, &maps);

	if (err) {
		nps_warn("cannot read the mappings of process %d: %s", pid, strerror(-err));
		return err;
	}
	for (size_t i = 0; i < maps.n; i++) {
		int fd;

		if (!nps_probe_rows__library(nps_basename(maps.v[i].path)) || !is_first_of_file(&maps, i))
			continue;
		n++;
		fd = nps_mapping__open(pid, &maps.v[i], O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			nps_warn("cannot open %s: %s", maps.v[i].path, strerror(-fd));
			err = fd;
			continue;
		}
		if (print_file(fd, maps.v[i].path, out))
			err = -EIO;
		close(fd);
	}
	nps_maps__free(&maps);
	if (!n) {
		nps_warn("process %d has no library mapped that carries probes", pid);
		err = -ENOENT;
	}
	return err;
}

int nps_probe_address__print(const char *target, FILE *out)
{
	char *end, cwd[PATH_MAX] = "", path[PATH_MAX];
	long pid = strtol(target, &end, 10);
	int fd, err;

	fputs("symbol\tlibrary\tlevel\thow\tbytes from its start\tclass\twhy\n", out);
	if (*target && !*end)
		return pid > 0 && pid <= INT_MAX ? print_process((pid_t)pid, out) : -EINVAL;
	if (*target != '/' && !getcwd(cwd, sizeof(cwd)))
		return -errno;
	if (snprintf(path, sizeof(path), "%s%s%s", cwd, *cwd ? "/" : "", target) >= (int)sizeof(path))
		fd = -ENAMETOOLONG;
	else
		fd = nps_open_in_root(0, path);
	if (fd < 0) {
		nps_warn("cannot open %s: %s", target, strerror(-fd));
		return fd;
	}
	if (!nps_probe_rows__library(nps_basename(target))) {
		nps_warn("no function of a library with the name %s is probed", nps_basename(target));
		err = -ENOENT;
	} else {
		err = print_file(fd, target, out);
	}
	close(fd);
	return err;
}
