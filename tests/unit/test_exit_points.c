/* SPDX-License-Identifier: BSD-2-Clause */
/* Where functions are probed as they leave, and why others are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/code_insn.h"
#include "attach/exit_points.h"
#include "core/work_budget.h"

#define MUTATIONS 4000
#define NOT_EMULATED "no instruction before its return is emulated"
#define TAIL_CALL "it ends by a tail call"
#define NOT_KNOWN "an instruction of it is not known"
#define SHARED "it shares code with another function"
#define TABLES "its symbol and its unwind tables differ"

#if defined(__x86_64__)
#include "exit_functions.h"

static const struct exit_case {
	const char *name;
	const char *why; /* NULL: one exit, where NAME_exit is */
	bool stepped; /* its exit is the return, at NAME_exit or up to 2 bytes behind */
} cases[] = {
	{ "exit_protected", NULL, false },
	{ "exit_recursive", NULL, false },
	{ "exit_push", NULL, false },
	{ "exit_realigned", NULL, false },
	{ "exit_trap", NULL, false },
	{ "exit_cold", NULL, false },
	{ "exit_cold_inside", NULL, false },
	{ "exit_cold_returns", NULL, false },
	{ "exit_caught", NULL, false },
	{ "exit_plain", NOT_EMULATED, true },
	{ "exit_entry", NOT_EMULATED, true },
	{ "exit_push_call", NOT_EMULATED, true },
	{ "exit_again", NOT_EMULATED, true },
	{ "exit_behind", NOT_EMULATED, true },
	{ "exit_data_not_run", NOT_EMULATED, true },
	{ "exit_retried", NOT_EMULATED, true },
	{ "exit_pad_behind", NOT_EMULATED, true },
	{ "exit_switch", "it has an indirect jump", false },
	{ "exit_tail", TAIL_CALL, false },
	{ "exit_tail_if", TAIL_CALL, false },
	{ "exit_tail_got", TAIL_CALL, false },
	{ "exit_never", "it does not return", false },
	{ "exit_throws", NOT_EMULATED, true },
	{ "exit_beyond", "it runs beyond its end", false },
	{ "exit_data", NOT_KNOWN, false },
	{ "exit_pops", NOT_KNOWN, false },
	{ "exit_transaction", NOT_KNOWN, false },
	{ "exit_16", NOT_KNOWN, false },
	{ "exit_own_call", "it calls a part of itself", false },
	{ "exit_start", "it jumps back to its start", false },
	{ "exit_large", "it is too large", false },
	{ "exit_shared", SHARED, false },
	{ "exit_cold_entry", SHARED, false },
	{ "exit_cold_frame", "it jumps to code with another frame", false },
	{ "exit_pad_outside", "it jumps to code without unwind tables", false },
	{ "exit_no_tables", "it has no unwind tables", false },
	{ "exit_inner", TABLES, false },
	{ "exit_short", TABLES, false },
	{ "exit_long", TABLES, false },
};

static struct nps_elf *elf;
static struct nps_exit_finder *finder;
static int fd;

static int setup(void **state)
{
	(void)state;
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || nps_elf__open(fd, NULL, &elf))
		return -1;
	return nps_exit_finder__new(elf, &finder);
}

static int teardown(void **state)
{
	(void)state;
	nps_exit_finder__free(finder);
	nps_elf__close(elf);
	return close(fd);
}

static struct nps_elf_function function_of(const char *name)
{
	struct nps_elf_function fn;

	assert_int_equal(nps_elf__find(elf, name, true, &fn), 0);
	return fn;
}

/* Offset of the symbol NAME_exit. */
static uint64_t exit_of(const char *name)
{
	char symbol[64];

	snprintf(symbol, sizeof(symbol), "%s_exit", name);
	return function_of(symbol).offset;
}

static uint8_t byte_at(uint64_t offset)
{
	uint8_t byte = 0;

	assert_int_equal(nps_elf__code(elf, offset, &byte, 1), 1);
	return byte;
}

