/* SPDX-License-Identifier: BSD-2-Clause */
/* What the injector has to know of a job: whether it is supported, and the addresses of its functions. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "attach/elf_file.h"
#include "inject/inject_impl.h"

#define GRANULE (64UL << 10) /* the largest page */
#define LARGEST_TEXT (64UL << 20) /* searched for the return of signal handlers; no C library is larger */
#define CAVE_MARGIN 16
#define CHUNK (1UL << 20)
#define BRANCH_REACH (120ULL << 20) /* of a direct branch on arm64: 128 MiB */
#define KCMP_VM_TYPE 1

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#define USER_END (1ULL << 47) /* [vsyscall] is above */
/* mov $15, %rax; syscall */
static const unsigned char sigreturn_code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
#else
#define OUR_MACHINE EM_AARCH64
#define USER_END (1ULL << 48) /* 52-bit addresses are only used on request */
/* mov x8, #139; svc #0 */
static const unsigned char sigreturn_code[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 };
#endif

bool nps_ranges__hold(const struct nps_ranges *r, uint64_t address)
{
	for (unsigned int i = 0; i < r->n; i++)
		if (address >= r->v[i].start && address < r->v[i].end)
			return true;
	return false;
}

static bool add_range(struct nps_ranges *r, const struct nps_mapping *m)
{
	if (r->n == NPS_INJECT_RANGES)
		return false;
	r->v[r->n++] = (struct nps_range){ m->start, m->end };
	return true;
}

int nps_inject_job__refuse(struct nps_inject_job *job, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(job->why, job->why_size, fmt, args);
	va_end(args);
	return -err;
}

int nps_inject__read(pid_t pid, uint64_t address, void *to, size_t size)
{
	struct iovec local = { to, size }, remote = { (void *)(uintptr_t)address, size };
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EFAULT;
}

int nps_inject__write(pid_t pid, uint64_t address, const void *from, size_t size)
{
	struct iovec local = { (void *)(uintptr_t)from, size }, remote = { (void *)(uintptr_t)address, size };
	ssize_t n = process_vm_writev(pid, &local, 1, &remote, 1, 0);

	return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EFAULT;
}

void nps_inject__status(pid_t pid, pid_t tid, struct nps_inject_status *status)
{
	static const char *const names[] = NPS_INJECT_FIELDS;
	char path[64], line[512];
	FILE *f;

	for (int i = 0; i < NPS_INJECT_N_FIELDS; i++)
		status->v[i] = -1;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *at = strchr(line, ':'), *last;

		if (!at)
			continue;
		*at++ = '\0';
		at[strcspn(at, "\n")] = '\0';
		last = strrchr(at, '\t'); /* of NSpid: the innermost */
		for (int i = 0; i < NPS_INJECT_N_FIELDS; i++)
			if (strcmp(line, names[i]) == 0)
				status->v[i] = (long)strtoull(last ? last + 1 : at, NULL,
							      i >= NPS_INJECT_SIGPND ? 16 : 10);
	}
	if (f)
		fclose(f);
}

static char state_of(pid_t pid)
{
	char path[64], buf[512], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 'X';
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	buf[n < 0 ? 0 : n] = '\0';
	at = strrchr(buf, ')');
	return at && at[1] == ' ' ? at[2] : 'X';
}

/* Is it in a state in which its program can be changed? */
static int check_state(struct nps_inject_job *job)
{
	struct nps_inject_status status;
	long parent;

	nps_inject__status(job->pid, job->pid, &status);
	parent = status.v[NPS_INJECT_PPID];
	switch (state_of(job->pid)) {
	case 'X':
	case 'Z':
		return nps_inject_job__refuse(job, ESRCH, "it has ended");
	case 'T':
		return nps_inject_job__refuse(job, EBUSY, "it is stopped: continue it with kill -CONT");
	}
	if (status.v[NPS_INJECT_TRACER] > 0)
		return nps_inject_job__refuse(job, EBUSY, "pid %ld traces it already: end that first",
					      status.v[NPS_INJECT_TRACER]);
	if (parent > 1 && syscall(SYS_kcmp, job->pid, parent, KCMP_VM_TYPE, 0, 0) == 0)
		return nps_inject_job__refuse(
			job, EBUSY, "it shares its memory with its parent (vfork): try again later");
	return 0;
}

