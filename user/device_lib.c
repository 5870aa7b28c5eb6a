/* SPDX-License-Identifier: BSD-2-Clause */
#include "device_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "proc_maps.h"

#define NEEDED_DEPTH 8 /* libraries that libraries need that libraries need */

/* Where the driver is installed (cann-abi 1.1); the search path of the dynamic linker comes first. */
static const char *const hal_dirs[] = { "/usr/local/Ascend/driver/lib64/driver",
					"/usr/local/Ascend/driver/lib64", NULL };
static const char *const dcmi_dirs[] = { "/usr/local/dcmi", "/usr/local/Ascend/driver/lib64/driver",
					 "/usr/local/Ascend/driver/lib64", NULL };

/* The mapping of that name; NULL: none. */
static const struct nps_mapping *mapped(const struct nps_maps *maps, const char *name)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->v[i].exec && strcmp(nps_basename(maps->v[i].path), name) == 0)
			return &maps->v[i];
	return NULL;
}

/*
 * Its code runs with our rights: what the job's user could have put there is not loaded. Of a container with ids of its
 * own nothing is root's.
 */
static bool trusted(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && (st.st_uid == 0 || st.st_uid == geteuid()) &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* The name that dlerror's "NAME: cannot open shared object file" begins with; false for any other error. */
static bool missing_name(char *name, size_t size)
{
	const char *error = dlerror(),
		   *end = error ? strstr(error, ": cannot open shared object file") : NULL;

	if (!end || (size_t)(end - error) >= size)
		return false;
	memcpy(name, error, (size_t)(end - error));
	name[end - error] = '\0';
	return true;
}

/* What the driver does when its library is loaded is a call too. */
static void *load(const struct nps_device_lib *of, const char *path)
{
	nps_device_lib__alive(of);
	return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

/*
 * A library as the process sees it: the open file FD, which is checked and loaded as that, for whoever owns a directory
 * above could put another one under its PATH in between. What it needs and our search path does not have is loaded first,
 * from the process' own mappings: the linker takes a library that is there by its name.
 */
static void *open_theirs(const struct nps_device_lib *of, pid_t pid, const struct nps_maps *maps, int fd,
			 const char *path, int depth)
{
	char self[32], name[256], before[256] = "";
	const struct nps_mapping *needed;
	void *lib;

	if (fd < 0)
		return NULL;
	if (!trusted(fd)) {
		nps_debug("%s is not loaded: others than root can write it", path);
		close(fd);
		return NULL;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	while (!(lib = load(of, self)) && depth < NEEDED_DEPTH) {
		if (!missing_name(name, sizeof(name)) || strchr(name, '/') || !strcmp(name, before))
			break;
		snprintf(before, sizeof(before), "%s", name);
		needed = mapped(maps, name);
		if (!needed || !open_theirs(of, pid, maps, nps_mapping__open(pid, needed, O_RDONLY),
					    needed->path, depth + 1))
			break;
	}
	if (!lib)
		close(fd); /* else the number stays taken: the linker knows the library by it */
	return lib;
}

static void *open_ours(const struct nps_device_lib *of, const char *name, const char *const *dirs,
		       char *found, size_t size)
{
	void *lib = load(of, name);

	snprintf(found, size, "%s", name);
	for (size_t i = 0; !lib && dirs[i]; i++) {
		snprintf(found, size, "%s/%s", dirs[i], name);
		lib = load(of, found);
	}
	return lib;
}

/* NAME in the directory of the mapping `hal`, or below the one of the installation: what nobody has mapped yet. */
static void *open_beside(const struct nps_device_lib *of, pid_t pid, const struct nps_maps *maps,
			 const char *hal, const char *name, char *found, size_t size)
{
	static const char *const places[] = { "", "../", "../common/", "../../../../dcmi/", "../../dcmi/" };
	int dir = (int)(nps_basename(hal) - hal);
	void *lib = NULL;

	for (size_t i = 0; !lib && i < sizeof(places) / sizeof(*places); i++)
		if (snprintf(found, size, "%.*s%s%s", dir, hal, places[i], name) < (int)size)
			lib = open_theirs(of, pid, maps, nps_open_in_root(pid, found), found, 0);
	return lib;
}

/* The library NAME of the job's processes; HAL: of that one's directory where none has mapped it. */
static void *open_of_job(const struct nps_device_lib *of, const pid_t *pids, size_t n, const char *name,
			 bool beside, char *found, size_t size)
{
	void *lib = NULL;

	for (size_t i = 0; !lib && i < n; i++) {
		struct nps_maps maps;
		const struct nps_mapping *own, *hal;

		if (nps_maps__read(pids[i], &maps))
			continue;
		own = mapped(&maps, name);
		hal = mapped(&maps, "libascend_hal.so");
		if (own) {
			snprintf(found, size, "%s", own->path);
			lib = open_theirs(of, pids[i], &maps, nps_mapping__open(pids[i], own, O_RDONLY),
					  own->path, 0);
		} else if (beside && hal) {
			lib = open_beside(of, pids[i], &maps, hal->path, name, found, size);
		}
		nps_maps__free(&maps);
	}
	return lib;
}

struct symbol {
	const char *name;
	size_t offset; /* of the pointer in struct nps_device_lib */
	bool must;
};

#define SYMBOL(name, field, must)                                                                            \
	{                                                                                                    \
		name, offsetof(struct nps_device_lib, field), must                                           \
	}

static const struct symbol hal_symbols[] = {
	SYMBOL("prof_drv_get_channels", get_channels, true),
	SYMBOL("prof_drv_start", start, true),
	SYMBOL("prof_stop", stop, true),
	SYMBOL("prof_channel_read", read, true),
	SYMBOL("halProfDataFlush", flush, false),
	SYMBOL("halGetDeviceInfo", device_info, true),
	SYMBOL("drvGetDevNum", device_count, true),
	SYMBOL("drvGetDevIDs", device_ids, false),
	SYMBOL("halGetAPIVersion", api_version, false),
	SYMBOL("halGetChipInfo", chip_info, false),
	SYMBOL("halGetSocVersion", soc_version, false),
};

static const struct symbol dcmi_symbols[] = {
	SYMBOL("dcmi_init", dcmi_init, true),
	SYMBOL("dcmi_get_card_list", card_list, true),
	SYMBOL("dcmi_get_device_num_in_card", devices_in_card, true),
	SYMBOL("dcmi_get_device_logic_id", logic_id, true),
	SYMBOL("dcmi_get_device_utilization_rate", utilization, false),
	SYMBOL("dcmi_get_device_hbm_info", hbm, false),
	SYMBOL("dcmi_get_device_temperature", temperature, false),
	SYMBOL("dcmi_get_device_power_info", power, false),
	SYMBOL("dcmi_get_device_health", health, false),
	SYMBOL("dcmi_get_device_resource_info", processes, false),
	SYMBOL("dcmi_get_netdev_pkt_stats_info", packets, false),
};

/* Name of a function that must be there and is not; NULL: all is well. */
static const char *resolve(struct nps_device_lib *lib, void *handle, const struct symbol *symbols, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		void *at = dlsym(handle, symbols[i].name);

		memcpy((char *)lib + symbols[i].offset, &at, sizeof(at));
		if (!at && symbols[i].must)
			return symbols[i].name;
	}
	return NULL;
}

int nps_device_lib__open_dcmi(struct nps_device_lib *lib, const pid_t *pids, size_t n)
{
	const char *lacks;
	int err = 0;

	lib->dcmi = open_ours(lib, "libdcmi.so", dcmi_dirs, lib->dcmi_path, sizeof(lib->dcmi_path));
	if (!lib->dcmi)
		lib->dcmi =
			open_of_job(lib, pids, n, "libdcmi.so", true, lib->dcmi_path, sizeof(lib->dcmi_path));
	if (!lib->dcmi)
		return -ENOENT;
	nps_device_lib__alive(lib);
	lacks = resolve(lib, lib->dcmi, dcmi_symbols, sizeof(dcmi_symbols) / sizeof(*dcmi_symbols));
	if (!lacks)
		err = lib->dcmi_init();
	if (lacks || err) {
		nps_warn("%s cannot be used: %s%s (code %d): utilisation, temperature and power are not "
			 "sampled: npu-smi info tells whether it works",
			 lib->dcmi_path, lacks ? "it lacks " : "dcmi_init failed", lacks ? lacks : "", err);
		lib->dcmi = NULL;
		return -ELIBACC;
	}
	return 0;
}

int nps_device_lib__open(struct nps_device_lib *lib, const pid_t *pids, size_t n, char *why, size_t why_size)
{
	const char *lacks, *error;

	*lib = (struct nps_device_lib){ .sign = lib->sign };
	lib->hal = open_ours(lib, "libascend_hal.so", hal_dirs, lib->hal_path, sizeof(lib->hal_path));
	if (!lib->hal)
		lib->hal = open_of_job(lib, pids, n, "libascend_hal.so", false, lib->hal_path,
				       sizeof(lib->hal_path));
	if (!lib->hal) {
		error = dlerror();
		snprintf(why, why_size, "libascend_hal.so is not found%s%s", error ? ": " : "",
			 error ? error : "");
		return -ENOENT;
	}
	lacks = resolve(lib, lib->hal, hal_symbols, sizeof(hal_symbols) / sizeof(*hal_symbols));
	if (lacks) {
		snprintf(why, why_size, "%s has no %s", lib->hal_path, lacks);
		lib->hal = NULL;
		return -ELIBACC;
	}
	return 0;
}

void nps_device_lib__close(struct nps_device_lib *lib)
{
	*lib = (struct nps_device_lib){ 0 };
}
