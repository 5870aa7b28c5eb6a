/* SPDX-License-Identifier: BSD-2-Clause */
/* Where functions of a file are probed, and what is reported of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/version.h>
#include <unistd.h>

#include "attach/landing_pads.h"
#include "attach/probe_address.h"

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

static struct nps_probe_address address_for(uint32_t kernel, const char *name)
{
	struct nps_elf_function fn;

	assert_int_equal(nps_elf__find(elf, name, true, &fn), 0);
	return nps_probe_address__find_for(kernel, elf, &fn, nps_probe_rows__get(NPS_PROBE_STEP_MARKER),
					   true);
}

#if defined(__x86_64__)
__asm__(".text\n.globl nps_test_nop\n.type nps_test_nop, @function\nnps_test_nop:\n"
	".byte 0x0f, 0x1f, 0x44, 0, 0\nsub $8, %rsp\nadd $8, %rsp\nret\n.size nps_test_nop, . - "
	"nps_test_nop\n");

static void older_kernels_step_nops(void **state)
{
	struct nps_probe_address address = address_for(KERNEL_VERSION(6, 17, 0), "nps_test_nop");

	(void)state;
	assert_int_equal(address.class, NPS_PROBE_NOP);
	assert_int_equal(address.offset, address.start);
	assert_true(address.stepped);
	assert_string_equal(address.why, "a nop, which kernels single-step up to 6.17");
	address = address_for(KERNEL_VERSION(6, 18, 0), "nps_test_nop");
	assert_int_equal(address.class, NPS_PROBE_NOP);
	assert_false(address.stepped);
	assert_null(address.why);
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
	struct nps_probe_address address = address_for(KERNEL_VERSION(6, 18, 0), "nps_test_sub");

	(void)state;
	assert_int_equal(address.class, NPS_PROBE_STEPPED);
	assert_int_equal(address.offset, address.start);
	assert_true(address.stepped);
	assert_non_null(address.why);
}

/*
 * Goes on at the first call when that throws, by code that no branch of it leads to: as
 * compilers write that which split functions.
 */
#if defined(__x86_64__)
#define THROWS(name, throws)                                                                                 \
	__asm__(".text\n.globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n" throws      \
		"\nsub $8, %rsp\n1: call nps_test_sub\n2: add $8, %rsp\nret\n.cfi_endproc\n.size " name      \
		", . - " name "\n.section .text.unlikely\nnop\n3: jmp 1b\n.text\n")
#else
#define THROWS(name, throws)                                                                                 \
	__asm__(".text\n.globl " name "\n.type " name ", %function\n" name ":\n.cfi_startproc\n" throws      \
		"\nsub sp, sp, #16\n1: bl nps_test_sub\n2: add sp, sp, #16\nret\n.cfi_endproc\n.size " name  \
		", . - " name "\n.section .text.unlikely\nnop\n3: b 1b\n.text\n")
#endif
/* Landing pads are counted from an address of their own; one call, one pad, LENGTH bytes of them. */
#define TABLE(name, length)                                                                                  \
	__asm__(".section .gcc_except_table, \"a\"\n" name                                                   \
		":\n.byte 0x1b\n.long 3b - 1 - .\n.byte 0xff, 1\n"                                           \
		".uleb128 " length "\n.uleb128 4, 5, 1, 0\n.text\n")

THROWS("nps_test_throws", ".cfi_lsda 0x1b, nps_test_table");
TABLE("nps_test_table", "4");
THROWS("nps_test_cut", ".cfi_lsda 0x1b, nps_test_cut_table");
TABLE("nps_test_cut_table", "3"); /* ends within the call */
THROWS("nps_test_throws_not", "");

static void an_exception_may_lead_back(void **state)
{
	const struct nps_probe_row *row = nps_probe_rows__get(NPS_PROBE_STEP_MARKER);
	struct nps_elf_function fn;
	struct nps_probe_address address;

	(void)state;
	assert_int_equal(nps_elf__find(elf, "nps_test_throws_not", true, &fn), 0);
	address = nps_probe_address__find(elf, &fn, row, false);
	assert_int_equal(address.offset, address.start + 4); /* or the test tests nothing */
	assert_false(address.stepped);

	assert_int_equal(nps_elf__find(elf, "nps_test_throws", true, &fn), 0);
	address = nps_probe_address__find(elf, &fn, row, false);
	assert_int_equal(address.offset, address.start);
	assert_string_equal(address.why, "code outside it may lead back to where it would be probed");

	assert_int_equal(nps_elf__find(elf, "nps_test_cut", true, &fn), 0);
	address = nps_probe_address__find(elf, &fn, row, false);
	assert_int_equal(address.offset, address.start);
	assert_string_equal(address.why, "where exceptions go on in it cannot be read");
}

static void keep_pad(int64_t at, void *arg)
{
	int64_t **to = arg;

	*(*to)++ = at;
}

static void landing_pads_are_found(void **state)
{
	struct nps_elf_function fn, cut;
	int64_t pads[4] = { 0 }, *to = pads;
	uint8_t nop = 0;

	(void)state;
	assert_int_equal(nps_elf__find(elf, "nps_test_throws", true, &fn), 0);
	assert_int_equal(nps_landing_pads__each(elf, &fn, keep_pad, &to), 0);
	assert_ptr_equal(to, pads + 1);
	/* Where it leads: the jump stands behind a nop. */
	assert_int_equal(nps_elf__code(elf, fn.offset + (uint64_t)pads[0], &nop, 1), 1);
#if defined(__x86_64__)
	assert_true(nop == 0xe9 || nop == 0xeb);
#endif
	assert_int_equal(nps_elf__find(elf, "nps_test_throws_not", true, &fn), 0);
	assert_int_equal(nps_landing_pads__each(elf, &fn, keep_pad, &to), 0);
	assert_ptr_equal(to, pads + 1);
	assert_int_equal(nps_elf__find(elf, "nps_test_cut", true, &cut), 0);
	assert_int_equal(nps_landing_pads__each(elf, &cut, keep_pad, &to), -EINVAL);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		TEST(older_kernels_step_nops),
#endif
		TEST(a_call_is_stepped_where_the_stack_moves_first),
		TEST(an_exception_may_lead_back),
		TEST(landing_pads_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
