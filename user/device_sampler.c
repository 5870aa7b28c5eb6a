/* SPDX-License-Identifier: BSD-2-Clause */
#include "device_sampler.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clocks.h"
#include "device_dcmi.h"
#include "log.h"

#define MOST_PIDS 4096
#define JOIN_NS 15000000000ULL /* of all: a call into the driver waits up to ten seconds */
#define JOIN_TURN_MS 20

struct nps_device_sampler {
	struct nps_device_lib lib;
	struct nps_device_opts opts;
	struct nps_device_common common;
	struct nps_device_thread *threads[NPS_DEVICE_MAX];
	bool hangs[NPS_DEVICE_MAX]; /* in the driver: left to itself */
	uint64_t tried; /* bit d: device d was started, or could not be */
	uint64_t released; /* bit d; those that come later are born released */
	uint32_t ids[NPS_DEVICE_MAX]; /* that the driver knows */
	size_t n_ids;
	/* Where DCMI has them: finding one asks about every card. */
	struct nps_dcmi_place places[NPS_DEVICE_MAX];
	uint64_t placed; /* bit d; the others were not found yet */
	pid_t pids[MOST_PIDS];
	uint64_t used[MOST_PIDS]; /* bit d: that process holds memory of device d */
	size_t n_pids;
	bool foreign; /* a process calls devices by numbers of its own: it is looked which it uses */
	bool error_told;
};

#define FOR_EACH_THREAD(s, i, t)                                                                             \
	for (size_t i = 0; i < NPS_DEVICE_MAX; i++)                                                          \
		for (struct nps_device_thread *t = (s)->threads[i]; t; t = NULL)

static int list_devices(struct nps_device_sampler *s)
{
	uint32_t n = 0;

	if (s->lib.device_count(&n) || !n)
		return -ENODEV;
	n = n < NPS_DEVICE_MAX ? n : NPS_DEVICE_MAX;
	for (uint32_t i = 0; i < n; i++)
		s->ids[i] = i;
	if (s->lib.device_ids && s->lib.device_ids(s->ids, n))
		return -ENODEV;
	s->n_ids = n;
	return 0;
}

static bool known(const struct nps_device_sampler *s, uint32_t device)
{
	for (size_t i = 0; i < s->n_ids; i++)
		if (s->ids[i] == device)
			return true;
	return false;
}

static void start_device(struct nps_device_sampler *s, uint32_t device)
{
	int err;

	if (device >= NPS_DEVICE_MAX || s->tried >> device & 1)
		return;
	s->tried |= 1ULL << device;
	if (!known(s, device)) {
		nps_warn("device %u is not sampled: the driver does not list it: npu-smi info -l lists "
			 "devices",
			 device);
		return;
	}
	err = nps_device_thread__start(&s->common, device, &s->threads[device]);
	if (err)
		nps_warn("device %u is not sampled: %s: is it healthy?", device, strerror(-err));
	else if (s->released >> device & 1)
		nps_device_thread__release(s->threads[device], true);
}

int nps_device_sampler__start(const struct nps_device_opts *opts, struct nps_session *session,
			      const pid_t *pids, size_t n, uint64_t counted, struct nps_device_sampler **out)
{
	struct nps_device_sampler *s = calloc(1, sizeof(*s));
	char why[320];
	int err;

	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	s->common = (struct nps_device_common){ .lib = &s->lib, .opts = &s->opts, .session = session };
	atomic_init(&s->common.counted, counted);
	pthread_mutex_init(&s->common.lock, NULL);
	err = nps_device_lib__open(&s->lib, pids, n, why, sizeof(why));
	if (err) {
		nps_warn("devices are not sampled: %s: is the driver installed?", why);
		nps_device_sampler__free(s);
		return err;
	}
	nps_device_lib__open_dcmi(&s->lib, pids, n);
	if (opts->usage && !s->lib.dcmi)
		nps_warn("--npu-usage: libdcmi.so is not there: it comes with the driver");
	err = list_devices(s);
	if (err)
		nps_warn("devices are not sampled: the driver lists none: npu-smi info -l lists devices");
	if (!err && session->device.fd < 0)
		err = nps_session__open_device(session);
	if (err) {
		nps_device_sampler__free(s);
		return err;
	}
	for (size_t i = 0; i < s->n_ids; i++)
		if (opts->all || (s->ids[i] < NPS_DEVICE_MAX && opts->listed >> s->ids[i] & 1))
			start_device(s, s->ids[i]);
	for (uint32_t d = 0; d < NPS_DEVICE_MAX; d++)
		if (opts->listed >> d & 1)
			start_device(s, d); /* says of those that are not there */
	*out = s;
	nps_debug("devices are sampled through %s%s%s", s->lib.hal_path, s->lib.dcmi ? " and " : "",
		  s->lib.dcmi ? s->lib.dcmi_path : "");
	return 0;
}