static void check_exit(const struct exit_case *c)
{
	struct nps_elf_function fn = function_of(c->name);
	struct nps_exits exits;
	const char *why = NULL;
	int err = nps_exit_finder__find(finder, &fn, false, &exits, &why);

	if (c->why) {
		if (err != -ENOENT || strcmp(why, c->why) != 0)
			fail_msg("%s: %d, %s instead of %s", c->name, err, why ? why : "", c->why);
		assert_int_equal(exits.n, 0);
		return;
	}
	if (err)
		fail_msg("%s: %d, %s", c->name, err, why ? why : "");
	assert_int_equal(exits.n, 1);
	if (exits.v[0].offset != exit_of(c->name))
		fail_msg("%s: exit at %#lx instead of %#lx", c->name,
			 (unsigned long)(exits.v[0].offset - fn.offset),
			 (unsigned long)(exit_of(c->name) - fn.offset));
	assert_int_equal(exits.v[0].class, NPS_PROBE_EMULATED);
}

static void each_hazard_has_its_exit_or_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check_exit(&cases[i]);
}

static void returns_are_probed_if_they_may_be_stepped(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct nps_elf_function fn = function_of(cases[i].name);
		struct nps_exits exits;
		const char *why = NULL;
		int err = nps_exit_finder__find(finder, &fn, true, &exits, &why);
		uint64_t ret;

		if (!cases[i].stepped) {
			assert_int_equal(!err, !cases[i].why);
			continue;
		}
		if (err)
			fail_msg("%s: %d, %s", cases[i].name, err, why ? why : "");
		ret = exit_of(cases[i].name);
		while (byte_at(ret) != 0xc3)
			ret++;
		assert_int_equal(exits.n, 1);
		assert_int_equal(exits.v[0].offset, ret);
		assert_int_equal(exits.v[0].class, NPS_PROBE_STEPPED);
	}
}

static void instructions_that_overlap_are_refused(void **state)
{
	static const char *const names[] = { "exit_middle", "exit_overlap", "exit_lock" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct nps_elf_function fn = function_of(names[i]);
		struct nps_exits exits;
		const char *why = NULL;

		assert_int_equal(nps_exit_finder__find(finder, &fn, true, &exits, &why), -ENOENT);
		if (strcmp(why, "it jumps into the middle of an instruction") != 0 &&
		    strcmp(why, "its instructions overlap") != 0)
			fail_msg("%s: %s", names[i], why);
	}
}

static void each_return_has_its_exit(void **state)
{
	struct nps_elf_function fn = function_of("exit_both");
	struct nps_exits exits;
	const char *why = NULL;

	(void)state;
	assert_int_equal(nps_exit_finder__find(finder, &fn, false, &exits, &why), -ENOENT);
	assert_string_equal(why, NOT_EMULATED);
	assert_int_equal(nps_exit_finder__find(finder, &fn, true, &exits, &why), 0);
	assert_int_equal(exits.n, 2);
	assert_int_equal(exits.v[0].offset, fn.offset + 4); /* test, jne */
	assert_int_equal(exits.v[1].offset, exit_of("exit_both"));
	fn = function_of("exit_only");
	assert_int_equal(nps_exit_finder__find(finder, &fn, true, &exits, &why), -ENOENT);
	assert_string_equal(why, "it ends where its entry is probed");
	fn = function_of("exit_many"); /* a nop before each of 17 returns */
	assert_int_equal(nps_exit_finder__find(finder, &fn, false, &exits, &why), -ENOENT);
	assert_string_equal(why, "it returns at too many instructions");
}

static void the_budget_of_the_file_ends_it(void **state)
{
	struct nps_elf_function fn = function_of("exit_protected");
	struct nps_exit_finder *limited = NULL;
	struct nps_budget budget;
	struct nps_elf *other = NULL;
	struct nps_exits exits;
	const char *why;

	(void)state;
	nps_budget__init(&budget, NPS_BUDGET_CPU_NS, NPS_BUDGET_PERCENT, 0);
	nps_budget__begin_once(&budget);
	assert_int_equal(nps_elf__open(fd, &budget, &other), 0);
	assert_int_equal(nps_exit_finder__new(other, &limited), 0);
	assert_int_equal(nps_exit_finder__find(limited, &fn, false, &exits, &why), 0);
	budget.until = 1;
	assert_int_equal(nps_exit_finder__find(limited, &fn, false, &exits, &why), -ETIME);
	assert_int_equal(exits.n, 0);
	nps_exit_finder__free(limited);
	assert_int_equal(nps_exit_finder__new(other, &limited), -ETIME);
	nps_elf__close(other);
	nps_budget__end(&budget);
}

