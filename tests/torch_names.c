/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * torch_names LIBRARY: prints the name of each operator that the library exports, one a line with its symbol,
 * where its result is, and the number of its inputs on this processor, of tensors as 1.13 has them; -: they
 * are not known. On stderr the CPU time in us that reading the schemas took.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "attach/torch_inputs.h"

struct library {
	struct nps_elf *elf;
	struct nps_torch_names *names;
};

static int name_print(const struct nps_elf_function *f, void *library)
{
	static const char *const results[] = { "unknown", "registers", "memory" };
	const struct library *l = library;
	char name[NPS_TORCH_NAME_MAX];
	enum nps_torch_result result;
	struct nps_op_inputs inputs;

	if (nps_torch_names__of(l->names, f->name, name, sizeof(name), &result))
		return 0;
	printf("%s %s %s ", name, f->name, results[result]);
	if (nps_torch_inputs__of(f->name, result, nps_elf__machine(l->elf), NPS_LAYOUT_1_13, &inputs))
		puts("-");
	else
		printf("%u\n", inputs.n);
	return 0;
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, err;
	struct timespec from, to;
	struct library l;

	if (fd < 0 || nps_elf__open(fd, NULL, &l.elf))
		return 1;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	err = nps_torch_names__new(l.elf, &l.names);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	fprintf(stderr, "%ld\n", (to.tv_sec - from.tv_sec) * 1000000L + (to.tv_nsec - from.tv_nsec) / 1000);
	if (err)
		return 1;
	err = nps_elf__for_each_function(l.elf, false, name_print, &l);
	nps_torch_names__free(l.names);
	nps_elf__close(l.elf);
	return err != 0;
}
