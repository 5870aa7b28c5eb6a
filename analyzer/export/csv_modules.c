/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/csv_modules.h"

static const char *const modules[] = {
	"SLOG",	    "IDEDD",	 "IDEDH",      "HCCL",	     "FMK",	   "HIAIENGINE",  "DVPP",
	"RUNTIME",  "CCE",	 "HDC",	       "DRV",	     "MDCFUSION",  "MDCLOCATION", "MDCPERCEPTION",
	"MDCFSM",   "MDCCOMMON", "MDCMONITOR", "MDCBSWP",    "MDCDEFAULT", "MDCSC",	  "MDCPNC",
	"MLL",	    "DEVMM",	 "KERNEL",     "LIBMEDIA",   "CCECPU",	   "ASCENDDK",	  "ROS",
	"HCCP",	    "ROCE",	 "TEFUSION",   "PROFILING",  "DP",	   "APP",	  "TS",
	"TSDUMP",   "AICPU",	 "LP",	       "TDT",	     "FE",	   "MD",	  "MB",
	"ME",	    "IMU",	 "IMP",	       "GE",	     "MDCFUSA",	   "CAMERA",	  "ASCENDCL",
	"TEEOS",    "ISP",	 "SIS",	       "HSM",	     "DSS",	   "PROCMGR",	  "BBOX",
	"AIVECTOR", "TBE",	 "FV",	       "MDCMAP",     "TUNE",	   "HSS",	  "FFTS",
	"OP",	    "UDF",	 "HICAID",     "TSYNC",	     "AUDIO",	   "TPRT",	  "ASCENDCKERNEL",
	"ASYS",	    "ATRACE",	 "RTC",	       "SYSMONITOR", "AML",	   "ADETECT",	  "MBUFF",
	"CUSTOM",
};

const char *nps_module_name(uint32_t module, enum nps_generation generation)
{
	if (generation == NPS_GENERATION_B) {
		switch (module) {
		case 2:
			return "SCC";
		case 5:
			return "CCU";
		case 11:
			return "NET";
		}
	}
	return module < NPS_ARRAY_SIZE(modules) ? modules[module] : NULL;
}
