/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where functions of a file can be probed as they leave:
 *
 *     exit_survey FILE PREFIX [stepped] [all]
 *
 * A line for each function of .dynsym (all: also of .symtab) whose name begins with PREFIX: name, exits as
 * bytes from its start (hexadecimal, signed, separated by commas), their classes or the reason. The CPU time
 * is printed to stderr.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attach/exit_points.h"

struct survey {
	struct nps_exit_finder *finder;
	const char *prefix;
	bool stepped;
	size_t n;
};

static int print_function(const struct nps_elf_function *fn, void *arg)
{
	struct survey *s = arg;
	struct nps_exits exits;
	const char *why;
	int err;

	if (strncmp(fn->name, s->prefix, strlen(s->prefix)) != 0)
		return 0;
	s->n++;
	err = nps_exit_finder__find(s->finder, fn, s->stepped, &exits, &why);
	if (err) {
		printf("%s\t\t%s\n", fn->name, err == -ENOENT ? why : strerror(-err));
		return err == -ENOENT ? 0 : err;
	}
	for (int part = 0; part < 2; part++) {
		fputs(part ? "\t" : fn->name, stdout);
		for (unsigned i = 0; i < exits.n; i++) {
			int64_t at = (int64_t)(exits.v[i].offset - fn->offset);

			fputs(i ? "," : part ? "" : "\t", stdout);
			if (part)
				fputs(nps_probe_class__name(exits.v[i].class), stdout);
			else
				printf("%s%" PRIx64, at < 0 ? "-" : "", (uint64_t)(at < 0 ? -at : at));
		}
	}
	putchar('\n');
	return 0;
}

static double cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool has_option(int argc, char **argv, const char *option)
{
	for (int i = 3; i < argc; i++)
		if (!strcmp(argv[i], option))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct survey s = { .stepped = has_option(argc, argv, "stepped") };
	struct nps_elf *elf = NULL;
	double opened, found;
	int fd, err;

	if (argc < 3)
		return 2;
	s.prefix = argv[2];
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	err = fd < 0 ? -errno : nps_elf__open(fd, NULL, &elf);
	if (err)
		goto out;
	err = nps_exit_finder__new(elf, &s.finder);
	if (err)
		goto out;
	opened = cpu_time();
	err = nps_elf__for_each_function(elf, has_option(argc, argv, "all"), print_function, &s);
	found = cpu_time();
	if (err)
		goto out;
	fprintf(stderr, "%zu functions: %.3f s to open the file, %.3f s to find exits\n", s.n, opened,
		found - opened);
out:
	if (err)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
	nps_exit_finder__free(s.finder);
	nps_elf__close(elf);
	if (fd >= 0)
		close(fd);
	return err ? 1 : 0;
}
