/* SPDX-License-Identifier: BSD-2-Clause */
/* Which file an address belonged to: mappings over time, births, executions, other builds of a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/input_file.h"
#include "stack/spaces.h"

static int tmp_fd = -1;
static bool no_memory; /* for libelf, which reads a note */
static unsigned int busy; /* how often openat2 returns EAGAIN */

Elf_Data *elf_getdata_rawchunk(Elf *elf, int64_t offset, size_t size, Elf_Type type)
{
	Elf_Data *(*real)(Elf *, int64_t, size_t, Elf_Type);

	*(void **)&real = dlsym(RTLD_NEXT, "elf_getdata_rawchunk");
	if (!no_memory)
		return real(elf, offset, size, type);
	errno = ENOMEM;
	return NULL;
}

long syscall(long number, ...)
{
	long (*real)(long, ...), arg[5];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 5; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_openat2 && busy) {
		busy--;
		errno = EAGAIN;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return real(number, arg[0], arg[1], arg[2], arg[3], arg[4]);
}

static int set_up(void **state)
{
	(void)state;
	tmp_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return tmp_fd < 0;
}

static int tear_down(void **state)
{
	(void)state;
	return close(tmp_fd);
}

static void map(struct nps_spaces *s, uint32_t pid, uint64_t time, uint64_t start, const char *path)
{
	const struct nps_map_record r = { .what = NPS_MAP_CODE,
					  .pid = pid,
					  .time = time,
					  .start = start,
					  .end = start + 0x1000,
					  .offset = 0x40 };

	assert_int_equal(nps_spaces__add(s, &r, path), 0);
}

static void event(struct nps_spaces *s, uint8_t what, uint32_t pid, uint64_t time, uint64_t child)
{
	const struct nps_map_record r = { .what = what, .pid = pid, .time = time, .start = child };

	assert_int_equal(nps_spaces__add(s, &r, ""), 0);
}

/* "" where nothing is known. */
static const char *at(const struct nps_spaces *s, uint32_t pid, uint64_t time, uint64_t address)
{
	const struct nps_code *code = nps_spaces__find(s, pid, time, address);

	return code ? NPS_AT(&s->modules, struct nps_module, code->module).path : "";
}

static void mappings_over_time(void **state)
{
	struct nps_spaces s;

	(void)state;
	nps_spaces__init(&s, tmp_fd);
	/* in no order */
	map(&s, 1, 300, 0x1000, "/new");
	map(&s, 1, 100, 0x1000, "/old");
	map(&s, 1, 200, 0x8000, "/b");
	assert_int_equal(nps_spaces__finish(&s), 0);
	assert_string_equal(at(&s, 1, 99, 0x1000), "");
	assert_string_equal(at(&s, 1, 100, 0x1000), "/old");
	assert_string_equal(at(&s, 1, 299, 0x1fff), "/old");
	assert_string_equal(at(&s, 1, 300, 0x1fff), "/new");
	assert_string_equal(at(&s, 1, 300, 0x2000), "");
	assert_string_equal(at(&s, 1, 150, 0x8000), "");
	assert_string_equal(at(&s, 1, 250, 0x8000), "/b");
	assert_string_equal(at(&s, 2, 250, 0x8000), "");
	/* back in time: what was found before holds for its own time only */
	for (int round = 0; round < 3; round++) {
		assert_string_equal(at(&s, 1, 150, 0x1000), "/old");
		assert_string_equal(at(&s, 1, 350, 0x1000), "/new");
		assert_string_equal(at(&s, 1, 50, 0x1000), "");
		assert_string_equal(at(&s, 1, 199, 0x8000), "");
		assert_string_equal(at(&s, 1, 200, 0x8000), "/b");
	}
	nps_spaces__free(&s);
}

