/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf_file.h"

#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SEGMENTS 64 /* of code; real files have one or two */
#define MAX_SYMBOL_BYTES (512UL << 20) /* of all symbol tables and their names; more is no library */
#define MAX_TABLES 4 /* of one type; real files have one */
#define MAX_SECTIONS 65536 /* libelf sets each of them up before anybody asks */
#define MAX_HEADERS 1024 /* of segments */
#define MAX_NOTE (64UL << 10) /* bytes of a segment of notes */

struct nps_elf {
	int fd;
	Elf *elf;
	GElf_Ehdr ehdr;
	uint64_t file_size;
	GElf_Phdr code[MAX_SEGMENTS];
	size_t n_code;
};

static void read_segments(struct nps_elf *e)
{
	size_t n = 0;

	if (elf_getphdrnum(e->elf, &n))
		return;
	for (size_t i = 0; i < n && e->n_code < MAX_SEGMENTS; i++) {
		GElf_Phdr *ph = &e->code[e->n_code];

		if (gelf_getphdr(e->elf, i, ph) && ph->p_type == PT_LOAD && (ph->p_flags & PF_X))
			e->n_code++;
	}
}

/* Files that would make libelf allocate what no library needs are turned away before it sees them. */
static bool is_plausible(int fd)
{
	Elf64_Ehdr eh;
	Elf64_Shdr first;

	if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_phnum > MAX_HEADERS)
		return false;
	if (eh.e_shnum || !eh.e_shoff)
		return true;
	/* The number of sections does not fit the header: it stands in the first of them. */
	return pread(fd, &first, sizeof(first), (off_t)eh.e_shoff) == sizeof(first) &&
	       first.sh_size <= MAX_SECTIONS;
}

int nps_elf__open(int fd, struct nps_elf **out)
{
	struct nps_elf *e;
	struct stat st;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOTSUP;
	if (fstat(fd, &st))
		return -errno;
	if (!is_plausible(fd))
		return -ENOEXEC;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->fd = fd;
	e->file_size = (uint64_t)st.st_size;
	e->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!e->elf || elf_kind(e->elf) != ELF_K_ELF || !gelf_getehdr(e->elf, &e->ehdr)) {
		nps_elf__close(e);
		return -ENOEXEC;
	}
	read_segments(e);
	*out = e;
	return 0;
}

void nps_elf__close(struct nps_elf *e)
{
	if (!e)
		return;
	elf_end(e->elf);
	free(e);
}

int nps_elf__machine(const struct nps_elf *e)
{
	return e->ehdr.e_machine;
}

/* Searches the notes of one segment or section for NT_GNU_BUILD_ID. */
static bool find_build_id(Elf_Data *data, char hex[41])
{
	size_t off = 0, name, desc;
	GElf_Nhdr nhdr;

	while (data && (off = gelf_getnote(data, off, &nhdr, &name, &desc)) > 0) {
		const uint8_t *id = (const uint8_t *)data->d_buf + desc;

		if (nhdr.n_type != NT_GNU_BUILD_ID || nhdr.n_namesz != 4 ||
		    memcmp((const char *)data->d_buf + name, "GNU", 4) != 0)
			continue;
		for (uint32_t i = 0; i < nhdr.n_descsz && i < 20; i++)
			snprintf(hex + 2 * i, 3, "%02x", id[i]);
		return true;
	}
	return false;
}

void nps_elf__build_id(const struct nps_elf *e, char hex[41])
{
	size_t n = 0;

	hex[0] = '\0';
	if (elf_getphdrnum(e->elf, &n))
		return;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(e->elf, i, &ph) || ph.p_type != PT_NOTE || ph.p_filesz > MAX_NOTE)
			continue;
		if (find_build_id(elf_getdata_rawchunk(e->elf, ph.p_offset, ph.p_filesz, ELF_T_NHDR), hex))
			return;
	}
}

