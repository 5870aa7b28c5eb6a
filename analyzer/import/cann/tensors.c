/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/tensors.h"

#include "import/cann/slices.h"
#include "import/common/memo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1024 /* tensors of one operator */
#define TENSOR_TEXT                                                                                          \
	96 /* bytes of one of a list's texts about one tensor: eight numbers, or the longest name */

struct tensor_list {
	uint64_t at; /* in bytes */
	uint32_t n;
	bool named;
	struct nps_tensor_texts texts;
};

static const char *const types[] = {
	[0] = "FLOAT",	      [1] = "FLOAT16",	      [2] = "INT8",
	[3] = "INT32",	      [4] = "UINT8",	      [6] = "INT16",
	[7] = "UINT16",	      [8] = "UINT32",	      [9] = "INT64",
	[10] = "UINT64",      [11] = "DOUBLE",	      [12] = "BOOL",
	[13] = "STRING",      [14] = "DUAL_SUB_INT8", [15] = "DUAL_SUB_UINT8",
	[16] = "COMPLEX64",   [17] = "COMPLEX128",    [18] = "QINT8",
	[19] = "QINT16",      [20] = "QINT32",	      [21] = "QUINT8",
	[22] = "QUINT16",     [23] = "RESOURCE",      [24] = "STRING_REF",
	[25] = "DUAL",	      [26] = "DT_VARIANT",    [27] = "DT_BF16",
	[28] = "UNDEFINED",   [29] = "INT4",	      [30] = "UINT1",
	[31] = "INT2",	      [32] = "UINT2",	      [33] = "COMPLEX32",
	[34] = "HIFLOAT8",    [35] = "FLOAT8_E5M2",   [36] = "FLOAT8_E4M3FN",
	[37] = "FLOAT8_E8M0", [38] = "FLOAT6_E3M2",   [39] = "FLOAT6_E2M3",
	[40] = "FLOAT4_E2M1", [41] = "FLOAT4_E1M2",
};

static const char *const formats[] = {
	"NCHW",
	"NHWC",
	"ND",
	"NC1HWC0",
	"FRACTAL_Z",
	"NC1C0HWPAD",
	"NHWC1C0",
	"FSR_NCHW",
	"FRACTAL_DECONV",
	"C1HWNC0",
	"FRACTAL_DECONV_TRANSPOSE",
	"FRACTAL_DECONV_SP_STRIDE_TRANS",
	"NC1HWC0_C04",
	"FRACTAL_Z_C04",
	"CHWN",
	"DECONV_SP_STRIDE8_TRANS",
	"HWCN",
	"NC1KHKWHWC0",
	"BN_WEIGHT",
	"FILTER_HWCK",
	"LOOKUP_LOOKUPS",
	"LOOKUP_KEYS",
	"LOOKUP_VALUE",
	"LOOKUP_OUTPUT",
	"LOOKUP_HITS",
	"C1HWNCoC0",
	"MD",
	"NDHWC",
	"UNKNOWN",
	"FRACTAL_NZ",
	"NCDHW",
	"DHWCN",
	"NDC1HWC0",
	"FRACTAL_Z_3D",
	"CN",
	"NC",
	"DHWNC",
	"FRACTAL_Z_3D_TRANSPOSE",
	"FRACTAL_ZN_LSTM",
	"FRACTAL_Z_G",
	"UNDEFINED",
	"ALL",
	"NULL",
	"ND_RNN_BIAS",
	"FRACTAL_ZN_RNN",
	"NYUV",
	"NYUV_A",
	"NCL",
	"FRACTAL_Z_WINO",
	"C1HWC0",
	"FRACTAL_NZ_C0_16",
	"FRACTAL_NZ_C0_32",
	"FRACTAL_NZ_C0_2",
	"FRACTAL_NZ_C0_4",
	"FRACTAL_NZ_C0_8",
};

const char *nps_ge_type(uint32_t type)
{
	return type < NPS_ARRAY_SIZE(types) ? types[type] : NULL;
}

/* The low byte is the format, the rest describes how it is cut. */
const char *nps_ge_format(uint32_t format)
{
	format &= 0xff;
	return format < NPS_ARRAY_SIZE(formats) ? formats[format] : NULL;
}

void nps_tensors__init(struct nps_tensors *tensors, struct nps_strings *strings, int dirfd)
{
	*tensors = (struct nps_tensors){ .strings = strings };
	nps_vec__init(&tensors->lists, dirfd, sizeof(struct tensor_list));
	nps_vec__init(&tensors->bytes, dirfd, 1);
}

void nps_tensors__free(struct nps_tensors *tensors)
{
	nps_vec__free(&tensors->lists);
	nps_vec__free(&tensors->bytes);
	nps_map__free(&tensors->by_hash);
}

static uint64_t tensors_hash(const uint8_t *data, size_t len)
{
	uint64_t hash = len, word;

	for (; len >= sizeof(word); data += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		hash = nps_hash2(hash, word);
	}
	if (len) {
		word = 0;
		memcpy(&word, data, len);
		hash = nps_hash2(hash, word);
	}
	return hash;
}

