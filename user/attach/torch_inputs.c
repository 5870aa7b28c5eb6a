/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/torch_inputs.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "attach/mangled_types.h"
#include "event.h"

/* Registers for arguments. Slots behind those of integers are words on the stack. */
struct convention {
	unsigned integers, floats;
	bool large_by_address; /* what has more than two words is copied and its address passed */
	bool stack_is_final; /* behind two words that went to the stack no integer is in a register */
	bool optional_double_is_mixed; /* its flag is in an integer register, its value in one of floats */
};

static const struct convention x86 = { 6, 8, false, false, true };
static const struct convention arm64 = { 8, 8, true, true, false };

struct input_list {
	const struct convention *by;
	enum nps_tensor_layout layout;
	unsigned integers, floats, stack; /* used */
	struct nps_op_inputs *to;
};

/* --- where an argument is --- */

static unsigned stack_slot(struct input_list *l, unsigned words)
{
	unsigned slot = l->by->integers + l->stack;

	l->stack += words;
	return slot;
}

static unsigned word_slot(struct input_list *l)
{
	return l->integers < l->by->integers ? l->integers++ : stack_slot(l, 1);
}

static unsigned pair_slot(struct input_list *l)
{
	unsigned slot = l->integers;

	if (slot + 2 <= l->by->integers) {
		l->integers += 2;
		return slot;
	}
	if (l->by->stack_is_final)
		l->integers = l->by->integers;
	return stack_slot(l, 2);
}

static void float_skip(struct input_list *l)
{
	if (l->floats < l->by->floats)
		l->floats++;
	else
		stack_slot(l, 1);
}

static int input_add(struct input_list *l, enum nps_input_how how, unsigned slot, unsigned flag,
		     enum nps_op_input what)
{
	if (l->to->n == NPS_OP_INPUTS || slot > UINT8_MAX)
		return -ENOTSUP;
	l->to->input[l->to->n++] = NPS_OP_INPUT(how, slot, flag, what);
	return 0;
}

/* --- arguments that are always there --- */

enum passing { BY_WORD, BY_PAIR, BY_FLOAT };

static const struct {
	const char *type;
	enum passing by;
	enum nps_input_how how;
	enum nps_op_input what;
} plain_types[] = {
	{ "at::Tensor const&", BY_WORD, NPS_HOW_TENSOR, NPS_OP_INPUT_TENSOR },
	{ "at::Tensor&", BY_WORD, NPS_HOW_TENSOR, NPS_OP_INPUT_TENSOR },
	{ "bool", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_SCALAR },
	{ "signed char", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_SCALAR },
	{ "long", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_SCALAR },
	{ "double", BY_FLOAT, NPS_HOW_FIXED, NPS_OP_INPUT_SCALAR },
	{ "c10::SymInt", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_SCALAR }, /* its address */
	{ "c10::Scalar const&", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_SCALAR },
	{ "c10::ScalarType", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_SCALAR },
	{ "c10::Layout", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_SCALAR },
	{ "c10::MemoryFormat", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_SCALAR },
	{ "c10::ArrayRef<long>", BY_PAIR, NPS_HOW_FIXED, NPS_OP_INPUT_SCALARS },
	{ "c10::ArrayRef<double>", BY_PAIR, NPS_HOW_FIXED, NPS_OP_INPUT_SCALARS },
	{ "c10::ArrayRef<c10::SymInt>", BY_PAIR, NPS_HOW_FIXED, NPS_OP_INPUT_SCALARS },
	{ "c10::ArrayRef<c10::Scalar>", BY_PAIR, NPS_HOW_FIXED, NPS_OP_INPUT_SCALARS },
	{ "std::array<bool, 2>", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_SCALARS },
	{ "std::array<bool, 3>", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_SCALARS },
	{ "std::array<bool, 4>", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_SCALARS },
	{ "c10::ArrayRef<at::Tensor>", BY_PAIR, NPS_HOW_FIXED, NPS_OP_INPUT_TENSORS },
	{ "c10::IListRef<at::Tensor> const&", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_TENSORS },
	{ "c10::List<c10::optional<at::Tensor>> const&", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_NONE },
	{ "c10::List<std::optional<at::Tensor>> const&", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_NONE },
	{ "c10::ArrayRef<at::Dimname>", BY_PAIR, NPS_HOW_FIXED, NPS_OP_INPUT_NONE },
	{ "at::Dimname", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_NONE },
	{ "c10::Device", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_NONE },
	{ "c10::Storage", BY_WORD, NPS_HOW_FIXED, NPS_OP_INPUT_NONE }, /* its address */
	{ "c10::Stream", BY_PAIR, NPS_HOW_FIXED, NPS_OP_INPUT_NONE },
	{ "c10::basic_string_view<char>", BY_PAIR, NPS_HOW_FIXED, NPS_OP_INPUT_NONE },
	{ "std::basic_string_view<char, std::char_traits<char>>", BY_PAIR, NPS_HOW_FIXED, NPS_OP_INPUT_NONE },
};

