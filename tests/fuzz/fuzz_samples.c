/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What devices' sampling channels and DCMI give: the first byte chooses the file, the second the chip and how
 * the directory was sampled, then come the file's bytes, as a driver whose ring was overwritten would give
 * them, or somebody who means no good. They go to the model as a PROF_* directory's do, and as a session's
 * with clocks of its own.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/cann/aux_files.h"
#include "import/session/npu_files.h"
#include "import/session/session_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW 1700000000000000000ULL

enum { CHIP = 0x0f, SECOND_VERSION = 0x10, SESSION = 0x20, TICKS = 0x40 };

static const uint32_t chips[] = { NPS_CHIP_910B, NPS_CHIP_950, NPS_CHIP_910A, NPS_CHIP_310P };
static const char *const files[] = { "hbm.data",
				     "ddr.data",
				     "llc.data",
				     "hccs.data",
				     "pcie.data",
				     "nic.data",
				     "roce.data",
				     "qos.data",
				     "stars_soc_profile.data",
				     "npu_mem.data",
				     "npu_module_mem.data",
				     "ub.data",
				     "lpmFreqConv.data",
				     "ffts_profile.data",
				     "aicore.data",
				     "aiVectorCore.data",
				     "l2_cache.data",
				     "netdev_stats.data" };
#define FILES (sizeof(files) / sizeof(*files))

static const char sample[] =
	"{\"ai_core_metrics\":\"PipeUtilization\",\"aiv_metrics\":\"PipeUtilization\","
	"\"llc_profiling\":\"read\",\"qosEvents\":\"a,b,,c\",\"l2CacheTaskProfilingEvents\":"
	"\"0xfb,0xfc,0x90,0x91,0x9c,0x59,0x5b,0x5c\"}";

static void put(int dirfd, const char *name, const void *data, size_t size)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

static struct nps_cann_metrics pipe_of(uint32_t chip)
{
	if (chip == NPS_CHIP_950)
		return (struct nps_cann_metrics){
			"PipeUtilization", { 0x501, 0x301, 0x1, 0x701, 0x202, 0x203, 0x714, 0x35, 0x34 }, 9
		};
	return (struct nps_cann_metrics){ "PipeUtilization",
					  { 0x8, 0xa, 0x9, 0xb, 0xc, 0xd, 0x54, 0x55 },
					  8 };
}

static struct nps_cann_dir directory(int dirfd, uint8_t how)
{
	uint32_t chip = chips[(how & CHIP) % 4];
	struct nps_cann_clock ns = { .known = true, .hz = NPS_NS_PER_S };
	struct nps_cann_clock ticks = { .known = true, .hz = 50000000 };

	return (struct nps_cann_dir){ .fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY),
				      .datafd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY),
				      .chip = chip,
				      .second_version = how & SECOND_VERSION,
				      .sampled_pmu = true,
				      .aic = pipe_of(chip),
				      .aiv = pipe_of(chip),
				      .aic_mhz = 1800,
				      .aic_cores = chip == NPS_CHIP_950 ? 32 : 24,
				      .has_host_start = true,
				      .has_device_start = true,
				      .start_raw = NPS_NS_PER_S,
				      .host_clock = ns,
				      .host_raw_clock = ns,
				      .device_clock = how & TICKS ? ticks : ns,
				      .device_raw_clock = ns };
}

static void import(struct nps_model *model, int dirfd, const char *file, uint8_t how)
{
	const struct nps_aux_start starts[] = { { file, 0, 5 * NPS_NS_PER_S }, { NULL, 0, 0 } };
	const struct nps_aux_session session = { starts, NPS_NS_PER_S, NOW, NULL };
	struct nps_cann_dir dir = directory(dirfd, how);
	struct nps_dictionary names = { 0 };

	if (!nps_slices__open(&dir.files, dir.datafd)) {
		if (nps_cann_aux__import(model, &names, NULL, &dir, 1, how & SESSION ? &session : NULL))
			abort(); /* only memory could be missing */
		if (how & SESSION && nps_cann_aux__clip(model, session.from, session.to))
			abort();
	}
	fuzz_check_model(model);
	nps_dictionary__free(&names);
	nps_slices__close(&dir.files);
	close(dir.fd);
	close(dir.datafd);
}

/* The collector's chunks of clocks and of values of npu-smi. */
static void chunk(int tmpfd, uint8_t which, const uint8_t *data, size_t size)
{
	static const uint16_t types[] = { NPS_CHUNK_DEVICE_CLOCKS, NPS_CHUNK_DEVICE_RAWS, NPS_CHUNK_NPU_USAGE,
					  NPS_CHUNK_NPU_PROCESSES };
	struct nps_chunk head = { .type = types[which % 4], .len = (uint32_t)size };
	struct nps_clock_map map = { .n = 0 };
	struct nps_npu_samples npu;
	void *payload = malloc(size + 1); /* aligned, as a chunk that was read is */

	if (!payload)
		abort();
	memcpy(payload, data, size);
	nps_npu_samples__init(&npu, tmpfd);
	if (nps_npu_samples__add(&npu, &head, payload, 0, NOW))
		abort();
	for (size_t i = 0; i < npu.usage.len; i++)
		if (NPS_AT(&npu.usage, struct nps_npu_usage, i).device >= NPS_MAX_DEVICES)
			abort();
	if (!nps_npu_samples__fit(&npu.clocks, 0, 50000000, &map))
		nps_clock_map__free(&map);
	nps_npu_samples__free(&npu);
	free(payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *folder = getenv("FUZZ_TMP");
	char dir[128], name[64];
	struct nps_model model;
	const char *file;
	int dirfd;

	if (size < 2)
		return 0;
	snprintf(dir, sizeof(dir), "%s/samples.XXXXXX", folder ? folder : "/dev/shm");
	if (!mkdtemp(dir))
		abort();
	dirfd = open(dir, O_RDONLY | O_DIRECTORY);
	if (data[0] % (FILES + 4) >= FILES) {
		chunk(dirfd, data[0] % (FILES + 4) - FILES, data + 2, size - 2);
	} else {
		file = files[data[0] % (FILES + 4)];
		snprintf(name, sizeof(name), "%s.0.slice_0", file);
		put(dirfd, name, data + 2, size - 2);
		put(dirfd, "sample.json.0", sample, sizeof(sample) - 1);
		put(dirfd, "sample.json", sample, sizeof(sample) - 1);
		if (nps_model__init(&model, dirfd, NULL))
			abort();
		import(&model, dirfd, file, data[1]);
		nps_model__free(&model);
		unlinkat(dirfd, name, 0);
		unlinkat(dirfd, "sample.json.0", 0);
		unlinkat(dirfd, "sample.json", 0);
	}
	close(dirfd);
	if (rmdir(dir))
		abort();
	return 0;
}
