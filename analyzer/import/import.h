/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries of the importers. Each importer fills the tables of an empty model from a directory or a
 * file. All input is untrusted: what cannot be read is counted with nps_model__lost(), and the rest is
 * imported. If nothing of a directory can be imported, the result is a negative errno, and the reason has
 * been printed with nps_msg().
 */
#ifndef NPS_IMPORTERS_H
#define NPS_IMPORTERS_H

#include "model/model.h"

/*
 * CANN's raw data: PATH is a PROF_* directory (prof-raw 1-4). Devices become rows of one model. Texts,
 * times and connection ids as CANN's own parser has them.
 */
int nps_import__cann(struct nps_model *model, const char *path);

/*
 * What the torch profiler adds: PATH is a ..._ascend_pt directory with FRAMEWORK/ (prof-raw 5). If the PROF_*
 * directory beside it was imported into MODEL before, operators are linked to its launches.
 */
int nps_import__torch(struct nps_model *model, const char *path);

/*
 * ascend_pytorch_profiler_*.db, ascend_mindspore_profiler_*.db or msprof_*.db (outputs 4), and the
 * analysis.db beside it. PATH is the file. It is opened for reading only and never changed.
 */
int nps_import__ascend_db(struct nps_model *model, const char *path);

/*
 * trace_view.json or msprof_*.json, plain or gzip (outputs 2): what a trace has for tables. PATH: the file.
 */
int nps_import__trace(struct nps_model *model, const char *path);

#endif