void nps_device_sampler__device(struct nps_device_sampler *s, uint32_t device)
{
	if (s && !s->opts.all && !s->opts.listed && known(s, device))
		start_device(s, device);
}

void nps_device_sampler__process(struct nps_device_sampler *s, pid_t pid, bool foreign)
{
	if (!s || s->n_pids == MOST_PIDS)
		return;
	s->pids[s->n_pids++] = pid;
	s->foreign |= foreign;
	if (foreign && !s->lib.dcmi)
		nps_warn("pid %d: it is in a container, where devices have other numbers, and without "
			 "libdcmi.so nobody tells which it uses: --sys-devices names those to sample",
			 pid);
}

void nps_device_sampler__counted(struct nps_device_sampler *s, uint64_t devices)
{
	if (s)
		atomic_fetch_or(&s->common.counted, devices);
}

uint64_t nps_device_sampler__used_by(const struct nps_device_sampler *s, pid_t pid)
{
	for (size_t k = 0; s && k < s->n_pids; k++)
		if (s->pids[k] == pid)
			return s->used[k];
	return 0;
}

static const struct nps_dcmi_place *place_of(struct nps_device_sampler *s, uint32_t device)
{
	if (!(s->placed >> device & 1)) {
		if (nps_dcmi__find(&s->lib, device, &s->places[device]))
			return NULL;
		s->placed |= 1ULL << device;
	}
	return &s->places[device];
}

/* Does one of the job's processes hold memory of the device? Which do is remembered. */
static bool is_used(struct nps_device_sampler *s, uint32_t device)
{
	struct nps_npu_process list[NPS_DCMI_PROCESSES];
	const struct nps_dcmi_place *place = place_of(s, device);
	bool any = false;
	size_t n;

	if (!place)
		return false;
	n = nps_dcmi__processes(&s->lib, place, list);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < s->n_pids; k++)
			if (list[i].pid == (uint32_t)s->pids[k]) {
				s->used[k] |= 1ULL << device;
				any = true;
			}
	return any;
}

void nps_device_sampler__look(struct nps_device_sampler *s)
{
	bool job = s && !s->opts.all && !s->opts.listed;

	for (size_t i = 0; s && i < s->n_ids; i++)
		if (s->ids[i] < NPS_DEVICE_MAX && (s->foreign || (job && !(s->tried >> s->ids[i] & 1))) &&
		    is_used(s, s->ids[i]) && job)
			start_device(s, s->ids[i]);
}

/* All devices, or the one. */
static bool concerns(uint32_t device, uint32_t d)
{
	return device >= NPS_DEVICE_MAX || device == d;
}

static void set_released(struct nps_device_sampler *s, uint32_t device, bool released)
{
	for (uint32_t d = 0; s && d < NPS_DEVICE_MAX; d++) {
		if (!concerns(device, d))
			continue;
		s->released = released ? s->released | 1ULL << d : s->released & ~(1ULL << d);
		if (s->threads[d])
			nps_device_thread__release(s->threads[d], released);
	}
}

void nps_device_sampler__release(struct nps_device_sampler *s, uint32_t device)
{
	set_released(s, device, true);
}

void nps_device_sampler__resume(struct nps_device_sampler *s, uint32_t device)
{
	set_released(s, device, false);
}

bool nps_device_sampler__samples(const struct nps_device_sampler *s, uint32_t device)
{
	return s && device < NPS_DEVICE_MAX && s->threads[device] && nps_device_options__channels(&s->opts);
}

bool nps_device_sampler__released(const struct nps_device_sampler *s, uint32_t device)
{
	for (uint32_t d = 0; s && d < NPS_DEVICE_MAX; d++)
		if (concerns(device, d) && s->threads[d] && !nps_device_thread__released(s->threads[d]))
			return false;
	return true;
}

void nps_device_sampler__settle(struct nps_device_sampler *s, unsigned int ms)
{
	for (; s && ms; ms--) {
		bool all = true;

		FOR_EACH_THREAD(s, i, t)
		all &= nps_device_thread__settled(t);
		if (all)
			return;
		usleep(1000);
	}
}

int nps_device_sampler__info(const struct nps_device_sampler *s, uint32_t device,
			     struct nps_device_info *info)
{
	return s ? nps_device_info__read(&s->lib, device, info) : -ENODEV;
}

