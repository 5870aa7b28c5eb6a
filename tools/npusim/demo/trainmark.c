/* SPDX-License-Identifier: BSD-2-Clause */
/* For jobs without native code: a function that a tracer can put a step mark on. */
__attribute__((visibility("default"))) void train_step_begin(long step);

__attribute__((noinline)) void train_step_begin(long step)
{
	__asm__ volatile("" : : "r"(step) : "memory");
}
