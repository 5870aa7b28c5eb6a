/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose word on a device is taken of those whose own profiler reads its log. */
#include "sources/tasklog/task_source.c" /* NOLINT(bugprone-suspicious-include): its struct is its own */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "capture/job_processes.h"

static struct nps_capture capture;

static struct nps_process *add_process(pid_t pid, uid_t uid, bool foreign)
{
	struct nps_process *p = nps_process__new(pid);

	assert_non_null(p);
	p->uid = uid;
	p->foreign = foreign;
	nps_job_processes__add(&capture, p, NULL);
	return p;
}

/* Is there an entry of what process PID's profiler reads? */
static bool described(uint32_t pid)
{
	struct tapped one = { .pid = pid,
			      .device = 4,
			      .has_info = true,
			      .read = true,
			      .info = { .id = 4, .platform = 5, .chip = "910B3" } };
	const struct nps_task_source t = { .c = &capture, .tapped = &one, .n_tapped = 1 };
	cJSON *list = cJSON_CreateArray();
	bool found;

	nps_task_source__describe(&t, list);
	found = cJSON_GetArraySize(list);
	cJSON_Delete(list);
	return found;
}

static void profilers_describe_devices_of_their_user(void **state)
{
	struct nps_process *processes[] = { add_process(10, 1000, false), add_process(20, 2000, false),
					    add_process(30, 1000, true) };

	(void)state;
	assert_true(described(10)); /* nobody is known to submit to it */
	assert_false(described(40)); /* whose that is is not known */
	nps_device_facts__used(&capture.shared.facts, 10, 1000, 4, false);
	assert_true(described(10));
	assert_false(described(20));
	assert_false(described(30));
	nps_device_facts__used(&capture.shared.facts, 20, 2000, 4, false);
	assert_false(described(10));
	assert_false(described(20));
	for (size_t i = 0; i < sizeof(processes) / sizeof(*processes); i++)
		nps_process__free(processes[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profilers_describe_devices_of_their_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
