/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files behind mappings: opened whatever became of their names, never another one, and never what is no file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/proc_maps.h"

static char dir[64], path[128];
static void *mapped;

/* A file of a page, mapped. */
static int setup(void **state)
{
	int fd;

	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/nps_unit_XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/library.so", dir);
	fd = open(path, O_CREAT | O_RDWR, 0644);
	if (fd < 0 || ftruncate(fd, 4096))
		return -1;
	mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	return mapped == MAP_FAILED ? -1 : 0;
}

static int teardown(void **state)
{
	char cmd[96];

	(void)state;
	munmap(mapped, 4096);
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd);
}

/* The mapping at ADDRESS, of MAPS, which the caller frees. */
static struct nps_mapping *mapping_of(struct nps_maps *maps, const void *address)
{
	assert_int_equal(nps_maps__read_all(getpid(), NULL, maps), 0);
	for (size_t i = 0; i < maps->n; i++)
		if (maps->v[i].start <= (uintptr_t)address && (uintptr_t)address < maps->v[i].end)
			return &maps->v[i];
	fail();
	return NULL;
}

static bool is_file(int fd, const struct stat *file)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == file->st_ino && st.st_dev == file->st_dev;
}

/*
 * Where the mapping itself does not lead to it (who has not the right,
 * and one that is no more), its name does.
 */
static void by_its_name(void **state)
{
	struct nps_maps maps;
	struct nps_mapping m = *mapping_of(&maps, mapped);
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	m.start = 0x1000; /* there is nothing */
	m.end = 0x2000;
	fd = nps_mapping__open(getpid(), &m, O_RDONLY);
	if (fd == -ENOSYS)
		skip(); /* no openat2(2) before 5.6 */
	assert_true(fd >= 0 && is_file(fd, &st));
	close(fd);
	m.ino++;
	assert_int_equal(nps_mapping__open(getpid(), &m, O_RDONLY), -ESTALE);
	m.ino--;
	m.dev = makedev(8, 77); /* the same number on another disk */
	if (major(st.st_dev))
		assert_int_equal(nps_mapping__open(getpid(), &m, O_RDONLY), -ESTALE);
	nps_maps__free(&maps);
}

/*
 * FIFOs would block who opens them, and devices can do anything: a job can put either where its library was.
 */
static void no_fifo_and_no_device(void **state)
{
	struct nps_maps maps;
	struct nps_mapping m = *mapping_of(&maps, mapped);
	int zero = open("/dev/zero", O_RDONLY);
	struct nps_maps others;
	void *device;

	(void)state;
	alarm(30); /* what blocks ends */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	m.start = 0x1000;
	m.end = 0x2000;
	assert_true(nps_mapping__open(getpid(), &m, O_RDONLY) < 0);
	nps_maps__free(&maps);
	device = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, zero, 0);
	assert_true(device != MAP_FAILED);
	assert_int_equal(nps_mapping__open(getpid(), mapping_of(&others, device), O_RDONLY), -EINVAL);
	munmap(device, 4096);
	close(zero);
	nps_maps__free(&others);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_its_name, setup, teardown),
		cmocka_unit_test_setup_teardown(no_fifo_and_no_device, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