/* A copy of this program, which is damaged. */
struct damaged_copy {
	int fd;
	struct stat st;
	uint64_t text, tables; /* offsets: of this program's code, and of .eh_frame_hdr */
};

/* Exits of a damaged file may be wrong, but are instructions that such probes go on. */
static void check_damaged(const struct damaged_copy *copy, const char *name)
{
	struct nps_elf_function fn = function_of(name);
	struct nps_exit_finder *damaged = NULL;
	struct nps_elf *other = NULL;
	struct nps_exits exits;
	const char *why = NULL;
	int err = nps_elf__open(copy->fd, NULL, &other);

	if (err)
		return;
	if (!nps_exit_finder__new(other, &damaged)) {
		err = nps_exit_finder__find(damaged, &fn, true, &exits, &why);
		assert_true(!err || (err == -ENOENT && why && !exits.n));
		for (unsigned i = 0; i < exits.n; i++) {
			uint8_t code[16] = { 0 };
			int n = nps_elf__code(other, exits.v[i].offset, code, sizeof(code));

			assert_true(n > 0 && exits.v[i].offset < (uint64_t)copy->st.st_size);
			assert_int_equal(exits.v[i].class,
					 nps_probe_point__class(EM_X86_64, code, (size_t)n, 0));
			if (exits.v[i].class == NPS_PROBE_STEPPED)
				assert_true(code[0] == 0xc3 || code[1] == 0xc3);
		}
	}
	nps_exit_finder__free(damaged);
	nps_elf__close(other);
}

static void damage(const struct damaged_copy *copy, unsigned *seed)
{
	const struct exit_case *c = &cases[(size_t)rand_r(seed) % (sizeof(cases) / sizeof(*cases))];
	struct nps_elf_function fn = function_of(c->name);
	uint64_t offset[4];
	uint8_t before[4], after[4];
	int n = 1 + rand_r(seed) % 4, what = rand_r(seed) % 3;

	for (int i = 0; i < n; i++) {
		if (what)
			offset[i] = fn.offset + (uint64_t)rand_r(seed) % fn.size;
		else
			offset[i] = copy->tables + (uint64_t)rand_r(seed) %
							   ((uint64_t)copy->st.st_size - copy->tables) %
							   65536;
		after[i] = (uint8_t)rand_r(seed);
		assert_int_equal(pread(copy->fd, &before[i], 1, (off_t)offset[i]), 1);
		assert_int_equal(pwrite(copy->fd, &after[i], 1, (off_t)offset[i]), 1);
	}
	check_damaged(copy, c->name);
	for (int i = n - 1; i >= 0; i--)
		assert_int_equal(pwrite(copy->fd, &before[i], 1, (off_t)offset[i]), 1);
}

static void damaged_files_are_survived(void **state)
{
	struct damaged_copy copy = { .fd = memfd_create("copy", MFD_CLOEXEC) };
	const char *wanted_seed = getenv("NPS_TEST_SEED");
	unsigned seed = wanted_seed ? (unsigned)strtoul(wanted_seed, NULL, 10) : (unsigned)getpid();
	Elf64_Ehdr eh;
	uint8_t buf[65536];
	ssize_t n;

	(void)state;
	assert_true(copy.fd >= 0);
	for (off_t at = 0; (n = pread(fd, buf, sizeof(buf), at)) > 0; at += n)
		assert_int_equal(pwrite(copy.fd, buf, (size_t)n, at), n);
	assert_int_equal(fstat(copy.fd, &copy.st), 0);
	assert_int_equal(pread(fd, &eh, sizeof(eh), 0), sizeof(eh));
	for (int i = 0; i < eh.e_phnum; i++) {
		Elf64_Phdr ph;

		assert_int_equal(pread(fd, &ph, sizeof(ph), (off_t)(eh.e_phoff + (size_t)i * sizeof(ph))),
				 sizeof(ph));
		if (ph.p_type == PT_GNU_EH_FRAME)
			copy.tables = ph.p_offset;
	}
	assert_true(copy.tables > 0);
	print_message("seed %u\n", seed);
	for (int i = 0; i < MUTATIONS; i++)
		damage(&copy, &seed);
	close(copy.fd);
}
#endif

