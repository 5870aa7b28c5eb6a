/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/device/device_sampler.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clocks.h"
#include "core/log.h"
#include "core/session_end.h"
#include "driver/device_dcmi.h"

#define MOST_PIDS 4096
#define MOST_NOTES 256
#define LIB_PIDS 64 /* processes whose mappings are searched for the libraries */
#define JOIN_TURN_MS 20
#define LAST_JOIN_MS 500

struct nps_device_sampler {
	struct nps_device_lib lib;
	struct nps_device_opts opts;
	struct nps_device_common common;
	struct nps_device_thread *threads[NPS_DEVICE_MAX];
	bool hangs[NPS_DEVICE_MAX]; /* its call into the driver does not return: not waited for */
	bool reaped[NPS_DEVICE_MAX]; /* a hanging thread has returned and ended */
	uint64_t tried; /* bit d: a start of device d was tried */
	uint64_t released; /* bit d; devices that are started later begin released */
	struct nps_driver_query *query;
	enum { OPENING, READY, FAILED } state; /* of the libraries */
	bool querying; /* a query of who uses which device is in progress */
	bool known_once; /* one was answered */
	bool ended; /* nothing is started any more */
	struct note {
		pid_t pid;
		uint32_t device;
		bool foreign;
	} notes[MOST_NOTES]; /* devices used by the job before the libraries were open */
	size_t n_notes;
	uint32_t ids[NPS_DEVICE_MAX]; /* the driver's devices */
	size_t n_ids;
	pid_t pids[MOST_PIDS];
	uint64_t used[MOST_PIDS]; /* bit d: that process has memory on device d */
	bool foreigners[MOST_PIDS];
	size_t n_pids;
	bool foreign; /* a process numbers devices differently, so their use is queried */
	bool error_reported;
	uint64_t worker_cpu_ns; /* of the processes that called the driver, until the devices were stopped */
};

#define FOR_EACH_THREAD(s, i, t)                                                                             \
	for (size_t i = 0; i < NPS_DEVICE_MAX; i++)                                                          \
		for (struct nps_device_thread *t = (s)->threads[i]; t; t = NULL)

/* Query that opens the libraries, and lists the devices. */
struct opening {
	struct nps_question q;
	pid_t pids[LIB_PIDS];
	size_t n_pids;
	struct nps_device_lib lib;
	bool found;
	char why[320];
	uint32_t ids[NPS_DEVICE_MAX], n_ids; /* n_ids 0: the driver lists none */
};

/* Query of the processes that have memory on devices. */
struct users {
	struct nps_question q;
	bool cut; /* the capture ended before all were queried */
	size_t n;
	struct {
		uint32_t id;
		size_t n;
		struct nps_npu_process list[NPS_DCMI_PROCESSES];
	} devices[NPS_DEVICE_MAX];
};

static void query_opening(struct nps_question *q, struct nps_driver *d)
{
	struct opening *o = (struct opening *)q;

	o->found = nps_driver__open(d, o->pids, o->n_pids);
	if (!o->found) {
		snprintf(o->why, sizeof(o->why), "%s", d->why);
		return;
	}
	nps_driver__open_dcmi(d, o->pids, o->n_pids);
	/* For the devices' threads to connect to; this connection stays with the querying thread. */
	o->lib = d->lib;
	o->lib.sign = NULL;
	o->lib.fds[0] = o->lib.fds[1] = -1;
	o->n_ids = nps_driver__devices(d, o->ids);
}

static void query_users(struct nps_question *q, struct nps_driver *d)
{
	struct users *users = (struct users *)q;

	for (size_t i = 0; i < users->n; i++) {
		const struct nps_dcmi_unit *unit;

		users->cut = atomic_load(&d->ending);
		if (users->cut)
			return;
		unit = nps_driver__unit(d, users->devices[i].id);
		users->devices[i].n = unit ? nps_dcmi__processes(&d->lib, unit, users->devices[i].list) : 0;
	}
}

