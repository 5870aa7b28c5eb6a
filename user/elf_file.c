/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf_file.h"

#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SEGMENTS 64 /* of code; real files have one or two */
#define MAX_SECTION (1UL << 30) /* bytes of a symbol table; more is no library */

struct nps_elf {
	int fd;
	Elf *elf;
	GElf_Ehdr ehdr;
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

int nps_elf__open(int fd, struct nps_elf **out)
{
	struct nps_elf *e;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOTSUP;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->fd = fd;
	e->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!e->elf || elf_kind(e->elf) != ELF_K_ELF || gelf_getclass(e->elf) != ELFCLASS64 ||
	    !gelf_getehdr(e->elf, &e->ehdr)) {
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

		if (!gelf_getphdr(e->elf, i, &ph) || ph.p_type != PT_NOTE)
			continue;
		if (find_build_id(elf_getdata_rawchunk(e->elf, ph.p_offset, ph.p_filesz, ELF_T_NHDR), hex))
			return;
	}
}

static bool vaddr_to_offset(const struct nps_elf *e, uint64_t vaddr, uint64_t *offset)
{
	for (size_t i = 0; i < e->n_code; i++) {
		const GElf_Phdr *ph = &e->code[i];

		if (vaddr >= ph->p_vaddr && vaddr - ph->p_vaddr < ph->p_filesz) {
			*offset = vaddr - ph->p_vaddr + ph->p_offset;
			return true;
		}
	}
	return false;
}

static int for_each_in(const struct nps_elf *e, uint32_t type,
		       int (*each)(const struct nps_elf_function *, void *), void *arg)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(e->elf, scn))) {
		GElf_Shdr sh;
		Elf_Data *data;
		size_t n;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != type || !sh.sh_entsize ||
		    sh.sh_size > MAX_SECTION)
			continue;
		data = elf_getdata(scn, NULL);
		if (!data)
			continue;
		n = data->d_size / sh.sh_entsize;
		for (size_t i = 0; i < n; i++) {
			struct nps_elf_function f;
			GElf_Sym sym;
			int err;

			if (!gelf_getsym(data, i, &sym) || GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
			    sym.st_shndx == SHN_UNDEF)
				continue;
			f.name = elf_strptr(e->elf, sh.sh_link, sym.st_name);
			f.vaddr = sym.st_value;
			f.size = sym.st_size;
			if (!f.name || !vaddr_to_offset(e, sym.st_value, &f.offset))
				continue;
			err = each(&f, arg);
			if (err)
				return err;
		}
	}
	return 0;
}

int nps_elf__for_each_function(const struct nps_elf *e, bool symtab,
			       int (*each)(const struct nps_elf_function *, void *), void *arg)
{
	int err = for_each_in(e, SHT_DYNSYM, each, arg);

	if (!err && symtab)
		err = for_each_in(e, SHT_SYMTAB, each, arg);
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
