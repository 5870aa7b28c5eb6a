/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/python/python_layout.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define COOKIE "xdebugpy"
#define VERSION_AT 8 /* in _Py_DebugOffsets */
#define FREE_THREADED_AT 16

struct row {
	int machine, micro;
	struct nps_py_layout layout;
};

#define NPS_PY_ROW(machine, micro, ...) { machine, micro, { __VA_ARGS__ } },
#define NPS_PY_DESCRIPTORS(...)
static const struct row rows[] = {
#include "attach/python/python_layout_rows.h"
};
#undef NPS_PY_ROW
#undef NPS_PY_DESCRIPTORS

#define NPS_PY_ROW(machine, micro, ...)
#define NPS_PY_DESCRIPTORS(...) { __VA_ARGS__ },
/* Not offsets in the structs, but in _Py_DebugOffsets. */
static const struct nps_py_layout descriptors[] = {
#include "attach/python/python_layout_rows.h"
};

#define FIELD(name, limit)                                                                                   \
	{                                                                                                    \
		offsetof(struct nps_py_layout, name), sizeof(((struct nps_py_layout *)0)->name), limit       \
	}
#define INTERPRETER (1U << 20) /* bytes: an interpreter of 3.13 has 440,000 */
#define OBJECT 4096

/* What _Py_DebugOffsets describes, and which values are possible. */
static const struct {
	size_t at, size;
	uint32_t limit;
} fields[] = {
	FIELD(runtime_interpreters, NPS_PY_NONE),
	FIELD(interpreter_next, INTERPRETER),
	FIELD(interpreter_threads, INTERPRETER),
	FIELD(thread_next, OBJECT),
	FIELD(thread_id, OBJECT),
	FIELD(thread_native_id, OBJECT),
	FIELD(thread_frame, OBJECT),
	FIELD(thread_datastack, OBJECT),
	FIELD(frame_previous, NPS_PY_FRAME_BYTES - 7),
	FIELD(frame_code, NPS_PY_FRAME_BYTES - 7),
	FIELD(frame_instruction, NPS_PY_FRAME_BYTES - 7),
	FIELD(frame_owner, NPS_PY_FRAME_BYTES),
	FIELD(code_filename, OBJECT),
	FIELD(code_name, OBJECT),
	FIELD(code_qualname, OBJECT),
	FIELD(code_firstlineno, OBJECT),
	FIELD(code_linetable, OBJECT),
	FIELD(code_first_instruction, OBJECT),
	FIELD(text_length, OBJECT),
	FIELD(text_state, OBJECT),
	FIELD(text_ascii, OBJECT),
	FIELD(bytes_length, OBJECT),
	FIELD(bytes_data, OBJECT),
};

const struct nps_py_layout *nps_python_layout__find(uint16_t version, int machine)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].machine == machine && rows[i].layout.version == version)
			return &rows[i].layout;
	return NULL;
}

static const struct nps_py_layout *descriptors_of(uint16_t version)
{
	for (size_t i = 0; i < sizeof(descriptors) / sizeof(*descriptors); i++)
		if (descriptors[i].version == version)
			return &descriptors[i];
	return NULL;
}

static uint32_t field_get(const struct nps_py_layout *layout, size_t i)
{
	const uint8_t *at = (const uint8_t *)layout + fields[i].at;
	uint32_t wide;
	uint16_t narrow;

	if (fields[i].size == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}

static void field_set(struct nps_py_layout *layout, size_t i, uint32_t value)
{
	uint8_t *at = (uint8_t *)layout + fields[i].at;
	uint16_t narrow = (uint16_t)value;

	if (fields[i].size == sizeof(value))
		memcpy(at, &value, sizeof(value));
	else
		memcpy(at, &narrow, sizeof(narrow));
}

static uint64_t described_at(const uint8_t *bytes, size_t at)
{
	uint64_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

int nps_python_layout__describe(struct nps_py_layout *layout, const uint8_t *description, size_t n,
				const char **why)
{
	const struct nps_py_layout *where = descriptors_of(layout->version);
	struct nps_py_layout described = *layout;

	*why = "its _PyRuntime does not begin with the debug offsets of its version";
	if (!where || n < FREE_THREADED_AT + 8 || memcmp(description, COOKIE, strlen(COOKIE)) != 0 ||
	    described_at(description, VERSION_AT) >> 16 != layout->version)
		return -ENOTSUP;
	if (described_at(description, FREE_THREADED_AT)) {
		*why = "free-threaded builds of Python are not supported";
		return -ENOTSUP;
	}
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		uint32_t at = field_get(where, i);

		if (at + 8 > n)
			return -ENOTSUP;
		if (described_at(description, at) >= fields[i].limit) {
			*why = "its debug offsets are not those of any Python";
			return -ENOTSUP;
		}
		field_set(&described, i, (uint32_t)described_at(description, at));
	}
	*layout = described;
	*why = NULL;
	return 0;
}
