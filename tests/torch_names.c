/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * torch_names LIBRARY: prints the name of each operator that the library exports, one a line with its symbol,
 * and on stderr the CPU time in us that reading the schemas took.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "attach/torch_names.h"

static int name_print(const struct nps_elf_function *f, void *names)
{
	char name[NPS_TORCH_NAME_MAX];

	if (!nps_torch_names__of(names, f->name, name, sizeof(name)))
		printf("%s %s\n", name, f->name);
	return 0;
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, err;
	struct nps_torch_names *names;
	struct timespec from, to;
	struct nps_elf *elf;

	if (fd < 0 || nps_elf__open(fd, NULL, &elf))
		return 1;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	err = nps_torch_names__new(elf, &names);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	fprintf(stderr, "%ld\n", (to.tv_sec - from.tv_sec) * 1000000L + (to.tv_nsec - from.tv_nsec) / 1000);
	if (err)
		return 1;
	err = nps_elf__for_each_function(elf, false, name_print, names);
	nps_torch_names__free(names);
	nps_elf__close(elf);
	return err != 0;
}
