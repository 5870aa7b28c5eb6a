/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/work_budget.h"

#define MAX_CODE 64 /* segments; real files have one or two */
#define MAX_DATA 16 /* segments other than code */
#define MAX_NOTES 16 /* segments */
#define HEADERS 64 /* read at once */
#define SYMBOLS 4096 /* read at once: some 100 us of work */
#define BLOCK (1UL << 20) /* bytes of names read at once */

/*
 * A symbol table and its names, which are read up to the last NUL, so
 * that each name that begins there ends there.
 */
struct table {
	uint32_t type; /* SHT_DYNSYM, SHT_SYMTAB */
	uint64_t offset, n;
	uint64_t names_offset, names_size;
	char *names; /* NULL: not read yet */
	size_t names_len;
};

struct nps_elf {
	int fd;
	struct nps_budget *budget;
	Elf64_Ehdr ehdr;
	uint64_t file_size;
	Elf64_Phdr code[MAX_CODE], data[MAX_DATA], notes[MAX_NOTES];
	size_t n_code, n_data, n_notes;
	uint64_t unwind_header; /* address of .eh_frame_hdr, 0: none */
	struct table tables[2 * NPS_BUDGET_TABLES];
	size_t n_tables;
	size_t names_left; /* bytes that may still be read */
	bool too_large; /* it has a table larger than that of any real library */
};

/* Reads all of it or nothing: a job can truncate its file during the read. */
static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

/* Is the range of bytes in the file? */
static bool is_inside(const struct nps_elf *e, uint64_t offset, uint64_t size)
{
	return offset <= e->file_size && size <= e->file_size - offset;
}

static void read_segments(struct nps_elf *e)
{
	Elf64_Phdr v[HEADERS];

	if (e->ehdr.e_phentsize != sizeof(*v))
		return;
	for (size_t at = 0; at < e->ehdr.e_phnum; at += HEADERS) {
		size_t n = e->ehdr.e_phnum - at < HEADERS ? e->ehdr.e_phnum - at : HEADERS;

		if (!read_at(e->fd, v, n * sizeof(*v), e->ehdr.e_phoff + at * sizeof(*v)))
			return;
		for (size_t i = 0; i < n; i++) {
			if (v[i].p_type == PT_LOAD && (v[i].p_flags & PF_X) && e->n_code < MAX_CODE)
				e->code[e->n_code++] = v[i];
			if (v[i].p_type == PT_LOAD && !(v[i].p_flags & PF_X) && e->n_data < MAX_DATA)
				e->data[e->n_data++] = v[i];
			if (v[i].p_type == PT_GNU_EH_FRAME)
				e->unwind_header = v[i].p_vaddr;
			if (v[i].p_type == PT_NOTE && e->n_notes < MAX_NOTES)
				e->notes[e->n_notes++] = v[i];
		}
	}
}

static unsigned int tables_of(const struct nps_elf *e, uint32_t type)
{
	unsigned int n = 0;

	for (size_t i = 0; i < e->n_tables; i++)
		n += e->tables[i].type == type;
	return n;
}

static void add_table(struct nps_elf *e, const Elf64_Shdr *sh, uint64_t n_sections)
{
	Elf64_Shdr names;
	bool too_large = sh->sh_size / sizeof(Elf64_Sym) > NPS_BUDGET_SYMBOLS;

	if (tables_of(e, sh->sh_type) == NPS_BUDGET_TABLES || sh->sh_entsize != sizeof(Elf64_Sym) ||
	    !is_inside(e, sh->sh_offset, sh->sh_size) || sh->sh_link >= n_sections ||
	    !read_at(e->fd, &names, sizeof(names), e->ehdr.e_shoff + sh->sh_link * sizeof(names)) ||
	    names.sh_type != SHT_STRTAB || !is_inside(e, names.sh_offset, names.sh_size))
		return;
	if (too_large || names.sh_size > NPS_BUDGET_NAMES) {
		e->too_large = true;
		return;
	}
	e->tables[e->n_tables++] = (struct table){ .type = sh->sh_type,
						   .offset = sh->sh_offset,
						   .n = sh->sh_size / sizeof(Elf64_Sym),
						   .names_offset = names.sh_offset,
						   .names_size = names.sh_size };
}

