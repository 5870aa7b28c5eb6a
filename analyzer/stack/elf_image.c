/* SPDX-License-Identifier: BSD-2-Clause */
#include "stack/elf_image.h"

#include "base/input_file.h"
#include "base/memory.h"

#include "base/util.h"

#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_SEGMENTS 64
#define MAX_HEADERS 1024 /* of segments */
#define MAX_SECTIONS 65536
#define SECTION_BYTES 256 /* that libelf allocates for each, before a section is read */
#define MAX_NOTE (64UL << 10) /* bytes of a segment of notes */
#define MAX_TABLE (256UL << 20) /* bytes of a table of symbols, names, or ways to callers */
#define MAX_SECTION_NAMES (16UL << 20) /* bytes */
#define MAX_SYMBOLS (2UL << 20) /* of a file: three times those of the largest library */
#define SYMBOL_BYTES 128 /* what the time to read and sort one is worth, against bytes that are held */
#define SLOW_NS 1000000 /* CPU time that a step to a caller never needs with a compiler's unwind table */
#define TIMED 8 /* one of so many steps is timed */
#define MAX_COMPARED 2048 /* bytes of a name */
#define MAX_BARE 4096 /* bytes that a function without a size can have */

struct image_symbol {
	uint64_t vaddr, size;
	const char *name;
	uint8_t rank; /* of several at one address the highest is shown */
};

struct nps_elf_image {
	int fd; /* -1: in memory */
	void *memory;
	Elf *elf;
	struct nps_elf_image *debug; /* whose texts our symbols are */
	GElf_Phdr segments[MAX_SEGMENTS];
	size_t nsegments;
	struct image_symbol *symbols; /* by address, read at the first lookup */
	size_t nsymbols, room;
	struct nps_elf_limits *limits;
	bool read, symtab, cfi_tried, slow, refused;
	unsigned int steps;
	Dwarf_CFI *cfi;
};

/* Takes BYTES from the budget of all files. False: there are not so many left. */
static bool limits_reserve(struct nps_elf_limits *limits, uint64_t bytes)
{
	if (bytes > limits->bytes) {
		limits->exceeded = true;
		return false;
	}
	limits->bytes -= bytes;
	return true;
}

/* Files that would make libelf allocate what no library needs are turned away before it sees them. */
static bool is_plausible(int fd, struct nps_elf_limits *limits)
{
	uint64_t sections;
	Elf64_Shdr first;
	Elf64_Ehdr eh;

	if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_phnum > MAX_HEADERS)
		return false;
	sections = eh.e_shnum;
	if (!sections &&
	    eh.e_shoff) { /* the number does not fit the header: it stands in the first of them */
		if (pread(fd, &first, sizeof(first), (off_t)eh.e_shoff) != sizeof(first))
			return false;
		sections = first.sh_size;
	}
	return sections <= MAX_SECTIONS && limits_reserve(limits, sections * SECTION_BYTES);
}

static int image_begin(struct nps_elf_image *image)
{
	size_t n = 0;

	if (!image->elf || elf_kind(image->elf) != ELF_K_ELF || gelf_getclass(image->elf) != ELFCLASS64 ||
	    elf_getphdrnum(image->elf, &n))
		return -ENOEXEC;
	for (size_t i = 0; i < n && image->nsegments < MAX_SEGMENTS; i++) {
		GElf_Phdr *ph = &image->segments[image->nsegments];

		if (gelf_getphdr(image->elf, (int)i, ph) && ph->p_type == PT_LOAD)
			image->nsegments++;
	}
	return 0;
}

/* Before calls of libelf, which reports that it failed, and not why. */
static void begin_reading(void)
{
	errno = 0;
}

/*
 * After calls of libelf: a name that is missing for lack of memory would look like one that the file does
 * not have. The file, which is the job's, decides how much memory libelf and libdw need: if it is too much,
 * only the file's names are lost, not the result.
 */
static void end_reading(struct nps_elf_image *image)
{
	if (errno == ENOMEM && !image->refused) {
		image->refused = true;
		image->limits->refused++;
	}
	if (errno == EIO && image->fd >= 0)
		nps_input__unreadable_fd(image->fd, -EIO);
}

