/* SPDX-License-Identifier: BSD-2-Clause */
#include "findings/slow_lines.h"

#include "base/map.h"
#include "base/vec.h"
#include "model/python_launch.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOW 1.25 /* times the median: as of the finding step_jitter */
#define EXPLAINS 0.3 /* of what slow steps lose: a line that took less of it is not named */
#define DEVICE_ENOUGH 0.3 /* of the time of all kernels: the same */
#define HOST_ENOUGH 0.1 /* of the capture: the same */
#define STEPS_MOST 16 /* that one kernel or sleep is divided among */
#define LEAST_SAMPLES 3 /* fewer samples of the clock show nothing */

/* What a line took in slow steps, in others, and in all; ns. */
struct line_times {
	uint64_t slow, rest, all;
};

struct own_line {
	uint32_t frames; /* a stack that it is the line of */
	struct line_times device, host; /* its kernels; a thread that was in it while the device was idle */
	uint64_t kernels, samples, sleeps; /* in slow steps, or in all if there are none */
};

struct host_step {
	uint64_t start, end;
	bool slow;
};

/* A time in which a device worked; `before`: what it had worked until then. */
struct busy_time {
	uint64_t start, end, before;
};

struct slow_lines {
	const struct nps_model *m;
	struct nps_vec lines; /* struct own_line */
	struct nps_map of_frames, of_line; /* text of frames, hash of a line -> row of `lines` */
	struct nps_map launchers; /* gtid that calls operators -> 1 */
	struct nps_vec steps; /* struct host_step by start */
	struct nps_vec busy; /* struct busy_time */
	size_t nslow;
	double median, lost; /* ns: of a step; by slow steps, in all */
	uint64_t kernels_ns;
};

/* --- lines --- */

size_t nps_slow_lines__own(const char *frames, const char **line)
{
	size_t end = strlen(frames), innermost = 0;

	*line = frames;
	for (size_t start = end, stop = end;; start--) {
		if (start && frames[start - 1] != ';')
			continue;
		if (stop == end) {
			innermost = end - start;
			*line = frames + start;
		}
		if (frames[start] != '<' && frames[start] != '[' &&
		    !memmem(frames + start, stop - start, "-packages/", 10) &&
		    !memmem(frames + start, stop - start, "/lib/python3", 12)) {
			*line = frames + start;
			return stop - start;
		}
		if (!start)
			return innermost;
		stop = start - 1;
	}
}

/* The row of the line of FRAMES, NPS_NONE with *ERR if there is no memory. */
static uint32_t line_row(struct slow_lines *s, uint32_t frames, int *err)
{
	uint32_t row = nps_map__get(&s->of_frames, frames);
	struct own_line *line;
	const char *text;
	uint64_t key;
	size_t len;

	if (row != NPS_NONE)
		return row;
	len = nps_slow_lines__own(nps_model__text(s->m, frames), &text);
	key = nps_hash_bytes(text, len);
	row = nps_map__get(&s->of_line, key);
	if (row == NPS_NONE) {
		line = nps_vec__push(&s->lines);
		if (!line) {
			*err = -errno;
			return NPS_NONE;
		}
		line->frames = frames;
		row = (uint32_t)(s->lines.len - 1);
		*err = nps_map__put(&s->of_line, key, row);
	}
	*err = *err ? *err : nps_map__put(&s->of_frames, frames, row);
	return *err ? NPS_NONE : row;
}

/* --- steps --- */