/* Reads section headers, once: later changes of the file have no effect. 0 or -ETIME. */
static int read_sections(struct nps_elf *e)
{
	uint64_t n_sections = e->ehdr.e_shnum;
	Elf64_Shdr v[HEADERS];

	if (!e->ehdr.e_shoff || e->ehdr.e_shentsize != sizeof(*v))
		return 0;
	if (!n_sections) { /* the number does not fit the header, so it is in the first section header */
		if (!read_at(e->fd, v, sizeof(*v), e->ehdr.e_shoff))
			return 0;
		n_sections = v[0].sh_size;
	}
	if (n_sections > NPS_BUDGET_SECTIONS)
		return -ENOEXEC;
	for (uint64_t at = 0; at < n_sections; at += HEADERS) {
		size_t n = n_sections - at < HEADERS ? n_sections - at : HEADERS;

		if (!read_at(e->fd, v, n * sizeof(*v), e->ehdr.e_shoff + at * sizeof(*v)))
			return 0;
		for (size_t i = 0; i < n; i++)
			if (v[i].sh_type == SHT_DYNSYM || v[i].sh_type == SHT_SYMTAB)
				add_table(e, &v[i], n_sections);
		if (nps_budget__spent(e->budget))
			return -ETIME;
	}
	return 0;
}

static bool is_plausible(const Elf64_Ehdr *eh)
{
	const unsigned char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

	return memcmp(eh->e_ident, ELFMAG, SELFMAG) == 0 && eh->e_ident[EI_CLASS] == ELFCLASS64 &&
	       eh->e_ident[EI_DATA] == order && eh->e_ident[EI_VERSION] == EV_CURRENT &&
	       eh->e_phnum <= NPS_BUDGET_SEGMENTS;
}

static int read_headers(struct nps_elf *e)
{
	if (!read_at(e->fd, &e->ehdr, sizeof(e->ehdr), 0) || !is_plausible(&e->ehdr))
		return -ENOEXEC;
	read_segments(e);
	return read_sections(e);
}

int nps_elf__open(int fd, struct nps_budget *budget, struct nps_elf **out)
{
	struct nps_elf *e;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->fd = fd;
	e->budget = budget;
	e->file_size = (uint64_t)st.st_size;
	e->names_left = NPS_BUDGET_NAMES;
	err = read_headers(e);
	if (err)
		nps_elf__close(e);
	else
		*out = e;
	return err;
}

void nps_elf__close(struct nps_elf *e)
{
	for (size_t i = 0; e && i < e->n_tables; i++)
		free(e->tables[i].names);
	free(e);
}

int nps_elf__machine(const struct nps_elf *e)
{
	return e->ehdr.e_machine;
}

/* Searches the notes of one segment for NT_GNU_BUILD_ID. */
static bool find_build_id(const uint8_t *notes, size_t size, size_t align, char hex[41])
{
	Elf64_Nhdr note;

	for (size_t at = 0, desc; at + sizeof(note) <= size;) {
		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		desc = (at + note.n_namesz + align - 1) & ~(align - 1);
		if (note.n_namesz > size - at || desc > size || note.n_descsz > size - desc)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(notes + at, "GNU", 4)) {
			for (uint32_t i = 0; i < note.n_descsz && i < 20; i++)
				snprintf(hex + 2 * (size_t)i, 3, "%02x", notes[desc + i]);
			return true;
		}
		at = (desc + note.n_descsz + align - 1) & ~(align - 1);
	}
	return false;
}

void nps_elf__build_id(const struct nps_elf *e, char hex[41])
{
	bool found = false;

	hex[0] = '\0';
	for (size_t i = 0; i < e->n_notes && !found; i++) {
		const Elf64_Phdr *ph = &e->notes[i];
		uint8_t *bytes = ph->p_filesz <= NPS_BUDGET_NOTE && is_inside(e, ph->p_offset, ph->p_filesz)
					 ? malloc(ph->p_filesz + 1)
					 : NULL;

		if (bytes && read_at(e->fd, bytes, ph->p_filesz, ph->p_offset))
			found = find_build_id(bytes, ph->p_filesz, ph->p_align == 8 ? 8 : 4, hex);
		free(bytes);
	}
}

/*
 * An offset beyond the end of the file cannot be probed, and the kernel
 * would refuse all other offsets with it.
 */
static bool vaddr_to_offset(const struct nps_elf *e, uint64_t vaddr, uint64_t *offset)
{
	for (size_t i = 0; i < e->n_code; i++) {
		const Elf64_Phdr *ph = &e->code[i];
		uint64_t in = vaddr - ph->p_vaddr;

		if (vaddr < ph->p_vaddr || in >= ph->p_filesz)
			continue;
		if (ph->p_offset >= e->file_size || in >= e->file_size - ph->p_offset)
			continue;
		*offset = ph->p_offset + in;
		return true;
	}
	return false;
}

bool nps_elf__offset(const struct nps_elf *e, uint64_t address, uint64_t *offset)
{
	return vaddr_to_offset(e, address, offset);
}

struct nps_budget *nps_elf__budget(const struct nps_elf *e)
{
	return e->budget;
}