/* Checks the file of the program itself. */
static int check_program(struct nps_inject_job *job)
{
	struct nps_elf *elf = NULL;
	char path[32];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%d/exe", job->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return nps_inject_job__refuse(job, errno, "its program cannot be read: %s", strerror(errno));
	err = nps_elf__open(fd, &job->budget, &elf);
	if (!err && nps_elf__machine(elf) != OUR_MACHINE)
		err = -ENOEXEC;
	nps_elf__close(elf);
	close(fd);
	if (err)
		return nps_inject_job__refuse(job, ENOEXEC, "it is no 64-bit program of this machine");
	return 0;
}

/* The name is NAME.so.6, or libc-2.28.so as in older versions of glibc. */
static bool is_library(const char *path, const char *soname, const char *old)
{
	const char *base = nps_basename(path);
	size_t n = strlen(soname);

	return (strncmp(base, soname, n) == 0 && (!base[n] || base[n] == ' ')) ||
	       strncmp(base, old, strlen(old)) == 0;
}

static bool is_libc(const char *path)
{
	return is_library(path, "libc.so.6", "libc-2.");
}

static bool is_loader(const char *path)
{
	return strncmp(nps_basename(path), "ld-linux", 8) == 0 ||
	       strncmp(nps_basename(path), "ld-2.", 5) == 0;
}

/* musl's loader is also its C library, by either name. */
static bool is_musl(const char *path)
{
	return strncmp(nps_basename(path), "ld-musl", 7) == 0 ||
	       strncmp(nps_basename(path), "libc.musl", 9) == 0 || strcmp(nps_basename(path), "libc.so") == 0;
}

static bool is_threads(const char *path)
{
	return is_library(path, "libpthread.so.0", "libpthread-2.");
}

static bool is_dl(const char *path)
{
	return is_library(path, "libdl.so.2", "libdl-2.");
}

/* Copies missing addresses of functions of one mapped file into job->input. */
static void collect_functions(struct nps_inject_job *job, const struct nps_mapping *m, struct nps_elf *elf)
{
	static const struct {
		const char *name;
		size_t at;
	} wanted[] = {
		{ "munmap", offsetof(struct nps_inject_input, munmap) },
		{ "pthread_create", offsetof(struct nps_inject_input, pthread_create) },
		{ "pthread_detach", offsetof(struct nps_inject_input, pthread_detach) },
		{ "dlopen", offsetof(struct nps_inject_input, dlopen) },
		{ "dlerror", offsetof(struct nps_inject_input, dlerror) },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		uint64_t *to = (uint64_t *)((char *)&job->input + wanted[i].at);
		struct nps_elf_function f;

		if (!*to && !nps_elf__find(elf, wanted[i].name, false, &f) && f.offset >= m->offset &&
		    f.offset - m->offset < m->end - m->start)
			*to = m->start + (f.offset - m->offset);
	}
}

/* Searches code in the job's memory for the return of signal handlers. */
static void find_restorers(struct nps_inject_job *job, const struct nps_mapping *m)
{
	size_t overlap = sizeof(sigreturn_code) - 1;
	char *buf;

	if (m->end - m->start > LARGEST_TEXT)
		return;
	buf = malloc(CHUNK + overlap);
	for (uint64_t at = m->start; buf && at < m->end; at += CHUNK) {
		size_t size = m->end - at < CHUNK + overlap ? m->end - at : CHUNK + overlap;
		const char *hit = buf;

		if (nps_inject__read(job->pid, at, buf, size))
			break;
		while (job->n_restorers < sizeof(job->restorers) / sizeof(*job->restorers) &&
		       (hit = memmem(hit, size - (hit - buf), sigreturn_code, sizeof(sigreturn_code)))) {
			job->restorers[job->n_restorers++] = at + (hit - buf);
			hit++;
		}
	}
	free(buf);
}

