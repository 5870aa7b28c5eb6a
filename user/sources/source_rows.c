/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/source_rows.h"

#define ROW(name) &nps_source_##name,
const struct nps_source_ops *const nps_source_rows[] = { NPS_SOURCE_ROWS(ROW) NULL };
#undef ROW

#define ONE(name) +1
_Static_assert(NPS_SOURCE_ROWS(ONE) <= NPS_SOURCES_MAX, "more rows than struct nps_capture has room for");
#undef ONE