static int read_blocks_of_names(struct nps_elf *e, struct table *t)
{
	for (uint64_t at = 0; at < t->names_size; at += BLOCK) {
		size_t n = t->names_size - at < BLOCK ? t->names_size - at : BLOCK;

		if (nps_budget__spent(e->budget))
			return -ETIME;
		if (!read_at(e->fd, t->names + at, n, t->names_offset + at))
			return -ENOEXEC;
	}
	return 0;
}

/* -E2BIG, -ETIME; -ENOEXEC: the names do not exist any more, or do not end. */
static int read_names(struct nps_elf *e, struct table *t)
{
	const char *last;
	int err;

	if (t->names)
		return 0;
	if (t->names_size > e->names_left)
		return -E2BIG;
	t->names = malloc(t->names_size + 1);
	if (!t->names)
		return -ENOMEM;
	e->names_left -= t->names_size;
	err = read_blocks_of_names(e, t);
	if (err) {
		e->names_left += t->names_size;
		free(t->names);
		t->names = NULL;
		return err;
	}
	last = memrchr(t->names, '\0', t->names_size);
	t->names_len = last ? (size_t)(last + 1 - t->names) : 0;
	return 0;
}

/* Which symbols are wanted, and what is called for each. */
struct symbol_walk {
	unsigned char type; /* STT_FUNC, STT_OBJECT: its offset is not set */
	int (*each)(const struct nps_elf_function *f, void *arg);
	void *arg;
};

static int for_each_symbol(const struct nps_elf *e, const struct table *t, const Elf64_Sym *symbols, size_t n,
			   const struct symbol_walk *walk)
{
	int err = 0;

	for (size_t i = 0; !err && i < n; i++) {
		const Elf64_Sym *sym = &symbols[i];
		struct nps_elf_function f = { .vaddr = sym->st_value, .size = sym->st_size };

		if (ELF64_ST_TYPE(sym->st_info) != walk->type || sym->st_shndx == SHN_UNDEF ||
		    sym->st_name >= t->names_len)
			continue;
		if (walk->type == STT_FUNC && !vaddr_to_offset(e, sym->st_value, &f.offset))
			continue;
		f.name = t->names + sym->st_name;
		err = walk->each(&f, walk->arg);
	}
	return err;
}

static int for_each_of_table(struct nps_elf *e, struct table *t, const struct symbol_walk *walk)
{
	Elf64_Sym *symbols = malloc(SYMBOLS * sizeof(*symbols));
	int err = symbols ? 0 : -ENOMEM;

	for (uint64_t at = 0; !err && at < t->n; at += SYMBOLS) {
		size_t n = t->n - at < SYMBOLS ? t->n - at : SYMBOLS;

		if (nps_budget__spent(e->budget))
			err = -ETIME;
		else if (!read_at(e->fd, symbols, n * sizeof(*symbols), t->offset + at * sizeof(*symbols)))
			break; /* the file was truncated meanwhile */
		else
			err = for_each_symbol(e, t, symbols, n, walk);
	}
	free(symbols);
	return err;
}

static int for_each_in(struct nps_elf *e, uint32_t type, const struct symbol_walk *walk)
{
	for (size_t i = 0; i < e->n_tables; i++) {
		struct table *t = &e->tables[i];
		int err;

		if (t->type != type)
			continue;
		err = read_names(e, t);
		if (err == -ENOEXEC)
			continue; /* another table may be valid */
		if (err)
			return err;
		err = for_each_of_table(e, t, walk);
		if (err)
			return err;
	}
	return 0;
}

bool nps_elf__has_symbols(struct nps_elf *e)
{
	for (size_t i = 0; i < e->n_tables; i++)
		if (e->tables[i].type == SHT_DYNSYM && !read_names(e, &e->tables[i]) &&
		    e->tables[i].names_len)
			return true;
	return false;
}

int nps_elf__for_each_function(struct nps_elf *e, bool symtab,
			       int (*each)(const struct nps_elf_function *, void *), void *arg)
{
	struct symbol_walk walk = { STT_FUNC, each, arg };
	int err = for_each_in(e, SHT_DYNSYM, &walk);

	if (!err && symtab)
		err = for_each_in(e, SHT_SYMTAB, &walk);
	return err ? err : e->too_large ? -E2BIG : 0;
}

struct find {
	const char *name;
	uint64_t offset;
	struct nps_elf_function *out;
};

static int match_name(const struct nps_elf_function *f, void *arg)
{
	struct find *find = arg;

	if (strcmp(f->name, find->name) != 0)
		return 0;
	*find->out = *f;
	return 1;
}

int nps_elf__find(struct nps_elf *e, const char *name, bool symtab, struct nps_elf_function *out)
{
	struct find find = { .name = name, .out = out };
	int err = nps_elf__for_each_function(e, symtab, match_name, &find);

	return err == 1 ? 0 : err ? err : -ENOENT;
}