static void births_and_executions(void **state)
{
	struct nps_spaces s;

	(void)state;
	nps_spaces__init(&s, tmp_fd);
	map(&s, 1, 100, 0x1000, "/a");
	event(&s, NPS_MAP_FORK, 1, 200, 2);
	map(&s, 1, 250, 0x5000, "/later"); /* the child does not have it */
	event(&s, NPS_MAP_FORK, 2, 300, 3);
	map(&s, 3, 310, 0x7000, "/own");
	event(&s, NPS_MAP_EXEC, 2, 400, 0);
	map(&s, 2, 410, 0x1000, "/program");
	assert_int_equal(nps_spaces__finish(&s), 0);
	assert_string_equal(at(&s, 2, 260, 0x1000), "/a");
	assert_string_equal(at(&s, 2, 260, 0x5000), "");
	assert_string_equal(at(&s, 2, 405, 0x1000), "");
	assert_string_equal(at(&s, 2, 410, 0x1000), "/program");
	assert_string_equal(at(&s, 3, 500, 0x1000), "/a"); /* from before its parent executed another */
	assert_string_equal(at(&s, 3, 500, 0x7000), "/own");
	nps_spaces__free(&s);
}

/* Processes that are each other's parents: damaged input, or numbers that came again. */
static void circles_end(void **state)
{
	struct nps_spaces s;

	(void)state;
	nps_spaces__init(&s, tmp_fd);
	event(&s, NPS_MAP_FORK, 1, 100, 2);
	event(&s, NPS_MAP_FORK, 2, 100, 1);
	event(&s, NPS_MAP_FORK, 3, 100, 3);
	event(&s, 77, 3, 100, 3);
	assert_int_equal(nps_spaces__finish(&s), 0);
	assert_string_equal(at(&s, 1, 200, 0x1000), "");
	assert_string_equal(at(&s, 3, 200, 0x1000), "");
	nps_spaces__free(&s);
}

static uint8_t hex_byte(const char *s)
{
	const char byte[3] = { s[0], s[1], 0 };

	return (uint8_t)strtoul(byte, NULL, 16);
}

/* The build-id that the linker gave this program, from another reader of it. */
static size_t own_build_id(uint8_t id[20])
{
	char line[256], *at;
	size_t n = 0;
	FILE *p = popen("readelf -n /proc/$PPID/exe", "re");

	assert_non_null(p);
	while (fgets(line, sizeof(line), p)) {
		at = strstr(line, "Build ID: ");
		for (; at && n < 20; n++)
			id[n] = hex_byte(at + 10 + 2 * n);
	}
	pclose(p);
	return n;
}

/*
 * A process that maps code all the time: at one address it is one entry, else there are so many and no more.
 */
static void mappings_without_end(void **state)
{
	struct nps_spaces s;

	(void)state;
	nps_spaces__init(&s, tmp_fd);
	for (uint64_t i = 0; i < 300000; i++)
		map(&s, 1, 100 + i, 0x1000, "/a");
	for (uint64_t i = 0; i < 300000; i++)
		map(&s, 2, 100 + i, 0x1000 * (i + 1), "/b");
	assert_int_equal(s.left_out, 300000 - 65536);
	assert_int_equal(nps_spaces__finish(&s), 0);
	assert_string_equal(at(&s, 1, 100, 0x1000), "/a");
	assert_string_equal(at(&s, 1, 1UL << 30, 0x1000), "/a");
	assert_string_equal(at(&s, 1, 99, 0x1000), "");
	assert_string_equal(at(&s, 2, 1UL << 30, 0x1000), "/b");
	assert_int_equal(NPS_AT(&s.spaces, struct nps_vec, 0).len, 1);
	nps_spaces__free(&s);
}

