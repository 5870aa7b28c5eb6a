/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/trace/import_trace_read.h"

#include "base/input_file.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define WINDOW (8UL << 20)
#define EVENT (1UL << 20) /* bytes of an event that is read */
#define NS_FROM 100000000000000000ULL /* Unix time: as us it would be the year 5138, so it is ns */

/* --- the window ----------------------------------------------------------------------------------- */

static void reader_fill_window(struct nps_trace_reader *r)
{
	memmove(r->buf, r->buf + r->at, r->len - r->at);
	r->len -= r->at;
	r->at = 0;
	while (!r->end && r->len < WINDOW) {
		int n = gzread(r->file, r->buf + r->len, WINDOW - r->len), code;

		if (n > 0) {
			r->len += n;
			r->read += n;
			continue;
		}
		r->end = true;
		gzerror(r->file, &code);
		/* a compressed file that ends early is cut, and what was read of it counts */
		r->err = n < 0 && code == Z_ERRNO ? -errno : 0;
		r->cut = code != Z_OK && code != Z_STREAM_END;
	}
	r->buf[r->len] = 0;
}

/* The next byte that is no blank, 0 at the end. */
static char peek(struct nps_trace_reader *r)
{
	for (;;) {
		if (r->at == r->len && r->end)
			return 0;
		if (r->at == r->len)
			reader_fill_window(r);
		else if (r->buf[r->at] == ' ' || r->buf[r->at] == '\n' || r->buf[r->at] == '\r' ||
			 r->buf[r->at] == '\t')
			r->at++;
		else
			return r->buf[r->at];
	}
}

/* Passes over a value of any size. */
static void skip_value(struct nps_trace_reader *r)
{
	bool in_string = false;
	int64_t depth = 0;

	peek(r);
	for (;; r->at++) {
		char c;

		if (r->at == r->len && !r->end)
			reader_fill_window(r);
		if (r->at == r->len)
			return;
		c = r->buf[r->at];
		if (in_string) {
			if (c == '\\' && r->at + 1 == r->len)
				reader_fill_window(
					r); /* at the end nothing follows, which the next round sees */
			if (c == '\\' && r->at + 1 < r->len)
				r->at++;
			in_string = c != '"';
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			depth++;
		} else {
			depth -= c == '}' || c == ']';
			if (depth < 0 || (c == ',' && !depth))
				return;
		}
		if (!in_string && !depth && (c == '}' || c == ']' || c == '"')) {
			r->at++;
			return;
		}
	}
}

/* --- values of an event --------------------------------------------------------------------------- */

struct json_cursor {
	char *p, *end;
	bool bad;
};

static char next_char(struct json_cursor *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\r' || *c->p == '\t'))
		c->p++;
	return c->p < c->end ? *c->p : 0;
}

static bool expect(struct json_cursor *c, char what)
{
	if (next_char(c) == what) {
		c->p++;
		return true;
	}
	c->bad = true;
	return false;
}