static bool device_is_known(const struct nps_device_sampler *s, uint32_t device)
{
	for (size_t i = 0; i < s->n_ids; i++)
		if (s->ids[i] == device)
			return true;
	return false;
}

static void start_device(struct nps_device_sampler *s, uint32_t device)
{
	int err;

	if (device >= NPS_DEVICE_MAX || s->ended || s->tried >> device & 1)
		return;
	s->tried |= 1ULL << device;
	if (!device_is_known(s, device)) {
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

static void report_unresolved(const struct nps_device_sampler *s, pid_t pid)
{
	if (s->state == READY && !s->lib.has[NPS_WORKER_DCMI] &&
	    !nps_device_lib__numbers_for(&s->lib, pid, true))
		nps_warn("pid %d: it is in a container, where devices have other numbers, and without "
			 "libdcmi.so it is unknown which it uses: select them with --sys-devices",
			 pid);
}

static void start_chosen(struct nps_device_sampler *s)
{
	const struct nps_device_opts *opts = &s->opts;

	for (size_t i = 0; i < s->n_ids; i++)
		if (opts->all || (s->ids[i] < NPS_DEVICE_MAX && opts->listed >> s->ids[i] & 1))
			start_device(s, s->ids[i]);
	for (uint32_t d = 0; d < NPS_DEVICE_MAX; d++)
		if (opts->listed >> d & 1)
			start_device(s, d); /* prints a line if it does not exist */
	for (size_t i = 0; i < s->n_notes; i++)
		nps_device_sampler__uses(s, s->notes[i].pid, s->notes[i].foreign, s->notes[i].device);
}

/* The libraries are open. 0; -errno: the reason has been printed. */
static int sampler_opened(struct nps_device_sampler *s, const struct opening *o)
{
	struct nps_session_writer *session = s->common.session;

	if (!o->found) {
		nps_warn("devices are not sampled: %s: is the driver installed where root alone can write?",
			 o->why);
		return -ENOENT;
	}
	s->lib = o->lib;
	if (s->opts.usage && !s->lib.has[NPS_WORKER_DCMI])
		nps_warn("--npu-usage: libdcmi.so is not there: it comes with the driver");
	if (!o->n_ids) {
		nps_warn("devices are not sampled: the driver lists none: npu-smi info -l lists devices");
		return -ENODEV;
	}
	memcpy(s->ids, o->ids, sizeof(s->ids));
	s->n_ids = o->n_ids;
	return session->device.fd < 0 ? nps_session_writer__open_device(session) : 0;
}

static void answer_opening(struct nps_question *q, void *ctx)
{
	struct nps_device_sampler *s = ctx;

	if (s->ended)
		return;
	s->state = sampler_opened(s, (struct opening *)q) ? FAILED : READY;
	if (s->state == FAILED)
		return;
	for (size_t k = 0; k < s->n_pids; k++)
		if (s->foreigners[k])
			report_unresolved(s, s->pids[k]);
	start_chosen(s);
	nps_debug("devices are sampled through %s%s%s", s->lib.paths[NPS_WORKER_HAL],
		  s->lib.has[NPS_WORKER_DCMI] ? " and " : "",
		  s->lib.has[NPS_WORKER_DCMI] ? s->lib.paths[NPS_WORKER_DCMI] : "");
}

int nps_device_sampler__start(const struct nps_device_opts *opts, struct nps_session_writer *session,
			      struct nps_log_budget *logs, struct nps_driver_query *query, const pid_t *pids,
			      size_t n, uint64_t counted, struct nps_device_sampler **out)
{
	struct nps_device_sampler *s = calloc(1, sizeof(*s));
	struct opening *o = calloc(1, sizeof(*o));

	if (!s || !o) {
		free(s);
		free(o);
		return -ENOMEM;
	}
	s->opts = *opts;
	s->query = query;
	s->common = (struct nps_device_common){
		.lib = &s->lib, .opts = &s->opts, .session = session, .logs = logs
	};
	atomic_init(&s->common.counted, counted);
	pthread_mutex_init(&s->common.lock, NULL);
	o->q = (struct nps_question){ .ctx = s, .query = query_opening, .answer = answer_opening };
	o->n_pids = n < LIB_PIDS ? n : LIB_PIDS;
	memcpy(o->pids, pids, o->n_pids * sizeof(*pids));
	nps_driver_query__post(query, &o->q);
	*out = s;
	return 0;
}

bool nps_device_sampler__failed(const struct nps_device_sampler *s)
{
	return s->state == FAILED;
}

static void start_of_job(struct nps_device_sampler *s, uint32_t device)
{
	if (!s->opts.all && !s->opts.listed && device_is_known(s, device))
		start_device(s, device);
}

static void note_use(struct nps_device_sampler *s, pid_t pid, uint32_t device)
{
	for (size_t k = 0; k < s->n_pids; k++)
		if (s->pids[k] == pid)
			s->used[k] |= 1ULL << device;
}

void nps_device_sampler__uses(struct nps_device_sampler *s, pid_t pid, bool foreign, uint32_t device)
{
	if (!s || device >= NPS_DEVICE_MAX)
		return;
	if (s->state == OPENING && s->n_notes < MOST_NOTES) {
		s->notes[s->n_notes++] = (struct note){ pid, device, foreign };
	} else if (s->state == READY && nps_device_lib__numbers_for(&s->lib, pid, foreign)) {
		if (foreign)
			note_use(s, pid, device);
		start_of_job(s, device);
	}
}

void nps_device_sampler__process(struct nps_device_sampler *s, pid_t pid, bool foreign)
{
	if (!s || s->n_pids == MOST_PIDS)
		return;
	s->foreigners[s->n_pids] = foreign;
	s->pids[s->n_pids++] = pid;
	s->foreign |= foreign;
	if (foreign)
		report_unresolved(s, pid);
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

static void note_users(struct nps_device_sampler *s, uint32_t device, const struct nps_npu_process *list,
		       size_t n)
{
	bool any = false;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < s->n_pids; k++)
			if (list[i].pid == (uint32_t)s->pids[k]) {
				s->used[k] |= 1ULL << device;
				any = true;
			}
	if (any)
		start_of_job(s, device);
}

static void answer_users(struct nps_question *q, void *ctx)
{
	const struct users *users = (const struct users *)q;
	struct nps_device_sampler *s = ctx;

	s->querying = users->cut;
	s->known_once |= !users->cut;
	for (size_t i = 0; i < users->n; i++)
		note_users(s, users->devices[i].id, users->devices[i].list, users->devices[i].n);
}

void nps_device_sampler__poll(struct nps_device_sampler *s)
{
	bool job = s && !s->opts.all && !s->opts.listed;
	struct users *users = s && s->lib.has[NPS_WORKER_DCMI] && !s->querying ? calloc(1, sizeof(*users))
									       : NULL;

	if (!users)
		return;
	for (size_t i = 0; i < s->n_ids; i++)
		if (s->ids[i] < NPS_DEVICE_MAX && (s->foreign || (job && !(s->tried >> s->ids[i] & 1))))
			users->devices[users->n++].id = s->ids[i];
	if (!users->n) {
		free(users);
		return;
	}
	users->q = (struct nps_question){ .ctx = s, .query = query_users, .answer = answer_users };
	s->querying = true;
	nps_driver_query__post(s->query, &users->q);
}

/* DEVICE NPS_DEVICE_MAX: all devices, else that one. */
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

void nps_device_sampler__stop(struct nps_device_sampler *s, struct nps_deadline *deadline, uint64_t reserve,
			      void (*meanwhile)(void *arg), void *arg)
{
	if (!s)
		return;
	s->ended = true;
	s->worker_cpu_ns = nps_device_lib__cpu_ns(&s->lib);
	FOR_EACH_THREAD(s, i, t)
	nps_device_thread__stop(t);
	FOR_EACH_THREAD(s, i, t)
	{
		bool ended = s->hangs[i];

		while (!ended) {
			bool over = nps_deadline__left(deadline) <= reserve;

			ended = nps_device_thread__join(t, over ? 0 : JOIN_TURN_MS);
			if (!ended && over)
				break;
			if (!ended && meanwhile)
				meanwhile(arg);
		}
		if (ended)
			continue;
		s->hangs[i] = true;
		nps_warn("device %u: a call into the driver does not come back: what was sampled until then "
			 "is kept: "
			 "check its health with npu-smi info",
			 nps_device_thread__device(t));
	}
}

/* Pending calls failed when the libraries' process ended, so threads that hung now end. */
void nps_device_sampler__reap(struct nps_device_sampler *s)
{
	int ms = LAST_JOIN_MS;

	for (size_t i = 0; s && i < NPS_DEVICE_MAX; i++)
		for (; s->threads[i] && s->hangs[i] && !s->reaped[i] && ms > 0; ms -= JOIN_TURN_MS)
			s->reaped[i] = nps_device_thread__join(s->threads[i], JOIN_TURN_MS);
}

bool nps_device_sampler__free(struct nps_device_sampler *s)
{
	bool hangs = false;

	if (!s)
		return true;
	nps_device_sampler__reap(s);
	FOR_EACH_THREAD(s, i, t)
	{
		if (s->hangs[i] && !s->reaped[i])
			hangs = true;
		else
			nps_device_thread__free(t);
	}
	if (hangs) /* its thread may return, and uses this memory */
		return false;
	pthread_mutex_destroy(&s->common.lock);
	free(s);
	return true;
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
		if (err && !s->error_reported) {
			s->error_reported = true;
			nps_warn("device %u: cannot write what was sampled: %s: %s",
				 nps_device_thread__device(t), strerror(-err), nps_session_end__advice(err));
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
		n += s->threads[i] && !nps_device_thread__failed(s->threads[i]);
	return n;
}

bool nps_device_sampler__waits(const struct nps_device_sampler *s)
{
	return s && (s->state == OPENING || (s->querying && !s->known_once));
}

bool nps_device_sampler__lost_driver(const struct nps_device_sampler *s)
{
	return s && s->state == READY && nps_device_lib__failed(&s->lib);
}

bool nps_device_sampler__limited(const struct nps_device_sampler *s)
{
	for (size_t i = 0; s && i < NPS_DEVICE_MAX; i++)
		if (s->threads[i] && nps_device_thread__limited(s->threads[i]))
			return true;
	return false;
}

bool nps_device_sampler__hangs(const struct nps_device_sampler *s)
{
	for (size_t i = 0; s && i < NPS_DEVICE_MAX; i++)
		if (s->hangs[i])
			return true;
	return false;
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
	cJSON_AddStringToObject(j, "driver", s->lib.paths[NPS_WORKER_HAL]);
	if (s->lib.has[NPS_WORKER_DCMI])
		cJSON_AddStringToObject(j, "dcmi", s->lib.paths[NPS_WORKER_DCMI]);
	cJSON_AddNumberToObject(j, "worker_cpu_ns", (double)s->worker_cpu_ns);
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

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

void nps_device_sampler__print(struct nps_device_sampler *s, uint64_t elapsed_ns, FILE *out)
{
	size_t devices = nps_device_sampler__devices(s);
	struct nps_device_counts n;

	if (!s)
		return;
	nps_device_sampler__counts(s, &n);
	fprintf(out,
		"devices: %" PRIu64 " records, %" PRIu64
		" bytes of %zu devices, for %.2f %% of one CPU each, and %.2f %% in the driver's libraries\n",
		n.records, n.bytes, devices, devices ? percent(n.cpu_ns, elapsed_ns) / (double)devices : 0,
		percent(s->worker_cpu_ns, elapsed_ns));
}