uint32_t nps_tensors__add(struct nps_tensors *tensors, const uint8_t *data, uint32_t n)
{
	size_t len = (size_t)n * NPS_TENSOR_BYTES;
	uint64_t hash = tensors_hash(data, len), at = tensors->bytes.len;
	struct tensor_list *list;
	uint32_t i;

	if (!(++tensors->steps & 0xffff))
		nps_vec__cool(&tensors->bytes);
	/* Another list with the same hash takes the next free hash value. */
	while ((i = nps_map__get(&tensors->by_hash, hash)) != NPS_NONE) {
		list = &NPS_AT(&tensors->lists, struct tensor_list, i);
		if (list->n == n && !memcmp((uint8_t *)tensors->bytes.data + list->at, data, len))
			return i;
		hash++;
	}
	i = tensors->lists.len;
	if (i == NPS_NONE || nps_vec__resize(&tensors->bytes, at + len + 1))
		return NPS_NONE;
	memcpy((uint8_t *)tensors->bytes.data + at, data, len);
	list = nps_vec__push(&tensors->lists);
	if (!list || nps_map__put(&tensors->by_hash, hash, i))
		return NPS_NONE;
	*list = (struct tensor_list){ .at = at, .n = n };
	return i;
}

uint32_t nps_tensors__join(struct nps_tensors *tensors, uint32_t first, uint32_t second)
{
	uint8_t both[MOST * NPS_TENSOR_BYTES];
	const struct tensor_list *a = &NPS_AT(&tensors->lists, struct tensor_list, first);
	const struct tensor_list *b = &NPS_AT(&tensors->lists, struct tensor_list, second);
	uint32_t n = NPS_MIN(b->n, MOST - NPS_MIN(a->n, (uint32_t)MOST)), all = NPS_MIN(a->n, (uint32_t)MOST);

	tensors->dropped += b->n - n;
	memcpy(both, (uint8_t *)tensors->bytes.data + a->at, (size_t)all * NPS_TENSOR_BYTES);
	memcpy(both + (size_t)all * NPS_TENSOR_BYTES, (uint8_t *)tensors->bytes.data + b->at,
	       (size_t)n * NPS_TENSOR_BYTES);
	return nps_tensors__add(tensors, both, all + n);
}

struct tensor_text {
	char *text;
	size_t len;
	bool any;
};

static void tensor_text_append(struct tensor_text *text, const char *part)
{
	size_t len = strlen(part);

	memcpy(text->text + text->len, part, len + 1);
	text->len += len;
}

static void append_name(struct tensor_text *text, const char *name, uint32_t number)
{
	char digits[16];

	snprintf(digits, sizeof(digits), "%u", number);
	tensor_text_append(text, name ? name : digits);
}

static void append_shape(struct tensor_text *text, const uint8_t *shape)
{
	char digits[16];

	for (int i = 0; i < 8 && nps_u32(shape + 4 * i); i++) {
		snprintf(digits, sizeof(digits), i ? ",%u" : "%u", nps_u32(shape + 4 * i));
		tensor_text_append(text, digits);
	}
}

static void append_all(struct nps_tensors *tensors, const struct tensor_list *list, uint32_t kind,
		       struct tensor_text *texts)
{
	const uint8_t *p = (const uint8_t *)tensors->bytes.data + list->at;

	for (uint32_t i = 0; i < list->n; i++, p += NPS_TENSOR_BYTES) {
		if ((nps_u32(p) != 0) != kind)
			continue;
		for (int t = 0; t < 3; t++) {
			if (texts[t].any)
				tensor_text_append(&texts[t], ";");
			texts[t].any = true;
		}
		append_name(&texts[0], nps_ge_format(nps_u32(p + 4)), nps_u32(p + 4));
		append_name(&texts[1], nps_ge_type(nps_u32(p + 8)), nps_u32(p + 8));
		append_shape(&texts[2], p + 12);
	}
}

/* Texts of the inputs (KIND 0) or the outputs. */
static int write_texts(struct nps_tensors *tensors, const struct tensor_list *list, uint32_t kind,
		       uint32_t *ids)
{
	size_t room = (size_t)list->n * TENSOR_TEXT + 1;
	char *all = malloc(3 * room);
	struct tensor_text texts[3] = { 0 };
	int err = 0;

	if (!all)
		return -ENOMEM;
	for (int t = 0; t < 3; t++)
		texts[t].text = all + t * room;
	append_all(tensors, list, kind, texts);
	for (int t = 0; t < 3 && !err; t++) {
		ids[t] = texts[t].any ? nps_fw_intern(tensors->strings, texts[t].text, texts[t].len)
				      : NPS_NONE;
		if (texts[t].any && ids[t] == NPS_NONE)
			err = -ENOMEM;
	}
	free(all);
	return err;
}

int nps_tensors__texts(struct nps_tensors *tensors, uint32_t i, struct nps_tensor_texts *texts)
{
	struct tensor_list *list = &NPS_AT(&tensors->lists, struct tensor_list, i);
	uint32_t in[3], out[3];
	int err;

	if (!list->named) {
		err = write_texts(tensors, list, 0, in);
		if (err)
			return err;
		err = write_texts(tensors, list, 1, out);
		if (err)
			return err;
		list->texts = (struct nps_tensor_texts){ in[0], in[1], in[2], out[0], out[1], out[2] };
		list->named = true;
	}
	*texts = list->texts;
	return 0;
}