static int hex4(const char *p)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		char c = p[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

static char *put_utf8(char *out, uint32_t code)
{
	if (code < 0x80) {
		*out++ = code;
	} else if (code < 0x800) {
		*out++ = 0xc0 | code >> 6;
		*out++ = 0x80 | (code & 0x3f);
	} else if (code < 0x10000) {
		*out++ = 0xe0 | code >> 12;
		*out++ = 0x80 | (code >> 6 & 0x3f);
		*out++ = 0x80 | (code & 0x3f);
	} else {
		*out++ = 0xf0 | code >> 18;
		*out++ = 0x80 | (code >> 12 & 0x3f);
		*out++ = 0x80 | (code >> 6 & 0x3f);
		*out++ = 0x80 | (code & 0x3f);
	}
	return out;
}

/* The escape at IN, behind the backslash, to *OUT; what follows it, or NULL. */
static char *unescape(char *in, const char *end, char **out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = in < end && *in ? strchr(from, *in) : NULL;
	int code, low;

	if (at) {
		*(*out)++ = to[at - from];
		return in + 1;
	}
	code = end - in >= 5 && *in == 'u' ? hex4(in + 1) : -1;
	if (code < 0)
		return NULL;
	in += 5;
	if (code >= 0xd800 && code < 0xdc00 && end - in >= 6 && in[0] == '\\' && in[1] == 'u') {
		low = hex4(in + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			*out = put_utf8(*out, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
			return in + 6;
		}
	}
	*out = put_utf8(*out, code);
	return in;
}

/* A string, in place; the cursor is at its first quote. */
static struct nps_trace_text cursor_string(struct json_cursor *c)
{
	char *begin = ++c->p, *out;

	while (c->p < c->end && *c->p != '"' && *c->p != '\\' && *c->p != '\n')
		c->p++;
	for (out = c->p; c->p < c->end && *c->p != '"' && *c->p != '\n';) {
		if (*c->p != '\\') {
			*out++ = *c->p++;
			continue;
		}
		c->p = unescape(c->p + 1, c->end, &out);
		if (!c->p) {
			c->p = c->end;
			c->bad = true;
		}
	}
	if (c->p >= c->end || *c->p != '"') { /* no string goes on in the next line */
		c->bad = true;
		return (struct nps_trace_text){ NULL, 0 };
	}
	c->p++;
	return (struct nps_trace_text){ begin, out - begin };
}

/* Passes over an object or a list. */
static void skip_nested(struct json_cursor *c)
{
	int64_t depth = 0;

	while (c->p < c->end) {
		char byte = *c->p;

		if (byte == '"') {
			cursor_string(c);
			continue;
		}
		c->p++;
		depth += (byte == '{' || byte == '[') - (byte == '}' || byte == ']');
		if (!depth)
			return;
	}
	c->bad = true;
}

/* Any value; nested ones and null are not there. */
static struct nps_trace_text value(struct json_cursor *c)
{
	struct nps_trace_text text = { NULL, 0 };
	char first = next_char(c), *begin = c->p;

	if (first == '"')
		return cursor_string(c);
	if (first == '{' || first == '[') {
		skip_nested(c);
		return text;
	}
	while (c->p < c->end && *c->p != ',' && *c->p != '}' && *c->p != ']' && *c->p != ' ' &&
	       *c->p != '\n' && *c->p != '\r' && *c->p != '\t')
		c->p++;
	if (c->p == begin || c->p == c->end)
		c->bad = true;
	else if (first == '-' || (first >= '0' && first <= '9'))
		text = (struct nps_trace_text){ begin, c->p - begin };
	return text;
}

/* --- numbers -------------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool nps_trace__u64(const struct nps_trace_text *text, uint64_t *value)
{
	uint64_t n = 0;

	if (!text->at || !text->len)
		return false;
	for (uint32_t i = 0; i < text->len; i++)
		if (!is_digit(text->at[i]) || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, text->at[i] - '0', &n))
			return false;
	*value = n;
	return true;
}

bool nps_trace__i64(const struct nps_trace_text *text, int64_t *value)
{
	bool minus = text->at && text->len && text->at[0] == '-';
	struct nps_trace_text digits = { text->at, text->len };
	uint64_t n;

	if (minus) {
		digits.at++;
		digits.len--;
	}
	if (!nps_trace__u64(&digits, &n) || n > INT64_MAX)
		return false;
	*value = minus ? -(int64_t)n : (int64_t)n;
	return true;
}

/* A number as its integer part and 10^-9 of its rest. */
struct decimal {
	uint64_t whole;
	uint32_t rest;
};

/* Numbers with an exponent; those that are too large for it are none. */
static bool exponential(const struct nps_trace_text *text, struct decimal *d)
{
	char copy[64], *end;
	double number;

	if (text->len >= sizeof(copy))
		return false;
	memcpy(copy, text->at, text->len);
	copy[text->len] = 0;
	number = strtod(copy, &end);
	if (*end || !(number >= 0) || number >= 1.8e19)
		return false;
	d->whole = (uint64_t)number;
	d->rest = (uint32_t)((number - d->whole) * 1e9);
	return true;
}

/* A number that is not negative. */
static bool decimal(const struct nps_trace_text *text, struct decimal *d)
{
	uint32_t i = 0, scale = 1000000000;

	*d = (struct decimal){ 0 };
	if (!text->at || !text->len || !is_digit(text->at[0]))
		return false;
	for (; i < text->len && is_digit(text->at[i]); i++)
		if (__builtin_mul_overflow(d->whole, 10, &d->whole) ||
		    __builtin_add_overflow(d->whole, text->at[i] - '0', &d->whole))
			return false;
	if (i < text->len && text->at[i] == '.')
		for (i++; i < text->len && is_digit(text->at[i]); i++) {
			scale /= 10;
			d->rest += scale * (text->at[i] - '0');
		}
	if (i == text->len)
		return true;
	return (text->at[i] == 'e' || text->at[i] == 'E') && exponential(text, d);
}

/* Ns of a number of us, rounded; UINT64_MAX if there are too many. */
static uint64_t us_to_ns(const struct decimal *d)
{
	uint64_t ns;

	if (__builtin_mul_overflow(d->whole, 1000, &ns))
		return UINT64_MAX;
	return nps_add_sat(ns, (d->rest + 500000) / 1000000);
}

bool nps_trace__ns(const struct nps_trace_text *text, uint64_t *ns)
{
	struct decimal d;

	if (!decimal(text, &d))
		return false;
	*ns = us_to_ns(&d);
	return *ns < UINT64_MAX;
}

/* --- events --------------------------------------------------------------------------------------- */

#define IS(text, literal)                                                                                    \
	((text).len == sizeof(literal) - 1 && !memcmp((text).at, literal, sizeof(literal) - 1))

static const struct {
	const char *name;
	uint8_t len, arg;
} names[] = {
#define ARG(name, arg)                                                                                       \
	{                                                                                                    \
		name, sizeof(name) - 1, arg                                                                  \
	}
	ARG("connection_id", NPS_TRACE_CONNECTION),
	ARG("Task Type", NPS_TRACE_TASK_TYPE),
	ARG("Physic Stream Id", NPS_TRACE_STREAM),
	ARG("Stream Id", NPS_TRACE_STREAM),
	ARG("Task Id", NPS_TRACE_TASK),
	ARG("Batch Id", NPS_TRACE_BATCH),
	ARG("Subtask Id", NPS_TRACE_SUBTASK),
	ARG("Model Id", NPS_TRACE_MODEL),
	ARG("model id", NPS_TRACE_MODEL),
	ARG("data size(Byte)", NPS_TRACE_SIZE),
	ARG("size(B)", NPS_TRACE_SIZE),
	ARG("correlation_id", NPS_TRACE_CORRELATION),
	ARG("Sequence number", NPS_TRACE_SEQUENCE),
	ARG("Fwd thread id", NPS_TRACE_FORWARD),
	ARG("Input Dims", NPS_TRACE_SHAPES),
	ARG("Input type", NPS_TRACE_TYPES),
	ARG("Call stack", NPS_TRACE_STACK),
	ARG("item_id", NPS_TRACE_ITEM),
	ARG("task type", NPS_TRACE_SUBTYPE),
	ARG("alg_type", NPS_TRACE_ALGORITHM),
	ARG("count", NPS_TRACE_COUNT),
	ARG("name", NPS_TRACE_NAME),
	ARG("labels", NPS_TRACE_LABELS),
	ARG("sort_index", NPS_TRACE_SORT_INDEX),
	ARG("time_source", NPS_TRACE_SOURCE),
	ARG("start_low_us", NPS_TRACE_START_LOW),
	ARG("start_high_us", NPS_TRACE_START_HIGH),
	ARG("end_low_us", NPS_TRACE_END_LOW),
	ARG("end_high_us", NPS_TRACE_END_HIGH),
};

static void read_args(struct json_cursor *c, struct nps_trace_event *event)
{
	if (next_char(c) != '{') {
		value(c);
		return;
	}
	c->p++;
	if (next_char(c) == '}') {
		c->p++;
		return;
	}
	while (!c->bad) {
		struct nps_trace_text key = { NULL, 0 }, text;
		char byte;

		if (next_char(c) == '"')
			key = cursor_string(c);
		if (!key.at || !expect(c, ':')) {
			c->bad = true;
			return;
		}
		text = value(c);
		for (size_t i = 0; i < NPS_ARRAY_SIZE(names); i++)
			if (names[i].len == key.len && !memcmp(names[i].name, key.at, key.len)) {
				event->value[names[i].arg] = text;
				break;
			}
		byte = next_char(c);
		c->p++;
		if (byte == '}')
			return;
		if (byte != ',')
			c->bad = true;
	}
}

struct slice_times {
	struct nps_trace_text start, length;
};

static void read_member(struct json_cursor *c, const struct nps_trace_text *key,
			struct nps_trace_event *event, struct slice_times *times)
{
	struct nps_trace_text text;

	if (IS(*key, "args")) {
		read_args(c, event);
		return;
	}
	text = value(c);
	if (IS(*key, "ph"))
		event->phase = text.at && text.len == 1 ? text.at[0] : 0;
	else if (IS(*key, "name"))
		event->name = text;
	else if (IS(*key, "cat"))
		event->cat = text;
	else if (IS(*key, "pid"))
		event->pid = text;
	else if (IS(*key, "tid"))
		event->tid = text;
	else if (IS(*key, "ts"))
		times->start = text;
	else if (IS(*key, "dur"))
		times->length = text;
}

/* The event at the cursor. False if it is none. */
static bool cursor_read_event(struct json_cursor *c, struct nps_trace_event *event)
{
	struct decimal start, length;
	struct slice_times times = { 0 };
	bool ns;

	*event = (struct nps_trace_event){ 0 };
	if (!expect(c, '{'))
		return false;
	if (next_char(c) == '}') {
		c->p++;
		return true;
	}
	for (;;) {
		struct nps_trace_text key = { NULL, 0 };
		char byte;

		if (next_char(c) == '"')
			key = cursor_string(c);
		if (!key.at || !expect(c, ':'))
			return false;
		read_member(c, &key, event, &times);
		byte = next_char(c);
		if (c->bad || (byte != ',' && byte != '}'))
			return false;
		c->p++;
		if (byte == '}')
			break;
	}
	if (!times.start.at)
		return event->phase != 'X' && event->phase != 'B' && event->phase != 'E';
	if (!decimal(&times.start, &start))
		return false;
	if (times.length.at ? !decimal(&times.length, &length) : event->phase == 'X')
		return false;
	if (!times.length.at)
		length = (struct decimal){ 0 };
	ns = start.whole >= NS_FROM;
	event->start = ns ? start.whole : us_to_ns(&start);
	event->end = nps_add_sat(event->start, ns ? length.whole : us_to_ns(&length));
	event->timed = event->end < UINT64_MAX;
	return event->timed;
}

/* The object's next list of events: 1, 0 at the object's end, -EILSEQ if it is damaged. */
static int find_member(struct nps_trace_reader *r)
{
	char byte;

	while ((byte = peek(r)) && byte != '}') {
		struct json_cursor c;
		struct nps_trace_text key;

		if (byte == ',') {
			r->at++;
			continue;
		}
		if (byte != '"')
			return -EILSEQ;
		if (!r->end && r->len - r->at < EVENT)
			reader_fill_window(r);
		c = (struct json_cursor){ r->buf + r->at, r->buf + r->len, false };
		key = cursor_string(&c);
		if (!key.at || !expect(&c, ':'))
			return -EILSEQ;
		r->at = c.p - r->buf;
		byte = peek(r);
		if (IS(key, "traceEvents") && byte == '[') {
			r->at++;
			r->open = true;
			r->closed = false;
			return 1;
		}
		skip_value(r);
	}
	r->at += byte == '}';
	return 0;
}

/* Goes to a list of events: 1, 0 if nothing follows, -EILSEQ if what follows has none. */
static int find_list(struct nps_trace_reader *r)
{
	char byte = peek(r);
	int found;

	if (r->len - r->at >= 3 && !memcmp(r->buf + r->at, "\xef\xbb\xbf", 3)) {
		r->at += 3;
		byte = peek(r);
	}
	if (!byte)
		return 0;
	r->object = byte == '{';
	if (byte != '[' && byte != '{')
		return -EILSEQ;
	r->at++;
	if (r->object) {
		found = find_member(r);
		return found ? found : -EILSEQ;
	}
	r->open = true;
	r->closed = false;
	return 1;
}

/* Behind the end of a list of events: goes to the next list. False: there is none, the rest was counted. */
static bool find_more(struct nps_trace_reader *r)
{
	int found = r->object ? find_member(r) : 0;
	uint64_t begin;
	char byte;

	r->closed = true;
	if (found > 0)
		return true;
	byte = peek(r);
	begin = r->read - (r->len - r->at);
	if (!found && !r->object && (byte == ',' || byte == '{')) { /* a bracket too many */
		r->damaged++;
		r->open = true;
		return true;
	}
	if (!found && find_list(r) > 0)
		return true;
	while (peek(r))
		r->at = r->len;
	r->behind = r->read - begin;
	return false;
}

int nps_trace__next(struct nps_trace_reader *r, struct nps_trace_event *event)
{
	for (;;) {
		struct json_cursor c;
		size_t end;
		char byte;

		if (!r->end && r->len - r->at < EVENT)
			reader_fill_window(r);
		byte = r->open ? peek(r) : 0;
		if (r->err)
			return r->err;
		if (byte == ']') {
			r->at++;
			r->open = false;
			if (find_more(r))
				continue;
			return r->err;
		}
		if (!byte) {
			r->cut |= r->open && !r->closed;
			r->open = false;
			return 0;
		}
		if (byte == ',') {
			r->at++;
			continue;
		}
		if (!r->end && r->len - r->at < EVENT)
			reader_fill_window(r);
		end = NPS_MIN(r->len, r->at + EVENT);
		c = (struct json_cursor){ r->buf + r->at, r->buf + end, false };
		if (byte == '{' && cursor_read_event(&c, event)) {
			r->at = c.p - r->buf;
			return 1;
		}
		/* Goes on behind what was looked at, so that no byte is looked at twice. */
		r->damaged++;
		r->at = NPS_MIN(NPS_MAX((size_t)(c.p - r->buf), r->at + 1), r->len);
		while (r->at < r->len && r->buf[r->at] != '{')
			r->at++;
	}
}

int nps_trace__open(struct nps_trace_reader *r, const char *path)
{
	int fd, err;

	*r = (struct nps_trace_reader){ 0 };
	fd = nps_input_file__open(AT_FDCWD, path, NULL);
	if (fd < 0)
		return fd;
	r->file = gzdopen(fd, "rb");
	if (!r->file) {
		close(fd);
		return -ENOMEM;
	}
	gzbuffer(r->file, 256 << 10);
	r->buf = malloc(WINDOW + 1);
	if (!r->buf) {
		nps_trace__close(r);
		return -ENOMEM;
	}
	reader_fill_window(r);
	err = r->err ? r->err : find_list(r) > 0 ? 0 : -EILSEQ;
	if (err)
		nps_trace__close(r);
	return err;
}

void nps_trace__close(struct nps_trace_reader *r)
{
	if (r->file)
		gzclose(r->file);
	free(r->buf);
	r->file = NULL;
	r->buf = NULL;
}
