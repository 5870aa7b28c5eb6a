/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/session_end.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/log.h"

const char *nps_session_end__advice(int err)
{
	switch (-err) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return "free space, or choose another directory with -o";
	case EIO:
		return "check the disk (dmesg), or choose another directory with -o";
	case ENOMEM:
		return "free memory";
	default:
		return "choose another directory with -o, and leave what is in it alone";
	}
}

void nps_session_end__sync_stream(struct nps_session_writer *s, struct nps_stream *st, const char *name)
{
	int err = atomic_load(&st->error);
	struct stat at;

	if (st->fd < 0)
		return;
	if (!fstat(st->fd, &at) && !at.st_nlink) {
		s->deleted_name = s->deleted++ ? s->deleted_name : name;
		atomic_store(&st->error, err ? err : -ENOENT);
		return;
	}
	if (!err)
		err = nps_sync(st->fd);
	if (!err)
		return;
	atomic_store(&st->error, err);
	nps_session_writer__failed(s, name, err);
}

void nps_session_end__sync(struct nps_session_writer *s)
{
	nps_session_end__sync_stream(s, &s->events, "events.nps");
	nps_session_end__sync_stream(s, &s->strings, "strings.nps");
	nps_session_end__sync_stream(s, &s->clocks, "clocks.nps");
	nps_session_end__sync_stream(s, &s->host, "host.nps");
	nps_session_end__sync_stream(s, &s->python, "python.nps");
	nps_session_end__sync_stream(s, &s->device, "device.nps");
}

/* -errno if the directory was deleted. */
static int check_directory(struct nps_session_writer *s, struct nps_session_end *e)
{
	char before[PATH_MAX];

	snprintf(before, sizeof(before), "%s", s->path);
	switch (nps_session_writer__locate(s)) {
	case NPS_SESSION_THERE:
		return 0;
	case NPS_SESSION_MOVED:
		nps_warn("the session directory was renamed during the capture: it is %s now: use that path",
			 s->path);
		return 0;
	case NPS_SESSION_UNREACHABLE:
		nps_warn("the session directory was moved during the capture: where it is now is not known: "
			 "find it (it was %s) and run npuscope analyze on it",
			 before);
		e->unreachable = e->lost = true;
		return 0;
	case NPS_SESSION_DELETED:
		break;
	}
	nps_warn("the session directory was deleted during the capture: nothing of %s is left: record again, "
		 "and leave it alone until npuscope has ended",
		 before);
	return -ENOENT;
}

/* -errno if the events were deleted. */
static int check_deleted(const struct nps_session_writer *s, struct nps_session_end *e)
{
	if (!s->deleted)
		return 0;
	e->lost = true;
	if (nps_session_writer__is_deleted(s)) {
		nps_warn("events.nps was deleted during the capture: nothing of %s can be used: record "
			 "again, and "
			 "leave the session alone until npuscope has ended",
			 s->path);
		return -ENOENT;
	}
	nps_warn("%s of the session was deleted during the capture: what it held is missing: leave the "
		 "session alone "
		 "until npuscope has ended",
		 s->deleted_name);
	return 0;
}

static void report_files(struct nps_session_writer *s, struct nps_session_end *e)
{
	unsigned int n = atomic_load(&s->failures);

	if (!n)
		return;
	e->lost = true;
	if (e->reported && n == 1 && s->failed_error == nps_session_writer__error(s))
		return;
	nps_warn("%u %s to the session failed, the first of %s: %s: what was to be written is missing: %s", n,
		 n == 1 ? "write" : "writes", s->failed_path, strerror(-s->failed_error),
		 nps_session_end__advice(s->failed_error));
}

static int report_json(const struct nps_session_writer *s, struct nps_session_end *e)
{
	if (!e->json_error)
		return 0;
	e->lost = true;
	if (!e->described) {
		nps_warn(
			"cannot write %s/session.json: %s: without it nothing of the session can be used: %s",
			s->path, strerror(-e->json_error), nps_session_end__advice(e->json_error));
		return e->json_error;
	}
	nps_warn("cannot write %s/session.json: %s: it is as it was during the capture, without counts of "
		 "what was lost, and what came after is used up to the last event: %s",
		 s->path, strerror(-e->json_error), nps_session_end__advice(e->json_error));
	return 0;
}

int nps_session_end__check(struct nps_session_writer *s, struct nps_session_end *e)
{
	int err = check_directory(s, e);

	if (err)
		return err;
	err = check_deleted(s, e);
	if (err)
		return err;
	report_files(s, e);
	return report_json(s, e);
}
