/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cli_docs DIR DATE: writes npuscope.1, npuscope-COMMAND.1, npuscope.bash and _npuscope into DIR; man pages
 * are of DATE. Runs on the machine that builds npuscope, which need not be the one that runs it.
 */
#include "cli_docs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"

const struct nps_command *const commands[] = {
#define COMMAND(name, unwritten) &nps_##name##_command,
	NPS_COMMANDS(COMMAND)
#undef COMMAND
		NULL
};

const char *date;

static FILE *file_create(const char *dir, const char *name)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	if (!file) {
		fprintf(stderr, "cli_docs: cannot write %s: %s\n", path, strerror(errno));
		exit(EXIT_FAILURE);
	}
	return file;
}

static void file_close(FILE *file, const char *name)
{
	int bad = ferror(file);

	if (fclose(file) || bad) {
		fprintf(stderr, "cli_docs: cannot write %s: %s\n", name, strerror(errno));
		exit(EXIT_FAILURE);
	}
}

static void file_write(const char *dir, const char *name, void (*print)(FILE *out))
{
	FILE *file = file_create(dir, name);

	print(file);
	file_close(file, name);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "Usage: cli_docs DIR DATE\n");
		return EXIT_FAILURE;
	}
	date = argv[2];
	file_write(argv[1], "npuscope.1", print_man_of_program);
	file_write(argv[1], "npuscope.bash", print_bash);
	file_write(argv[1], "_npuscope", print_zsh);
	for (const struct nps_command *const *command = commands; *command; command++) {
		char name[64];
		FILE *file;

		snprintf(name, sizeof(name), "npuscope-%s.1", (*command)->name);
		file = file_create(argv[1], name);
		print_man_of_command(file, *command);
		file_close(file, name);
	}
	return EXIT_SUCCESS;
}
