/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_GROUP_HASH_H
#define NPS_GROUP_HASH_H

#include <stdint.h>

/*
 * Hash of a communication group's name, as the vendor prints it: two polynomial hashes with the
 * primes 29 and 131, (h29 << 32) | h131 (outputs 0.3).
 */
uint64_t nps_group_hash(const char *name);

#endif