/* Reads one mapping of code. -E2BIG: there are more than any real job has. */
static int mapping_inspect(struct nps_inject_job *job, const struct nps_mapping *m, const char *program)
{
	bool libc = is_libc(m->path) || is_threads(m->path) || is_dl(m->path), ok = true;
	struct nps_elf_function f;
	struct nps_elf *elf = NULL;
	int fd;

	if (m->path[0] == '[') {
		find_restorers(job, m);
		return add_range(&job->never, m) ? 0 : -E2BIG;
	}
	if (libc || strcmp(m->path, program) == 0)
		find_restorers(job, m);
	if (libc)
		ok = add_range(&job->libc, m);
	if (is_loader(m->path))
		return add_range(&job->never, m) ? 0 : -E2BIG;
	fd = m->path[0] == '/' ? nps_mapping__open(job->pid, m, O_RDONLY) : -1;
	if (fd < 0)
		return ok ? 0 : -E2BIG;
	if (!nps_elf__open(fd, &job->budget, &elf)) {
		if (libc)
			collect_functions(job, m, elf);
		else if (!nps_elf__find(elf, "malloc", false, &f))
			ok = add_range(&job->allocators, m) && add_range(&job->never, m);
	}
	nps_elf__close(elf);
	close(fd);
	return ok ? nps_budget__spent(&job->budget) ? -ETIME : 0 : -E2BIG;
}

static int refuse_costly(struct nps_inject_job *job)
{
	return nps_inject_job__refuse(job, ETIME,
				      "its files and mappings take more than %llu s of CPU time to read",
				      NPS_BUDGET_CPU_NS / (1000 * NPS_BUDGET_MS));
}

static int find_code(struct nps_inject_job *job)
{
	char link[32], program[4096];
	const char *libc = NULL, *musl = NULL;
	ssize_t n;
	int err;

	snprintf(link, sizeof(link), "/proc/%d/exe", job->pid);
	n = readlink(link, program, sizeof(program) - 1);
	program[n < 0 ? 0 : n] = '\0';
	for (size_t i = 0; i < job->maps.n; i++) {
		const struct nps_mapping *m = &job->maps.v[i];

		if (is_musl(m->path))
			musl = m->path;
		if (!m->exec)
			continue;
		if (is_libc(m->path) && libc)
			return nps_inject_job__refuse(job, ENOTSUP, "it has two C libraries: %s, %s", libc,
						      m->path);
		if (is_libc(m->path))
			libc = m->path;
		err = mapping_inspect(job, m, program);
		if (err == -ETIME)
			return refuse_costly(job);
		if (err)
			return nps_inject_job__refuse(job, E2BIG, "it has too many allocators");
	}
	if (musl)
		return nps_inject_job__refuse(job, ENOTSUP,
					      "its C library is musl, and the helper needs glibc");
	if (!libc)
		return nps_inject_job__refuse(
			job, ENOTSUP, "it has no glibc: it is linked statically, or of another C library");
	if (!job->input.pthread_create || !job->input.pthread_detach || !job->input.dlopen ||
	    !job->input.dlerror || !job->input.munmap)
		return nps_inject_job__refuse(
			job, ENOTSUP,
			"it has not loaded the functions for threads and libraries of its "
			"C library");
	if (!job->n_restorers)
		return nps_inject_job__refuse(job, ENOTSUP,
					      "it cannot be known where its signal handlers return to");
	return 0;
}

/* Finds free addresses: the middle of the largest hole, where no heap, stack or library grows into. */
static int find_area(struct nps_inject_job *job)
{
	uint64_t largest = 0, middle = 0, end = 0;

	for (size_t i = 0; i < job->maps.n; i++) {
		const struct nps_mapping *m = &job->maps.v[i];

		if (m->start >= USER_END)
			break;
		if (end && m->start > end && m->start - end > largest) {
			largest = m->start - end;
			middle = end + largest / 2;
		}
		end = m->end;
	}
	if (largest < 4 * (job->input.area_size + GRANULE))
		return nps_inject_job__refuse(job, ENOMEM, "its address space is full");
	job->input.area = middle & ~(GRANULE - 1);
	return 0;
}

int nps_inject_job__refresh(struct nps_inject_job *job)
{
	int err;

	nps_maps__free(&job->maps);
	err = nps_maps__read_all(job->pid, &job->budget, &job->maps);
	if (err == -ETIME)
		return refuse_costly(job);
	if (!err && job->maps.cut)
		return nps_inject_job__refuse(job, E2BIG, "it has too many mappings");
	if (err)
		return nps_inject_job__refuse(job, -err, "%s",
					      err == -ESRCH ? "it has ended" : "its mappings cannot be read");
	return find_area(job);
}

void nps_inject_job__free(struct nps_inject_job *job)
{
	nps_maps__free(&job->maps);
}

