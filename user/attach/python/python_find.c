/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/python/python_find.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "attach/elf_file.h"
#include "attach/python/python_layout.h"
#include "attach/python/python_thread_id.h"
#include "attach/python/python_walk.h"
#include "core/proc_maps.h"

#if defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif
#define READS 65536 /* of the process's memory, to find it once */
#define TRIES 50 /* at a stack that changes while it is read */
#define FRAMES 8 /* of a thread that are checked */
#define FILES 256 /* that are searched */

/* An interpreter that was found. */
struct interpreter {
	struct nps_elf_object runtime, version; /* version.size 0: it has none */
	uint16_t of_functions; /* the version that its functions are of, 0: it has none of them */
	int machine;
	uint64_t bias;
};

/* Versions that do not export theirs: the first that has the function. */
static const struct {
	const char *function;
	uint16_t version;
} first_with[] = {
	{ "Py_NewRef", 0x030a },
	{ "PyObject_CallNoArgs", 0x0309 },
	{ "PyCode_NewWithPosOnlyArgs", 0x0308 },
};

static int version_of_functions(struct nps_elf *elf, uint16_t *version)
{
	struct nps_elf_function f;

	*version = 0;
	for (size_t i = 0; i < sizeof(first_with) / sizeof(*first_with); i++) {
		int err = nps_elf__find(elf, first_with[i].function, false, &f);

		if (err == -ENOENT)
			continue;
		*version = err ? 0 : first_with[i].version;
		return err;
	}
	return 0;
}

static int read_interpreter(struct nps_elf *elf, const struct nps_mapping *m, struct interpreter *in)
{
	int err = nps_elf__find_object(elf, "_PyRuntime", &in->runtime);

	if (err)
		return err;
	err = nps_elf__bias(elf, m->start, m->end - m->start, m->offset, &in->bias);
	if (err)
		return err;
	in->machine = nps_elf__machine(elf);
	err = nps_elf__find_object(elf, "Py_Version", &in->version);
	if (err != -ENOENT)
		return err;
	in->version.size = 0;
	return version_of_functions(elf, &in->of_functions);
}

/* -ENOENT: it is none, or cannot be read. */
static int open_interpreter(pid_t pid, const struct nps_mapping *m, struct nps_budget *budget,
			    struct interpreter *in)
{
	int fd = nps_mapping__open(pid, m, O_RDONLY), err;
	struct nps_elf *elf = NULL;

	if (fd < 0)
		return -ENOENT;
	err = nps_elf__open(fd, budget, &elf);
	if (err)
		goto out;
	err = read_interpreter(elf, m, in);
	nps_elf__close(elf);
out:
	close(fd);
	return err == -ETIME || err == -ENOMEM ? err : err ? -ENOENT : 0;
}

/* Is it the first executable mapping of its file? */
static bool is_first(const struct nps_maps *maps, size_t i)
{
	const struct nps_mapping *m = &maps->v[i];

	if (!m->exec)
		return false;
	for (size_t j = i; j-- > 0;) {
		if (maps->v[j].ino != m->ino || maps->v[j].dev != m->dev)
			return true; /* mappings of a file follow one another */
		if (maps->v[j].exec)
			return false;
	}
	return true;
}

static bool is_called_python(const struct nps_mapping *m)
{
	return strstr(nps_basename(m->path), "python") != NULL;
}

/* The executable first, which takes precedence; then what is called python, then the rest. */
static int find_interpreter(pid_t pid, const struct nps_maps *maps, struct nps_budget *budget,
			    struct interpreter *in)
{
	unsigned int opened = 0;

	for (int called = 1; called >= 0; called--) {
		bool first = true;

		for (size_t i = 0; i < maps->n; i++) {
			int err;

			if (!is_first(maps, i))
				continue;
			if ((first || is_called_python(&maps->v[i])) != called) {
				first = false;
				continue;
			}
			first = false;
			if (++opened > FILES)
				return -ENOENT;
			err = open_interpreter(pid, &maps->v[i], budget, in);
			if (err != -ENOENT)
				return err;
		}
	}
	return -ENOENT;
}