int nps_elf_image__open(int fd, struct nps_elf_limits *limits, struct nps_elf_image **out)
{
	struct nps_elf_image *image = calloc(1, sizeof(*image));
	int err;

	elf_version(EV_CURRENT);
	if (!image) {
		close(fd);
		return nps_memory__fail(-ENOMEM);
	}
	image->fd = fd;
	image->limits = limits;
	begin_reading();
	image->elf = is_plausible(fd, limits) ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	err = image_begin(image);
	end_reading(image);
	if (err)
		nps_elf_image__close(image);
	else
		*out = image;
	return err;
}

int nps_elf_image__memory(const void *bytes, size_t len, struct nps_elf_limits *limits,
			  struct nps_elf_image **out)
{
	struct nps_elf_image *image = calloc(1, sizeof(*image));
	int err = -ENOMEM;

	elf_version(EV_CURRENT);
	if (!image)
		return -ENOMEM;
	image->fd = -1;
	image->limits = limits;
	image->memory = malloc(len + 1);
	if (image->memory) {
		memcpy(image->memory, bytes, len);
		image->elf = elf_memory(image->memory, len);
		err = image_begin(image);
	}
	if (err)
		nps_elf_image__close(image);
	else
		*out = image;
	return err;
}

void nps_elf_image__close(struct nps_elf_image *image)
{
	if (!image)
		return;
	nps_elf_image__close(image->debug);
	if (image->cfi)
		dwarf_cfi_end(image->cfi);
	elf_end(image->elf);
	if (image->fd >= 0)
		close(image->fd);
	free(image->memory);
	free(image->symbols);
	free(image);
}

static size_t note_build_id(Elf_Data *data, uint8_t id[20])
{
	size_t at = 0, name, desc, next;
	GElf_Nhdr note;

	for (; data && (next = gelf_getnote(data, at, &note, &name, &desc)) > 0; at = next) {
		const char *bytes = data->d_buf;

		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || memcmp(bytes + name, "GNU", 4))
			continue;
		memcpy(id, bytes + desc, NPS_MIN((size_t)note.n_descsz, (size_t)20));
		return NPS_MIN((size_t)note.n_descsz, (size_t)20);
	}
	return 0;
}

size_t nps_elf_image__build_id(struct nps_elf_image *image, uint8_t id[20])
{
	size_t n = 0, found = 0;

	begin_reading();
	elf_getphdrnum(image->elf, &n);
	for (size_t i = 0; i < n && !found; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(image->elf, (int)i, &ph) && ph.p_type == PT_NOTE && ph.p_filesz <= MAX_NOTE)
			found = note_build_id(
				elf_getdata_rawchunk(image->elf, (int64_t)ph.p_offset, ph.p_filesz,
						     ph.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR),
				id);
	}
	end_reading(image);
	return found;
}

bool nps_elf_image__vaddr(const struct nps_elf_image *image, uint64_t offset, uint64_t *vaddr)
{
	for (size_t i = 0; i < image->nsegments; i++) {
		const GElf_Phdr *ph = &image->segments[i];

		if (offset >= ph->p_offset && offset - ph->p_offset < ph->p_filesz) {
			*vaddr = offset - ph->p_offset + ph->p_vaddr;
			return true;
		}
	}
	return false;
}

/* --- names ---------------------------------------------------------------------------------------- */

