/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/preempt_count.h"

#include <bpf/btf.h>
#include <stdbool.h>
#include <string.h>

#define DEPTH 4 /* of nested structs */

static bool is_called(const struct btf *btf, uint32_t name, const char *what)
{
	const char *text = btf__name_by_offset(btf, name);

	return text && !strcmp(text, what);
}

/* Offset, bytes, of a member of a struct, also if it is in an unnamed one; negative: there is none. */
static int64_t type_member_at(const struct btf *btf, uint32_t id, const char *name, int depth)
{
	const struct btf_type *t = btf__type_by_id(btf, id);
	const struct btf_member *m;

	if (!t || !btf_is_composite(t) || !depth)
		return -1;
	m = btf_members(t);
	for (uint32_t i = 0; i < btf_vlen(t); i++) {
		int64_t at = is_called(btf, m[i].name_off, name) ? 0
			     : !m[i].name_off ? type_member_at(btf, m[i].type, name, depth - 1)
					      : -1;

		if (at >= 0)
			return btf_member_bit_offset(t, i) / 8 + at;
	}
	return -1;
}

/* Offset of a per-CPU variable, and its type; negative: there is none. */
static int64_t variable_at(const struct btf *btf, const struct btf_type *section, const char *name,
			   uint32_t *type)
{
	const struct btf_var_secinfo *v = btf_var_secinfos(section);

	for (uint32_t i = 0; i < btf_vlen(section); i++) {
		const struct btf_type *var = btf__type_by_id(btf, v[i].type);

		if (!var || !is_called(btf, var->name_off, name))
			continue;
		*type = var->type;
		return v[i].offset;
	}
	return -1;
}

int64_t nps_preempt_count__offset(const struct btf *btf)
{
	int id = btf ? btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC) : -1;
	const struct btf_type *section = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	int64_t queue, count, member = 0;
	uint32_t type = 0;

	if (!section)
		return 0;
	queue = variable_at(btf, section, "runqueues", &type);
	count = variable_at(btf, section, "__preempt_count", &type);
	if (count < 0) {
		count = variable_at(btf, section, "pcpu_hot", &type);
		member = count < 0 ? 0 : type_member_at(btf, type, "preempt_count", DEPTH);
	}
	return queue < 0 || count < 0 || member < 0 ? 0 : count + member - queue;
}
