/* SPDX-License-Identifier: BSD-2-Clause */
/* What is reported of a kernel, from what was tested. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/capability.h"

static const struct nps_capability whole = { .bpf = true,
					     .btf = true,
					     .ringbuf = true,
					     .task_storage = true,
					     .raw_tracepoint = true,
					     .cookie = true,
					     .fentry = true,
					     .uprobe = NPS_UPROBE_SESSION };

static void has_row(const struct nps_capability *c, const char *row)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	nps_capability__print(c, out);
	fclose(out);
	if (!strstr(text, row))
		fail_msg("no row %s in\n%s", row, text);
	free(text);
}

/* The text of the line, which must be one. */
static void is_refused(const struct nps_capability *c, const char *words)
{
	char text[1024];
	FILE *output = tmpfile();
	int stderr_was = dup(STDERR_FILENO), err;
	size_t n;

	assert_non_null(output);
	assert_true(dup2(fileno(output), STDERR_FILENO) >= 0);
	err = nps_capability__check(c);
	dup2(stderr_was, STDERR_FILENO);
	close(stderr_was);
	rewind(output);
	n = fread(text, 1, sizeof(text) - 1, output);
	text[n] = '\0';
	fclose(output);
	assert_int_equal(err, -ENOTSUP);
	assert_non_null(strstr(text, words));
	assert_ptr_equal(strchr(text, '\n'), text + n - 1);
}

static void kernel_memory_is_judged_where_programs_load(void **state)
{
	struct nps_capability c = whole;

	(void)state;
	has_row(&c, "\n  kernel memory      yes  read by probes\n");
	c.locked_down = true;
	has_row(&c, "\n  kernel memory      no   locked down for confidentiality\n");
	c = (struct nps_capability){ .bpf_error = EPERM };
	has_row(&c, "\n  kernel memory      ?    not known");
	c = whole;
	c.raw_tracepoint = false;
	has_row(&c, "\n  kernel memory      ?    not known");
}

static void the_reason_is_the_first_that_is_missing(void **state)
{
	struct nps_capability c = whole;
	struct stat st;

	(void)state;
	if (stat("/proc/self/ns/pid", &st) || st.st_ino != 0xeffffffcU)
		skip(); /* another reason comes before these in a pid namespace of its own */
	assert_int_equal(nps_capability__check(&c), 0);
	c.locked_down = true;
	is_refused(&c, "locked down for confidentiality");
	c.uprobe = NPS_UPROBE_NONE;
	is_refused(&c, "locked down for confidentiality");
	c = whole;
	c.uprobe = NPS_UPROBE_NONE;
	is_refused(&c, "uprobes by perf events");
	c.raw_tracepoint = false;
	is_refused(&c, "raw tracepoints");
}

/* On the kernel that runs this: rights and the kernel's age come before what memory may be read. */
static void what_loads_nothing_is_not_locked_down(void **state)
{
	struct nps_capability c;

	(void)state;
	nps_capability__probe(&c);
	if (!c.raw_tracepoint)
		assert_false(c.locked_down);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_memory_is_judged_where_programs_load),
		cmocka_unit_test(the_reason_is_the_first_that_is_missing),
		cmocka_unit_test(what_loads_nothing_is_not_locked_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
