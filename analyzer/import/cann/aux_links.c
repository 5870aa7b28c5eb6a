/* SPDX-License-Identifier: BSD-2-Clause */
/* Links and ports of the device, and its video engines. */
#include "import/cann/aux_read.h"

#include <string.h>

#define MICRO 1000000 /* bytes a us to bytes a second */
#define MB (1ULL << 20)
#define PORTS 65535

/* --- pcie: time, device, 21 statistics --- */

static void pcie(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	struct nps_pcie_table *t = &aux->model->pcie;
	uint64_t ns;
	size_t row;

	(void)record;
	if (!nps_aux__time(aux, NPS_AUX_RAW, v[0], &ns) || !nps_aux__add(aux, &t->t, &row))
		return;
	double *const columns[] = { t->tx_post_min,    t->tx_post_max,	  t->tx_post_avg, t->tx_nonpost_min,
				    t->tx_nonpost_max, t->tx_nonpost_avg, t->tx_cpl_min,  t->tx_cpl_max,
				    t->tx_cpl_avg,     t->latency_min,	  t->latency_max, t->latency_avg,
				    t->rx_post_min,    t->rx_post_max,	  t->rx_post_avg, t->rx_nonpost_min,
				    t->rx_nonpost_max, t->rx_nonpost_avg, t->rx_cpl_min,  t->rx_cpl_max,
				    t->rx_cpl_avg };

	t->device[row] = aux->dir->device;
	t->timestamp[row] = ns;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(columns); i++) {
		bool latency = columns[i] == t->latency_min || columns[i] == t->latency_max ||
			       columns[i] == t->latency_avg; /* ns already */

		columns[i][row] = (double)v[2 + i] * (latency ? 1 : MICRO);
	}
}

/* --- ub: port, time, then 14 numbers of which the first two have a column --- */

static void ub(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	struct nps_ub_table *t = &aux->model->ub;
	uint64_t ns;
	size_t row;

	(void)record;
	if (!nps_aux__time(aux, NPS_AUX_RAW, v[1], &ns) || !nps_aux__add(aux, &t->t, &row))
		return;
	t->device[row] = aux->dir->device;
	t->port[row] = v[0];
	t->timestamp[row] = ns;
	t->rx[row] = v[2];
	t->tx[row] = v[3];
}

/* --- hccs: `sec:nsec tx rx`, amounts that only grow --- */

static bool hccs(struct nps_aux *aux, const char *text)
{
	struct nps_hccs_table *t = &aux->model->hccs;
	struct nps_aux_last *last, before;
	uint64_t raw, tx, rx, ns;
	size_t row;
	bool first;

	if (*text < '0' || *text > '9') /* the header */
		return !*text || strstr(text, "tx");
	if (!nps_aux__stamp(&text, &raw) || !nps_aux__number(&text, &tx) || !nps_aux__number(&text, &rx))
		return false;
	last = nps_aux__last(aux, 0, &first);
	if (!last || !nps_aux__time(aux, NPS_AUX_RAW, raw, &ns))
		return true;
	before = *last;
	*last = (struct nps_aux_last){ .time = raw, .values = { tx, rx } };
	/* A counter that went back has no difference. */
	if (first || !before.time || raw <= before.time || tx < before.values[0] || rx < before.values[1] ||
	    !nps_aux__add(aux, &t->t, &row))
		return true;
	t->device[row] = aux->dir->device;
	t->timestamp[row] = ns;
	t->tx[row] = nps_aux__rate(tx - before.values[0], raw - before.time);
	t->rx[row] = nps_aux__rate(rx - before.values[1], raw - before.time);
	return true;
}

/* --- nic and roce: `sec:nsec bandwidth`, six numbers of what came, six of what went, and the function --- */

enum { PORT_CELLS = 14, PORT_DIRECTION = 6 };

/* A cell: what it counts, or a rate with decimals. */
struct link_cell {
	uint64_t whole;
	double real;
};

static bool netdev_cell(const char **p, struct link_cell *cell)
{
	const char *at = *p;
	uint64_t millionths;

	if (!nps_aux__fixed(p, 0, &cell->whole) || cell->whole > INT64_MAX)
		return false;
	cell->real = nps_aux__fixed(&at, 6, &millionths) ? millionths / 1e6 : cell->whole;
	return true;
}

