/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/portable.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

/* Hashes are preallocated, as kprobe programs require: so many threads, or so many bytes. */
#define MOST_THREADS 16384U
#define MOST_BYTES (64U << 20)

/* Offset of a constant in .rodata; negative: OBJ has none of that name. */
static int constant_at(const struct btf *btf, const char *name)
{
	int id = btf ? btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC) : -ENOENT;
	const struct btf_type *section = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	const struct btf_var_secinfo *v = section ? btf_var_secinfos(section) : NULL;

	for (uint32_t i = 0; v && i < btf_vlen(section); i++) {
		const struct btf_type *var = btf__type_by_id(btf, v[i].type);
		const char *text = var ? btf__name_by_offset(btf, var->name_off) : NULL;

		if (text && !strcmp(text, name))
			return (int)v[i].offset;
	}
	return -ENOENT;
}

static void set_constant(struct bpf_object *obj, const char *name, bool value)
{
	int at = constant_at(bpf_object__btf(obj), name);
	struct bpf_map *m;
	size_t size;

	if (at < 0)
		return;
	bpf_object__for_each_map(m, obj)
	{
		const char *dot = strchr(bpf_map__name(m), '.');
		bool *values = NULL;

		/* memory of the object until it is loaded, although the prototype has const */
		if (dot && !strcmp(dot, ".rodata"))
			values = (bool *)bpf_map__initial_value(m, &size);
		if (values && (size_t)at < size)
			values[at] = value;
	}
}

static int make_hash(struct bpf_map *m)
{
	uint32_t n = MOST_BYTES / bpf_map__value_size(m);
	int err = bpf_map__set_type(m, BPF_MAP_TYPE_HASH);

	if (err)
		return err;
	err = bpf_map__set_map_flags(m, 0);
	if (err)
		return err;
	return bpf_map__set_max_entries(m, n < MOST_THREADS ? n : MOST_THREADS);
}

int nps_portable__prepare(struct bpf_object *obj, const struct nps_capability *cap)
{
	struct bpf_map *m;

	set_constant(obj, "has_task_storage", cap->task_storage);
	set_constant(obj, "has_cookies", cap->cookie);
	if (cap->task_storage)
		return 0;
	bpf_object__for_each_map(m, obj)
	{
		int err = bpf_map__type(m) == BPF_MAP_TYPE_TASK_STORAGE ? make_hash(m) : 0;

		if (err)
			return err;
	}
	return 0;
}
