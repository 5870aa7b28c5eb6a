/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzzer's function on files, without libFuzzer: what `make test` needs, which replays
 * the committed inputs with the sanitized libraries that the unit tests are linked with.
 * Arguments that begin with - are libFuzzer's.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#define SECONDS 25 /* of CPU time that one input may take */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/* The custom mutators refer to it; nothing here calls them. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
	(void)data;
	(void)max;
	return size;
}

/* A block of exactly the input's size, so that ASan sees what reads beyond it. */
static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	long length;

	if (!file)
		return NULL;
	if (!fseek(file, 0, SEEK_END) && (length = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET)) {
		data = malloc(length ? (size_t)length : 1);
		*size = (size_t)length;
		if (data && fread(data, 1, *size, file) != *size) {
			free(data);
			data = NULL;
		}
	}
	fclose(file);
	return data;
}

int main(int argc, char **argv)
{
	/* SIGPROF, which nobody catches, ends an input that does not end. */
	const struct itimerval limit = { .it_value.tv_sec = SECONDS };
	int n = 0;

	for (int i = 1; i < argc; i++) {
		size_t size = 0;
		uint8_t *data;

		if (argv[i][0] == '-')
			continue;
		fprintf(stderr, "Running: %s\n", argv[i]);
		data = read_file(argv[i], &size);
		if (!data) {
			perror(argv[i]);
			return 1;
		}
		if (setitimer(ITIMER_PROF, &limit, NULL)) {
			perror("setitimer");
			return 1;
		}
		LLVMFuzzerTestOneInput(data, size);
		free(data);
		n++;
	}
	if (!n) {
		fprintf(stderr, "ERROR: no input\n");
		return 1;
	}
	printf("%d inputs\n", n);
	return 0;
}
