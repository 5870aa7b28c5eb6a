/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	if (argc == 2 && (!strcmp(argv[1], "launch") || !strcmp(argv[1], "launch-sealed")))
		return worker_launch(argv);
	if (argc >= 2 && !strcmp(argv[1], "serve"))
		return worker_serve(argv + 2);
	fprintf(stderr, "npuscope-device-worker: npuscope record starts it: see npuscope record --help\n");
	return 2;
}
