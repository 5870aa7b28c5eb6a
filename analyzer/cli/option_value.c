/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/option_value.h"

#include "base/util.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST 1e18 /* of what has a unit: fits into 64 bits, whatever is added */
#define LONGEST_PLACEHOLDER 24 /* characters: longer lists of words are in the text */

/* The largest first. */
struct unit {
	const char *name;
	double factor;
};

static const struct unit time_units[] = { { "h", 3600e9 }, { "m", 60e9 }, { "s", 1e9 },
					  { "ms", 1e6 },   { "us", 1e3 }, { NULL, 1e9 } };
static const struct unit size_units[] = { { "G", 1 << 30 }, { "M", 1 << 20 }, { "K", 1 << 10 }, { NULL, 1 } };
static const struct unit percent_units[] = { { "%", 1 }, { NULL, 1 } };

/* Units of what has some, a number without one is of the last; NULL. */
static const struct unit *units_of(enum nps_option_type type)
{
	switch (type) {
	case NPS_OPTION_TIME:
		return time_units;
	case NPS_OPTION_SIZE:
		return size_units;
	case NPS_OPTION_PERCENT:
		return percent_units;
	default:
		return NULL;
	}
}

static __attribute__((format(printf, 2, 3))) void text_append(char text[NPS_OPTION_TEXT_MAX], const char *fmt,
							      ...)
{
	size_t len = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + len, NPS_OPTION_TEXT_MAX - len, fmt, ap);
	va_end(ap);
}

static void words_append(char text[NPS_OPTION_TEXT_MAX], const struct nps_option_word *words,
			 const char *between)
{
	for (const struct nps_option_word *w = words; w->name; w++)
		text_append(text, "%s%s", w == words ? "" : between, w->name);
}

/* 4e9 ns as "4s". */
static void quantity_append(char text[NPS_OPTION_TEXT_MAX], enum nps_option_type type, double quantity)
{
	const struct unit *unit = units_of(type);

	while (unit && unit->name && unit[1].name && quantity < unit->factor)
		unit++;
	if (!unit || quantity == 0)
		text_append(text, "%.0f", quantity);
	else
		text_append(text, "%g%s", quantity / unit->factor, unit->name ? unit->name : "");
}

/* The least that a user would name: above 0 is no limit. */
static bool has_min(const struct nps_option *option)
{
	return option->min > 1 || option->type == NPS_OPTION_NUMBER || option->type == NPS_OPTION_PERCENT ||
	       (option->max > 0 && option->min == 0);
}

static void range_append(char text[NPS_OPTION_TEXT_MAX], const struct nps_option *option)
{
	if (has_min(option) && option->max > 0) {
		quantity_append(text, option->type, option->min);
		text_append(text, " to ");
		quantity_append(text, option->type, option->max);
	} else if (has_min(option)) {
		text_append(text, "at least ");
		quantity_append(text, option->type, option->min);
	} else if (option->max > 0) {
		text_append(text, "up to ");
		quantity_append(text, option->type, option->max);
	}
}

/* --- from text ------------------------------------------------------------------------------------------ */

static void member_store(void *member, size_t size, uint64_t value)
{
	switch (size) {
	case sizeof(uint8_t):
		*(uint8_t *)member = (uint8_t)value;
		break;
	case sizeof(uint16_t):
		*(uint16_t *)member = (uint16_t)value;
		break;
	case sizeof(uint32_t):
		*(uint32_t *)member = (uint32_t)value;
		break;
	default:
		*(uint64_t *)member = value;
	}
}

/* Rounds to a whole number. NaN: the result would be 0, and QUANTITY is not. */
static double rounded(double quantity)
{
	double whole = (double)(uint64_t)(quantity + 0.5);

	return whole == 0 && quantity > 0 ? (double)NAN : whole;
}

static bool quantity_parse(const struct nps_option *option, const char *text, double *quantity)
{
	const struct unit *unit = units_of(option->type);
	char *end;

	if ((!isdigit((unsigned char)*text) && *text != '.') || strpbrk(text, "xX"))
		return false;
	errno = 0;
	if (!unit) {
		*quantity = (double)strtoul(text, &end, 10);
		if (*end || end == text || errno)
			return false;
	} else {
		*quantity = strtod(text, &end);
		if (end == text)
			return false;
		while (unit->name && strcmp(unit->name, end) != 0)
			unit++;
		if (!unit->name && *end)
			return false;
		*quantity *= unit->factor;
	}
	if (option->type != NPS_OPTION_PERCENT && *quantity < LARGEST)
		*quantity = rounded(*quantity);
	return *quantity >= option->min && *quantity < LARGEST &&
	       (option->max <= 0 || *quantity <= option->max);
}

