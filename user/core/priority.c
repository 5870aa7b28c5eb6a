/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/priority.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "core/log.h"

#define HASTE (-10) /* nine times the weight of the default, 0 */

int nps_priority__raise(void)
{
	int before;

	errno = 0;
	before = getpriority(PRIO_PROCESS, 0);
	/* Another priority was set on purpose. Without CAP_SYS_NICE the start takes longer. */
	if (errno || before)
		return before;
	if (setpriority(PRIO_PROCESS, 0, HASTE))
		nps_debug("the priority stays as it is: %s", strerror(errno));
	return before;
}

void nps_priority__restore(int before)
{
	if (setpriority(PRIO_PROCESS, 0, before))
		nps_debug("the priority stays raised: %s", strerror(errno));
}
