/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver/driver_nodes.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "event.h"

/* Names of nodes, and whether a number follows. */
static const struct {
	const char *name;
	uint8_t kind; /* enum nps_npu_node */
	bool numbered;
} names[] = {
	{ "davinci_manager", NPS_NODE_MANAGER, false }, { "davinci_manager_docker", NPS_NODE_MANAGER, false },
	{ "davinci", NPS_NODE_DEVICE, true },		{ "vdavinci", NPS_NODE_DEVICE, true },
	{ "devmm_svm", NPS_NODE_SVM, false },		{ "hisi_hdc", NPS_NODE_HDC, false },
	{ "dvpp_cmdlist", NPS_NODE_DVPP, false },	{ "event_sched", NPS_NODE_ESCHED, false },
	{ "xsmem_dev", NPS_NODE_XSMEM, false },		{ "queue_manage_dev", NPS_NODE_QUEUE, false },
};

/* Other names of the driver's majors in /proc/devices. */
static const char *const major_names[] = { "hisi_davinci_intf", "devdrv-cdev", "devdrv_manager" };

#define MOST_ENTRIES 4096 /* of a folder that any user may control */
#define DEVICES 64
#define VIRTUAL_DEVICES 1100 /* they begin with vdavinci100 */

static bool parse_number(const char *digits, unsigned int limit, struct nps_node *node)
{
	char *end;
	unsigned long n = strtoul(digits, &end, 10);

	if (!isdigit((unsigned char)*digits) || *end || n >= limit)
		return false;
	node->device = n < DEVICES ? (uint16_t)n : NPS_DRIVER_NO_DEVICE;
	return true;
}

bool nps_driver_node__parse(const char *name, struct nps_node *node)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t len = strlen(names[i].name);

		*node = (struct nps_node){ .kind = names[i].kind, .device = NPS_DRIVER_NO_DEVICE };
		if (strncmp(name, names[i].name, len) != 0)
			continue;
		if (names[i].numbered ? parse_number(name + len, VIRTUAL_DEVICES, node) : !name[len])
			return true;
	}
	return false;
}

static bool is_major_name(const char *name)
{
	struct nps_node node;

	for (size_t i = 0; i < sizeof(major_names) / sizeof(*major_names); i++)
		if (!strcmp(major_names[i], name))
			return true;
	return nps_driver_node__parse(name, &node);
}

bool nps_driver_nodes__has_major(FILE *devices, uint32_t rdev)
{
	bool found = false;
	char line[128];

	while (!found && fgets(line, sizeof(line), devices) && strncmp(line, "Block", 5) != 0) {
		char name[64];
		unsigned int number;

		if (sscanf(line, "%u %63s", &number, name) == 2)
			found = number == rdev >> 20 && is_major_name(name);
	}
	return found;
}

/* Opens a folder, but no link or other file. */
static DIR *open_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !d)
		close(fd);
	return d;
}

unsigned int nps_driver_nodes__find(const char *dir,
				    void (*each)(void *arg, const struct nps_node_found *found), void *arg)
{
	DIR *d = open_folder(dir);
	const struct dirent *entry;
	unsigned int n = 0;

	for (int seen = 0; d && seen < MOST_ENTRIES && (entry = readdir(d)); seen++) {
		struct nps_node_found found = { 0 };
		struct stat st;

		if (!nps_driver_node__parse(entry->d_name, &found.node) ||
		    fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISCHR(st.st_mode))
			continue;
		found.rdev = major(st.st_rdev) << 20 | minor(st.st_rdev);
		found.uid = st.st_uid;
		found.gid = st.st_gid;
		found.mode = st.st_mode;
		snprintf(found.name, sizeof(found.name), "%.31s", entry->d_name);
		each(arg, &found);
		n++;
	}
	if (d)
		closedir(d);
	return n;
}