/* -ENOENT: it is none of them. */
static int plain_add(struct input_list *l, const char *type)
{
	for (size_t i = 0; i < sizeof(plain_types) / sizeof(*plain_types); i++) {
		unsigned slot = 0;

		if (strcmp(plain_types[i].type, type) != 0)
			continue;
		if (plain_types[i].by == BY_FLOAT)
			float_skip(l);
		else
			slot = plain_types[i].by == BY_WORD ? word_slot(l) : pair_slot(l);
		return input_add(l, plain_types[i].how, slot, 0, plain_types[i].what);
	}
	return -ENOENT;
}

/* --- optional arguments --- */

enum optional_passing {
	BY_ADDRESS, /* of value and flag */
	IN_WORD,
	IN_TWO_WORDS,
	IN_WORD_AND_FLOAT,
	IN_THREE_WORDS,
	AS_ARRAY /* c10's has no flag */
};

/*
 * c10's had the flag in front of the value, that of the standard library has it behind: its bytes. In c10's
 * even a double is an integer for the calling convention, as a char shares its memory.
 */
static const struct {
	const char *type; /* in the optional */
	enum optional_passing c10, std;
	uint8_t behind;
	enum nps_op_input what;
} optional_types[] = {
	{ "at::Tensor", BY_ADDRESS, BY_ADDRESS, 8, NPS_OP_INPUT_TENSOR },
	{ "c10::Scalar", BY_ADDRESS, BY_ADDRESS, 32, NPS_OP_INPUT_SCALAR },
	{ "c10::SymInt", BY_ADDRESS, BY_ADDRESS, 8, NPS_OP_INPUT_SCALAR },
	{ "at::Generator", BY_ADDRESS, BY_ADDRESS, 8, NPS_OP_INPUT_NONE },
	{ "bool", IN_WORD, IN_WORD, 1, NPS_OP_INPUT_SCALAR },
	{ "c10::ScalarType", IN_WORD, IN_WORD, 1, NPS_OP_INPUT_SCALAR },
	{ "c10::Layout", IN_WORD, IN_WORD, 1, NPS_OP_INPUT_SCALAR },
	{ "c10::MemoryFormat", IN_WORD, IN_WORD, 1, NPS_OP_INPUT_SCALAR },
	{ "c10::Device", IN_WORD, IN_WORD, 2, NPS_OP_INPUT_NONE },
	{ "long", IN_TWO_WORDS, IN_TWO_WORDS, 8, NPS_OP_INPUT_SCALAR },
	{ "double", IN_TWO_WORDS, IN_WORD_AND_FLOAT, 8, NPS_OP_INPUT_SCALAR },
	{ "c10::ArrayRef<long>", AS_ARRAY, IN_THREE_WORDS, 16, NPS_OP_INPUT_SCALARS },
	{ "c10::ArrayRef<c10::SymInt>", AS_ARRAY, IN_THREE_WORDS, 16, NPS_OP_INPUT_SCALARS },
	{ "c10::ArrayRef<double>", AS_ARRAY, IN_THREE_WORDS, 16, NPS_OP_INPUT_SCALARS },
	{ "c10::ArrayRef<at::Dimname>", AS_ARRAY, IN_THREE_WORDS, 16, NPS_OP_INPUT_NONE },
	{ "c10::basic_string_view<char>", IN_THREE_WORDS, IN_THREE_WORDS, 16, NPS_OP_INPUT_NONE },
	{ "std::basic_string_view<char, std::char_traits<char>>", IN_THREE_WORDS, IN_THREE_WORDS, 16,
	  NPS_OP_INPUT_NONE },
};

/* FLAG: byte of the flag, behind the double. On x86-64 the word is the flag alone. */
static unsigned mixed_slot(struct input_list *l, unsigned flag)
{
	if (!l->by->optional_double_is_mixed)
		return pair_slot(l) + flag / 8;
	if (l->integers == l->by->integers || l->floats == l->by->floats)
		return stack_slot(l, 2) + flag / 8;
	l->floats++;
	return l->integers++;
}