void nps_device_sampler__stop(struct nps_device_sampler *s, void (*meanwhile)(void *arg), void *arg)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);

	if (!s)
		return;
	FOR_EACH_THREAD(s, i, t)
	nps_device_thread__stop(t);
	FOR_EACH_THREAD(s, i, t)
	{
		bool ended = s->hangs[i];

		while (!ended) {
			ended = nps_device_thread__join(t, JOIN_TURN_MS);
			if (!ended && nps_now(CLOCK_MONOTONIC) - begin >= JOIN_NS)
				break;
			if (!ended && meanwhile)
				meanwhile(arg);
		}
		if (ended)
			continue;
		s->hangs[i] = true;
		nps_warn("device %u: a call into the driver does not come back: what was sampled until then "
			 "is kept: "
			 "npu-smi info tells its health",
			 nps_device_thread__device(t));
	}
}

void nps_device_sampler__free(struct nps_device_sampler *s)
{
	bool hangs = false;

	if (!s)
		return;
	FOR_EACH_THREAD(s, i, t)
	{
		hangs |= s->hangs[i];
		if (!s->hangs[i])
			nps_device_thread__free(t);
	}
	if (hangs) /* its thread may come back, and uses what is here */
		return;
	nps_device_lib__close(&s->lib);
	pthread_mutex_destroy(&s->common.lock);
	free(s);
}

void nps_device_sampler__counts(struct nps_device_sampler *s, struct nps_device_counts *sum)
{
	*sum = (struct nps_device_counts){ 0 };
	if (!s)
		return;
	FOR_EACH_THREAD(s, i, t)
	{
		struct nps_device_counts c;
		int err = nps_device_thread__error(t);

		nps_device_thread__count(t, &c);
		sum->bytes += c.bytes;
		sum->records += c.records;
		sum->lost += c.lost;
		sum->torn += c.torn;
		sum->cpu_ns += c.cpu_ns;
		sum->open += c.open;
		sum->refused += c.refused;
		if (err && !s->error_told) {
			s->error_told = true;
			nps_warn("device %u: cannot write what was sampled: %s: free space or choose another "
				 "directory with -o",
				 nps_device_thread__device(t), strerror(-err));
		}
		if (err) {
			int none = 0;

			atomic_compare_exchange_strong(&s->common.session->device.error, &none, err);
		}
	}
}

size_t nps_device_sampler__devices(const struct nps_device_sampler *s)
{
	size_t n = 0;

	for (size_t i = 0; s && i < NPS_DEVICE_MAX; i++)
		n += s->threads[i] != NULL;
	return n;
}

static bool listed(const cJSON *devices, double id)
{
	const cJSON *d;

	cJSON_ArrayForEach(d, devices)
	{
		if (cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(d, "id")) == id)
			return true;
	}
	return false;
}

void nps_device_sampler__describe(struct nps_device_sampler *s, cJSON *session, cJSON *devices)
{
	static const char *const facts[] = { "id",	"freq_khz", "chip",	 "platform",
					     "aic_mhz", "aiv_mhz",  "aic_cores", "aiv_cores" };
	cJSON *j, *list;
	const cJSON *d;

	if (!s)
		return;
	j = cJSON_AddObjectToObject(session, "device_sampler");
	cJSON_AddStringToObject(j, "driver", s->lib.hal_path);
	if (s->lib.dcmi)
		cJSON_AddStringToObject(j, "dcmi", s->lib.dcmi_path);
	cJSON_AddStringToObject(j, "aic_metrics", nps_aic_metrics__name(s->opts.metric));
	list = cJSON_AddArrayToObject(j, "devices");
	FOR_EACH_THREAD(s, i, t)
	nps_device_thread__describe(t, list);
	cJSON_ArrayForEach(d, list)
	{
		const cJSON *id = cJSON_GetObjectItemCaseSensitive(d, "id");
		cJSON *o;

		if (listed(devices, cJSON_GetNumberValue(id)))
			continue;
		o = cJSON_CreateObject();
		for (size_t k = 0; k < sizeof(facts) / sizeof(*facts); k++) {
			const cJSON *fact = cJSON_GetObjectItemCaseSensitive(d, facts[k]);

			if (fact)
				cJSON_AddItemToObject(o, facts[k], cJSON_Duplicate(fact, 1));
		}
		cJSON_AddItemToArray(devices, o);
	}
}

void nps_device_sampler__print(struct nps_device_sampler *s, uint64_t elapsed_ns, FILE *out)
{
	struct nps_device_counts n;

	if (!s)
		return;
	nps_device_sampler__counts(s, &n);
	fprintf(out,
		"devices: %" PRIu64 " records, %" PRIu64
		" bytes of %zu devices, for %.2f %% of one CPU each\n",
		n.records, n.bytes, nps_device_sampler__devices(s),
		elapsed_ns && nps_device_sampler__devices(s)
			? 100 * (double)n.cpu_ns / (double)elapsed_ns / (double)nps_device_sampler__devices(s)
			: 0);
}