const struct nps_mapping *nps_inject_job__mapping(const struct nps_inject_job *job, uint64_t address)
{
	for (size_t i = 0; i < job->maps.n; i++)
		if (address >= job->maps.v[i].start && address < job->maps.v[i].end)
			return &job->maps.v[i];
	return NULL;
}

const struct nps_mapping *nps_inject_job__libc(const struct nps_inject_job *job)
{
	for (size_t i = 0; i < job->maps.n; i++)
		if (job->maps.v[i].exec && is_libc(job->maps.v[i].path))
			return &job->maps.v[i];
	return NULL;
}

/* End of the segment that a mapping of code belongs to; the rest of its last page is unused. 0: unknown. */
static uint64_t end_of_code(const struct nps_inject_job *job, const struct nps_mapping *m)
{
	uint64_t end = 0;
	Elf64_Phdr ph;
	Elf64_Ehdr eh;
	int fd = nps_mapping__open(job->pid, m, O_RDONLY);

	if (fd < 0)
		return 0;
	if (pread(fd, &eh, sizeof(eh), 0) == sizeof(eh) && eh.e_phentsize == sizeof(ph))
		for (unsigned int i = 0; i < eh.e_phnum; i++) {
			uint64_t last;

			if (pread(fd, &ph, sizeof(ph), (off_t)(eh.e_phoff + i * sizeof(ph))) != sizeof(ph))
				break;
			last = ph.p_offset + ph.p_filesz;
			if (ph.p_type == PT_LOAD && (ph.p_flags & PF_X) && ph.p_memsz == ph.p_filesz &&
			    last > m->offset && last - m->offset <= m->end - m->start &&
			    m->end - m->start - (last - m->offset) < GRANULE)
				end = m->start + (last - m->offset);
		}
	close(fd);
	return end;
}

bool nps_inject_job__is_empty(const struct nps_inject_job *job, uint64_t at, size_t size)
{
	char bytes[4096];
	size_t used = 0;

	if (size > sizeof(bytes) || nps_inject__read(job->pid, at, bytes, size))
		return false;
	while (used < size && !bytes[used])
		used++;
	return used == size;
}

/*
 * Libraries are mapped privately, so a page that is written becomes a copy of the job's own. If a branch
 * may not reach from one library to another, room for only a landing is recorded, too.
 */
static void find_caves(struct nps_inject_job *job)
{
	const size_t sizes[] = { NPS_INJECT_BYTES, OUR_MACHINE == EM_AARCH64 ? NPS_INJECT_LANDING : 0 };

	for (size_t i = 0; i < job->maps.n && job->caves.n < NPS_INJECT_RANGES; i++) {
		const struct nps_mapping *m = &job->maps.v[i];
		uint64_t at;

		if (!m->exec || m->shared || m->write || m->path[0] != '/' || !m->ino || is_loader(m->path))
			continue;
		at = end_of_code(job, m);
		at = at ? (at + CAVE_MARGIN + 15) & ~15ULL : 0;
		for (unsigned int k = 0; at && at < m->end && k < 2 && sizes[k]; k++)
			if (m->end - at >= sizes[k] && nps_inject_job__is_empty(job, at, sizes[k])) {
				job->caves.v[job->caves.n++] = (struct nps_range){ at, at + sizes[k] };
				break;
			}
	}
}

uint64_t nps_inject_job__cave(const struct nps_inject_job *job, uint64_t pc, size_t size)
{
	for (unsigned int i = 0; i < job->caves.n; i++) {
		const struct nps_range *c = &job->caves.v[i];
		/* It may have been unmapped since. */
		const struct nps_mapping *m = nps_inject_job__mapping(job, c->start);

		if (m && m->exec && !m->write && c->end - c->start >= size &&
		    (OUR_MACHINE != EM_AARCH64 || !pc ||
		     (c->start > pc ? c->start - pc : pc - c->start) < BRANCH_REACH))
			return c->start;
	}
	return 0;
}

int nps_inject_job__inspect(struct nps_inject_job *job)
{
	int err = check_state(job);

	if (err)
		return err;
	err = check_program(job);
	if (err)
		return err;
	err = nps_inject_job__refresh(job);
	if (err)
		return err;
	err = find_code(job);
	if (err)
		return err;
	find_caves(job);
	return 0;
}