static int optional_pass(struct input_list *l, enum optional_passing by, unsigned flag,
			 enum nps_op_input what)
{
	enum nps_input_how at = what == NPS_OP_INPUT_NONE ? NPS_HOW_FIXED : NPS_HOW_FLAG_AT;
	enum nps_input_how in = what == NPS_OP_INPUT_NONE ? NPS_HOW_FIXED : NPS_HOW_FLAG;

	switch (by) {
	case BY_ADDRESS:
		return input_add(l, what == NPS_OP_INPUT_TENSOR ? NPS_HOW_OPTIONAL_TENSOR : at, word_slot(l),
				 flag, what);
	case IN_WORD:
		return input_add(l, in, word_slot(l), flag, what);
	case IN_TWO_WORDS:
		return input_add(l, in, pair_slot(l) + flag / 8, 0, what);
	case IN_WORD_AND_FLOAT:
		return input_add(l, in, mixed_slot(l, flag), 0, what);
	case IN_THREE_WORDS:
		if (l->by->large_by_address)
			return input_add(l, at, word_slot(l), flag, what);
		return input_add(l, in, stack_slot(l, 3) + flag / 8, 0, what);
	default:
		return input_add(l, what == NPS_OP_INPUT_NONE ? NPS_HOW_FIXED : NPS_HOW_ARRAY, pair_slot(l),
				 0, what);
	}
}

/* Is TYPE BEFORE, then one type, then >, and possibly " const&"? That type in INNER. */
static bool type_in(const char *type, const char *before, char *inner, size_t size)
{
	size_t n = strlen(before), len = strlen(type);
	static const char reference[] = " const&";

	if (len > sizeof(reference) && !strcmp(type + len - sizeof(reference) + 1, reference))
		len -= sizeof(reference) - 1;
	if (strncmp(type, before, n) != 0 || len <= n || type[len - 1] != '>')
		return false;
	snprintf(inner, size, "%.*s", (int)(len - 1 - n), type + n);
	return true;
}

/* Is TYPE, that of a parameter, an optional one? *STD: of the standard library; INNER: what is in it. */
static bool optional_is(const struct input_list *l, const char *type, char *inner, size_t size, bool *std)
{
	char array[NPS_MANGLED_TYPE_MAX];

	*std = type_in(type, "std::optional<", inner, size);
	if (*std || type_in(type, "c10::optional<", inner, size))
		return true;
	if (!type_in(type, "c10::OptionalArrayRef<", array, sizeof(array)))
		return false;
	*std = l->layout != NPS_LAYOUT_1_13;
	snprintf(inner, size, "c10::ArrayRef<%.*s>", (int)size - 20, array);
	return true;
}

static int optional_add(struct input_list *l, const char *type)
{
	char inner[NPS_MANGLED_TYPE_MAX];
	bool std;

	if (!optional_is(l, type, inner, sizeof(inner), &std))
		return -ENOENT;
	for (size_t i = 0; i < sizeof(optional_types) / sizeof(*optional_types); i++)
		if (!strcmp(optional_types[i].type, inner))
			return optional_pass(l, std ? optional_types[i].std : optional_types[i].c10,
					     std ? optional_types[i].behind : 0, optional_types[i].what);
	return -ENOENT;
}

static int parameter_add(const char *type, void *list)
{
	int err = plain_add(list, type);

	if (err == -ENOENT)
		err = optional_add(list, type);
	return err == -ENOENT ? -ENOTSUP : err;
}

int nps_torch_inputs__of(const char *symbol, enum nps_torch_result result, int machine,
			 enum nps_tensor_layout layout, struct nps_op_inputs *inputs)
{
	struct input_list l = { .by = machine == EM_X86_64 ? &x86 : &arm64, .layout = layout, .to = inputs };

	*inputs = (struct nps_op_inputs){ .n = 0 };
	if (layout == NPS_LAYOUT_UNKNOWN || (machine != EM_X86_64 && machine != EM_AARCH64))
		return -ENOTSUP;
	if (machine == EM_X86_64 && result == NPS_TORCH_RESULT_UNKNOWN)
		return -ENOTSUP;
	if (machine == EM_X86_64 && result == NPS_TORCH_RESULT_IN_MEMORY)
		l.integers = 1;
	return nps_mangled_types__each(symbol, parameter_add, &l);
}

enum nps_tensor_layout nps_torch_inputs__layout(unsigned major, unsigned minor)
{
	if (major == 1 && minor == 13)
		return NPS_LAYOUT_1_13;
	if (major != 2)
		return NPS_LAYOUT_UNKNOWN;
	return minor == 6 ? NPS_LAYOUT_2_6 : minor == 14 ? NPS_LAYOUT_2_14 : NPS_LAYOUT_UNKNOWN;
}
