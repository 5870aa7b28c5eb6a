/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/record_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "core/log.h"
#include "event.h"

void nps_record_print__losses(const struct nps_capture *c)
{
	uint64_t dropped = nps_capture__dropped(c);

	if (dropped)
		nps_warn("%" PRIu64 " records were lost: see \"drops\" in %s/session.json: against those "
			 "a larger --ring-size avoids those under \"ring\"",
			 dropped, c->session.path);
}

static const struct nps_process *command_process(const struct nps_capture *c)
{
	const struct nps_process *p = c->child ? c->processes : NULL;

	while (p && p->pid != c->child)
		p = p->next;
	return p;
}

void nps_record_print__command(const struct nps_capture *c)
{
	const struct nps_process *p = command_process(c);

	if (!p || p->alive || p->exit_code == NPS_EXIT_UNKNOWN)
		return;
	if (WIFSIGNALED(p->exit_code))
		nps_warn("the command was killed by signal %d (%s)%s", WTERMSIG(p->exit_code),
			 strsignal(WTERMSIG(p->exit_code)), WCOREDUMP(p->exit_code) ? ", core dumped" : "");
	else if (WEXITSTATUS(p->exit_code))
		nps_warn("the command ended with status %d", WEXITSTATUS(p->exit_code));
}

void nps_record_print__capture(const struct nps_capture *c)
{
	struct nps_lost_counts n;

#define NAME(id, name, words) [id] = (words),
	static const char *const kinds[NPS_KIND_END] = { NPS_EVENT_KINDS(NAME)[NPS_KIND_STRING] = "strings" };
#undef NAME

	nps_sources__count(c, &n);
	fprintf(stderr, "\n%-16s %12s %12s\n", "source", "events", "dropped");
	for (int kind = 1; kind < NPS_KIND_END; kind++)
		if (n.events[kind] || n.lost[kind])
			fprintf(stderr, "%-16s %12" PRIu64 " %12" PRIu64 "\n", kinds[kind], n.events[kind],
				n.lost[kind]);
	nps_sources__print(c, stderr);
}