static int step_compare(const void *a, const void *b)
{
	const struct host_step *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int steps_judge(struct slow_lines *s)
{
	size_t n = s->steps.len;
	double *lengths = calloc(n + 1, sizeof(*lengths));
	struct host_step *steps = s->steps.data;

	if (!lengths)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		lengths[i] = (double)nps_span(steps[i].start, steps[i].end);
	qsort(lengths, n, sizeof(*lengths), nps_by_double);
	s->median = n ? lengths[n / 2] : 0;
	free(lengths);
	for (size_t i = 0; n >= 3 && i < n; i++) {
		double ns = (double)nps_span(steps[i].start, steps[i].end);

		steps[i].slow = ns > SLOW * s->median;
		s->nslow += steps[i].slow;
		s->lost += steps[i].slow ? ns - s->median : 0;
	}
	return 0;
}

static int host_steps_collect(struct slow_lines *s)
{
	const struct nps_step_table *t = &s->m->step;

	for (size_t i = 0; i < t->t.len; i++) {
		struct host_step *step = t->end[i] > t->start[i] ? nps_vec__push(&s->steps) : NULL;

		if (step)
			*step = (struct host_step){ .start = t->start[i], .end = t->end[i] };
		else if (t->end[i] > t->start[i])
			return -errno;
	}
	if (s->steps.len)
		qsort(s->steps.data, s->steps.len, sizeof(struct host_step), step_compare);
	return steps_judge(s);
}

/* --- the device --- */

static int busy_add(struct slow_lines *s, uint64_t start, uint64_t end)
{
	struct busy_time *last = s->busy.len ? &NPS_AT(&s->busy, struct busy_time, s->busy.len - 1) : NULL,
			 *next;
	uint64_t before = last ? last->before + (last->end - last->start) : 0;

	if (last && start <= last->end) {
		last->end = NPS_MAX(last->end, end);
		return 0;
	}
	next = nps_vec__push(&s->busy);
	if (!next)
		return -errno;
	next->start = start;
	next->end = NPS_MAX(end, start);
	next->before = before;
	return 0;
}

/* What devices had worked until TIME, ns. */
static uint64_t busy_until(const struct slow_lines *s, uint64_t time)
{
	const struct busy_time *busy = s->busy.data;
	size_t low = 0, high = s->busy.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (busy[middle].start <= time)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return 0;
	return busy[low - 1].before + NPS_MIN(time, busy[low - 1].end) - busy[low - 1].start;
}

/* What of [START, END] counts: all of it, or what devices were idle. */
static uint64_t part_of(const struct slow_lines *s, uint64_t start, uint64_t end, bool idle)
{
	uint64_t span = nps_span(start, end), busy = idle ? busy_until(s, end) - busy_until(s, start) : 0;

	return span - NPS_MIN(busy, span);
}

/* The first step that ends after TIME. */
static size_t step_after(const struct slow_lines *s, uint64_t time)
{
	const struct host_step *steps = s->steps.data;
	size_t low = 0, high = s->steps.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (steps[middle].end <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Adds [START, END]. Returns whether it is evidence: a part is in a slow step, or there are none. */
static bool times_add(const struct slow_lines *s, struct line_times *t, uint64_t start, uint64_t end,
		      bool idle)
{
	const struct host_step *steps = s->steps.data;
	size_t i = step_after(s, start);
	bool counts = !s->nslow;

	t->all = nps_add_sat(t->all, part_of(s, start, end, idle));
	for (int n = 0; n < STEPS_MOST && i < s->steps.len && steps[i].start < end; n++, i++) {
		uint64_t ns = part_of(s, NPS_MAX(start, steps[i].start), NPS_MIN(end, steps[i].end), idle);
		uint64_t *sum = steps[i].slow ? &t->slow : &t->rest;

		*sum = nps_add_sat(*sum, ns);
		counts |= steps[i].slow && ns;
	}
	return counts;
}

/* Tasks are in order of start. What nobody measured is left out. */
static int busy_collect(struct slow_lines *s)
{
	const struct nps_task_table *t = &s->m->task;
	struct nps_pace pace = { .model = s->m };
	int err = 0;

	for (size_t i = 0; !err && i < t->t.len; i++, nps_pace__step(&pace))
		if (nps_model__task_measured(s->m, i) &&
		    (t->class[i] == NPS_CLASS_COMPUTE || t->class[i] == NPS_CLASS_MEMCPY ||
		     t->class[i] == NPS_CLASS_COMM))
			err = busy_add(s, t->start[i], t->end[i]);
	return err;
}

static int line_kernels_collect(struct slow_lines *s)
{
	const struct nps_model *m = s->m;
	struct nps_pace pace = { .model = m };
	int err = 0;

	for (size_t i = 0; i < m->compute.t.len; i++, nps_pace__step(&pace)) {
		uint32_t task = m->compute.task[i], launch, row;
		uint64_t ns = nps_span(m->task.start[task], m->task.end[task]);
		struct own_line *line;

		if (!nps_model__task_measured(m, task))
			continue;
		s->kernels_ns = nps_add_sat(s->kernels_ns, ns);
		launch = nps_python_launch__find(m, m->task.connection[task]);
		if (launch == NPS_NONE)
			continue;
		row = line_row(s, m->py_launch.frames[launch], &err);
		if (err)
			return err;
		line = &NPS_AT(&s->lines, struct own_line, row);
		line->kernels += times_add(s, &line->device, m->task.start[task], m->task.end[task], false);
	}
	return 0;
}

/* --- the host --- */

static int launchers_collect(struct slow_lines *s)
{
	const struct nps_torch_table *t = &s->m->torch;
	struct nps_pace pace = { .model = s->m };
	int err = 0;

	for (size_t i = 0; !err && i < t->t.len; i++, nps_pace__step(&pace))
		if (t->type[i] == NPS_API_TORCH_OP && t->callchain[i] != NPS_NULL &&
		    nps_map__get(&s->launchers, t->gtid[i]) == NPS_NONE)
			err = nps_map__put(&s->launchers, t->gtid[i], 1);
	return err;
}

/* Of a sample counts what the device was idle. */
static int samples_collect(struct slow_lines *s)
{
	const struct nps_py_sample_table *t = &s->m->py_sample;
	struct nps_pace pace = { .model = s->m };
	int err = 0;

	for (size_t i = 0; i < t->t.len; i++, nps_pace__step(&pace)) {
		struct own_line *line;
		uint32_t row;
		bool counts;

		if (nps_map__get(&s->launchers, t->gtid[i]) == NPS_NONE)
			continue;
		row = line_row(s, t->frames[i], &err);
		if (err)
			return err;
		line = &NPS_AT(&s->lines, struct own_line, row);
		counts = times_add(s, &line->host, t->start[i], t->end[i], true);
		line->samples += counts && !t->slept[i];
		line->sleeps += counts && t->slept[i];
	}
	return 0;
}

/* --- findings --- */

/* ns that slow steps spent more than as many others. */
static double excess(const struct slow_lines *s, const struct line_times *t)
{
	size_t others = s->steps.len - s->nslow;

	return (double)t->slow - (others ? (double)t->rest * (double)s->nslow / (double)others : 0);
}

static bool host_is_shown(const struct own_line *line)
{
	return line->sleeps || line->samples >= LEAST_SAMPLES;
}

struct own_line_name {
	char text[200]; /* a long path has its end only */
};

static struct own_line_name own_line_name(const struct slow_lines *s, const struct own_line *line)
{
	const char *at;
	size_t len = nps_slow_lines__own(nps_model__text(s->m, line->frames), &at), most;
	struct own_line_name name;

	most = sizeof(name.text) - 4;
	if (len > most) {
		at += len - most;
		len = most;
		while (len && ((unsigned char)*at & 0xc0) == 0x80) { /* within a character */
			at++;
			len--;
		}
		snprintf(name.text, sizeof(name.text), "...%.*s", (int)len, at);
	} else {
		snprintf(name.text, sizeof(name.text), "%.*s", (int)len, at);
	}
	return name;
}

static cJSON *line_location(const struct slow_lines *s, const struct own_line *line)
{
	const char *at;
	size_t len = nps_slow_lines__own(nps_model__text(s->m, line->frames), &at);
	char *text = strndup(at, len);
	cJSON *where = cJSON_CreateObject();

	cJSON_AddStringToObject(where, "line", text ? text : "");
	cJSON_AddStringToObject(where, "stack", nps_model__text(s->m, line->frames));
	free(text);
	return where;
}

static cJSON *slow_numbers(const struct slow_lines *s, const struct own_line *line, bool device, double more)
{
	const struct line_times *t = device ? &line->device : &line->host;
	cJSON *numbers = cJSON_CreateObject();

	cJSON_AddNumberToObject(numbers, "steps", (double)s->steps.len);
	cJSON_AddNumberToObject(numbers, "slow_steps", (double)s->nslow);
	nps_find__number(numbers, "median_us", s->median / 1e3);
	nps_find__number(numbers, "lost_us", s->lost / 1e3);
	nps_find__number(numbers, "line_in_slow_steps_us", (double)t->slow / 1e3);
	nps_find__number(numbers, "line_in_other_steps_us", (double)t->rest / 1e3);
	nps_find__number(numbers, "line_more_us", more / 1e3);
	cJSON_AddNumberToObject(numbers, "kernels", device ? (double)line->kernels : 0);
	cJSON_AddNumberToObject(numbers, "samples", device ? 0 : (double)line->samples);
	cJSON_AddNumberToObject(numbers, "sleeps", device ? 0 : (double)line->sleeps);
	return numbers;
}

static int slow_steps_report(struct nps_find *find, const struct slow_lines *s, const struct own_line *line,
			     bool device, double more)
{
	const struct line_times *t = device ? &line->device : &line->host;
	size_t others = s->steps.len - s->nslow;
	char evidence[160];

	if (device)
		snprintf(evidence, sizeof(evidence), "%llu kernels that it launched",
			 (unsigned long long)line->kernels);
	else
		snprintf(evidence, sizeof(evidence), "%llu samples and %llu sleeps while the NPU was idle",
			 (unsigned long long)line->samples, (unsigned long long)line->sleeps);
	return nps_find__add(find, NPS_FIND_SLOW_STEPS, nps_find__share(find, more / 1e3),
			     slow_numbers(s, line, device, more), line_location(s, line),
			     device ? "look at what this line computes in the slow steps, and at the shapes "
				      "of its operators"
				    : "move what this line does off the thread that launches, or before it "
				      "is needed: the NPU "
				      "waits for it",
			     "%s makes %zu of %zu steps slow: %.1f us a slow step, %.1f us in others (%s); "
			     "that is %.0f %% of "
			     "what they take more than the median of %.1f us",
			     own_line_name(s, line).text, s->nslow, s->steps.len,
			     (double)t->slow / 1e3 / (double)s->nslow,
			     others ? (double)t->rest / 1e3 / (double)others : 0, evidence,
			     s->lost > 0 ? NPS_MIN(100 * more / s->lost, 100) : 0, s->median / 1e3);
}

/* The line that took most of what slow steps take more. */
static int slow_steps_find(struct nps_find *find, const struct slow_lines *s)
{
	const struct own_line *worst = NULL;
	bool device = false;
	double most = 0;

	if (!s->nslow || s->lost <= 0)
		return 0;
	for (size_t i = 0; i < s->lines.len; i++) {
		const struct own_line *line = &NPS_AT(&s->lines, struct own_line, i);
		double on_device = excess(s, &line->device);
		double on_host = host_is_shown(line) ? excess(s, &line->host) : 0;

		if (on_device <= most && on_host <= most)
			continue;
		worst = line;
		device = on_device >= on_host;
		most = device ? on_device : on_host;
	}
	if (!worst || most < EXPLAINS * s->lost)
		return 0;
	return slow_steps_report(find, s, worst, device, most);
}

static int device_line_find(struct nps_find *find, const struct slow_lines *s)
{
	const struct own_line *worst = NULL;
	cJSON *numbers;

	for (size_t i = 0; i < s->lines.len; i++) {
		const struct own_line *line = &NPS_AT(&s->lines, struct own_line, i);

		if (!worst || line->device.all > worst->device.all)
			worst = line;
	}
	if (!worst || s->lines.len < 2 || !s->kernels_ns ||
	    (double)worst->device.all < DEVICE_ENOUGH * (double)s->kernels_ns)
		return 0;
	numbers = cJSON_CreateObject();
	nps_find__number(numbers, "line_us", (double)worst->device.all / 1e3);
	nps_find__number(numbers, "kernels_us", (double)s->kernels_ns / 1e3);
	return nps_find__add(
		find, "python_device_line", nps_find__mean_share(find, (double)worst->device.all / 1e3),
		numbers, line_location(s, worst),
		"most of the device's time follows from this line: what it computes is what to make faster",
		"%s launched the kernels that took %.1f %% of the time of all kernels (%.1f of %.1f us)",
		own_line_name(s, worst).text, 100 * (double)worst->device.all / (double)s->kernels_ns,
		(double)worst->device.all / 1e3, (double)s->kernels_ns / 1e3);
}

static int host_line_find(struct nps_find *find, const struct slow_lines *s)
{
	const struct own_line *worst = NULL;
	cJSON *numbers;
	double us;

	for (size_t i = 0; i < s->lines.len; i++) {
		const struct own_line *line = &NPS_AT(&s->lines, struct own_line, i);

		if (host_is_shown(line) && (!worst || line->host.all > worst->host.all))
			worst = line;
	}
	us = worst ? (double)worst->host.all / 1e3 : 0;
	if (!worst || !s->busy.len || nps_find__share(find, us) < HOST_ENOUGH)
		return 0;
	numbers = cJSON_CreateObject();
	nps_find__number(numbers, "line_us", us);
	return nps_find__add(find, "python_host_line", nps_find__share(find, us), numbers,
			     line_location(s, worst),
			     "move what this line does off the thread that launches, or make it cheaper: the "
			     "NPU waits for "
			     "it",
			     "no NPU worked for %.1f us while a thread that launches was in %s", us,
			     own_line_name(s, worst).text);
}

static int own_lines_collect(struct slow_lines *s)
{
	int err = host_steps_collect(s);

	err = err ? err : busy_collect(s);
	err = err ? err : launchers_collect(s);
	err = err ? err : line_kernels_collect(s);
	return err ? err : samples_collect(s);
}

int nps_slow_lines__find(struct nps_find *find)
{
	const struct nps_model *m = find->model;
	struct slow_lines s = { .m = m };
	int err;

	nps_vec__init(&s.lines, m->tmpfd, sizeof(struct own_line));
	nps_vec__init(&s.steps, m->tmpfd, sizeof(struct host_step));
	nps_vec__init(&s.busy, m->tmpfd, sizeof(struct busy_time));
	err = own_lines_collect(&s);
	err = err ? err : slow_steps_find(find, &s);
	err = err ? err : device_line_find(find, &s);
	err = err ? err : host_line_find(find, &s);
	nps_vec__free(&s.lines);
	nps_vec__free(&s.steps);
	nps_vec__free(&s.busy);
	nps_map__free(&s.of_frames);
	nps_map__free(&s.of_line);
	nps_map__free(&s.launchers);
	return err;
}