static void arm64_instructions_are_known(void **state)
{
	static const struct {
		uint32_t op;
		uint8_t kind;
		int64_t target;
	} known[] = {
		{ 0x14000002, NPS_INSN_JUMP, 8 }, /* b .+8 */
		{ 0x17ffffff, NPS_INSN_JUMP, -4 }, /* b .-4 */
		{ 0x97ffffff, NPS_INSN_CALL, -4 }, /* bl .-4 */
		{ 0x54000041, NPS_INSN_BRANCH, 8 }, /* b.ne .+8 */
		{ 0x54ffffe0, NPS_INSN_BRANCH, -4 }, /* b.eq .-4 */
		{ 0xb4000040, NPS_INSN_BRANCH, 8 }, /* cbz x0, .+8 */
		{ 0x35ffffe0, NPS_INSN_BRANCH, -4 }, /* cbnz w0, .-4 */
		{ 0x36000040, NPS_INSN_BRANCH, 8 }, /* tbz w0, #0, .+8 */
		{ 0xb707ffe0, NPS_INSN_BRANCH, -4 }, /* tbnz x0, #32, .-4 */
		{ 0xd65f03c0, NPS_INSN_RETURN, 0 }, /* ret */
		{ 0xd65f0000, NPS_INSN_UNKNOWN, 0 }, /* ret x0 */
		{ 0xd65f0bff, NPS_INSN_UNKNOWN, 0 }, /* retaa */
		{ 0xd65f0fff, NPS_INSN_UNKNOWN, 0 }, /* retab */
		{ 0xd69f03e0, NPS_INSN_UNKNOWN, 0 }, /* eret */
		{ 0xd61f0200, NPS_INSN_JUMP_INDIRECT, 0 }, /* br x16 */
		{ 0xd71f0a11, NPS_INSN_JUMP_INDIRECT, 0 }, /* braa x16, x17 */
		{ 0xd61f081f, NPS_INSN_JUMP_INDIRECT, 0 }, /* braaz x0 */
		{ 0xd63f0000, NPS_INSN_CALL_INDIRECT, 0 }, /* blr x0 */
		{ 0xd73f0a11, NPS_INSN_CALL_INDIRECT, 0 }, /* blraa x16, x17 */
		{ 0xd4207d00, NPS_INSN_TRAP, 0 }, /* brk #1000 */
		{ 0xd503233f, NPS_INSN_PLAIN, 0 }, /* paciasp */
		{ 0xd50323bf, NPS_INSN_PLAIN, 0 }, /* autiasp */
		{ 0xd503245f, NPS_INSN_PLAIN, 0 }, /* bti c */
		{ 0xa9bf7bfd, NPS_INSN_PLAIN, 0 }, /* stp x29, x30, [sp, #-16]! */
		{ 0x74010040, NPS_INSN_UNKNOWN, 0 }, /* cbgt w0, w1, .+8 */
		{ 0x00000000, NPS_INSN_UNKNOWN, 0 }, /* udf #0 */
	};
	struct nps_insn_decoder d;

	(void)state;
	assert_int_equal(nps_insn_decoder__init(&d, EM_AARCH64), 0);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		uint8_t code[4];
		struct nps_insn insn;

		memcpy(code, &known[i].op, 4);
		insn = nps_insn_decoder__decode(&d, code, 4, 0x1000);
		if (insn.kind != known[i].kind)
			fail_msg("%#x is of kind %d", known[i].op, insn.kind);
		if (known[i].target)
			assert_int_equal(insn.target, 0x1000 + known[i].target);
		assert_int_equal(insn.size, 4);
	}
	assert_int_equal(nps_insn_decoder__decode(&d, (const uint8_t *)"\xc0\x03\x5f", 3, 0).kind,
			 NPS_INSN_UNKNOWN);
	nps_insn_decoder__free(&d);
	assert_int_equal(nps_insn_decoder__init(&d, EM_RISCV), -ENOTSUP);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		TEST(each_hazard_has_its_exit_or_reason),
		TEST(returns_are_probed_if_they_may_be_stepped),
		TEST(instructions_that_overlap_are_refused),
		TEST(each_return_has_its_exit),
		TEST(the_budget_of_the_file_ends_it),
		TEST(damaged_files_are_survived),
#endif
		cmocka_unit_test(arm64_instructions_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
