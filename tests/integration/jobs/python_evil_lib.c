/* SPDX-License-Identifier: BSD-2-Clause */
/* Launches a kernel while the thread state of CPython 3.11 that the thread seems to have is made up. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { CYCLE, GARBAGE, UNMAPPED, NO_CODE, WILD_CODE, WILD_TEXTS };

static uint64_t state[32], cframe[4], frame[32], code[64];

static void make_frame(int how, void *real_code)
{
	frame[4] = (uint64_t)real_code;
	frame[6] = (uint64_t)frame; /* the frame around it */
	frame[7] = (uint64_t)real_code + 200;
	if (how == NO_CODE)
		frame[4] = 0;
	if (how == WILD_CODE)
		frame[4] = 0xffff888000000000;
	if (how != WILD_TEXTS)
		return;
	memset(code, 0xff, sizeof(code));
	code[14] = (uint64_t)(code + 32); /* a text that claims to be as long as memory */
	code[15] = code[16] = code[17] = 8; /* an address that nothing has */
	code[9] = 1;
	frame[4] = (uint64_t)code;
	frame[6] = 0;
}

/* KEY: where the interpreter has its thread states. */
int evil_launch(int (*launch)(void *, uint32_t, void *, size_t, void *), void *function, void *stream,
		int how, void *real_code, unsigned key)
{
	void *real = pthread_getspecific(key);
	int err;

	make_frame(how, real_code);
	state[7] = how == UNMAPPED ? 0x10 : (uint64_t)cframe;
	cframe[1] = (uint64_t)frame;
	pthread_setspecific(key, how == GARBAGE ? (void *)0x4141414141414141 : state);
	err = launch(function, 8, NULL, 0, stream);
	pthread_setspecific(key, real);
	return err;
}
