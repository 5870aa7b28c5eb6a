/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How PyTorch's operators are called: symbols of Debian's 1.13 and 2.6, and where the calling conventions of
 * both processors have each argument.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attach/mangled_types.h"
#include "attach/torch_inputs.h"
#include "event.h"

#define MEMORY NPS_TORCH_RESULT_IN_MEMORY
#define REGISTERS NPS_TORCH_RESULT_IN_REGISTERS
#define OLD NPS_LAYOUT_1_13
#define NEW NPS_LAYOUT_2_6

/*
 * An input as text: t tensor, s scalar, l scalars, L tensors, - none; what is read of it, where: @slot,
 * ?slot.flag of an optional one, ?slot>flag behind an address, ?slot[ of an array.
 */
static void input_show(char *to, size_t size, uint32_t input)
{
	static const char what[] = " tslL-";
	char kind = what[NPS_OP_INPUT_WHAT(input)];
	unsigned slot = NPS_OP_INPUT_SLOT(input), flag = NPS_OP_INPUT_FLAG(input);

	switch (NPS_OP_INPUT_HOW(input)) {
	case NPS_HOW_FIXED:
		snprintf(to, size, "%c ", kind);
		break;
	case NPS_HOW_TENSOR:
		snprintf(to, size, "%c@%u ", kind, slot);
		break;
	case NPS_HOW_FLAG:
		snprintf(to, size, "%c?%u.%u ", kind, slot, flag);
		break;
	case NPS_HOW_ARRAY:
		snprintf(to, size, "%c?%u[ ", kind, slot);
		break;
	default:
		snprintf(to, size, "%c?%u>%u ", kind, slot, flag);
	}
}

static void check(const char *symbol, enum nps_torch_result result, enum nps_tensor_layout layout,
		  int machine, const char *expected)
{
	struct nps_op_inputs inputs;
	char shown[512] = "";

	assert_int_equal(nps_torch_inputs__of(symbol, result, machine, layout, &inputs), 0);
	for (uint32_t i = 0; i < inputs.n; i++)
		input_show(shown + strlen(shown), sizeof(shown) - strlen(shown), inputs.input[i]);
	if (strlen(shown))
		shown[strlen(shown) - 1] = '\0';
	assert_string_equal(shown, expected);
}

static void check_both(const char *symbol, enum nps_torch_result result, enum nps_tensor_layout layout,
		       const char *x86, const char *arm64)
{
	check(symbol, result, layout, EM_X86_64, x86);
	check(symbol, result, layout, EM_AARCH64, arm64);
}

static void results(void **state)
{
	static const char add[] = "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE";
	static const char out[] = "_ZN2at4_ops7add_out4callERKNS_6TensorES4_RKN3c106ScalarERS2_";
	struct nps_op_inputs inputs;

	(void)state;
	check_both(add, MEMORY, OLD, "t@1 t@2 s", "t@0 t@1 s");
	check_both(out, REGISTERS, OLD, "t@0 t@1 s t@3", "t@0 t@1 s t@3");
	check("_ZN2at4_ops5zeros4callEv", REGISTERS, OLD, EM_X86_64, "");
	check(add, NPS_TORCH_RESULT_UNKNOWN, OLD, EM_AARCH64, "t@0 t@1 s");
	assert_int_equal(nps_torch_inputs__of(add, NPS_TORCH_RESULT_UNKNOWN, EM_X86_64, OLD, &inputs),
			 -ENOTSUP);
	assert_int_equal(nps_torch_inputs__of(add, MEMORY, EM_X86_64, NPS_LAYOUT_UNKNOWN, &inputs), -ENOTSUP);
	assert_int_equal(nps_torch_inputs__of(add, MEMORY, EM_386, OLD, &inputs), -ENOTSUP);
}

