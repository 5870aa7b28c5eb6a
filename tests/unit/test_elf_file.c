/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbols and offsets of this very program, against the dynamic linker's word; and damaged files. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/elf_file.h"
#include "core/proc_maps.h"

__attribute__((noinline, used)) int a_function_of_this_program(int x)
{
	return x * 3 + 1;
}

static int open_self(struct nps_elf **elf)
{
	int fd = open("/proc/self/exe", O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(nps_elf__open(fd, NULL, elf), 0);
	return fd;
}

/* File offset of an address, from the kernel's list of mappings. */
static uint64_t offset_of(const void *address)
{
	uint64_t at = (uint64_t)(uintptr_t)address, offset = 0;
	struct nps_maps maps;

	assert_int_equal(nps_maps__read(getpid(), NULL, &maps), 0);
	for (size_t i = 0; i < maps.n; i++)
		if (maps.v[i].exec && at >= maps.v[i].start && at < maps.v[i].end)
			offset = at - maps.v[i].start + maps.v[i].offset;
	nps_maps__free(&maps);
	return offset;
}

static void finds_functions(void **state)
{
	struct nps_elf_function f;
	struct nps_elf *elf;
	uint8_t code[8];
	int fd = open_self(&elf);

	(void)state;
	assert_int_equal(nps_elf__find(elf, "a_function_of_this_program", true, &f), 0);
	assert_int_equal(f.offset, offset_of((void *)(uintptr_t)a_function_of_this_program));
	assert_true(f.size > 0);
	assert_int_equal(nps_elf__code(elf, f.offset, code, sizeof(code)), sizeof(code));
	assert_memory_equal(code, (void *)(uintptr_t)a_function_of_this_program, sizeof(code));
	assert_int_equal(nps_elf__find(elf, "there_is_no_such_function", true, &f), -ENOENT);
	nps_elf__close(elf);
	close(fd);
}

/* A variable of libc: its address in the file, moved by where the file is mapped, is that of the linker. */
static void finds_variables(void **state)
{
	const char *variable = "program_invocation_name";
	uint64_t address = (uint64_t)(uintptr_t)dlsym(RTLD_NEXT, variable), bias;
	struct nps_elf_object object;
	struct nps_elf *elf;
	unsigned int found = 0;
	struct nps_maps maps;

	(void)state;
	assert_int_equal(nps_maps__read(getpid(), NULL, &maps), 0);
	for (size_t i = 0; i < maps.n; i++) {
		const struct nps_mapping *m = &maps.v[i];
		int fd;

		if (strncmp(nps_basename(m->path), "libc.so", 7) != 0)
			continue;
		fd = open(m->path, O_RDONLY);
		assert_true(fd >= 0);
		assert_int_equal(nps_elf__open(fd, NULL, &elf), 0);
		assert_int_equal(nps_elf__find_object(elf, variable, &object), 0);
		assert_int_equal(object.size, sizeof(char *));
		assert_int_equal(nps_elf__find_object(elf, "printf", &object), -ENOENT);
		assert_int_equal(nps_elf__find_object(elf, variable, &object), 0);
		/* Mappings in the middle of a segment begin none. */
		if (!nps_elf__bias(elf, m->start, m->end - m->start, m->offset, &bias)) {
			assert_int_equal(object.vaddr + bias, address);
			found += m->exec;
		}
		nps_elf__close(elf);
		close(fd);
	}
	nps_maps__free(&maps);
	assert_int_equal(found, 1);
}

static void names_addresses(void **state)
{
	struct nps_elf *elf;
	int fd = open_self(&elf);
	uint64_t offset = offset_of((void *)(uintptr_t)a_function_of_this_program);
	struct nps_elf_name functions[] = { { .offset = offset + 1, .tag = 7 },
					    { .offset = offset },
					    { .offset = 1 } };

	(void)state;
	assert_int_equal(nps_elf__name(elf, functions, 3), 0);
	assert_int_equal(functions[0].offset, 1); /* sorted */
	assert_null(functions[0].name);
	assert_string_equal(functions[1].name, "a_function_of_this_program");
	assert_string_equal(functions[2].name, "a_function_of_this_program");
	assert_int_equal(functions[2].tag, 7);
	nps_elf__close(elf);
	close(fd);
}

static void build_id_is_the_linkers(void **state)
{
	char hex[41], line[256], want[64] = "";
	struct nps_elf *elf;
	int fd = open_self(&elf);
	FILE *p;

	(void)state;
	nps_elf__build_id(elf, hex);
	snprintf(line, sizeof(line), "LC_ALL=C readelf -n /proc/%d/exe 2>/dev/null", getpid());
	p = popen(line, "r");
	assert_non_null(p);
	while (fgets(line, sizeof(line), p))
		if (sscanf(line, " Build ID: %63s", want) == 1)
			break;
	pclose(p);
	assert_string_equal(hex, want);
	nps_elf__close(elf);
	close(fd);
}

/* Every damaged copy is refused or read, never believed into a crash. */
static void damaged_files(void **state)
{
	static char image[1 << 22];
	char path[] = "/tmp/nps_elf_XXXXXX";
	int self = open("/proc/self/exe", O_RDONLY), fd = mkstemp(path);
	ssize_t size = read(self, image, sizeof(image));
	unsigned int seed = 1;

	(void)state;
	assert_true(size > 4096);
	for (int i = 0; i < 300; i++) {
		struct nps_elf_function f;
		struct nps_elf *elf;
		struct nps_elf_name function = { .offset = 0x1234 };
		char hex[41];
		size_t len = i % 3 ? (size_t)size : (size_t)(rand_r(&seed) % size);

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, image, len, 0), len);
		for (int k = 0; k < 8; k++) {
			/* in the headers, where it hurts: the first KB and the section table at the end */
			off_t at = k & 1 ? rand_r(&seed) % 1024
					 : (off_t)(len - rand_r(&seed) % (len < 3000 ? len : 3000) - 1);
			unsigned char byte = rand_r(&seed);

			if (at >= 0 && at < (off_t)len)
				assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		}
		if (nps_elf__open(fd, NULL, &elf))
			continue;
		nps_elf__build_id(elf, hex);
		nps_elf__find(elf, "a_function_of_this_program", true, &f);
		nps_elf__name(elf, &function, 1);
		nps_elf__close(elf);
	}
	close(fd);
	close(self);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_functions), cmocka_unit_test(finds_variables),
		cmocka_unit_test(names_addresses), cmocka_unit_test(build_id_is_the_linkers),
		cmocka_unit_test(damaged_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
