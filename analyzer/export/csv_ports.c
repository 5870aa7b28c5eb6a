/* SPDX-License-Identifier: BSD-2-Clause */
/* nic and roce (outputs 3.4): what a port's counters, which only grow, grew by, and its rates where there is one sample. */
#include "base/map.h"
#include "export/counter_csv.h"
#include "schema/port_rates.h"

#include <errno.h>
#include <stdlib.h>

#define MB 1048576.0

struct port {
	uint32_t device;
	int64_t function;
	size_t first, last; /* samples */
};

static int by_function(const void *a, const void *b)
{
	const struct port *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

static int find_ports(const struct nps_model *m, const struct nps_port_table *t, struct nps_vec *ports)
{
	struct nps_pace pace = { .model = m };
	struct nps_map of = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < t->t.len; i++, nps_pace__step(&pace)) {
		uint64_t key = nps_hash2(t->device[i], t->function[i]);
		uint32_t row = nps_map__get(&of, key);
		struct port *port = row == NPS_NONE ? nps_vec__push(ports) : &NPS_AT(ports, struct port, row);

		if (!port) {
			err = -ENOMEM;
			break;
		}
		if (row == NPS_NONE) {
			*port = (struct port){ .device = t->device[i],
					       .function = t->function[i],
					       .first = i };
			err = nps_map__put(&of, key, ports->len - 1);
		}
		port->last = i;
	}
	nps_map__free(&of);
	return err;
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
	struct nps_vec rows;

	nps_vec__init(&rows, ex->model->tmpfd, sizeof(struct port));
	if (csv)
		csv->err = find_ports(ex->model, t, &rows);
	if (rows.data)
		qsort(rows.data, rows.len, sizeof(struct port), by_function);
	for (size_t i = 0; csv && i < nps_counter__rows(&rows); i++) {
		const struct port *port = &NPS_AT(&rows, struct port, i);
		int64_t bandwidth = t->bandwidth[port->first];

		nps_csv__row(csv);
		nps_csv__device(csv, port->device);
		nps_csv__time(csv, t->timestamp[port->last]);
		nps_counter__cell(csv, bandwidth == NPS_NULL ? NAN : bandwidth / MB);
		put_direction(csv, t, port, true);
		put_direction(csv, t, port, false);
		nps_csv__i64(csv, port->function);
		nps_csv__end(csv);
	}
	nps_vec__free(&rows);
	return nps_csv__close(csv);
}
