/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor_python.h"

#include <errno.h>
#include <string.h>

#include "attach/python/python_find.h"
#include "core/log.h"

int nps_doctor_python__print(pid_t pid, FILE *out)
{
	struct nps_py_process python;
	const char *why;
	int err = nps_python__find(pid, NULL, &python, &why);

	if (err == -ENOENT)
		why = "it maps no file that exports _PyRuntime";
	if (err && why)
		fprintf(out, "process %d: no Python stacks: %s\n", pid, why);
	else if (err)
		nps_warn("process %d: no Python stacks: %s", pid, strerror(-err));
	else
		fprintf(out, "process %d: Python %d.%d: stacks can be read, threads are found by %s\n", pid,
			python.layout.version >> 8, python.layout.version & 0xff,
			python.tls_offset == NPS_PY_NO_TLS ? "their native ids"
							   : "the interpreter's pthread key");
	return err;
}