static bool quantity_set(const struct nps_option *option, void *member, const char *text)
{
	double quantity;

	if (!quantity_parse(option, text, &quantity))
		return false;
	if (option->type == NPS_OPTION_PERCENT)
		*(double *)member = quantity;
	else
		member_store(member, option->size, (uint64_t)quantity);
	return true;
}

static const struct nps_option_word *word_find(const struct nps_option_word *words, const char *text,
					       size_t len)
{
	for (; words->name; words++)
		if (strlen(words->name) == len && !strncmp(words->name, text, len))
			return words;
	return NULL;
}

/* The words of a list, a bit each in *FOUND. */
static bool list_parse(const struct nps_option *option, const char *text, uint64_t *found,
		       char why[NPS_OPTION_TEXT_MAX])
{
	const char *alone = NULL;
	size_t len;

	*found = 0;
	for (const char *at = text;; at += len + 1) {
		const struct nps_option_word *word;

		len = strcspn(at, ",");
		word = word_find(option->words, at, len);
		if (!word) {
			if (at != text || at[len])
				text_append(why, ": '%.*s'", (int)NPS_MIN(len, (size_t)64), at);
			text_append(why, " is not one of ");
			words_append(why, option->words, ", ");
			return false;
		}
		if (!word->value)
			alone = word->name;
		if (alone && (at != text || at[len])) {
			text_append(why, ": '%s' stands alone", alone);
			return false;
		}
		*found |= 1ULL << (word - option->words);
		if (!at[len])
			return true;
	}
}

static bool list_set(const struct nps_option *option, void *opts, const char *text,
		     char why[NPS_OPTION_TEXT_MAX])
{
	uint64_t found, value = 0;

	if (!list_parse(option, text, &found, why))
		return false;
	for (size_t i = 0; option->words[i].name; i++) {
		const struct nps_option_word *word = &option->words[i];
		bool set = found >> i & 1;

		if (set)
			value |= (uint64_t)word->value;
		if (option->type == NPS_OPTION_FLAGS && word->value)
			*(bool *)((char *)opts + word->offset) = set;
	}
	if (option->type == NPS_OPTION_SET)
		member_store((char *)opts + option->offset, option->size, value);
	return true;
}

static bool word_set(const struct nps_option *option, void *member, const char *text)
{
	const struct nps_option_word *word = word_find(option->words, text, strlen(text));

	if (!word)
		return false;
	member_store(member, option->size, (uint64_t)word->value);
	return true;
}

static bool text_set(void *member, const char *text)
{
	if (!*text)
		return false;
	*(const char **)member = text;
	return true;
}

static bool value_set(const struct nps_option *option, void *opts, const char *text,
		      char why[NPS_OPTION_TEXT_MAX])
{
	void *member = (char *)opts + option->offset;

	switch (option->type) {
	case NPS_OPTION_FLAG:
	case NPS_OPTION_CLEAR:
		*(bool *)member = option->type == NPS_OPTION_FLAG;
		return true;
	case NPS_OPTION_NUMBER:
	case NPS_OPTION_TIME:
	case NPS_OPTION_SIZE:
	case NPS_OPTION_PERCENT:
		return quantity_set(option, member, text);
	case NPS_OPTION_WORD:
		return word_set(option, member, text);
	case NPS_OPTION_SET:
	case NPS_OPTION_FLAGS:
		return list_set(option, opts, text, why);
	case NPS_OPTION_TEXT:
		return text_set(member, text);
	case NPS_OPTION_CUSTOM:
		return option->parse(opts, text) == 0;
	default:
		return true;
	}
}

bool nps_option__set(const struct nps_option *option, void *opts, const char *text,
		     char why[NPS_OPTION_TEXT_MAX])
{
	char valid[NPS_OPTION_TEXT_MAX];

	*why = '\0';
	if (value_set(option, opts, text, why)) {
		if (option->requested)
			*(bool *)((char *)opts + option->requested) = true;
		return true;
	}
	if (!*why && option->words && !option->valid) {
		text_append(why, " is not one of ");
		words_append(why, option->words, ", ");
	} else if (!*why) {
		nps_option__valid(option, valid);
		text_append(why, " is not %s", valid);
	}
	return false;
}

/* --- into words ----------------------------------------------------------------------------------------- */