/* A place beyond the end of the file cannot be probed, and the kernel would refuse all others with it. */
static bool vaddr_to_offset(const struct nps_elf *e, uint64_t vaddr, uint64_t *offset)
{
	for (size_t i = 0; i < e->n_code; i++) {
		const GElf_Phdr *ph = &e->code[i];
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

/* Names of a symbol table: the bytes up to the last NUL, so that each name that begins there ends there. */
struct name_table {
	const char *text;
	size_t len;
};

static bool read_names(const struct nps_elf *e, size_t section, size_t *budget, struct name_table *names)
{
	Elf_Scn *scn = elf_getscn(e->elf, section);
	Elf_Data *data;
	const char *last;
	GElf_Shdr sh;

	if (!scn || !gelf_getshdr(scn, &sh) || sh.sh_type != SHT_STRTAB || sh.sh_size > *budget)
		return false;
	data = elf_getdata(scn, NULL);
	last = data && data->d_buf ? memrchr(data->d_buf, '\0', data->d_size) : NULL;
	if (!last)
		return false;
	*budget -= sh.sh_size;
	names->text = data->d_buf;
	names->len = last + 1 - names->text;
	return true;
}

static int for_each_symbol(const struct nps_elf *e, Elf_Data *data, const struct name_table *names,
			   int (*each)(const struct nps_elf_function *, void *), void *arg)
{
	size_t n = data->d_size / sizeof(Elf64_Sym);
	GElf_Sym sym;
	int err = 0;

	for (size_t i = 0; !err && i < n && i < INT_MAX && gelf_getsym(data, (int)i, &sym); i++) {
		struct nps_elf_function f = { .vaddr = sym.st_value, .size = sym.st_size };

		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF ||
		    sym.st_name >= names->len || !vaddr_to_offset(e, sym.st_value, &f.offset))
			continue;
		f.name = names->text + sym.st_name;
		err = each(&f, arg);
	}
	return err;
}

/* A file can name as many tables as it likes, all of the same bytes: what is read of it is bounded. READ counts tables. */
static int for_each_in(const struct nps_elf *e, uint32_t type,
		       int (*each)(const struct nps_elf_function *, void *), void *arg, int *read)
{
	size_t budget = MAX_SYMBOL_BYTES;
	Elf_Scn *scn = NULL;
	int tables = 0, err = 0;

	while (!err && tables < MAX_TABLES && (scn = elf_nextscn(e->elf, scn))) {
		struct name_table names;
		Elf_Data *data;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != type)
			continue;
		tables++;
		if (sh.sh_entsize != sizeof(Elf64_Sym) || sh.sh_size > budget)
			continue;
		budget -= sh.sh_size;
		if (!read_names(e, sh.sh_link, &budget, &names))
			continue;
		data = elf_getdata(scn, NULL);
		if (!data)
			continue;
		++*read;
		err = for_each_symbol(e, data, &names, each, arg);
	}
	return err;
}

static int pass_over(const struct nps_elf_function *f, void *arg)
{
	(void)f;
	(void)arg;
	return 0;
}

bool nps_elf__has_symbols(const struct nps_elf *e)
{
	int read = 0;

	for_each_in(e, SHT_DYNSYM, pass_over, NULL, &read);
	return read > 0;
}

int nps_elf__for_each_function(const struct nps_elf *e, bool symtab,
			       int (*each)(const struct nps_elf_function *, void *), void *arg)
{
	int read = 0, err = for_each_in(e, SHT_DYNSYM, each, arg, &read);

	if (!err && symtab)
		err = for_each_in(e, SHT_SYMTAB, each, arg, &read);
	return err;
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

int nps_elf__find(const struct nps_elf *e, const char *name, bool symtab, struct nps_elf_function *out)
{
	struct find find = { .name = name, .out = out };
	int err = nps_elf__for_each_function(e, symtab, match_name, &find);

	return err == 1 ? 0 : err ? err : -ENOENT;
}

static int match_offset(const struct nps_elf_function *f, void *arg)
{
	struct find *find = arg;

	if (find->offset < f->offset || find->offset - f->offset >= (f->size ? f->size : 1))
		return 0;
	*find->out = *f;
	return 1;
}

int nps_elf__name_at(const struct nps_elf *e, uint64_t offset, char *name, size_t size)
{
	struct nps_elf_function f = { .name = "" };
	struct find find = { .offset = offset, .out = &f };
	int err = nps_elf__for_each_function(e, true, match_offset, &find);

	if (err != 1)
		return err ? err : -ENOENT;
	snprintf(name, size, "%s", f.name);
	return 0;
}

int nps_elf__code(const struct nps_elf *e, uint64_t offset, uint8_t *buf, size_t len)
{
	ssize_t n = pread(e->fd, buf, len, (off_t)offset);

	return n < 0 ? -errno : (int)n;
}
