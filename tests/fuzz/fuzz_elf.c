/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the collector reads of a watched job: its libraries ('e' and the file)
 * and its memory map ('m' and the text).
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/elf_file.h"
#include "attach/exit_points.h"
#include "attach/landing_pads.h"
#include "attach/operators.h"
#include "attach/probe_point.h"
#include "attach/torch_inputs.h"
#include "attach/torch_names.h"
#include "core/proc_maps.h"

#define MAX_CODE 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	struct nps_elf *elf;
	struct nps_exit_finder *finder; /* NULL: it has no unwind tables */
	size_t n, size; /* of the file */
};

struct body {
	struct nps_elf *elf;
	const struct nps_elf_function *fn;
};

static int read_near(void *arg, int64_t at, uint8_t *buf, size_t len)
{
	const struct body *body = arg;

	return nps_elf__code(body->elf, body->fn->offset + (uint64_t)at, buf, len);
}

static int each_pad(void *arg, void (*each)(int64_t at, void *arg), void *each_arg)
{
	const struct body *body = arg;

	return nps_landing_pads__each(body->elf, body->fn, each, each_arg);
}

/* Exits lie in the file, in order. */
static void inspect_exits(const struct seen *seen, const struct nps_elf_function *f)
{
	struct nps_exits exits;
	const char *why = NULL;
	int err = nps_exit_finder__find(seen->finder, f, true, &exits, &why);

	if (err != -ENOENT && err)
		abort();
	if (err ? exits.n || !*why : !exits.n || exits.n > NPS_EXITS_MAX)
		abort();
	for (unsigned i = 0; i < exits.n; i++)
		if (exits.v[i].offset >= seen->size || (i && exits.v[i].offset <= exits.v[i - 1].offset))
			abort();
}

static int inspect(const struct nps_elf_function *f, void *arg)
{
	struct seen *seen = arg;
	struct body body = { seen->elf, f };
	uint8_t code[MAX_CODE];
	int n;

	seen->n += strlen(f->name) + 1; /* reads all of it */
	if (f->offset >= seen->size)
		abort();
	n = nps_elf__code(seen->elf, f->offset, code, f->size < sizeof(code) ? f->size : sizeof(code));
	for (int returns = 0; returns < 2 && n > 0; returns++) {
		struct nps_probe_need need = {
			returns ? 3 : 0, returns, returns, read_near, &body, each_pad
		};
		int machine = nps_elf__machine(seen->elf);
		size_t point = nps_probe_point(machine, code, (size_t)n, &need);

		if (point >= (size_t)n ||
		    nps_probe_point__class(machine, code, (size_t)n, point) >= NPS_PROBE_CLASSES)
			abort();
	}
	if (seen->finder)
		inspect_exits(seen, f);
	return 0;
}

/* aclnnXGetWorkspaceSize and aclnnX. */
static int inspect_operator(const struct nps_elf_function *first, const struct nps_elf_function *second,
			    void *arg)
{
	(void)arg;
	if (strncmp(second->name, "aclnn", 5) != 0 ||
	    strncmp(first->name, second->name, strlen(second->name)) != 0)
		abort();
	return 0;
}

/* aten:: and what differs from the struct's name by a dot at most. */
static int inspect_torch(const struct nps_elf_function *f, void *names)
{
	char name[NPS_TORCH_NAME_MAX], *dot;
	struct nps_op_inputs inputs;

	nps_torch_inputs__of(f->name, NPS_TORCH_RESULT_IN_MEMORY, EM_X86_64, NPS_LAYOUT_2_6, &inputs);
	if (inputs.n > NPS_OP_INPUTS)
		abort();
	if (nps_torch_names__of(names, f->name, name, sizeof(name), NULL))
		return 0;
	if (strncmp(name, "aten::", 6) != 0)
		abort();
	dot = strchr(name, '.');
	if (dot)
		*dot = '_';
	if (!strstr(f->name, name + 6))
		abort();
	return 0;
}

static void name_torch_operators(struct nps_elf *elf)
{
	struct nps_torch_names *names;

	if (nps_torch_names__new(elf, &names))
		return;
	nps_elf__for_each_function(elf, true, inspect_torch, names);
	nps_torch_names__free(names);
}

static void one_elf(int fd, size_t size)
{
	struct nps_elf *elf = NULL;
	struct seen seen = { .size = size };
	struct nps_elf_function f;
	struct nps_elf_name functions[] = { { .offset = 0x1000 }, { .offset = 0x1040 }, { .offset = 1 } };
	char hex[41];

	if (nps_elf__open(fd, NULL, &elf))
		return;
	seen.elf = elf;
	nps_elf__build_id(elf, hex);
	if (strspn(hex, "0123456789abcdef") != strlen(hex))
		abort();
	nps_exit_finder__new(elf, &seen.finder);
	nps_elf__for_each_function(elf, false, inspect, &seen);
	if (seen.n && !nps_elf__has_symbols(elf))
		abort();
	nps_elf__for_each_function(elf, true, inspect, &seen);
	nps_elf__find(elf, "aclrtSynchronizeDevice", true, &f);
	nps_elf__name(elf, functions, 3);
	for (int i = 0; i < 3; i++)
		seen.n += functions[i].name ? strlen(functions[i].name) : 0;
	nps_operators__find(elf, inspect_operator, NULL);
	name_torch_operators(elf);
	nps_exit_finder__free(seen.finder);
	nps_elf__close(elf);
}

static void parse(const uint8_t *data, size_t size, bool all)
{
	FILE *f = size ? fmemopen((void *)data, size, "r") : NULL;
	struct nps_maps maps;

	if (!f)
		return;
	if (!nps_maps__parse(f, all, NULL, &maps)) {
		for (size_t i = 0; i < maps.n; i++) {
			const char *path = maps.v[i].path;

			if (!*path || strchr(path, '\n') || nps_basename(path) > path + strlen(path) ||
			    (!all && (*path != '/' || !maps.v[i].ino)))
				abort();
		}
		nps_maps__free(&maps);
	}
	fclose(f);
}

static void one_map(const uint8_t *data, size_t size)
{
	parse(data, size, false);
	parse(data, size, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int quiet, fd = -1;

	if (!quiet++ && !freopen("/dev/null", "w", stdout))
		abort();
	if (size < 1)
		return 0;
	if (data[0] == 'm') {
		one_map(data + 1, size - 1);
		return 0;
	}
	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data + 1, size - 1, 0) != (ssize_t)(size - 1))
		abort();
	one_elf(fd, size - 1);
	return 0;
}
