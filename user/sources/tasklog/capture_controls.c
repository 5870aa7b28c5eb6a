/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/tasklog/capture_controls.h"

#include <errno.h>

#include "capture/channel_files.h"

static void know_infos(struct nps_question *q, void *ctx)
{
	const struct nps_device_infos *i = (const struct nps_device_infos *)q;
	struct nps_capture *c = ctx;

	for (struct nps_process *p = c->processes; p; p = p->next)
		for (uint32_t d = 0; p->files && !nps_process__foreign(p) && d < NPS_DEVICE_MAX; d++)
			if ((nps_channel_files__devices(p->files) & i->known) >> d & 1)
				nps_channel_files__know(p->files, &i->info[d]);
}

void nps_controls__query(struct nps_capture *c)
{
	uint64_t devices = 0;
	struct nps_device_infos *infos;
	pid_t pid = 0;

	for (const struct nps_process *p = c->processes; p; p = p->next) {
		if (!p->files || nps_process__foreign(p) || !nps_channel_files__dir(p->files))
			continue;
		devices |= nps_channel_files__devices(p->files);
		pid = p->pid;
	}
	infos = devices ? nps_device_infos__new(pid, devices, know_infos, c) : NULL;
	if (infos)
		nps_driver_query__post(c->shared.query, &infos->q);
}

void nps_controls__write(struct nps_capture *c)
{
	for (struct nps_process *p = c->processes; p; p = p->next) {
		int err = p->files ? nps_channel_files__write_control(p->files, p->comm, p->rank,
								      c->opts->level, &c->end)
				   : 0;

		nps_channel_files__finish(p->files);
		if (err == -ENOMEM) /* other write errors are recorded in the session */
			nps_session_writer__failed(&c->session, nps_channel_files__dir(p->files), err);
	}
}
