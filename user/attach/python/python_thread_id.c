/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/python/python_thread_id.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "attach/elf_file.h"

/*
 * glibc's struct pthread, 2.31 to 2.43: values of the first 32 keys are in the thread itself. The thread
 * pointer is the struct's beginning on x86-64 and its end on arm64, where its size differs from version to
 * version.
 */
#if defined(__aarch64__)
#define PTHREAD_TID 208
#define PTHREAD_VALUES 272 /* specific_1stblock */
#define TP_AT_END 1
#else
#define PTHREAD_TID 720
#define PTHREAD_VALUES 784
#define TP_AT_END 0
#endif
#define KEYS 32
#define VALUE_BYTES 16 /* of struct pthread_key_data: a sequence number, then the value */
#define PTHREAD_BYTES 65536 /* more than its size in any version */
#define GET_INSTRUCTIONS 24 /* of pthread_getspecific(): more than those for the first 32 keys */

uint64_t nps_python__native_id(struct nps_py_memory *m, const struct nps_py_thread *thread)
{
	uint32_t tid;

	if (thread->native_id)
		return thread->native_id;
	return nps_py_memory__read(m, thread->id + PTHREAD_TID, &tid, sizeof(tid)) ? tid : 0;
}

/* Masks and values of the instructions that matter, see the Arm architecture's A64 encodings. */
#define IS_MRS_TPIDR(i) (((i)&0xffffffe0) == 0xd53bd040) /* mrs x, tpidr_el0 */
#define IS_SUB(i) (((i)&0xffc00000) == 0xd1000000) /* sub x, x, #n */
#define IS_MOVN(i) (((i)&0xffe00000) == 0x92800000) /* mov x, #-n - 1 */
#define IS_ADD_KEY(i) (((i)&0xffc00000) == 0x11000000) /* add w, w, #n */
#define IS_LOAD_VALUE(i) (((i)&0xfffffc00) == 0xf9400400) /* ldr x, [x, #8] */
#define IMM12(i) ((int32_t)((i) >> 10 & 0xfff))
#define IMM16(i) ((int32_t)((i) >> 5 & 0xffff))

int32_t nps_python__arm64_values(const uint32_t *code, size_t n)
{
	int32_t from_pointer = 0, keys = 0; /* added to the key */
	bool pointer = false;

	for (size_t i = 0; i < n && !IS_LOAD_VALUE(code[i]); i++) {
		if (IS_MRS_TPIDR(code[i]))
			pointer = true;
		if ((IS_SUB(code[i]) || IS_MOVN(code[i])) && from_pointer)
			return 0;
		if (IS_SUB(code[i]))
			from_pointer = -IMM12(code[i]);
		if (IS_MOVN(code[i]))
			from_pointer = -IMM16(code[i]) - 1;
		if (IS_ADD_KEY(code[i]))
			keys = IMM12(code[i]);
		if (i + 1 == n)
			return 0;
	}
	return pointer && from_pointer + keys * VALUE_BYTES < 0 ? from_pointer + keys * VALUE_BYTES + 8 : 0;
}

/* What glibc has for debuggers, from 2.34 on; else what its code has. 0: not found. */
static uint32_t size_of_pthread(struct nps_elf *elf)
{
	struct nps_elf_object constant;
	struct nps_elf_function get;
	uint32_t code[GET_INSTRUCTIONS], size;
	int32_t values;
	int n;

	if (!nps_elf__find_object(elf, "_thread_db_sizeof_pthread", &constant))
		return nps_elf__data(elf, constant.vaddr, &size, sizeof(size)) == sizeof(size) ? size : 0;
	if (nps_elf__find(elf, "pthread_getspecific", false, &get))
		return 0;
	n = nps_elf__code(elf, get.offset, (uint8_t *)code, sizeof(code));
	values = n > 0 ? nps_python__arm64_values(code, (size_t)n / sizeof(*code)) : 0;
	return values ? (uint32_t)(PTHREAD_VALUES + 8 - values) : 0;
}

static uint32_t size_in_file(pid_t pid, const struct nps_mapping *m, struct nps_budget *budget)
{
	int fd = nps_mapping__open(pid, m, O_RDONLY);
	struct nps_elf *elf = NULL;
	uint32_t size = 0;

	if (fd < 0)
		return 0;
	if (!nps_elf__open(fd, budget, &elf))
		size = size_of_pthread(elf);
	nps_elf__close(elf);
	close(fd);
	return size < PTHREAD_BYTES ? size : 0;
}

static uint32_t find_size_of_pthread(pid_t pid, const struct nps_maps *maps, struct nps_budget *budget)
{
	uint32_t size = 0;

	for (size_t i = 0; i < maps->n && !size && !nps_budget__spent(budget); i++) {
		const char *name = nps_basename(maps->v[i].path);

		if (maps->v[i].exec && (!strncmp(name, "libc.so.6", 9) || !strncmp(name, "libc-2", 6) ||
					!strncmp(name, "libpthread", 10)))
			size = size_in_file(pid, &maps->v[i], budget);
	}
	return size;
}

/* The search for a thread that has its state under the key. */
struct key_search {
	struct nps_py_memory *m;
	uint64_t at; /* bytes from the pthread_t */
};

static int has_state(const struct nps_py_thread *t, void *arg)
{
	struct key_search *s = arg;

	return nps_py_memory__pointer(s->m, t->id + s->at) == t->state;
}

int32_t nps_python__tls_offset(struct nps_py_memory *m, const struct nps_py_process *process,
			       const struct nps_maps *maps, struct nps_budget *budget)
{
	struct key_search search = { .m = m };
	uint32_t key[2], size = 0; /* is it created, and its number */

	if (process->layout.runtime_tss_key == NPS_PY_NONE ||
	    !nps_py_memory__read(m, process->runtime + process->layout.runtime_tss_key, key, sizeof(key)) ||
	    key[0] != 1 || key[1] >= KEYS)
		return NPS_PY_NO_TLS;
	search.at = PTHREAD_VALUES + (uint64_t)key[1] * VALUE_BYTES + 8;
	if (nps_python__each_thread(m, process, has_state, &search) != 1)
		return NPS_PY_NO_TLS;
	if (TP_AT_END)
		size = find_size_of_pthread(m->pid, maps, budget);
	return TP_AT_END && !size ? NPS_PY_NO_TLS : (int32_t)search.at - (int32_t)size;
}
