/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/driver/trace_format.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char *const nps_trace_system[NPS_TRACE_SYSTEMS] = {
	[NPS_TRACE_CHAN] = "trs_chan", [NPS_TRACE_CORE] = "trs_core"
};
const char *const nps_trace_event[NPS_TRACE_SYSTEMS] = {
	[NPS_TRACE_CHAN] = "sqe", [NPS_TRACE_CORE] = "logic_cqe"
};

#define RECORD_MAX 4096 /* bytes: no tracepoint has longer records */

static const struct {
	size_t at; /* offset in the layout */
	const char *name[NPS_TRACE_SYSTEMS]; /* NULL: it has none */
	bool optional;
} fields[] = {
	{ offsetof(struct nps_trace_layout, device), { "devid", "devid" }, false },
	{ offsetof(struct nps_trace_layout, tsid), { "tsid", "tsid" }, false },
	{ offsetof(struct nps_trace_layout, queue), { "sqid", "logic_cqid" }, false },
	{ offsetof(struct nps_trace_layout, type), { "type", NULL }, false },
	{ offsetof(struct nps_trace_layout, task), { "task_id", "task_id" }, false },
	{ offsetof(struct nps_trace_layout, stream), { "stream_id", "stream_id" }, false },
	{ offsetof(struct nps_trace_layout, error), { NULL, "errcode" }, true },
	{ offsetof(struct nps_trace_layout, error_type), { NULL, "errtype" }, true },
	{ offsetof(struct nps_trace_layout, dropped), { NULL, "drop_flag" }, true },
};
#define FIELDS (sizeof(fields) / sizeof(*fields))

/* "field:u32 devid; offset:24; size:4; signed:0;" */
static bool format_parse_line(char *line, const char **name, uint32_t *offset)
{
	char *text = strstr(line, "field:"), *end = text ? strchr(text, ';') : NULL, *last;
	unsigned int size;

	if (!end || sscanf(end, "; offset:%u; size:%u;", offset, &size) != 2 || size != sizeof(uint32_t) ||
	    *offset > RECORD_MAX)
		return false;
	*end = '\0';
	last = strrchr(text, ' ');
	*name = last ? last + 1 : "";
	return true;
}

bool nps_trace_format__parse(FILE *format, enum nps_trace_system system, struct nps_trace_layout *layout)
{
	unsigned int missing = (1U << FIELDS) - 1;
	char *line = NULL;
	size_t room = 0;

	memset(layout, 0, sizeof(*layout));
	while (getline(&line, &room, format) > 0) {
		uint32_t offset;
		const char *name;

		if (!format_parse_line(line, &name, &offset))
			continue;
		for (unsigned int i = 0; i < FIELDS; i++)
			if (fields[i].name[system] && !strcmp(fields[i].name[system], name)) {
				memcpy((char *)layout + fields[i].at, &offset, sizeof(offset));
				missing &= ~(1U << i);
			}
	}
	free(line);
	for (unsigned int i = 0; i < FIELDS; i++)
		if (!fields[i].name[system] || fields[i].optional)
			missing &= ~(1U << i);
	return !missing;
}

bool nps_trace_format__read(enum nps_trace_system system, struct nps_trace_layout *layout)
{
	static const char *const paths[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	bool found = false;

	for (size_t i = 0; i < 2 && !found; i++) {
		char path[96];
		FILE *f;

		snprintf(path, sizeof(path), "%s/events/%s/%s/format", paths[i], nps_trace_system[system],
			 nps_trace_event[system]);
		f = fopen(path, "re");
		found = f && nps_trace_format__parse(f, system, layout);
		if (f)
			fclose(f);
	}
	return found;
}