static int add_symbol(struct nps_elf_image *image, const struct image_symbol *symbol)
{
	if (image->nsymbols == MAX_SYMBOLS)
		return -E2BIG;
	if (image->nsymbols == image->room) {
		size_t room = image->room ? 2 * image->room : 256;
		struct image_symbol *bigger = realloc(image->symbols, room * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		image->symbols = bigger;
		image->room = room;
	}
	image->symbols[image->nsymbols++] = *symbol;
	return 0;
}

static uint8_t rank_of(const GElf_Sym *sym)
{
	uint8_t bind = GELF_ST_BIND(sym->st_info);

	return (sym->st_size ? 4 : 0) + (bind == STB_GLOBAL ? 2 : bind == STB_WEAK ? 1 : 0);
}

/* Names of a symbol table: up to the last NUL, so that each name that begins there ends there. */
struct texts {
	const char *v;
	size_t len;
};

/* As bytes of the file: see image_read_symbols(). */
static void read_texts(struct nps_elf_limits *limits, Elf *elf, const GElf_Shdr *sh, struct texts *texts)
{
	Elf_Scn *scn = elf_getscn(elf, sh->sh_link);
	const char *last;
	Elf_Data *data;
	GElf_Shdr names;

	*texts = (struct texts){ 0 };
	if (!scn || !gelf_getshdr(scn, &names) || names.sh_type != SHT_STRTAB || names.sh_size > MAX_TABLE ||
	    !limits_reserve(limits, names.sh_size))
		return;
	data = elf_getdata_rawchunk(elf, (int64_t)names.sh_offset, names.sh_size, ELF_T_BYTE);
	last = data && data->d_buf ? memrchr(data->d_buf, 0, data->d_size) : NULL;
	if (!last)
		return;
	texts->v = data->d_buf;
	texts->len = (size_t)(last + 1 - texts->v);
}

static int image_read_symbols(struct nps_elf_image *image, Elf *elf, const GElf_Shdr *sh)
{
	bool symtab = sh->sh_type == SHT_SYMTAB;
	/* elf_getdata() leaks what it converts where sections of a damaged file overlap */
	Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)sh->sh_offset, sh->sh_size, ELF_T_SYM);
	size_t n = data ? data->d_size / sizeof(Elf64_Sym) : 0;
	struct texts texts;
	int err = 0;

	read_texts(image->limits, elf, sh, &texts);
	image->symtab |= symtab && n > 1;
	for (size_t i = 0; i < n && !err; i++) {
		struct image_symbol s;
		GElf_Sym sym;

		if (!gelf_getsym(data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF || !sym.st_value)
			continue;
		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC && GELF_ST_TYPE(sym.st_info) != STT_GNU_IFUNC &&
		    !(GELF_ST_TYPE(sym.st_info) == STT_NOTYPE && symtab && sym.st_shndx < SHN_LORESERVE))
			continue;
		/* Exported labels without a size have no known end. */
		if (!sym.st_size && !symtab)
			continue;
		s.name = sym.st_name < texts.len ? texts.v + sym.st_name : NULL;
		s.vaddr = sym.st_value;
		s.size = sym.st_size;
		s.rank = rank_of(&sym);
		if (s.name && s.name[0] && s.name[0] != '$') /* $x, $d: of the arm64 assembler */
			err = add_symbol(image, &s);
	}
	return err;
}

static int read_tables(struct nps_elf_image *image, Elf *elf)
{
	Elf_Scn *scn = NULL;
	int err = 0;

	while (!err && (scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || (sh.sh_type != SHT_SYMTAB && sh.sh_type != SHT_DYNSYM) ||
		    sh.sh_entsize != sizeof(Elf64_Sym))
			continue;
		if (sh.sh_size > MAX_TABLE ||
		    !limits_reserve(image->limits, sh.sh_size / sizeof(Elf64_Sym) * SYMBOL_BYTES))
			err = -E2BIG;
		else
			err = image_read_symbols(image, elf, &sh);
	}
	return err;
}

/* By address; of one address the one to show first. */
static int by_address(const void *a, const void *b)
{
	const struct image_symbol *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	/* A hostile file may have one endless name for all symbols. */
	return x->name == y->name ? 0 : strncmp(x->name, y->name, MAX_COMPARED);
}

static void read_symbols(struct nps_elf_image *image)
{
	size_t kept = 0;
	int err;

	if (image->read)
		return;
	image->read = true;
	begin_reading();
	err = read_tables(image, image->elf);
	if (!err && image->debug)
		err = read_tables(image, image->debug->elf);
	image->limits->exceeded |= err == -E2BIG;
	if (err == -ENOMEM)
		errno = ENOMEM;
	end_reading(image);
	if (image->debug && errno != ENOMEM)
		end_reading(image->debug);
	if (image->nsymbols)
		qsort(image->symbols, image->nsymbols, sizeof(*image->symbols), by_address);
	for (size_t i = 0; i < image->nsymbols; i++)
		if (!kept || image->symbols[kept - 1].vaddr != image->symbols[i].vaddr)
			image->symbols[kept++] = image->symbols[i];
	image->nsymbols = kept;
}

