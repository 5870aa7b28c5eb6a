/* SPDX-License-Identifier: BSD-2-Clause */
#include "huge_elf.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must(bool good)
{
	if (!good)
		abort();
}

static void put(int fd, const void *bytes, size_t size, uint64_t at)
{
	must(pwrite(fd, bytes, size, (off_t)at) == (ssize_t)size);
}

int huge_elf__make(const struct huge_elf *shape)
{
	const uint64_t symbols = 4096,
		       names = symbols + (shape->symbols * sizeof(Elf64_Sym) + 4095) / 4096 * 4096,
		       sections = names + (shape->names + 4095) / 4096 * 4096;
	uint64_t n = shape->sections ? shape->sections : 3;
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_phoff = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1,
			  .e_shoff = sections,
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = n > 3 ? 0 : 3 };
	Elf64_Phdr ph = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = sections, .p_memsz = sections
	};
	Elf64_Shdr sh[3] = { { .sh_size = n > 3 ? n : 0 },
			     { .sh_type = SHT_DYNSYM,
			       .sh_offset = symbols,
			       .sh_size = shape->symbols * sizeof(Elf64_Sym),
			       .sh_entsize = sizeof(Elf64_Sym),
			       .sh_link = 2 },
			     { .sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = shape->names } };
	Elf64_Sym sym = { .st_name = 1,
			  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			  .st_shndx = 1,
			  .st_value = 64,
			  .st_size = 16 };
	char path[] = "/tmp/nps_work_XXXXXX", *text;
	static Elf64_Sym block[4096];
	int fd = mkstemp(path);

	must(fd >= 0);
	unlink(path);
	put(fd, &eh, sizeof(eh), 0);
	put(fd, &ph, sizeof(ph), sizeof(eh));
	put(fd, sh, sizeof(sh), sections);
	for (size_t i = 0; i < 4096; i++)
		block[i] = sym;
	for (uint64_t i = 0; i < shape->symbols && shape->written; i += 4096)
		put(fd, block, sizeof(sym) * (shape->symbols - i < 4096 ? shape->symbols - i : 4096),
		    symbols + i * sizeof(sym));
	text = calloc(1, shape->written + 1);
	must(text != NULL);
	for (uint64_t i = 0; shape->name && i + 2 < shape->written; i++)
		text[i + 1] = shape->name[i % strlen(shape->name)];
	put(fd, text, shape->written, names);
	free(text);
	must(ftruncate(fd, (off_t)(sections + n * sizeof(*sh))) == 0);
	return fd;
}
