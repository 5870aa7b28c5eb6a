/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Growable array of fixed-size rows. Small ones are plain memory; a large one lives in an
 * unlinked temporary file that is mapped, so that a session larger than memory is
 * page cache which the kernel can write back, not anonymous memory.
 */
#ifndef NPS_VEC_H
#define NPS_VEC_H

#include <stddef.h>

struct nps_vec {
	void *data;
	size_t len; /* rows in use */
	size_t elem; /* bytes of a row */
	size_t bytes; /* mapped */
	int fd; /* temporary file, -1 while small */
	int dirfd; /* directory for it; not owned */
};

/* An empty array of ELEM-byte rows whose file, if it needs one, goes to DIRFD. */
void nps_vec__init(struct nps_vec *vec, int dirfd, size_t elem);

/* Room for LEN rows in all. 0, -ENOSPC, -ENOMEM or the file system's error. */
int nps_vec__reserve(struct nps_vec *vec, size_t len);

/* Makes the array LEN rows long; new rows are zero. */
int nps_vec__resize(struct nps_vec *vec, size_t len);

/* A zeroed row at the end, valid until the array grows again; NULL with errno. */
void *nps_vec__push(struct nps_vec *vec);

/* Advises the kernel that the rows will not be needed soon: they leave the resident set. */
void nps_vec__cool(const struct nps_vec *vec);

/*
 * Makes the rows private to this process, as after fork(): what it changes or appends is not in the file
 * that other processes have mapped. 0 or negative errno.
 */
int nps_vec__own(struct nps_vec *vec);

void nps_vec__free(struct nps_vec *vec);

/* An unlinked file in DIRFD for reading and writing; the caller closes it. Negative errno on failure. */
int nps_temp_file(int dirfd);

#define NPS_AT(vec, type, i) (((type *)(vec)->data)[i])

#endif
