/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes of a BPF object what this kernel can load: the capability table's rows as the objects know them. */
#ifndef NPS_PORTABLE_H
#define NPS_PORTABLE_H

#include "capability.h"

struct bpf_object;

/*
 * Between opening and loading OBJ. Sets those of its constants has_task_storage and has_cookies that it has; where
 * the kernel keeps nothing with a thread, maps of that type become hashes by thread number. -errno.
 */
int nps_portable__prepare(struct bpf_object *obj, const struct nps_capability *cap);

#endif
