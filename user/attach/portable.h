/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapts a BPF object to what this kernel can load, by the capability table. */
#ifndef NPS_PORTABLE_H
#define NPS_PORTABLE_H

#include "attach/capability.h"

struct bpf_object;

/*
 * Call between opening and loading OBJ. Sets its constants has_task_storage and has_cookies, if it has
 * them; on kernels without task storage, maps of that type become hashes by thread id. 0 or -errno.
 */
int nps_portable__prepare(struct bpf_object *obj, const struct nps_capability *cap);

#endif