int nps_elf_image__add_symbols(struct nps_elf_image *image, struct nps_elf_image *debug)
{
	if (image->debug || image->read) {
		nps_elf_image__close(debug);
		return -EEXIST;
	}
	image->debug = debug;
	return 0;
}

bool nps_elf_image__has_symtab(struct nps_elf_image *image)
{
	Elf_Scn *scn = NULL;
	bool has = false;
	GElf_Shdr sh;

	begin_reading();
	while (!has && (scn = elf_nextscn(image->elf, scn)))
		has = gelf_getshdr(scn, &sh) && sh.sh_type == SHT_SYMTAB;
	end_reading(image);
	return has;
}

const char *nps_elf_image__symbol(struct nps_elf_image *image, uint64_t vaddr)
{
	size_t low = 0, high;
	const struct image_symbol *s;

	read_symbols(image);
	high = image->nsymbols;
	while (low < high) { /* the first behind VADDR */
		size_t mid = low + (high - low) / 2;

		if (image->symbols[mid].vaddr <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	/* A function can be within the bounds of the one before it: a few are compared. */
	for (size_t back = 1; back <= 4 && back <= low; back++) {
		s = &image->symbols[low - back];
		if (vaddr - s->vaddr < (s->size ? s->size : back == 1 ? MAX_BARE : 0))
			return s->name;
	}
	return NULL;
}

/* --- callers -------------------------------------------------------------------------------------- */

/*
 * Bytes that libdw reads to step to callers: sections by name, or without sections all from the segment on.
 * UINT64_MAX: too many.
 */
static uint64_t cfi_bytes(const struct nps_elf_image *image)
{
	uint64_t bytes = 0;
	size_t names = 0;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	struct stat st;

	if (image->fd < 0)
		return 0;
	if (elf_getshdrstrndx(image->elf, &names) || !gelf_getshdr(elf_getscn(image->elf, names), &sh) ||
	    !elf_nextscn(image->elf, NULL))
		return fstat(image->fd, &st) ? UINT64_MAX : (uint64_t)st.st_size;
	if (sh.sh_size > MAX_SECTION_NAMES)
		return UINT64_MAX;
	while ((scn = elf_nextscn(image->elf, scn))) {
		const char *name = gelf_getshdr(scn, &sh) ? elf_strptr(image->elf, names, sh.sh_name) : NULL;

		if (name && (!strncmp(name, ".eh_frame", 9) || !strcmp(name, ".debug_frame")) &&
		    sh.sh_type != SHT_NOBITS)
			bytes += sh.sh_size > MAX_TABLE ? MAX_TABLE + 1 : sh.sh_size;
	}
	return bytes;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A file can describe a caller by as many instructions as it has bytes. */
static int timed_step(struct nps_elf_image *image, uint64_t vaddr, Dwarf_Frame **frame)
{
	uint64_t begin = cpu_ns(), elapsed;
	int err = dwarf_cfi_addrframe(image->cfi, vaddr, frame);

	elapsed = cpu_ns() - begin;
	if (elapsed < SLOW_NS || image->steps == 1) /* the first one reads the tables */
		return err;
	image->slow = true;
	image->limits->slow_ns = image->limits->slow_ns > elapsed ? image->limits->slow_ns - elapsed : 0;
	return err;
}

Dwarf_Frame *nps_elf_image__frame(struct nps_elf_image *image, uint64_t vaddr)
{
	Dwarf_Frame *frame = NULL;
	int err;

	begin_reading();
	if (!image->cfi_tried) {
		uint64_t bytes = cfi_bytes(image);

		image->cfi_tried = true;
		if (bytes > MAX_TABLE)
			image->limits->exceeded = true;
		else if (limits_reserve(image->limits, bytes))
			image->cfi = dwarf_getcfi_elf(image->elf);
	}
	if (!image->cfi) {
		end_reading(image);
		return NULL;
	}
	if (image->slow && !image->limits->slow_ns) {
		image->limits->exceeded = true;
		return NULL;
	}
	err = image->steps++ % TIMED && !image->slow ? dwarf_cfi_addrframe(image->cfi, vaddr, &frame)
						     : timed_step(image, vaddr, &frame);
	end_reading(image);
	return err ? NULL : frame;
}