/* c10::optional, with the flag in front. */
static void inputs_of_1_13(void **state)
{
	(void)state;
	check_both("_ZN2at4_ops11convolution4callERKNS_6TensorES4_RKN3c108optionalIS2_EENS5_8ArrayRefIlEESB_"
		   "SB_bSB_l",
		   MEMORY, OLD, "t@1 t@2 t?3>0 l l l s l s", "t@0 t@1 t?2>0 l l l s l s");
	check_both("_ZN2at4_ops10batch_norm4callERKNS_6TensorERKN3c108optionalIS2_EES9_S9_S9_bddb", MEMORY,
		   OLD, "t@1 t?2>0 t?3>0 t?4>0 t?5>0 s s s s", "t@0 t?1>0 t?2>0 t?3>0 t?4>0 s s s s");
	check_both("_ZN2at4_ops8to_dtype4callERKNS_6TensorEN3c1010ScalarTypeEbbNS5_8optionalINS5_"
		   "12MemoryFormatEEE",
		   MEMORY, OLD, "t@1 s s s s?5.0", "t@0 s s s s?4.0");
	/* the last three of x86-64 are on the stack */
	check_both("_ZN2at4_ops13empty_strided4callEN3c108ArrayRefINS2_6SymIntEEES5_NS2_8optionalINS2_"
		   "10ScalarType"
		   "EEENS6_INS2_6LayoutEEENS6_INS2_6DeviceEEENS6_IbEE",
		   MEMORY, OLD, "l l s?5.0 s?6.0 - s?8.0", "l l s?4.0 s?5.0 - s?7.0");
	check_both("_ZN2at4_ops15sum_dim_IntList4callERKNS_6TensorEN3c1016OptionalArrayRefIlEEbNS5_"
		   "8optionalINS5_10"
		   "ScalarTypeEEE",
		   MEMORY, OLD, "t@1 l?2[ s s?5.0", "t@0 l?1[ s s?4.0");
	/* a pair that does not fit is on the stack; what follows has the last register of x86-64 */
	check_both("_ZN2at4_ops20convolution_backward4callERKNS_6TensorES4_S4_N3c1016OptionalArrayRefINS5_"
		   "6SymIntEEE"
		   "NS5_8ArrayRefIlEESA_SA_bSA_lSt5arrayIbLm3EE",
		   MEMORY, OLD, "t@1 t@2 t@3 l?4[ l l l s l s l", "t@0 t@1 t@2 l?3[ l l l s l s l");
	check_both("_ZN2at4_ops10nan_to_num4callERKNS_6TensorEN3c108optionalIdEES7_S7_", MEMORY, OLD,
		   "t@1 s?2.0 s?4.0 s?6.0", "t@0 s?1.0 s?3.0 s?5.0");
	/* the result behind them has the register that the third had no room in */
	check_both("_ZN2at4_ops14nan_to_num_out4callERKNS_6TensorEN3c108optionalIdEES7_S7_RS2_", REGISTERS,
		   OLD, "t@0 s?1.0 s?3.0 s?6.0 t@5", "t@0 s?1.0 s?3.0 s?5.0 t@7");
	check_both("_ZN2at4_ops8quantile4callERKNS_6TensorES4_N3c108optionalIlEEbNS5_17basic_string_viewIcEE",
		   MEMORY, OLD, "t@1 t@2 s?3.0 s -", "t@0 t@1 s?2.0 s -");
	check_both("_ZN2at4_ops8gelu_out4callERKNS_6TensorEN3c1017basic_string_viewIcEERS2_", REGISTERS, OLD,
		   "t@0 - t@3", "t@0 - t@3");
	check_both("_ZN2at4_ops3cat4callERKN3c108IListRefINS_6TensorEEEl", MEMORY, OLD, "L s", "L s");
	check_both("_ZN2at4_ops12index_Tensor4callERKNS_6TensorERKN3c104ListINS5_8optionalIS2_EEEE", MEMORY,
		   OLD, "t@1 -", "t@0 -");
}

/* std::optional, with the flag behind. */
static void inputs_of_2_6(void **state)
{
	(void)state;
	check_both("_ZN2at4_ops11convolution4callERKNS_6TensorES4_RKSt8optionalIS2_EN3c108ArrayRefINS9_"
		   "6SymIntEEESC_SC_"
		   "bSC_SB_",
		   MEMORY, NEW, "t@1 t@2 t?3>8 l l l s l s", "t@0 t@1 t?2>8 l l l s l s");
	check_both("_ZN2at4_ops13empty_strided4callEN3c108ArrayRefINS2_6SymIntEEES5_St8optionalINS2_"
		   "10ScalarTypeEES6_IN"
		   "S2_6LayoutEES6_INS2_6DeviceEES6_IbE",
		   MEMORY, NEW, "l l s?5.1 s?6.1 - s?8.1", "l l s?4.1 s?5.1 - s?7.1");
	/* three words: on the stack, or by address */
	check_both("_ZN2at4_ops15sum_dim_IntList4callERKNS_"
		   "6TensorEN3c1016OptionalArrayRefIlEEbSt8optionalINS5_10ScalarT"
		   "ypeEE",
		   MEMORY, NEW, "t@1 l?8.0 s s?3.1", "t@0 l?1>16 s s?3.1");
	check_both("_ZN2at4_ops23upsample_bilinear2d_vec4callERKNS_6TensorEN3c1016OptionalArrayRefINS5_"
		   "6SymIntEEEbSt8opt"
		   "ionalINS5_8ArrayRefIdEEE",
		   MEMORY, NEW, "t@1 l?8.0 s l?11.0", "t@0 l?1>16 s l?3>16");
	check_both("_ZN2at4_ops10nan_to_num4callERKNS_6TensorESt8optionalIdES6_S6_", MEMORY, NEW,
		   "t@1 s?2.0 s?3.0 s?4.0", "t@0 s?2.0 s?4.0 s?6.0");
	check_both("_ZN2at4_ops8quantile4callERKNS_6TensorES4_St8optionalIlEbSt17basic_string_viewIcSt11char_"
		   "traitsIcEE",
		   MEMORY, NEW, "t@1 t@2 s?4.0 s -", "t@0 t@1 s?3.0 s -");
	check_both("_ZN2at4_ops28scaled_dot_product_attention4callERKNS_6TensorES4_S4_RKSt8optionalIS2_EdbS5_"
		   "IdEb",
		   MEMORY, NEW, "t@1 t@2 t@3 t?4>8 s s s?7.0 s", "t@0 t@1 t@2 t?3>8 s s s?6.0 s");
}

