/* SPDX-License-Identifier: BSD-2-Clause */
#include "db_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/import.h"

char db_folder[128];
int db_folder_fd = -1;

const char *db_folder_path(const char *name)
{
	static char paths[32][256];
	char path[256];
	size_t i = 0;

	snprintf(path, sizeof(path), "%s/%s", db_folder, name);
	while (i < NPS_ARRAY_SIZE(paths) - 1 && paths[i][0] && strcmp(paths[i], path))
		i++;
	return strcpy(paths[i], path);
}

int db_folder_setup(void **state)
{
	(void)state;
	snprintf(db_folder, sizeof(db_folder), "/tmp/test_ascend_db.XXXXXX");
	if (!mkdtemp(db_folder))
		return -1;
	db_folder_fd = open(db_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return db_folder_fd < 0 || mkdir(db_folder_path("in"), 0755) || mkdir(db_folder_path("out"), 0755);
}

int db_folder_teardown(void **state)
{
	char command[256];

	(void)state;
	close(db_folder_fd);
	snprintf(command, sizeof(command), "rm -rf %s", db_folder);
	return system(command);
}

void db_folder_write(const char *path, const void *bytes, size_t len)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	fclose(file);
}

void db_folder_import(struct nps_model *model, const char *path)
{
	assert_int_equal(nps_model__init(model, db_folder_fd, NULL), 0);
	assert_int_equal(nps_import__ascend_db(model, path), 0);
}
