/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/python/python_memory.h"

#include <string.h>
#include <sys/uio.h>

#define INTERPRETERS 64
#define THREADS 16384
#define CHARACTERS 65536
#define CHECKED 128 /* reads between two checks of the budget: some 100 us */
#define BLOCK 1024 /* bytes of text read at once */

bool nps_py_memory__read(struct nps_py_memory *m, uint64_t address, void *buf, size_t len)
{
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)address, len };

	if (m->reads % CHECKED == 0 && nps_budget__spent(m->budget))
		m->reads = 0;
	if (!m->reads || !address)
		return false;
	m->reads--;
	return process_vm_readv(m->pid, &to, 1, &from, 1, 0) == (ssize_t)len;
}

uint64_t nps_py_memory__pointer(struct nps_py_memory *m, uint64_t address)
{
	uint64_t value;

	return nps_py_memory__read(m, address, &value, sizeof(value)) ? value : 0;
}

/* How a str is stored. */
struct text {
	uint64_t data; /* address */
	size_t length; /* characters */
	size_t width; /* bytes of each */
};

static bool find_text(struct nps_py_memory *m, const struct nps_py_layout *l, uint64_t address,
		      struct text *t)
{
	uint32_t state;
	uint64_t length;

	if (!nps_py_memory__read(m, address + l->text_state, &state, sizeof(state)) ||
	    !nps_py_memory__read(m, address + l->text_length, &length, sizeof(length)))
		return false;
	/* interned: 2 bits, kind: 3, compact: 1, ascii: 1 */
	t->width = (state >> 2) & 7;
	t->length = length;
	if ((t->width != 1 && t->width != 2 && t->width != 4) || !(state & (1 << 5)) || length > CHARACTERS)
		return false;
	t->data = address + (state & (1 << 6) ? l->text_ascii : l->text_compact);
	return true;
}

/* Appends a character. Returns the number of bytes, 0: no room. */
static size_t put_utf8(char *to, size_t room, uint32_t c)
{
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	if (c < 0x80 && room > 1) {
		to[0] = (char)c;
		return 1;
	}
	if (c >= 0x80 && c < 0x800 && room > 2) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c >= 0x800 && c < 0x10000 && room > 3) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	if (c >= 0x10000 && room > 4) {
		to[0] = (char)(0xf0 | c >> 18);
		to[1] = (char)(0x80 | (c >> 12 & 0x3f));
		to[2] = (char)(0x80 | (c >> 6 & 0x3f));
		to[3] = (char)(0x80 | (c & 0x3f));
		return 4;
	}
	return 0;
}

bool nps_py_memory__text(struct nps_py_memory *m, const struct nps_py_layout *layout, uint64_t address,
			 char *buf, size_t size)
{
	uint8_t block[BLOCK];
	struct text t;
	size_t done = 0;

	if (!find_text(m, layout, address, &t))
		return false;
	for (size_t at = 0; at < t.length * t.width && done + 1 < size; at += BLOCK) {
		size_t n = t.length * t.width - at < BLOCK ? t.length * t.width - at : BLOCK;

		if (!nps_py_memory__read(m, t.data + at, block, n))
			return false;
		for (size_t i = 0; i < n; i += t.width) {
			uint32_t c = 0;
			size_t put;

			memcpy(&c, block + i, t.width);
			put = put_utf8(buf + done, size - done, c);
			done += put;
			if (!put) {
				buf[done] = '\0';
				return true;
			}
		}
	}
	buf[done] = '\0';
	return true;
}

static bool read_thread(struct nps_py_memory *m, const struct nps_py_layout *l, struct nps_py_thread *t)
{
	t->native_id = 0;
	if (!nps_py_memory__read(m, t->state + l->thread_id, &t->id, sizeof(t->id)))
		return false;
	return l->thread_native_id == NPS_PY_NONE ||
	       nps_py_memory__read(m, t->state + l->thread_native_id, &t->native_id, sizeof(t->native_id));
}

int nps_python__each_thread(struct nps_py_memory *m, const struct nps_py_process *process,
			    int (*each)(const struct nps_py_thread *thread, void *arg), void *arg)
{
	const struct nps_py_layout *l = &process->layout;
	uint64_t interpreter = nps_py_memory__pointer(m, process->runtime + l->runtime_interpreters);
	unsigned int threads = 0;

	for (int i = 0; interpreter && i < INTERPRETERS; i++) {
		struct nps_py_thread t = { .state = nps_py_memory__pointer(
						   m, interpreter + l->interpreter_threads) };

		for (; t.state && threads < THREADS; threads++) {
			int err = read_thread(m, l, &t) ? each(&t, arg) : 0;

			if (err)
				return err;
			t.state = nps_py_memory__pointer(m, t.state + l->thread_next);
		}
		interpreter = nps_py_memory__pointer(m, interpreter + l->interpreter_next);
	}
	return 0;
}
