/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of operators, from schemas that this very program has in its read-only data. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/torch_names.h"

/* Each text begins behind a NUL. No other text of this program has these names. */
__attribute__((used)) static const char schemas[] =
	"\0nps_sum.dim_IntList(Tensor self, int[1]? dim) -> Tensor\0"
	"aten::nps_add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)\0"
	"nps_empty_like(Tensor self) -> Tensor\0"
	"special_nps_erf.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\0"
	"nps_pin.v(no schema\0"
	"nps_pin_v(Tensor self) -> Tensor\0"
	"nps_two.a_b(Tensor self) -> Tensor\0"
	"nps_two_a.b(Tensor self) -> Tensor\0"
	"x nps_inner.out(Tensor self) -> Tensor\0"
	"prim::nps_other.out(Tensor self) -> Tensor\0"
	".nps_dot(Tensor self) -> Tensor\0"
	"nps_dots.a.b(Tensor self) -> Tensor\0";

static struct nps_torch_names *names;

static int open_self(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	struct nps_elf *elf;
	int err;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(nps_elf__open(fd, NULL, &elf), 0);
	err = nps_torch_names__new(elf, &names);
	nps_elf__close(elf);
	close(fd);
	return err;
}

static int names_drop(void **state)
{
	(void)state;
	nps_torch_names__free(names);
	return 0;
}

/* The symbol of the struct NAME has the name EXPECTED. */
static void check(const char *name, const char *expected)
{
	char symbol[256], buf[NPS_TORCH_NAME_MAX];

	snprintf(symbol, sizeof(symbol), "_ZN2at4_ops%zu%s4callERKNS_6TensorE", strlen(name), name);
	assert_int_equal(nps_torch_names__of(names, symbol, buf, sizeof(buf), NULL), 0);
	assert_string_equal(buf, expected);
}

static void overloads(void **state)
{
	(void)state;
	check("nps_sum_dim_IntList", "aten::nps_sum.dim_IntList");
	check("nps_add__Tensor", "aten::nps_add_.Tensor");
	check("nps_empty_like", "aten::nps_empty_like");
	check("nps_erf_out", "aten::nps_erf.out"); /* the end of another text */
}

static void no_schema(void **state)
{
	(void)state;
	check("nps_pin_v", "aten::nps_pin_v"); /* the other one is no schema */
	check("nps_two_a_b", "aten::nps_two_a_b"); /* two are of that struct */
	check("nps_inner_out", "aten::nps_inner_out");
	check("nps_unknown_Tensor", "aten::nps_unknown_Tensor");
	check("nps_dots_a_b", "aten::nps_dots_a_b");
}

static void other_symbols(void **state)
{
	static const char *const symbols[] = { "",
					       "main",
					       "_ZN2at4_ops",
					       "_ZN2at4_ops4callE",
					       "_ZN2at4_ops7nps_sum10redispatchERKNS_6TensorE",
					       "_ZN2at4_ops999nps_sum4callE",
					       "_ZN2at4_ops99999999999999999999999nps_sum4callE",
					       "_ZN2at4_ops-7nps_sum4callE",
					       "_ZN2at4_ops7nps%sum4callE" };
	char buf[NPS_TORCH_NAME_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++)
		assert_int_equal(nps_torch_names__of(names, symbols[i], buf, sizeof(buf), NULL), -ENOENT);
	assert_int_equal(nps_torch_names__of(names, "_ZN2at4_ops7nps_sum4callE", buf, 13, NULL),
			 -ENAMETOOLONG);
	assert_int_equal(nps_torch_names__of(names, "_ZN2at4_ops7nps_sum4callE", buf, 14, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(overloads), cmocka_unit_test(no_schema),
					    cmocka_unit_test(other_symbols) };

	return cmocka_run_group_tests(tests, open_self, names_drop);
}