/* Only some chips report the bandwidth, the first cell, and the function, the last one. */
static bool port(struct nps_aux *aux, struct nps_port_table *t, const char *text)
{
	const struct link_cell *at;
	struct link_cell cells[PORT_CELLS];
	uint64_t raw, ns;
	size_t n = 0, row;

	if (*text < '0' || *text > '9')
		return !*text || strstr(text, "rxPacket");
	if (!nps_aux__stamp(&text, &raw))
		return false;
	for (; n < PORT_CELLS && nps_aux__word(text); n++)
		if (!netdev_cell(&text, &cells[n]))
			return false;
	if (n < PORT_CELLS - 2 || nps_aux__word(text))
		return false;
	if (!nps_aux__time(aux, NPS_AUX_RAW, raw, &ns) || !nps_aux__add(aux, &t->t, &row))
		return true;
	at = &cells[n > 2 * PORT_DIRECTION];
	t->device[row] = aux->dir->device;
	t->timestamp[row] = ns;
	t->bandwidth[row] = at == cells || cells->whole > INT64_MAX / MB ? NPS_NULL
									 : (int64_t)(cells->whole * MB);
	t->function[row] = n == PORT_CELLS ? (int64_t)cells[n - 1].whole : 0;
	for (unsigned int tx = 0; tx < 2; tx++, at += PORT_DIRECTION) {
		(tx ? t->tx_packet_rate : t->rx_packet_rate)[row] = at[0].real;
		(tx ? t->tx_byte_rate : t->rx_byte_rate)[row] = at[1].real;
		(tx ? t->tx_packets : t->rx_packets)[row] = at[2].whole;
		(tx ? t->tx_bytes : t->rx_bytes)[row] = at[3].whole;
		(tx ? t->tx_errors : t->rx_errors)[row] = at[4].whole;
		(tx ? t->tx_dropped : t->rx_dropped)[row] = at[5].whole;
	}
	return true;
}

static bool nic(struct nps_aux *aux, const char *text)
{
	return port(aux, &aux->model->nic, text);
}

static bool roce(struct nps_aux *aux, const char *text)
{
	return port(aux, &aux->model->roce, text);
}

/* --- netdev_stats: a time of the host and 15 counters that only grow; rows hold their increments --- */

enum { NETDEV = 15 };

static void put_netdev(struct nps_aux *aux, uint64_t unix_ns, uint64_t ns, const uint64_t *grown)
{
	struct nps_netdev_table *t = &aux->model->netdev;
	size_t row;

	if (!nps_aux__add(aux, &t->t, &row))
		return;
	int64_t *const columns[NETDEV] = { t->mac_tx_pfc,     t->mac_rx_pfc,   t->mac_tx_bytes,
					   t->mac_rx_bytes,   t->mac_tx_bad,   t->mac_rx_bad,
					   t->roce_tx,	      t->roce_rx,      t->roce_tx_errors,
					   t->roce_rx_errors, t->roce_tx_cnp,  t->roce_rx_cnp,
					   t->roce_retries,   t->nic_tx_bytes, t->nic_rx_bytes };

	for (size_t i = 0; i < NETDEV; i++)
		columns[i][row] = grown[i];
	t->device[row] = aux->dir->device;
	t->timestamp[row] = unix_ns;
	t->mac_tx_bandwidth[row] = grown[2] * 1e9 / ns;
	t->mac_rx_bandwidth[row] = grown[3] * 1e9 / ns;
	t->nic_tx_bandwidth[row] = grown[13] * 1e9 / ns;
	t->nic_rx_bandwidth[row] = grown[14] * 1e9 / ns;
}

/* The sample before is kept in two entries: it has more counters than fit one. */
static bool netdev(struct nps_aux *aux, const char *text)
{
	uint64_t time, now[NETDEV], grown[NETDEV], ns, before = 0;
	bool first = true, other;

	if (!*text)
		return true;
	if (!nps_aux__number(&text, &time))
		return false;
	for (size_t i = 0; i < NETDEV; i++)
		if (!nps_aux__number(&text, &now[i]) || now[i] > INT64_MAX)
			return false;
	if (!nps_aux__time(aux, NPS_AUX_HOST_RAW, time, &ns))
		return true;
	for (size_t i = 0; i < NETDEV; i++) {
		struct nps_aux_last *last = nps_aux__last(aux, i / 8, i ? &other : &first);

		if (!last)
			return true;
		grown[i] = now[i] > last->values[i % 8] ? now[i] - last->values[i % 8] : 0;
		last->values[i % 8] = now[i];
		before = i ? before : last->time;
		last->time = time;
	}
	if (!first && time > before)
		put_netdev(aux, ns, time - before, grown);
	return true;
}

