/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_FORMATS_H
#define NPS_FORMATS_H

/* What a result holds: any of these. */
#define NPS_FORMAT_TEXT 0x1U
#define NPS_FORMAT_DB 0x2U
#define NPS_FORMAT_PERFETTO 0x4U
#define NPS_FORMAT_FOLDED 0x8U

#endif
