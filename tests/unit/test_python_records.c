/* SPDX-License-Identifier: BSD-2-Clause */
/* python.nps has a limit: what is beyond it is counted, and the file stays whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/python_records.h"

#define MOST (1U << 20)
#define FEW 100
#define MANY 20000 /* code objects, of more than 1 KiB each */

static void add_code(struct nps_python_records *r, uint64_t code)
{
	static struct nps_py_code c = { .kind = NPS_PY_CODE, .version = 0x030b, .n_lines = NPS_PY_LINES };

	c.code = code;
	c.lines_length = NPS_PY_LINES;
	assert_true(nps_python_records__is(&c, sizeof(c)));
	nps_python_records__add(r, &c, sizeof(c));
}

static void add_stack(struct nps_python_records *r, uint64_t id)
{
	struct nps_py_stack s = { .kind = NPS_PY_STACK, .n = 1, .id = id };
	size_t size = NPS_PY_STACK_HEAD + sizeof(s.frames[0]);

	assert_true(nps_python_records__is(&s, size));
	nps_python_records__add(r, &s, size);
}

/* Records of a kind in the file, whose chunks have to be whole. */
static size_t count_records(int fd, uint16_t type, uint64_t *bytes)
{
	struct nps_chunk chunk;
	size_t n = 0;
	off_t at = 0;

	for (; pread(fd, &chunk, sizeof(chunk), at) == sizeof(chunk);
	     at += (off_t)sizeof(chunk) + chunk.len) {
		char *payload = malloc(chunk.len + 1);

		assert_non_null(payload);
		assert_int_equal(pread(fd, payload, chunk.len, at + (off_t)sizeof(chunk)), chunk.len);
		for (uint32_t i = 0; chunk.type == type && i < chunk.len; n++) {
			struct nps_py_code_record code;

			memcpy(&code, payload + i, sizeof(code.size));
			i += type == NPS_CHUNK_PY_CODES
				     ? code.size
				     : (uint32_t)(NPS_PY_STACK_HEAD + sizeof(struct nps_py_stack_frame));
		}
		free(payload);
	}
	*bytes = (uint64_t)at;
	return n;
}

static void expect_limit(unsigned int codes, bool full)
{
	char path[] = "/tmp/nps-python-records-XXXXXX";
	struct nps_stream stream = { .fd = mkstemp(path) };
	struct nps_python_records *r = nps_python_records__new(&stream, MOST);
	uint64_t bytes, left_out;
	size_t n;

	assert_non_null(r);
	assert_true(stream.fd >= 0 && !unlink(path));
	for (unsigned int i = 0; i < codes; i++) {
		add_code(r, i);
		add_stack(r, i + 1);
	}
	left_out = nps_python_records__left_out(r);
	nps_python_records__flush(r);
	n = count_records(stream.fd, NPS_CHUNK_PY_CODES, &bytes) +
	    count_records(stream.fd, NPS_CHUNK_PY_STACKS, &bytes);
	assert_int_equal(n + left_out, 2 * codes);
	assert_int_equal(left_out > 0, full);
	assert_true(bytes <= MOST + 4096); /* headers of chunks are beside the limit */
	assert_true(!full || bytes > MOST / 2);
	nps_python_records__free(r);
	close(stream.fd);
}

static void test_limit(void **state)
{
	(void)state;
	expect_limit(FEW, false);
	expect_limit(MANY, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_limit) };

	assert_int_equal(nps_python_records__left_out(NULL), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
