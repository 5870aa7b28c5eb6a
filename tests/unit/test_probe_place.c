/* SPDX-License-Identifier: BSD-2-Clause */
/* Where functions of a file are probed, and what is said of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <linux/version.h>
#include <unistd.h>

#include "probe_place.h"

static struct nps_elf *elf;
static int fd;

static int setup(void **state)
{
	(void)state;
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? fd : nps_elf__open(fd, NULL, &elf);
}

static int teardown(void **state)
{
	(void)state;
	nps_elf__close(elf);
	return close(fd);
}

static struct nps_probe_place place_for(uint32_t kernel, const char *name)
{
	struct nps_elf_function fn;

	assert_int_equal(nps_elf__find(elf, name, true, &fn), 0);
	return nps_probe_place__find_for(kernel, elf, &fn, nps_probe_rows__get(NPS_PROBE_STEP_MARKER), true);
}

#if defined(__x86_64__)
__asm__(".text\n.globl nps_test_nop\n.type nps_test_nop, @function\nnps_test_nop:\n"
	".byte 0x0f, 0x1f, 0x44, 0, 0\nsub $8, %rsp\nadd $8, %rsp\nret\n.size nps_test_nop, . - "
	"nps_test_nop\n");

static void older_kernels_step_nops(void **state)
{
	struct nps_probe_place place = place_for(KERNEL_VERSION(6, 17, 0), "nps_test_nop");

	(void)state;
	assert_int_equal(place.class, NPS_PROBE_NOP);
	assert_int_equal(place.offset, place.start);
	assert_true(place.stepped);
	assert_string_equal(place.why, "a nop, which kernels single-step up to 6.17");
	place = place_for(KERNEL_VERSION(6, 18, 0), "nps_test_nop");
	assert_int_equal(place.class, NPS_PROBE_NOP);
	assert_false(place.stepped);
	assert_null(place.why);
}
#endif

/* sub, then what is emulated: an entry lies behind it, and a call cannot. */
#if defined(__x86_64__)
__asm__(".text\n.globl nps_test_sub\n.type nps_test_sub, @function\nnps_test_sub:\n"
	"sub $8, %rsp\ncall 1f\n1: add $16, %rsp\nret\n.size nps_test_sub, . - nps_test_sub\n");
#else
__asm__(".text\n.globl nps_test_sub\n.type nps_test_sub, %function\nnps_test_sub:\n"
	"sub sp, sp, #16\ncbz x0, 1f\n1: add sp, sp, #16\nret\n.size nps_test_sub, . - nps_test_sub\n");
#endif

static void a_call_is_stepped_where_the_stack_moves_first(void **state)
{
	struct nps_probe_place place = place_for(KERNEL_VERSION(6, 18, 0), "nps_test_sub");

	(void)state;
	assert_int_equal(place.class, NPS_PROBE_STEPPED);
	assert_int_equal(place.offset, place.start);
	assert_true(place.stepped);
	assert_non_null(place.why);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		TEST(older_kernels_step_nops),
#endif
		TEST(a_call_is_stepped_where_the_stack_moves_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
