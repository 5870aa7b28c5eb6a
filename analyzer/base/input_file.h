/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How every importer opens its input. A file that does not exist is no error. A file that exists and cannot
 * be read is reported by its path, with the reason, and counted: the result is without it, so the exit
 * status is 3.
 */
#ifndef NPS_INPUT_FILE_H
#define NPS_INPUT_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Opens NAME in DIRFD for reading if it is a regular file, or a symbolic link to one; ST (or NULL) is
 * filled. A FIFO or a device is never opened. A descriptor; -ENOENT if there is no such file; another
 * negative errno, also -ENOENT for a link that leads nowhere, is reported before.
 */
int nps_input_file__open(int dirfd, const char *name, struct stat *st);

/*
 * Opens for reading the regular file of an absolute PATH as a process sees it whose root directory is ROOT
 * ("/", "/proc/PID/root"): links, absolute ones too, are followed inside it, where the kernel can (5.6). A
 * FIFO or a device is never opened. A descriptor or a negative errno, -EINVAL if it is no regular file;
 * nothing is reported: it may be elsewhere.
 */
int nps_input_file__open_in(const char *root, const char *path);

/* The same of a LINK of /proc that leads to a file whatever became of its name, as /proc/PID/map_files/... */
int nps_input_file__open_link(const char *link);

/* The same for a directory. */
int nps_input_dir__open(int dirfd, const char *name);

/* Begins to list the directory DIRFD, which stays open. NULL has been reported; closedir() ends it. */
DIR *nps_input_dir__list(int dirfd);

/* The next entry of DIR, NULL after the last. An error is reported. */
struct dirent *nps_input_dir__next(DIR *dir);

/* True if NAME is in DIRFD, whatever it is. False if not, or after reporting that it cannot be determined. */
bool nps_input__exists(int dirfd, const char *name);

/*
 * What PATH, or what it is a link to, is, into ST. False if it is not there, or after reporting that it
 * cannot be determined.
 */
bool nps_input__stat(const char *path, struct stat *st);

/* Reports and counts that NAME in DIRFD cannot be read because of ERR, a negative errno. Each file once. */
void nps_input__unreadable(int dirfd, const char *name, int err);

/* The same for a file whose content is not what it should be. */
void nps_input__unusable(int dirfd, const char *name, const char *why);

/* The same for a file that is open. */
void nps_input__unreadable_fd(int fd, int err);

/*
 * Begins another input: files that cannot be read are counted from here on, also those that were counted
 * for other inputs. Files that were reported during the search for inputs are not reported again.
 */
void nps_input__begin(void);

/* How many were counted since the last call. */
uint64_t nps_input__drain_unreadable(void);

#endif