/* --- dvpp: `sec:nsec dvpp type engine time frames share%` and more; a row an engine --- */

enum {
	DVPP_TIME,
	DVPP_FRAMES,
	DVPP_SHARE,
	DVPP_FIRST_TIME,
	DVPP_FIRST_FRAMES,
	DVPP_ID,
	DVPP_TYPE,
	DVPP_ENGINE
};

static bool dvpp(struct nps_aux *aux, const char *text)
{
	uint64_t raw, ids[3], time, frames, share, ns;
	struct nps_aux_last *last;
	bool first;

	if (*text < '0' || *text > '9')
		return !*text || strstr(text, "engine");
	if (!nps_aux__stamp(&text, &raw))
		return false;
	for (size_t i = 0; i < 3; i++)
		if (!nps_aux__number(&text, &ids[i]) || ids[i] > 65535)
			return false;
	if (!nps_aux__number(&text, &time) || !nps_aux__number(&text, &frames) ||
	    !nps_aux__fixed(&text, 6, &share) || *text != '%')
		return false;
	if (!nps_aux__time(aux, NPS_AUX_RAW, raw, &ns))
		return true;
	last = nps_aux__last(aux, ids[0] << 32 | ids[1] << 16 | ids[2], &first);
	if (!last)
		return true;
	if (first || time < last->values[DVPP_FIRST_TIME])
		last->values[DVPP_FIRST_TIME] = time;
	if (first || frames < last->values[DVPP_FIRST_FRAMES])
		last->values[DVPP_FIRST_FRAMES] = frames;
	last->values[DVPP_TIME] = NPS_MAX(last->values[DVPP_TIME], time);
	last->values[DVPP_FRAMES] = NPS_MAX(last->values[DVPP_FRAMES], frames);
	last->values[DVPP_SHARE] = share;
	last->values[DVPP_ID] = ids[0];
	last->values[DVPP_TYPE] = ids[1];
	last->values[DVPP_ENGINE] = ids[2];
	return true;
}

static void end_dvpp(struct nps_aux *aux)
{
	struct nps_dvpp_table *t = &aux->model->dvpp;
	size_t row;

	for (size_t i = 0; i < aux->lasts.len; i++) {
		const uint64_t *v = NPS_AT(&aux->lasts, struct nps_aux_last, i).values;

		if (!nps_aux__add(aux, &t->t, &row))
			return;
		t->device[row] = aux->dir->device;
		t->id[row] = v[DVPP_ID];
		t->engine_type[row] = v[DVPP_TYPE];
		t->engine[row] = v[DVPP_ENGINE];
		t->time[row] = v[DVPP_TIME] - v[DVPP_FIRST_TIME];
		t->frames[row] = v[DVPP_FRAMES] - v[DVPP_FIRST_FRAMES];
		t->utilization[row] = v[DVPP_SHARE] / 1e6;
	}
}

static const struct nps_aux_format formats[] = {
	{ "pcie.data",
	  96,
	  NPS_NO_MAGIC,
	  { { 0, 8, 1, NPS_AUX_MOST_TIME }, { 8, 4, 1, 65535 }, { 12, 4, 21, 0 } },
	  pcie,
	  NULL },
	{ "ub.data",
	  128,
	  NPS_NO_MAGIC,
	  { { 4, 2, 1, PORTS }, { 8, 8, 1, NPS_AUX_MOST_TIME }, { 16, 8, 14, NPS_AUX_MOST_TIME } },
	  ub,
	  NULL },
};

/* Files of single engines have the same lines as the one of all. */
static const char *const dvpp_files[] = { "dvpp.data",	"dvpp.vdec", "dvpp.vpc", "dvpp.jpegd",
					  "dvpp.jpege", "dvpp.png",  "dvpp.scd", "dvpp.venc" };

void nps_aux__links(struct nps_aux *aux)
{
	for (size_t i = 0; i < NPS_ARRAY_SIZE(formats); i++)
		nps_aux__records(aux, &formats[i]);
	nps_aux__lines(aux, "hccs.data", hccs, NULL);
	nps_aux__lines(aux, "nic.data", nic, NULL);
	nps_aux__lines(aux, "roce.data", roce, NULL);
	nps_aux__lines(aux, "netdev_stats.data", netdev, NULL);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(dvpp_files); i++)
		nps_aux__lines(aux, dvpp_files[i], dvpp, end_dvpp);
}
