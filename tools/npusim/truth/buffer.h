/* SPDX-License-Identifier: BSD-2-Clause */
/* Per-thread text buffers of the truth file and the thread that writes them out. */
#ifndef NPUSIM_TRUTH_BUFFER_H
#define NPUSIM_TRUTH_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#define LINE_MAX_BYTES 8192

/* Opens the file and starts the writer; false if there is no truth to write. */
bool buffer_start(void);
bool buffer_running(void);

/* Room for one line in this thread's buffer, held until line_close(). NULL when the file is closed. */
char *line_open(const char *kind);
void line_close(char *end);
/* Writes this thread's lines now. */
void buffer_flush(void);

/* Each appends a tab and a field. */
char *put_str(char *p, const char *s);
char *put_u64(char *p, uint64_t v);
char *put_i64(char *p, int64_t v);
char *put_hex(char *p, uint64_t v);

#endif
