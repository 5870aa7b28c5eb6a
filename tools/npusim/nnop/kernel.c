/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands for a kernel binary: an ELF object whose symbol table has the kernel's name. */
void KERNEL(void);

void KERNEL(void)
{
}
