/* SPDX-License-Identifier: BSD-2-Clause */
/* nic and roce (outputs 3.4): what a port's counters, which only grow, grew by, and its rates where there is one sample. */
#include "derive/group_by.h"
#include "export/counter_csv.h"
#include "schema/port_rates.h"

#include <errno.h>

#define MB 1048576.0

struct port {
	struct nps_group of; /* key: device, sub: function */
	size_t first, last; /* samples */
};

static int by_function(const void *a, const void *b)
{
	const struct nps_group *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (int64_t)x->sub < (int64_t)y->sub ? -1 : (int64_t)x->sub > (int64_t)y->sub;
}

static int find_ports(const struct nps_model *m, const struct nps_port_table *t, struct nps_group_by *ports)
{
	struct nps_pace pace = { .model = m };

	for (size_t i = 0; i < t->t.len; i++, nps_pace__step(&pace)) {
		struct port *port = nps_group_by__get(ports, t->device[i], (uint64_t)t->function[i]);

		if (!port)
			return -ENOMEM;
		if (!port->of.count++)
			port->first = i;
		port->last = i;
	}
	nps_group_by__sort(ports, by_function);
	return 0;
}

/* What a counter that only grows grew by; of a single sample its value. */
static double growth(const struct port *port, const int64_t *counter)
{
	int64_t first = counter[port->first], last = counter[port->last];

	if (first == NPS_NULL || last == NPS_NULL)
		return NAN;
	if (port->first == port->last)
		return last;
	return last > first ? (double)last - (double)first : 0;
}

static void put_direction(struct nps_csv *csv, const struct nps_port_table *t, const struct port *port,
			  bool rx)
{
	double seconds = ((double)t->timestamp[port->last] - (double)t->timestamp[port->first]) / 1e9;
	double packets = growth(port, rx ? t->rx_packets : t->tx_packets);
	double bytes = growth(port, rx ? t->rx_bytes : t->tx_bytes);
	double errors = growth(port, rx ? t->rx_errors : t->tx_errors);
	double dropped = growth(port, rx ? t->rx_dropped : t->tx_dropped);
	double rate = rx ? t->rx_packet_rate[port->last] : t->tx_packet_rate[port->last];
	double byte_rate = rx ? t->rx_byte_rate[port->last] : t->tx_byte_rate[port->last];

	if (seconds > 0) {
		rate = isnan(packets) ? rate : packets / seconds;
		byte_rate = isnan(bytes) ? byte_rate : bytes / seconds;
	}
	nps_counter__cell(csv, nps_port_efficiency(byte_rate, t->bandwidth[port->first]));
	nps_counter__cell(csv, rate);
	nps_counter__cell(csv, packets > 0 ? 100 * errors / packets : 0);
	nps_counter__cell(csv, packets > 0 ? 100 * dropped / packets : 0);
}

int nps_counter__ports(const struct nps_export *ex, int dirfd, const char *stem,
		       const struct nps_port_table *t)
{
	const struct nps_csv_file file = {
		.stem = stem,
		.header = "Timestamp(us),Bandwidth(MB/s),Rx Bandwidth efficiency(%),rxPacket/s,"
			  "rxError rate(%),rxDropped rate(%),Tx Bandwidth efficiency(%),txPacket/s,"
			  "txError rate(%),txDropped rate(%),funcId",
		.stamped = nps_counter__stamped(ex),
		.device = true
	};
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);
	struct nps_group_by groups;

	nps_group_by__init(&groups, ex->model, sizeof(struct port));
	if (csv)
		csv->err = find_ports(ex->model, t, &groups);
	for (size_t i = 0; csv && i < nps_group_by__len(&groups); i++) {
		const struct port *port = nps_group_by__at(&groups, i);
		int64_t bandwidth = t->bandwidth[port->first];

		nps_csv__row(csv);
		nps_csv__device(csv, (uint32_t)port->of.key);
		nps_csv__time(csv, t->timestamp[port->last]);
		nps_counter__cell(csv, bandwidth == NPS_NULL ? NAN : bandwidth / MB);
		put_direction(csv, t, port, true);
		put_direction(csv, t, port, false);
		nps_csv__i64(csv, (int64_t)port->of.sub);
		nps_csv__end(csv);
	}
	nps_group_by__free(&groups);
	return nps_csv__close(csv);
}