bool nps_option__has_value(const struct nps_option *option)
{
	switch (option->type) {
	case NPS_OPTION_END:
	case NPS_OPTION_GROUP:
	case NPS_OPTION_FLAG:
	case NPS_OPTION_CLEAR:
	case NPS_OPTION_HELP:
	case NPS_OPTION_USAGE:
		return false;
	default:
		return true;
	}
}

static void units_append(char text[NPS_OPTION_TEXT_MAX], const struct nps_option *option)
{
	const struct unit *units = units_of(option->type);

	text_append(text, ", in ");
	for (const struct unit *unit = units; unit->name; unit++)
		text_append(text, "%s%s", unit == units ? "" : unit[1].name ? ", " : " or ", unit->name);
}

void nps_option__valid(const struct nps_option *option, char text[NPS_OPTION_TEXT_MAX])
{
	static const char *const nouns[] = { [NPS_OPTION_NUMBER] = "a number",
					     [NPS_OPTION_TIME] = "a time",
					     [NPS_OPTION_SIZE] = "a size",
					     [NPS_OPTION_PERCENT] = "a percentage" };

	*text = '\0';
	switch (option->type) {
	case NPS_OPTION_NUMBER:
	case NPS_OPTION_PERCENT:
	case NPS_OPTION_TIME:
	case NPS_OPTION_SIZE:
		text_append(text, "%s ", nouns[option->type]);
		if (has_min(option) && option->max > 0)
			text_append(text, "from ");
		else
			text_append(text, has_min(option) || option->max > 0 ? "of " : "above 0");
		range_append(text, option);
		if (option->type == NPS_OPTION_TIME || option->type == NPS_OPTION_SIZE)
			units_append(text, option);
		break;
	case NPS_OPTION_TEXT:
		text_append(text, "a name");
		break;
	default:
		if (option->valid || !option->words) {
			text_append(text, "%s", option->valid ? option->valid : "a value");
			break;
		}
		text_append(text, "one of ");
		words_append(text, option->words, ", ");
	}
}

/* "a,b|none": some of the words, or the one that stands alone. */
static void list_append(char text[NPS_OPTION_TEXT_MAX], const struct nps_option_word *words)
{
	const char *none = NULL;

	for (const struct nps_option_word *w = words; w->name; w++)
		if (w->value)
			text_append(text, "%s%s", *text ? "," : "", w->name);
		else
			none = w->name;
	if (none)
		text_append(text, "|%s", none);
}

bool nps_option__placeholder(const struct nps_option *option, char text[NPS_OPTION_TEXT_MAX])
{
	static const char *const names[] = {
		[NPS_OPTION_NUMBER] = "N",	  [NPS_OPTION_TIME] = "TIME", [NPS_OPTION_SIZE] = "SIZE",
		[NPS_OPTION_PERCENT] = "PERCENT", [NPS_OPTION_WORD] = "WORD", [NPS_OPTION_SET] = "LIST",
		[NPS_OPTION_FLAGS] = "LIST",	  [NPS_OPTION_TEXT] = "TEXT", [NPS_OPTION_CUSTOM] = "VALUE",
		[NPS_OPTION_USAGE] = NULL
	};

	*text = '\0';
	if (option->words && !option->valid) {
		if (option->type == NPS_OPTION_SET || option->type == NPS_OPTION_FLAGS)
			list_append(text, option->words);
		else
			words_append(text, option->words, "|");
		if (strlen(text) <= LONGEST_PLACEHOLDER)
			return true;
	}
	snprintf(text, NPS_OPTION_TEXT_MAX, "%s", option->arg ? option->arg : names[option->type]);
	return false;
}

bool nps_option__describes_words(const struct nps_option *option)
{
	return option->words && option->words->help;
}

static void default_append(char text[NPS_OPTION_TEXT_MAX], const struct nps_option *option,
			   const char *between)
{
	const char *value = option->otherwise ? option->otherwise : option->value;

	if (!value && (option->type == NPS_OPTION_FLAG || option->type == NPS_OPTION_CLEAR))
		value = "no";
	if (value)
		text_append(text, "%sdefault: %s", *text ? between : "", value);
}

void nps_option__note(const struct nps_option *option, char text[NPS_OPTION_TEXT_MAX])
{
	char placeholder[NPS_OPTION_TEXT_MAX];
	const char *between = ", ";

	*text = '\0';
	if (units_of(option->type) || option->type == NPS_OPTION_NUMBER) {
		range_append(text, option);
	} else if (option->words && !option->valid && !nps_option__describes_words(option) &&
		   !nps_option__placeholder(option, placeholder)) {
		words_append(text, option->words, ", ");
		between = "; ";
	}
	default_append(text, option, between);
}