static void only_the_build_that_ran(void **state)
{
	struct nps_map_record r = {
		.what = NPS_MAP_CODE, .pid = 1, .time = 1, .start = 0x1000, .end = 0x2000, .build_id_len = 20
	};
	const char *example = "";
	char path[4096] = "";
	struct nps_spaces s;

	(void)state;
	if (own_build_id(r.build_id) != 20)
		skip();
	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	nps_spaces__init(&s, tmp_fd);
	assert_int_equal(nps_spaces__add(&s, &r, path), 0);
	r.start = 0x5000;
	r.end = 0x6000;
	r.build_id[7] ^= 1;
	assert_int_equal(nps_spaces__add(&s, &r, path), 0);
	map(&s, 1, 1, 0x9000, "/dev/null");
	map(&s, 1, 1, 0xb000, "//anon");
	assert_int_equal(nps_spaces__finish(&s), 0);
	assert_non_null(nps_spaces__image(&s, nps_spaces__find(&s, 1, 2, 0x1000)));
	assert_int_equal(nps_spaces__missing(&s, &example), 0);
	assert_null(nps_spaces__image(&s, nps_spaces__find(&s, 1, 2, 0x5000)));
	assert_int_equal(nps_spaces__missing(&s, &example), 1);
	assert_string_equal(example, path);
	assert_null(nps_spaces__image(&s, nps_spaces__find(&s, 1, 2, 0x9000)));
	assert_null(nps_spaces__image(&s, nps_spaces__find(&s, 1, 2, 0xb000)));
	assert_int_equal(nps_spaces__missing(&s, &example), 2); /* what is in no file is not missing */
	nps_spaces__free(&s);
}

/* The same library by another way takes as much: it counts once, and is not tried again. */
static void a_library_for_which_there_is_no_memory(void **state)
{
	struct nps_map_record r = { .what = NPS_MAP_CODE,
				    .pid = (uint32_t)getpid(),
				    .time = 1,
				    .start = 0x1000,
				    .end = 0x2000,
				    .build_id_len = 20 };
	const char *example = "";
	char path[4096] = "";
	struct nps_spaces s;

	(void)state;
	if (own_build_id(r.build_id) != 20)
		skip();
	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	nps_spaces__init(&s, tmp_fd);
	assert_int_equal(nps_spaces__add(&s, &r, path), 0);
	assert_int_equal(nps_spaces__finish(&s), 0);
	no_memory = true;
	assert_null(nps_spaces__image(&s, nps_spaces__find(&s, r.pid, 2, r.start)));
	no_memory = false;
	assert_int_equal(s.limits.refused, 1);
	assert_int_equal(nps_spaces__missing(&s, &example), 1);
	nps_spaces__free(&s);
}

/* Somebody renames a file while a path is followed: it is followed again, but not for ever. */
static void paths_of_a_busy_system(void **state)
{
	int fd;

	(void)state;
	busy = 5;
	fd = nps_input_file__open_in("/", "/proc/../etc/passwd");
	assert_int_equal(busy, 0);
	assert_true(fd >= 0);
	close(fd);
	busy = UINT32_MAX;
	assert_int_equal(nps_input_file__open_in("/", "/etc/passwd"), -EAGAIN);
	busy = 0;
}

