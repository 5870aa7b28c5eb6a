/* SPDX-License-Identifier: BSD-2-Clause */
/* Subcommands: each gets its own argv (argv[0] is its name) and returns the exit status. */
#ifndef NPS_CMD_H
#define NPS_CMD_H

/* 0 done; 1 failed, nothing usable written; 2 wrong usage; 3 done, but something was lost or unavailable. */
enum nps_status { NPS_OK = 0, NPS_FAILED = 1, NPS_USAGE = 2, NPS_PARTIAL = 3 };

int nps_cmd_record(int argc, char **argv);
int nps_cmd_doctor(int argc, char **argv);
int nps_cmd_analyze(int argc, char **argv); /* analyzer/ */

#endif
