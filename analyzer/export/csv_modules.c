/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/csv_modules.h"

#include "import/ascend_db/spec.h"

#define AMP 74

const char *nps_module_name(uint32_t module, enum nps_generation generation)
{
	if (module == AMP)
		return "AML"; /* so the vendor's table spells what is AMP in the databases */
	return nps_db_enum_name("ENUM_MODULE", module, generation == NPS_GENERATION_B ? NPS_DB_B : NPS_DB_A);
}
