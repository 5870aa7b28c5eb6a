/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/breaks.h"

#include "base/util.h"
#include "import/cann/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (16UL << 20) /* of the file */
#define MOST_LOST (1ULL << 50) /* bytes, of one line: more is nonsense */

static int break_add(struct nps_breaks *breaks, uint64_t offset)
{
	if (!(breaks->n & (breaks->n - 1))) {
		uint64_t *more = realloc(breaks->offsets, (breaks->n ? 2 * breaks->n : 1) * sizeof(*more));

		if (!more)
			return -ENOMEM;
		breaks->offsets = more;
	}
	breaks->offsets[breaks->n++] = offset;
	return 0;
}

/*
 * Parses " 123" at TEXT; returns its end, NULL if it is no number. Not sscanf(): that measures the whole
 * text behind the line.
 */
static const char *number_parse(const char *text, uint64_t *value)
{
	char *end;

	if (!text || text[0] != ' ' || text[1] < '0' || text[1] > '9')
		return NULL;
	errno = 0;
	*value = strtoull(text + 1, &end, 10);
	return errno ? NULL : end;
}

int nps_breaks__read(struct nps_breaks *breaks, int dirfd, const char *base)
{
	char *text = dirfd < 0 ? NULL : nps_cann_read_file(dirfd, "npuscope.breaks", MOST_BYTES);
	size_t len = strlen(base);
	uint64_t offset, lost, last = 0;
	int err = 0;

	*breaks = (struct nps_breaks){ 0 };
	for (const char *line = text; line && *line && !err;) {
		const char *end = strchr(line, '\n');

		if (!strncmp(line, base, len) && line[len] == ' ' &&
		    number_parse(number_parse(line + len, &offset), &lost) && offset >= last &&
		    lost < MOST_LOST) {
			breaks->lost = nps_add_sat(breaks->lost, lost);
			last = offset;
			err = break_add(breaks, offset);
		}
		line = end ? end + 1 : NULL;
	}
	free(text);
	return err;
}

void nps_breaks__free(struct nps_breaks *breaks)
{
	free(breaks->offsets);
	*breaks = (struct nps_breaks){ 0 };
}
