/* SPDX-License-Identifier: BSD-2-Clause */
/* `npuscope doctor --python PID`. */
#ifndef NPS_DOCTOR_PYTHON_H
#define NPS_DOCTOR_PYTHON_H

#include <stdio.h>
#include <sys/types.h>

/* Prints the Python of a process, and whether its stacks can be read: a line. 0, or the error. */
int nps_doctor_python__print(pid_t pid, FILE *out);

#endif
