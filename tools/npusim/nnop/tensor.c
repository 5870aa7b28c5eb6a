/* SPDX-License-Identifier: BSD-2-Clause */
/* Tensors, scalars and arrays: descriptions only. */
#include "opbase.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIMS_MAX 8

struct aclTensor {
	int64_t dims[DIMS_MAX];
	uint64_t ndims;
	aclDataType type;
	aclFormat format;
	void *data;
};

struct aclScalar {
	uint8_t value[16];
	aclDataType type;
};

/* What every array type is. */
struct array {
	uint64_t size;
	uint8_t data[];
};

aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType,
			   const int64_t *stride, int64_t offset, aclFormat format,
			   const int64_t *storageDims, uint64_t storageDimsNum, void *tensorData)
{
	aclTensor *t;

	(void)stride;
	(void)offset;
	(void)storageDims;
	(void)storageDimsNum;
	if (viewDimsNum > DIMS_MAX || (viewDimsNum && !viewDims))
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	if (viewDimsNum)
		memcpy(t->dims, viewDims, viewDimsNum * sizeof(*viewDims));
	t->ndims = viewDimsNum;
	t->type = dataType;
	t->format = format;
	t->data = tensorData;
	return t;
}

uint64_t TensorElements(const aclTensor *tensor)
{
	uint64_t n = 1;

	for (uint64_t i = 0; tensor && i < tensor->ndims; i++)
		n *= (uint64_t)tensor->dims[i];
	return n;
}

int DescribeTensor(const aclTensor *tensor, int what, char *to, int room)
{
	int n = 0;

	if (what)
		return snprintf(to, (size_t)room, "%d", what == 1 ? tensor->type : tensor->format);
	*to = '\0';
	for (uint64_t i = 0; i < tensor->ndims && n < room; i++)
		n += snprintf(to + n, (size_t)(room - n), i ? ",%lld" : "%lld", (long long)tensor->dims[i]);
	return n;
}

aclScalar *aclCreateScalar(void *value, aclDataType dataType)
{
	aclScalar *s = value ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return NULL;
	memcpy(s->value, value, dataType == ACL_FLOAT ? sizeof(float) : 1);
	s->type = dataType;
	return s;
}

static struct array *create_array(const void *value, uint64_t size, size_t width)
{
	struct array *a;

	if (size > SIZE_MAX / 2 / width || (size && !value))
		return NULL;
	a = malloc(sizeof(*a) + size * width);
	if (!a)
		return NULL;
	a->size = size;
	if (size)
		memcpy(a->data, value, size * width);
	return a;
}

aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size)
{
	return (aclIntArray *)create_array(value, size, sizeof(*value));
}

aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size)
{
	return (aclFloatArray *)create_array(value, size, sizeof(*value));
}

aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size)
{
	return (aclBoolArray *)create_array(value, size, sizeof(*value));
}

aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size)
{
	return (aclTensorList *)create_array(value, size, sizeof(*value));
}

static aclnnStatus destroy(const void *object)
{
	free((void *)(uintptr_t)object);
	return ACLNN_SUCCESS;
}

aclnnStatus aclDestroyTensor(const aclTensor *tensor)
{
	return destroy(tensor);
}

aclnnStatus aclDestroyScalar(const aclScalar *scalar)
{
	return destroy(scalar);
}

aclnnStatus aclDestroyIntArray(const aclIntArray *array)
{
	return destroy(array);
}

aclnnStatus aclDestroyFloatArray(const aclFloatArray *array)
{
	return destroy(array);
}

aclnnStatus aclDestroyBoolArray(const aclBoolArray *array)
{
	return destroy(array);
}

/* The list owns its tensors. */
aclnnStatus aclDestroyTensorList(const aclTensorList *list)
{
	const struct array *a = (const struct array *)list;
	aclTensor *tensor;

	for (uint64_t i = 0; a && i < a->size; i++) {
		memcpy(&tensor, a->data + i * sizeof(tensor), sizeof(tensor));
		destroy(tensor);
	}
	return destroy(list);
}

static aclnnStatus set_address(aclOpExecutor *executor, aclTensor *tensor, void *addr)
{
	if (!executor || !tensor)
		return ACLNN_ERR_PARAM_NULLPTR;
	tensor->data = addr;
	return ACLNN_SUCCESS;
}

aclnnStatus aclSetInputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr)
{
	SAVES_REGISTERS();
	(void)index;
	return set_address(executor, tensor, addr);
}

aclnnStatus aclSetOutputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr)
{
	SAVES_REGISTERS();
	(void)index;
	return set_address(executor, tensor, addr);
}

aclnnStatus aclnnInit(const char *configPath)
{
	(void)configPath;
	return ACLNN_SUCCESS;
}

aclnnStatus aclnnFinalize(void)
{
	return ACLNN_SUCCESS;
}