/* A process whose root directory is ROOT. */
static pid_t start_in(const char *root)
{
	int ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* of a test that fails */
		if (chroot(root) || chdir("/") || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void copy_of_us(const char *to)
{
	char cmd[320];

	snprintf(cmd, sizeof(cmd), "cp /proc/%d/exe '%s'", (int)getpid(), to);
	assert_int_equal(system(cmd), 0);
}

/* What is at PATH for process PID: is there an image, and was nothing reported? */
static bool has_image(uint32_t pid, const uint8_t id[20], const char *path, bool quiet)
{
	struct nps_map_record r = {
		.what = NPS_MAP_CODE, .pid = pid, .time = 1, .start = 0x1000, .end = 0x2000
	};
	struct nps_spaces s;
	bool has;

	r.build_id_len = 20;
	memcpy(r.build_id, id, 20);
	nps_input__drain_unreadable();
	nps_spaces__init(&s, tmp_fd);
	assert_int_equal(nps_spaces__add(&s, &r, path), 0);
	assert_int_equal(nps_spaces__finish(&s), 0);
	has = nps_spaces__image(&s, nps_spaces__find(&s, pid, 2, 0x1000));
	nps_spaces__free(&s);
	assert_int_equal(nps_input__drain_unreadable(), !quiet);
	return has;
}

/*
 * A file of a process in a container is that of its root directory, whatever the host has of that name; and
 * whatever the process has put there, nothing but a regular file is opened.
 */
static void files_of_a_container(void **state)
{
	char dir[64] = "/tmp/nps_spaces_XXXXXX", at[4][128], root[128], in[256], cmd[256];
	uint8_t id[20];
	pid_t pid;

	(void)state;
	if (geteuid() || own_build_id(id) != 20)
		skip();
	alarm(60); /* what blocks ends */
	assert_non_null(mkdtemp(dir));
	snprintf(root, sizeof(root), "%s/root", dir);
	snprintf(cmd, sizeof(cmd), "mkdir -p '%s%s'", root, dir);
	assert_int_equal(system(cmd), 0);
	for (int i = 0; i < 4; i++)
		snprintf(at[i], sizeof(at[i]), "%s/library%d.so", dir, i);
	snprintf(in, sizeof(in), "%s%s", root, at[0]);
	copy_of_us(in);
	pid = start_in(root);
	assert_true(has_image((uint32_t)pid, id, at[0], true)); /* absent on the host */
	assert_int_equal(symlink(at[0], at[0]), 0); /* there, and not to be read */
	assert_true(has_image((uint32_t)pid, id, at[0], true));
	/* of no process that lives: that is reported */
	assert_false(has_image(0x7ffffff0, id, at[0], false));
	unlink(at[0]);
	assert_int_equal(mkfifo(at[0], 0600), 0);
	assert_true(has_image((uint32_t)pid, id, at[0], true));
	/* An absolute link leads to the container's file. */
	snprintf(in, sizeof(in), "%s%s", root, at[1]);
	assert_int_equal(symlink(at[0], in), 0);
	assert_true(has_image((uint32_t)pid, id, at[1], true));
	snprintf(in, sizeof(in), "%s%s", root, at[2]);
	assert_int_equal(mkfifo(in, 0600), 0);
	assert_false(has_image((uint32_t)pid, id, at[2], true));
	snprintf(in, sizeof(in), "%s%s", root, at[3]);
	assert_int_equal(symlink(at[2], in), 0);
	assert_false(has_image((uint32_t)pid, id, at[3], true));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	assert_int_equal(system(cmd), 0);
	alarm(0);
}

/* Of a file that was deleted the mapping is left. */
static void a_file_that_was_deleted(void **state)
{
	char dir[64] = "/tmp/nps_spaces_XXXXXX", path[128];
	struct nps_map_record r = {
		.what = NPS_MAP_CODE, .pid = (uint32_t)getpid(), .time = 1, .build_id_len = 20
	};
	struct nps_spaces s;
	void *mapped;
	int fd;

	(void)state;
	if (geteuid() || own_build_id(r.build_id) != 20)
		skip();
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/library.so", dir);
	copy_of_us(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(mapped != MAP_FAILED);
	close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	r.start = (uintptr_t)mapped;
	r.end = r.start + 4096;
	nps_spaces__init(&s, tmp_fd);
	assert_int_equal(nps_spaces__add(&s, &r, path), 0);
	assert_int_equal(nps_spaces__finish(&s), 0);
	assert_non_null(nps_spaces__image(&s, nps_spaces__find(&s, r.pid, 2, r.start)));
	nps_spaces__free(&s);
	munmap(mapped, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mappings_over_time),
		cmocka_unit_test(births_and_executions),
		cmocka_unit_test(circles_end),
		cmocka_unit_test(mappings_without_end),
		cmocka_unit_test(only_the_build_that_ran),
		cmocka_unit_test(a_library_for_which_there_is_no_memory),
		cmocka_unit_test(paths_of_a_busy_system),
		cmocka_unit_test(files_of_a_container),
		cmocka_unit_test(a_file_that_was_deleted),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