/* More tensors than registers: they go on on the stack, on arm64 behind a pair that had no room. */
static void on_the_stack(void **state)
{
	(void)state;
	check_both("_ZN2at4_ops1x4callERKNS_6TensorES4_S4_S4_S4_S4_S4_S4_S4_", MEMORY, OLD,
		   "t@1 t@2 t@3 t@4 t@5 t@6 t@7 t@8 t@9", "t@0 t@1 t@2 t@3 t@4 t@5 t@6 t@7 t@8");
	check_both("_ZN2at4_ops1x4callERKNS_6TensorES4_S4_S4_N3c108ArrayRefIlEES4_S4_", MEMORY, OLD,
		   "t@1 t@2 t@3 t@4 l t@5 t@8", "t@0 t@1 t@2 t@3 l t@6 t@7");
	check_both("_ZN2at4_ops1x4callERKNS_6TensorES4_S4_S4_S4_S4_S4_N3c108ArrayRefIlEES4_", REGISTERS, OLD,
		   "t@0 t@1 t@2 t@3 t@4 t@5 t@6 l t@9", "t@0 t@1 t@2 t@3 t@4 t@5 t@6 l t@10");
}

static void not_known(void **state)
{
	static const struct {
		const char *symbol;
		int err;
	} symbols[] = {
		{ "_ZN2at4_ops1x4callE12unknown_type", -ENOTSUP },
		{ "_ZN2at4_ops1x4callEN3c108optionalIN3c106StreamEEE", -ENOTSUP },
		{ "_ZN2at4_ops1x4callEPKNS_6TensorE", -ENOTSUP },
		{ "_ZN2at4_ops1x4callElllllllllllllllll", -ENOTSUP }, /* more than there is room for */
		{ "", -EINVAL },
		{ "main", -EINVAL },
		{ "_ZN", -EINVAL },
		{ "_ZNE", -EINVAL },
		{ "_ZN2at4_ops1x4callE", -EINVAL },
		{ "_ZN2at4_ops1x4callES9_", -EINVAL },
		{ "_ZN2at4_ops1x4callES", -EINVAL },
		{ "_ZN2at4_ops1x4callERK", -EINVAL },
		{ "_ZN2at4_ops1x4callEN3c108ArrayRefI", -EINVAL },
		{ "_ZN2at4_ops1x4callESt5arrayIbLm", -EINVAL },
		{ "_ZN2at4_ops1x4callESt5arrayIbL", -EINVAL },
		{ "_ZN2at4_ops1x4callE99x", -EINVAL },
		{ "_ZN2at4_ops1x4callE-1x", -EINVAL },
		{ "_ZN2at4_ops1x4callE99999999999999999999x", -EINVAL },
		{ "_ZN2at4_ops1x4callERRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRl", -EINVAL },
	};
	struct nps_op_inputs inputs;

	(void)state;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++)
		assert_int_equal(nps_torch_inputs__of(symbols[i].symbol, MEMORY, EM_X86_64, OLD, &inputs),
				 symbols[i].err);
}

static int type_append(const char *type, void *text)
{
	strcat(text, type);
	strcat(text, ";");
	return 0;
}

/* Types that repeat others many times grow no further than there is room. */
static void types_that_grow(void **state)
{
	char symbol[1024] = "_ZN1a1fE1bIS_S_E", text[4096] = "";

	(void)state;
	assert_int_equal(nps_mangled_types__each(symbol, type_append, text), 0);
	assert_string_equal(text, "b<a, a>;");
	for (const char *last = "13579BDFH"; *last; last++)
		snprintf(symbol + strlen(symbol), sizeof(symbol) - strlen(symbol), "1bIS%c_S%c_E", *last,
			 *last);
	assert_int_equal(nps_mangled_types__each(symbol, type_append, text), -EINVAL);
}

static void layouts(void **state)
{
	(void)state;
	assert_int_equal(nps_torch_inputs__layout(1, 13), NPS_LAYOUT_1_13);
	assert_int_equal(nps_torch_inputs__layout(2, 6), NPS_LAYOUT_2_6);
	assert_int_equal(nps_torch_inputs__layout(2, 14), NPS_LAYOUT_2_14);
	assert_int_equal(nps_torch_inputs__layout(1, 12), NPS_LAYOUT_UNKNOWN);
	assert_int_equal(nps_torch_inputs__layout(2, 15), NPS_LAYOUT_UNKNOWN);
	assert_int_equal(nps_torch_inputs__layout(3, 6), NPS_LAYOUT_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results),	 cmocka_unit_test(inputs_of_1_13),
		cmocka_unit_test(inputs_of_2_6), cmocka_unit_test(on_the_stack),
		cmocka_unit_test(not_known),	 cmocka_unit_test(types_that_grow),
		cmocka_unit_test(layouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
