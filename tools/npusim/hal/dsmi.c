/* SPDX-License-Identifier: BSD-2-Clause */
#include "dsmi.h"
#include "control.h"
#include "device.h"

#include <stdio.h>
#include <string.h>

#define FRESH_NS 1000000000u /* a device does not answer for so long after a reset */

uint32_t dsmi_device_count(void)
{
	return device_count();
}

static void read_processes(struct board *b, struct dsmi_state *s)
{
	board_lock(b);
	for (uint32_t i = 0; i < BOARD_SLOTS && s->nprocesses < DSMI_PROCESSES; i++) {
		struct board_slot *slot = &b->shared->slots[i];

		if (!board_owner_alive(b, i + 1) || !atomic_load(&slot->hbm_used))
			continue;
		s->process[s->nprocesses++] =
			(struct dsmi_process){ atomic_load(&slot->pid), atomic_load(&slot->hbm_used) };
	}
	board_unlock(b);
}

static bool is_profiled(struct board *b)
{
	static const uint32_t pmu[] = { CHANNEL_AICORE, CHANNEL_AIV, CHANNEL_FFTS_PROFILE_TASK,
					CHANNEL_FFTS_PROFILE_SAMPLE };
	bool used = false;

	board_lock(b);
	for (size_t i = 0; i < sizeof(pmu) / sizeof(*pmu); i++)
		used |= board_owner_alive(b, b->shared->channel_owner[pmu[i]]);
	board_unlock(b);
	return used;
}

int dsmi_read(uint32_t device, struct dsmi_state *s)
{
	int err = control_call(device, CONTROL_ANY, CALL_DCMI);
	struct device *d = err ? NULL : device_get(device);
	const struct chip *chip;
	struct board *b;
	uint64_t reset;

	memset(s, 0, sizeof(*s));
	if (!d)
		return err ? err : -1;
	b = &d->board;
	chip = board_chip(b);
	board_follow_reset(b, control_resets(device));
	reset = atomic_load(&b->shared->reset_at);
	snprintf(s->chip_name, sizeof(s->chip_name), "%s", chip->chip_name);
	snprintf(s->soc, sizeof(s->soc), "%s", chip->soc);
	s->aicores = chip->aicores;
	s->vector_cores = chip->vector_cores;
	s->aicpus = chip->aicpus;
	s->core_mhz = chip->core_mhz;
	s->hbm_total = BOARD_HBM_BYTES;
	s->hbm_used = board_hbm_used(b) + BOARD_OWN_BYTES;
	s->load = board_load(b);
	s->power = board_power(b);
	s->profiled = is_profiled(b);
	s->fresh = reset && truth_now() - reset < FRESH_NS;
	s->has_hccs = chip_channel(chip, CHANNEL_HCCS) != NULL;
	s->hbm_bytes = links_total(b, HBM_READ) + links_total(b, HBM_WRITE);
	s->hccs_tx = links_total(b, HCCS_TX);
	s->hccs_rx = links_total(b, HCCS_RX);
	s->roce_tx = links_total(b, ROCE_TX);
	s->roce_rx = links_total(b, ROCE_RX);
	s->pcie_tx = links_total(b, PCIE_TX);
	s->pcie_rx = links_total(b, PCIE_RX);
	read_processes(b, s);
	return 0;
}
