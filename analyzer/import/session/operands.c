/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/operands.h"

#include "base/memory.h"
#include "op_signatures.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1024 /* tensors of an operator */
#define GE_TYPE_UNDEFINED 28
#define GE_FORMAT_UNDEFINED 40

/* As nps_tensors__add() takes it. */
struct described {
	uint32_t output, format, type, shape[NPS_TENSOR_DIMS_MAX];
};
_Static_assert(sizeof(struct described) == NPS_TENSOR_BYTES, "struct described");

struct tensor {
	struct described is;
	uint32_t age;
	bool complete;
};

struct tensor_members {
	uint64_t members[NPS_MAX_LIST];
	uint32_t count;
	uint32_t arrived; /* members so far */
	uint32_t age;
};

struct signature {
	const char *api, *arguments;
};

static const struct signature signatures[] = {
#define ROW(api, arguments) { (api), (arguments) },
	NPS_OP_SIGNATURES(ROW)
#undef ROW
};

static int list_compare(const void *api, const void *row)
{
	return strcmp(api, ((const struct signature *)row)->api);
}

void nps_operands__init(struct nps_operands *operands, struct nps_session *model)
{
	*operands = (struct nps_operands){ .model = model };
	nps_vec__init(&operands->tensors, model->tmpfd, sizeof(struct tensor));
	nps_vec__init(&operands->lists, model->tmpfd, sizeof(struct tensor_members));
	nps_vec__init(&operands->ages, model->tmpfd, sizeof(uint32_t));
}

void nps_operands__free(struct nps_operands *operands)
{
	nps_map__free(&operands->tensor_of);
	nps_map__free(&operands->list_of);
	nps_vec__free(&operands->tensors);
	nps_vec__free(&operands->lists);
	nps_vec__free(&operands->ages);
}

static uint32_t age_of(const struct nps_operands *operands, uint32_t proc)
{
	return proc < operands->ages.len ? NPS_AT(&operands->ages, uint32_t, proc) : 0;
}

int nps_operands__forget(struct nps_operands *operands, uint32_t proc)
{
	int err = proc < operands->ages.len ? 0 : nps_vec__resize(&operands->ages, proc + 1);

	if (err)
		return err;
	NPS_AT(&operands->ages, uint32_t, proc)++;
	return 0;
}

static uint64_t address_key(uint32_t proc, uint64_t address)
{
	return nps_hash2(address, proc);
}

/* The row of ADDRESS in ROWS, made if need be; NULL without memory. */
static void *address_row(struct nps_map *map, struct nps_vec *rows, uint32_t proc, uint64_t address)
{
	uint64_t key = address_key(proc, address);
	uint32_t row = nps_map__get(map, key);

	if (row != NPS_NONE)
		return (char *)rows->data + row * rows->elem;
	if (rows->len >= NPS_NONE || !nps_vec__push(rows) || nps_map__put(map, key, rows->len - 1))
		return NULL;
	return (char *)rows->data + (rows->len - 1) * rows->elem;
}

static int add_tensor(struct nps_operands *operands, uint32_t proc, const struct nps_event *ev)
{
	struct tensor *t = address_row(&operands->tensor_of, &operands->tensors, proc, ev->handle);
	const struct nps_tensor_head *head = &ev->tensor_head;
	uint32_t dims = NPS_MIN((uint32_t)head->dims, (uint32_t)NPS_TENSOR_DIMS_MAX);

	if (!t)
		return -ENOMEM;
	*t = (struct tensor){ .age = age_of(operands, proc),
			      .complete = !(ev->flags & (NPS_F_TRUNCATED | NPS_F_SLOT_FAULT(0))),
			      .is.type = head->type < 0 ? GE_TYPE_UNDEFINED : head->type,
			      .is.format = head->format < 0 ? GE_FORMAT_UNDEFINED : head->format };
	for (uint32_t i = 0; i < dims; i++)
		t->is.shape[i] = ev->tensor.size[i];
	return 0;
}

