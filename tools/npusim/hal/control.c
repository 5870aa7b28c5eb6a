/* SPDX-License-Identifier: BSD-2-Clause */
#include "control.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define RULES_MAX 128
#define LINE_BYTES 256
#define ALWAYS UINT64_MAX

struct rule {
	char text[LINE_BYTES];
	enum control_order order;
	uint32_t device, channel;
	enum control_call call;
	int64_t value; /* code, ms */
	uint64_t left; /* times, records, bytes */
};

static struct {
	pthread_mutex_t lock;
	struct timespec changed;
	off_t size;
	int nrules;
	struct rule rules[RULES_MAX];
} control = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char *const call_names[CALLS] = { "start", "read",	    "stop", "flush",
					       "poll",	"channels", "dcmi", "info" };

static uint32_t number_or_any(const char *s)
{
	return strcmp(s, "*") ? (uint32_t)strtoul(s, NULL, 10) : CONTROL_ANY;
}

static bool parse_call(struct rule *r, const char *name)
{
	for (int i = 0; i < CALLS; i++) {
		if (!strcmp(name, call_names[i])) {
			r->call = (enum control_call)i;
			return true;
		}
	}
	return false;
}

/* `error DEVICE CHANNEL CALL CODE [COUNT|always]`, `slow DEVICE CHANNEL CALL MS` */
static bool parse_of_call(struct rule *r, char **word, int n)
{
	if (n < 5 || !parse_call(r, word[3]))
		return false;
	r->value = strtol(word[4], NULL, 0);
	r->left = 1;
	if (r->order == ORDER_SLOW || (n > 5 && !strcmp(word[5], "always")))
		r->left = ALWAYS;
	else if (n > 5)
		r->left = strtoull(word[5], NULL, 10);
	return true;
}

static bool rule_parse(struct rule *r, char *line)
{
	static const char *const orders[] = { "error", "slow", "lose", "overwrite", "reset" };
	char *word[6], *save = NULL;
	int n = 0;

	for (char *w = strtok_r(line, " \t\n", &save); w && n < 6; w = strtok_r(NULL, " \t\n", &save))
		word[n++] = w;
	if (n < 2)
		return false;
	r->device = number_or_any(word[1]);
	r->channel = n > 2 ? number_or_any(word[2]) : CONTROL_ANY;
	for (int i = 0; i < 5; i++) {
		if (strcmp(word[0], orders[i]))
			continue;
		r->order = (enum control_order)i;
		if (i <= ORDER_SLOW)
			return parse_of_call(r, word, n);
		if (i < ORDER_RESET)
			r->left = n > 3 ? strtoull(word[3], NULL, 10) : 1;
		return true;
	}
	return false;
}

static void read_rules(FILE *f)
{
	struct rule *old = malloc(sizeof(control.rules));
	int nold = control.nrules, n = 0;
	char line[LINE_BYTES];

	if (!old)
		return;
	memcpy(old, control.rules, sizeof(control.rules));
	while (n < RULES_MAX && fgets(line, sizeof(line), f)) {
		struct rule *r = &control.rules[n];

		if (line[0] == '#' || line[0] == '\n')
			continue;
		memset(r, 0, sizeof(*r));
		strcpy(r->text, line);
		if (!rule_parse(r, line)) {
			fprintf(stderr, "npusim: NPUSIM_CONTROL: not understood: %s", r->text);
			continue;
		}
		/* A line that was there before is not a new order. */
		if (n < nold && !strcmp(old[n].text, r->text))
			r->left = old[n].left;
		n++;
	}
	control.nrules = n;
	free(old);
}

/* With the lock. */
static void refresh(void)
{
	const char *path = getenv("NPUSIM_CONTROL");
	struct stat st;
	FILE *f;

	if (!path || !*path || stat(path, &st))
		return;
	if (st.st_mtim.tv_sec == control.changed.tv_sec && st.st_mtim.tv_nsec == control.changed.tv_nsec &&
	    st.st_size == control.size)
		return;
	f = fopen(path, "re");
	if (!f)
		return;
	read_rules(f);
	fclose(f);
	control.changed = st.st_mtim;
	control.size = st.st_size;
}

static bool matches(const struct rule *r, enum control_order order, uint32_t device, uint32_t channel)
{
	return r->order == order && r->left &&
	       (r->device == CONTROL_ANY || device == CONTROL_ANY || r->device == device) &&
	       (r->channel == CONTROL_ANY || channel == CONTROL_ANY || r->channel == channel);
}

void control_forget(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

	memcpy(&control.lock, &unlocked, sizeof(unlocked));
	control.nrules = 0;
	control.size = -1;
}

bool control_is_used(void)
{
	return getenv("NPUSIM_CONTROL") != NULL;
}

int control_call(uint32_t device, uint32_t channel, enum control_call call)
{
	int64_t code = 0, ms = 0;

	pthread_mutex_lock(&control.lock);
	refresh();
	for (int i = 0; i < control.nrules; i++) {
		struct rule *r = &control.rules[i];

		if (r->call != call)
			continue;
		if (matches(r, ORDER_SLOW, device, channel))
			ms += r->value;
		if (!code && matches(r, ORDER_ERROR, device, channel)) {
			code = r->value;
			r->left -= r->left != ALWAYS;
		}
	}
	pthread_mutex_unlock(&control.lock);
	if (ms > 0) {
		const struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

		nanosleep(&ts, NULL);
	}
	return (int)code;
}

uint64_t control_consume(enum control_order order, uint32_t device, uint32_t channel, uint64_t most)
{
	uint64_t consumed = 0;

	pthread_mutex_lock(&control.lock);
	refresh();
	for (int i = 0; !consumed && i < control.nrules; i++) {
		struct rule *r = &control.rules[i];

		if (!matches(r, order, device, channel))
			continue;
		consumed = r->left < most ? r->left : most;
		r->left -= consumed;
	}
	pthread_mutex_unlock(&control.lock);
	return consumed;
}

uint32_t control_resets(uint32_t device)
{
	uint32_t n = 0;

	pthread_mutex_lock(&control.lock);
	refresh();
	for (int i = 0; i < control.nrules; i++)
		n += control.rules[i].order == ORDER_RESET &&
		     (control.rules[i].device == CONTROL_ANY || control.rules[i].device == device);
	pthread_mutex_unlock(&control.lock);
	return n;
}
