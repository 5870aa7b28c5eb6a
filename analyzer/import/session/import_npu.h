/* SPDX-License-Identifier: BSD-2-Clause */
/* What was sampled of devices during a session, on the session's time line. */
#ifndef NPS_IMPORT_NPU_H
#define NPS_IMPORT_NPU_H

#include "import/session/session_model.h"
#include "model/model.h"

/*
 * Fills MODEL from the PROF_* directories of the device sampler and from device.nps: of the devices whose
 * bits are set in DEVICES. PID: whose memory is imported, 0: of every process. 0 or a negative errno.
 */
int nps_import__npu(struct nps_model *model, const struct nps_session *session, uint64_t devices,
		    uint32_t pid);

#endif