int nps_elf__find_object(struct nps_elf *e, const char *name, struct nps_elf_object *out)
{
	struct nps_elf_function found = { .name = NULL };
	struct find find = { .name = name, .out = &found };
	struct symbol_walk walk = { STT_OBJECT, match_name, &find };
	int err = for_each_in(e, SHT_DYNSYM, &walk);

	if (err != 1)
		return err ? err : e->too_large ? -E2BIG : -ENOENT;
	*out = (struct nps_elf_object){ .vaddr = found.vaddr, .size = found.size };
	return 0;
}

static const Elf64_Phdr *segment_from(const Elf64_Phdr *v, size_t n, uint64_t offset, uint64_t size)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].p_filesz && v[i].p_offset >= offset && v[i].p_offset - offset < size)
			return &v[i];
	return NULL;
}

int nps_elf__bias(const struct nps_elf *e, uint64_t start, uint64_t size, uint64_t offset, uint64_t *bias)
{
	const Elf64_Phdr *ph = segment_from(e->code, e->n_code, offset, size);

	if (!ph)
		ph = segment_from(e->data, e->n_data, offset, size);
	if (!ph)
		return -ENOENT;
	*bias = start + (ph->p_offset - offset) - ph->p_vaddr;
	return 0;
}

struct naming {
	struct nps_elf_name *v;
	size_t n, unnamed;
};

/* Index of the first entry, in order, at OFFSET or after it. */
static size_t first_at(const struct naming *naming, uint64_t offset)
{
	size_t low = 0, high = naming->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (naming->v[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int name_offsets(const struct nps_elf_function *f, void *arg)
{
	struct naming *naming = arg;
	uint64_t size = f->size ? f->size : 1;

	for (size_t i = first_at(naming, f->offset); i < naming->n && naming->v[i].offset - f->offset < size;
	     i++) {
		if (naming->v[i].name)
			continue;
		naming->v[i].name = f->name;
		naming->unnamed--;
	}
	return !naming->unnamed;
}

static int compare_offsets(const void *a, const void *b)
{
	uint64_t x = ((const struct nps_elf_name *)a)->offset, y = ((const struct nps_elf_name *)b)->offset;

	return x < y ? -1 : x > y;
}

int nps_elf__name(struct nps_elf *e, struct nps_elf_name *functions, size_t n)
{
	struct naming naming = { .v = functions, .n = n, .unnamed = n };
	int err;

	for (size_t i = 0; i < n; i++)
		functions[i].name = NULL;
	qsort(functions, n, sizeof(*functions), compare_offsets);
	err = n ? nps_elf__for_each_function(e, true, name_offsets, &naming) : 0;
	return err < 0 ? err : 0;
}

int nps_elf__code(const struct nps_elf *e, uint64_t offset, uint8_t *buf, size_t len)
{
	ssize_t n = pread(e->fd, buf, len, (off_t)offset);

	return n < 0 ? -errno : (int)n;
}

uint64_t nps_elf__unwind_header(const struct nps_elf *e)
{
	return e->unwind_header;
}

static const Elf64_Phdr *segment_at(const Elf64_Phdr *v, size_t n, uint64_t address)
{
	for (size_t i = 0; i < n; i++)
		if (address >= v[i].p_vaddr && address - v[i].p_vaddr < v[i].p_filesz)
			return &v[i];
	return NULL;
}

int nps_elf__data(const struct nps_elf *e, uint64_t address, void *buf, size_t len)
{
	const Elf64_Phdr *ph = segment_at(e->data, e->n_data, address);
	uint64_t at;

	if (!ph)
		ph = segment_at(e->code, e->n_code, address); /* some linkers make one segment of both */
	if (!ph)
		return -ENOENT;
	at = address - ph->p_vaddr;
	if (len > ph->p_filesz - at)
		len = ph->p_filesz - at;
	if (ph->p_offset > INT64_MAX - at)
		return -EINVAL;
	return nps_elf__code(e, ph->p_offset + at, buf, len);
}

bool nps_elf__read_only(const struct nps_elf *e, bool code, size_t i, struct nps_elf_range *out)
{
	const Elf64_Phdr *v = code ? e->code : e->data;
	size_t n = code ? e->n_code : e->n_data;

	for (size_t at = 0; at < n; at++) {
		if ((v[at].p_flags & PF_W) || i--)
			continue;
		*out = (struct nps_elf_range){ v[at].p_vaddr, v[at].p_filesz };
		return true;
	}
	return false;
}

bool nps_elf__spent(const struct nps_elf *e)
{
	return nps_budget__spent(e->budget);
}
