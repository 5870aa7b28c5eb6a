/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/import_aicpu.h"

#include "base/input_file.h"
#include "import/cann/aux_files.h"
#include "import/session/session_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The session knows the clock from many reads, the control files from one instant and the nominal rate. */
static int aicpu_import_dir(struct nps_model *m, const struct nps_session *rec,
			    const struct nps_device_log *log, struct nps_cann_dir *dir)
{
	const struct nps_clock_host host = { .samples = rec->clocks.data,
					     .n = rec->clocks.len,
					     .offset = (int64_t)(rec->begin_real - rec->begin) };

	nps_cann_dir__clocks(dir, NULL);
	dir->has_begin = dir->has_end = false; /* the capture's bounds hold */
	if (!dir->device_hz)
		dir->device_hz = 1000 * rec->devices[log->device].freq_khz;
	dir->device_clock = (struct nps_cann_clock){ .known = true, .map = &log->clock, .host = host };
	return nps_cann_aux__aicpu(m, dir);
}

static int import_log(struct nps_model *m, const struct nps_session *rec, const struct nps_device_log *log,
		      int proffd)
{
	struct nps_cann_dir dir;
	char name[64];
	int err;

	snprintf(name, sizeof(name), "device_%u/data/aicpu.data.%u.slice_0", log->device, log->device);
	if (!nps_input__exists(proffd, name))
		return 0; /* most jobs have no such kernels */
	snprintf(name, sizeof(name), "device_%u", log->device);
	err = nps_cann_dir__open(&dir, m, proffd, name, log->device);
	if (err)
		return err == -ENOMEM ? err : 0; /* nor could the log be read, which was reported */
	err = aicpu_import_dir(m, rec, log, &dir);
	nps_cann_dir__close(&dir);
	return err;
}

int nps_import__aicpu(struct nps_model *model, const struct nps_session *rec, uint32_t proc)
{
	const char *name = nps_json_str(rec->procs[proc].json, "prof_dir", "");
	uint64_t start = model->start, end = model->end;
	int fd, err = 0;

	if (!*name || strchr(name, '/') || name[0] == '.')
		return 0;
	fd = nps_input_dir__open(rec->dirfd, name);
	if (fd < 0)
		return 0;
	for (size_t i = 0; !err && i < rec->logs.len; i++) {
		const struct nps_device_log *log = &NPS_AT(&rec->logs, struct nps_device_log, i);

		if (log->proc == proc && log->fitted)
			err = import_log(model, rec, log, fd);
	}
	close(fd);
	model->start = start; /* records from before and after the capture do not extend it */
	model->end = end;
	return err ? err
		   : nps_cann_aux__clip(model, nps_session__real(rec, rec->begin),
					nps_session__real(rec, rec->end));
}
