/* SPDX-License-Identifier: BSD-2-Clause */
/* nic and roce (outputs 3.4): increments of a port's counters, and its rates where there is one sample. */
#include "derive/group_by.h"
#include "export/counter_csv.h"
#include "export/table.h"
#include "export/port_rates.h"

#include <errno.h>

struct port {
	struct nps_group of; /* key: device, sub: function */
	size_t first, last; /* samples */
	/* cells: */
	uint64_t time;
	double bandwidth; /* MB/s */
	struct direction {
		double efficiency, rate, errors, dropped;
	} rx, tx;
	uint32_t device;
	int64_t function;
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
			return -errno;
		if (!port->of.count++)
			port->first = i;
		port->last = i;
	}
	nps_group_by__sort(ports, by_function);
	return 0;
}

/* What a counter that only grows grew by; of a single sample its value. */
static double counter_growth(const struct port *port, const int64_t *counter)
{
	int64_t first = counter[port->first], last = counter[port->last];

	if (first == NPS_NULL || last == NPS_NULL)
		return NAN;
	if (port->first == port->last)
		return last;
	return last > first ? (double)last - (double)first : 0;
}

static struct direction direction_of(const struct nps_port_table *t, const struct port *port, bool rx)
{
	double seconds = ((double)t->timestamp[port->last] - (double)t->timestamp[port->first]) / 1e9;
	double packets = counter_growth(port, rx ? t->rx_packets : t->tx_packets);
	double bytes = counter_growth(port, rx ? t->rx_bytes : t->tx_bytes);
	double errors = counter_growth(port, rx ? t->rx_errors : t->tx_errors);
	double dropped = counter_growth(port, rx ? t->rx_dropped : t->tx_dropped);
	double rate = rx ? t->rx_packet_rate[port->last] : t->tx_packet_rate[port->last];
	double byte_rate = rx ? t->rx_byte_rate[port->last] : t->tx_byte_rate[port->last];

	if (seconds > 0) {
		rate = isnan(packets) ? rate : packets / seconds;
		byte_rate = isnan(bytes) ? byte_rate : bytes / seconds;
	}
	return (struct direction){ .efficiency = nps_port_efficiency(byte_rate, t->bandwidth[port->first]),
				   .rate = rate,
				   .errors = packets > 0 ? 100 * errors / packets : 0,
				   .dropped = packets > 0 ? 100 * dropped / packets : 0 };
}

static void fill_cells(const struct nps_port_table *t, struct port *port)
{
	int64_t bandwidth = t->bandwidth[port->first];

	port->time = t->timestamp[port->last];
	port->bandwidth = bandwidth == NPS_NULL ? NPS_NAN : bandwidth / NPS_MB;
	port->rx = direction_of(t, port, true);
	port->tx = direction_of(t, port, false);
	port->device = (uint32_t)port->of.key;
	port->function = (int64_t)port->of.sub;
}

#define PORT(title, format, member, ...) NPS_CSV_FIELD(title, format, struct port, member, ##__VA_ARGS__)

static const struct nps_csv_column columns[] = {
	PORT("Device_id", DEVICE, device, .when = NPS_CSV_B),
	PORT("Timestamp(us)", TIME, time),
	PORT("Bandwidth(MB/s)", DECIMAL, bandwidth),
	PORT("Rx Bandwidth efficiency(%)", DECIMAL, rx.efficiency),
	PORT("rxPacket/s", DECIMAL, rx.rate),
	PORT("rxError rate(%)", DECIMAL, rx.errors),
	PORT("rxDropped rate(%)", DECIMAL, rx.dropped),
	PORT("Tx Bandwidth efficiency(%)", DECIMAL, tx.efficiency),
	PORT("txPacket/s", DECIMAL, tx.rate),
	PORT("txError rate(%)", DECIMAL, tx.errors),
	PORT("txDropped rate(%)", DECIMAL, tx.dropped),
	PORT("funcId", NUMBER_OR_BLANK, function),
};

static int write_ports(const struct nps_export *ex, int dirfd, const char *stem,
		       const struct nps_port_table *t)
{
	const struct nps_csv_table table = { stem, .columns = NPS_CSV_COLUMNS(columns) };
	struct nps_group_by ports;
	int err;

	nps_group_by__init(&ports, ex->model, sizeof(struct port));
	err = find_ports(ex->model, t, &ports);
	if (err)
		goto out;
	for (size_t i = 0; i < nps_group_by__len(&ports); i++)
		fill_cells(t, nps_group_by__at(&ports, i));
	err = nps_csv_table__write_structs(ex, dirfd, &table, &ports.rows);
out:
	nps_group_by__free(&ports);
	return err;
}

int nps_counter__ports(const struct nps_export *ex, int dirfd)
{
	int err = write_ports(ex, dirfd, "nic", &ex->model->nic);

	return err ? err : write_ports(ex, dirfd, "roce", &ex->model->roce);
}
