/* SPDX-License-Identifier: BSD-2-Clause */
/* A capture of CANN's with nothing but its control files, to which tests add auxiliary files. */
#ifndef CANN_AUX_CAPTURE_H
#define CANN_AUX_CAPTURE_H

#include "import/cann/aux_files.h"

#include <stddef.h>
#include <stdint.h>

#define CANN_AUX_UNIX 1736408883000000000ULL /* ns; when the collection began */
#define CANN_AUX_RAW 5000000000ULL /* raw ns of the host then, and when the devices were synchronised */
#define CANN_AUX_TICKS 700000ULL /* of the host and the device then; 100 and 50 MHz */
#define CANN_AUX_DEVICES 2

struct cann_aux_capture {
	char dir[64];
	int prof, tmpfd;
	struct nps_model m;
	struct nps_cann_dir host, devices[CANN_AUX_DEVICES];
};

/* Of each test, whose state is the capture. The second one: of version 2.0 of the format. */
int cann_aux_setup(void **state);
int cann_aux_setup_second(void **state);
int cann_aux_teardown(void **state);

/* Appends LEN bytes to the file `data/NAME[.DEVICE].slice_0` of a device, or of NPS_CANN_HOST. */
void cann_aux_data(struct cann_aux_capture *f, unsigned int device, const char *name, const void *bytes,
		   size_t len);

/* As cann_aux_data(), of a text. */
void cann_aux_text(struct cann_aux_capture *f, unsigned int device, const char *name, const char *lines);

/* Imports all of it into the model. */
void cann_aux_import(struct cann_aux_capture *f);

/*
 * Imports the auxiliary files of the host and of N devices, which have these NUMBERS, below PROF. 0 or a
 * negative errno.
 */
int cann_aux_import_dirs(struct nps_model *m, struct nps_cann_dir *host, struct nps_cann_dir *devices,
			 const unsigned int *numbers, size_t n, int prof);

/* How much of what WHAT begins with was lost. */
uint64_t cann_aux_lost(const struct cann_aux_capture *f, const char *what);

/* The text with that number. */
const char *cann_aux_name(const struct cann_aux_capture *f, uint32_t id);

#endif