static int operands_add_list(struct nps_operands *operands, uint32_t proc, const struct nps_event *ev)
{
	struct tensor_members *list = address_row(&operands->list_of, &operands->lists, proc, ev->handle);
	uint32_t part = ev->tensor_head.part;

	if (!list)
		return -ENOMEM;
	if (!part)
		*list = (struct tensor_members){ .age = age_of(operands, proc),
						 .count = ev->tensor_head.count };
	if (part * 4 != list->arrived || list->arrived + 4 > NPS_MAX_LIST || ev->flags) {
		list->count = UINT32_MAX; /* a part is missing: the list is not known */
		return 0;
	}
	memcpy(&list->members[list->arrived], ev->tensor.member, sizeof(ev->tensor.member));
	list->arrived += 4;
	return 0;
}

int nps_operands__add(struct nps_operands *operands, uint32_t proc, const struct nps_event *ev)
{
	return ev->tensor_head.what == NPS_TENSOR_LIST ? operands_add_list(operands, proc, ev)
						       : add_tensor(operands, proc, ev);
}

static const struct tensor *tensor_at(const struct nps_operands *operands, uint32_t proc, uint64_t address)
{
	uint32_t row = nps_map__get(&operands->tensor_of, address_key(proc, address));
	const struct tensor *t = row == NPS_NONE ? NULL : &NPS_AT(&operands->tensors, struct tensor, row);

	return t && t->age == age_of(operands, proc) && t->complete ? t : NULL;
}

static const struct tensor_members *list_at(const struct nps_operands *operands, uint32_t proc,
					    uint64_t address)
{
	uint32_t row = nps_map__get(&operands->list_of, address_key(proc, address));
	const struct tensor_members *list =
		row == NPS_NONE ? NULL : &NPS_AT(&operands->lists, struct tensor_members, row);

	return list && list->age == age_of(operands, proc) && list->count <= list->arrived ? list : NULL;
}

struct gathering {
	struct nps_operands *operands;
	uint32_t proc, n;
	struct described all[MOST];
};

static bool gather_tensor(struct gathering *g, uint64_t address, char how)
{
	const struct tensor *t = tensor_at(g->operands, g->proc, address);

	if (!t || g->n + 2 > MOST)
		return false;
	if (how != 'o')
		g->all[g->n++] = t->is;
	if (how != 'i') {
		g->all[g->n] = t->is;
		g->all[g->n++].output = 1;
	}
	return true;
}

static bool gather_list(struct gathering *g, uint64_t address, char how)
{
	const struct tensor_members *list = list_at(g->operands, g->proc, address);

	if (!list)
		return false;
	for (uint32_t i = 0; i < list->count; i++)
		if (!gather_tensor(g, list->members[i], how))
			return false;
	return true;
}

/* False: the argument is not what the signature has, or not known. An optional tensor may be absent. */
static bool gather(struct gathering *g, uint64_t value, char letter)
{
	switch (letter) {
	case 'i':
	case 'o':
	case 'r':
		return !value || gather_tensor(g, value, letter);
	case 'I':
	case 'O':
	case 'R':
		return !value || gather_list(g, value, (char)(letter + 'a' - 'A'));
	default:
		return !tensor_at(g->operands, g->proc, value);
	}
}

uint32_t nps_operands__list(struct nps_operands *operands, uint32_t proc, const char *api,
			    const uint64_t *slots, uint32_t n)
{
	const struct signature *s =
		bsearch(api, signatures, NPS_ARRAY_SIZE(signatures), sizeof(*signatures), list_compare);
	struct gathering *g = s && strlen(s->arguments) == n ? malloc(sizeof(*g)) : NULL;
	uint32_t list = NPS_NONE, i;

	if (!g && s && strlen(s->arguments) == n)
		nps_memory__fail(-ENOMEM);
	if (!g)
		return NPS_NONE;
	g->operands = operands;
	g->proc = proc;
	g->n = 0;
	for (i = 0; i < n && gather(g, slots[i], s->arguments[i]); i++)
		;
	if (i == n)
		list = nps_tensors__add(&operands->model->tensors, (const uint8_t *)g->all, g->n);
	free(g);
	return list;
}
