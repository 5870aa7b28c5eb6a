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

uint64_t nps_python__native_id(struct nps_py_memory *m, const struct nps_py_thread *thread)
{
	uint32_t tid;

	if (thread->native_id)
		return thread->native_id;
	return nps_py_memory__read(m, thread->id + PTHREAD_TID, &tid, sizeof(tid)) ? tid : 0;
}

/* What glibc has for debuggers: a constant of libc, before 2.34 of libpthread. 0: not found. */
static uint32_t size_of_pthread(pid_t pid, const struct nps_mapping *m, struct nps_budget *budget)
{
	int fd = nps_mapping__open(pid, m, O_RDONLY);
	struct nps_elf_object constant;
	struct nps_elf *elf = NULL;
	uint32_t size = 0;

	if (fd < 0)
		return 0;
	if (!nps_elf__open(fd, budget, &elf) &&
	    !nps_elf__find_object(elf, "_thread_db_sizeof_pthread", &constant) &&
	    nps_elf__data(elf, constant.vaddr, &size, sizeof(size)) != sizeof(size))
		size = 0;
	nps_elf__close(elf);
	close(fd);
	return size < PTHREAD_BYTES ? size : 0;
}

static uint32_t find_size_of_pthread(pid_t pid, const struct nps_maps *maps, struct nps_budget *budget)
{
	uint32_t size = 0;

	for (size_t i = 0; i < maps->n && !size; i++) {
		const char *name = nps_basename(maps->v[i].path);

		if (maps->v[i].exec && (!strncmp(name, "libc.so.6", 9) || !strncmp(name, "libc-2", 6) ||
					!strncmp(name, "libpthread", 10)))
			size = size_of_pthread(pid, &maps->v[i], budget);
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
