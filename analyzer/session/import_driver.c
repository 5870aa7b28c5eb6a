/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/import_driver.h"

#include "session/driver_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int nps_driver__keep(struct nps_proc *proc, const struct nps_event *ev)
{
	struct nps_driver_event *kept = nps_vec__push(&proc->drivers);

	if (!kept)
		return -errno;
	*kept = (struct nps_driver_event){ .start = ev->start,
					   .dur = ev->dur,
					   .tid = ev->tid,
					   .ret = ev->ret,
					   .probe = ev->probe,
					   .kind = ev->kind };
	memcpy(kept->args, ev->args, sizeof(kept->args));
	return 0;
}

struct fill {
	struct nps_model *m;
	const struct nps_recording *rec;
	const struct nps_proc *proc;
	int err;
};

static uint32_t text(struct fill *f, const char *s)
{
	uint32_t id = nps_strings__addz(f->m->strings, s);

	if (id == NPS_NONE && !f->err)
		f->err = -ENOMEM;
	return id;
}

static void add_call(struct fill *f, const struct nps_driver_event *ev)
{
	char part[NPS_DRIVER_NAME_MAX], node[NPS_DRIVER_NAME_MAX], name[2 * NPS_DRIVER_NAME_MAX];
	uint16_t device = ev->args[2] >> 48;
	uint8_t kind = ev->args[2] >> 32;
	uint32_t command = ev->args[1];
	struct nps_driver_table *t = &f->m->driver;
	size_t row;

	nps_driver_part_name(ev->args[0], part);
	nps_driver_node_name(kind, device, node);
	nps_driver_call_name(ev->probe, command, kind, part, node, name, sizeof(name));
	f->err = nps_table__add(&t->t, &row);
	if (f->err)
		return;
	t->name[row] = text(f, name);
	t->gtid[row] = (uint64_t)f->proc->pid << 32 | ev->tid;
	t->start[row] = nps_recording__real(f->rec, ev->start);
	t->end[row] = nps_recording__real(f->rec, ev->start + ev->dur);
	t->node[row] = text(f, node);
	t->part[row] = *part ? text(f, part) : NPS_NONE;
	t->command[row] = command;
	t->device[row] = device == NPS_DRIVER_NO_DEVICE ? NPS_NULL : device;
	t->bytes[row] = ev->args[3] > INT64_MAX ? NPS_NULL : (int64_t)ev->args[3];
	t->result[row] = ev->ret;
}

int nps_driver__fill(struct nps_model *model, const struct nps_recording *rec, const struct nps_proc *proc)
{
	struct fill f = { .m = model, .rec = rec, .proc = proc };

	for (size_t i = 0; !f.err && i < proc->drivers.len; i++) {
		const struct nps_driver_event *ev = &NPS_AT(&proc->drivers, struct nps_driver_event, i);

		if (ev->kind == NPS_EV_DRIVER)
			add_call(&f, ev);
	}
	return f.err;
}