/* Reads the version that the interpreter has in its data, 0x030b: 3.11. 0: unknown. */
static uint16_t read_version(struct nps_py_memory *m, const struct interpreter *in)
{
	uint64_t version; /* unsigned long Py_Version, as PY_VERSION_HEX */

	if (in->version.size != sizeof(version))
		return in->of_functions;
	version = nps_py_memory__pointer(m, in->bias + in->version.vaddr);
	return version >> 32 ? 0 : (uint16_t)(version >> 16);
}

static int choose_layout(struct nps_py_memory *m, const struct interpreter *in, struct nps_py_process *out,
			 const char **why)
{
	const struct nps_py_layout *layout = nps_python_layout__find(read_version(m, in), in->machine);
	uint8_t description[NPS_PY_DESCRIPTION];

	*why = in->machine == MACHINE ? "its version of Python is not supported"
				      : "its Python is of another processor";
	if (!layout || in->machine != MACHINE)
		return -ENOTSUP;
	out->layout = *layout;
	*why = NULL;
	if (layout->version < NPS_PY_DESCRIBED)
		return 0;
	*why = "its _PyRuntime cannot be read";
	if (!nps_py_memory__read(m, out->runtime, description, sizeof(description)))
		return -ENOTSUP;
	return nps_python_layout__describe(&out->layout, description, sizeof(description), why);
}

/* What is checked with the threads of the process. */
struct stack_check {
	struct nps_py_memory *m;
	const struct nps_py_process *process;
	unsigned int threads, valid, invalid;
};

static int check_thread(const struct nps_py_thread *t, void *arg)
{
	struct nps_py_frame frames[FRAMES];
	struct stack_check *c = arg;
	int n = nps_python__frames(c->m, c->process, t->state, frames, FRAMES);

	c->threads++;
	c->valid += n > 0;
	c->invalid += n < 0;
	return n > 0;
}

/* Is there a thread whose stack can be read? */
static int check_stacks(struct nps_py_memory *m, const struct nps_py_process *process, const char **why)
{
	struct stack_check c;

	for (int i = 0; i < TRIES; i++) {
		c = (struct stack_check){ .m = m, .process = process };
		nps_python__each_thread(m, process, check_thread, &c);
		if (c.valid)
			return 0;
	}
	*why = c.invalid   ? "its stacks are not laid out as those of its version"
	       : c.threads ? "no thread runs Python code"
			   : "its interpreter is not initialised";
	return c.invalid ? -ENOTSUP : -EAGAIN;
}

static int find_in_maps(pid_t pid, const struct nps_maps *maps, struct nps_budget *budget,
			struct nps_py_process *out, const char **why)
{
	struct nps_py_memory m = { .pid = pid, .reads = READS, .budget = budget };
	struct interpreter in = { .machine = 0 };
	int err = find_interpreter(pid, maps, budget, &in);

	if (err)
		return err;
	out->runtime = in.bias + in.runtime.vaddr;
	err = choose_layout(&m, &in, out, why);
	if (err)
		return err;
	err = check_stacks(&m, out, why);
	if (err)
		return err;
	out->tls_offset = nps_python__tls_offset(&m, out, maps, budget);
	if (out->tls_offset != NPS_PY_NO_TLS || out->layout.thread_native_id != NPS_PY_NONE)
		return 0;
	*why = "its threads cannot be identified: no glibc, or too many pthread keys";
	return -ENOTSUP;
}

int nps_python__find(pid_t pid, struct nps_budget *budget, struct nps_py_process *out, const char **why)
{
	struct nps_maps maps;
	int err;

	memset(out, 0, sizeof(*out));
	*why = NULL;
	err = nps_maps__read(pid, budget, &maps);
	if (err)
		return err;
	err = find_in_maps(pid, &maps, budget, out, why);
	nps_maps__free(&maps);
	/* It has not read all that it wanted to: the result is no reason to turn stacks off. */
	return err && nps_budget__spent(budget) ? -ETIME : err;
}
