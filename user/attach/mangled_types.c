/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/mangled_types.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUBSTITUTIONS 96 /* of one symbol; of PyTorch's the longest list has 30 */
#define DEPTH 16 /* of types in types */
#define NAME_MAX_BYTES 100

/* A symbol that is being read. What it names can be repeated as S_, S0_, S1_, ... */
struct mangled {
	const char *at;
	bool bad;
	unsigned depth, n;
	char known[SUBSTITUTIONS][NPS_MANGLED_TYPE_MAX];
};

static void type_read(struct mangled *m, char *type);

static void text_append(struct mangled *m, char *type, const char *text, size_t len)
{
	size_t have = strlen(type);

	if (have + len >= NPS_MANGLED_TYPE_MAX) {
		m->bad = true;
		return;
	}
	memcpy(type + have, text, len);
	type[have + len] = '\0';
}

static void remember(struct mangled *m, const char *type)
{
	if (m->n == SUBSTITUTIONS)
		m->bad = true;
	else
		snprintf(m->known[m->n++], sizeof(*m->known), "%s", type);
}

/* <length><name>, with :: in front if it is in something. */
static void name_read(struct mangled *m, char *type)
{
	char *name;
	unsigned long len = strtoul(m->at, &name, 10);

	if (!len || len > NAME_MAX_BYTES || strnlen(name, len) < len) {
		m->bad = true;
		return;
	}
	if (*type)
		text_append(m, type, "::", 2);
	text_append(m, type, name, len);
	m->at = name + len;
}

/* L<type><number>E */
static void literal_read(struct mangled *m, char *type)
{
	size_t len;

	m->at++;
	if (!*m->at || !isdigit((unsigned char)m->at[1])) {
		m->bad = true;
		return;
	}
	m->at++;
	len = strspn(m->at, "0123456789");
	text_append(m, type, m->at, len);
	m->at += len;
	if (*m->at == 'E')
		m->at++;
	else
		m->bad = true;
}

/* I<argument>...E, behind the template's name. */
static void arguments_read(struct mangled *m, char *type)
{
	const char *before = "<";

	m->at++;
	while (!m->bad && *m->at != 'E') {
		char argument[NPS_MANGLED_TYPE_MAX] = "";

		if (*m->at == 'L')
			literal_read(m, argument);
		else
			type_read(m, argument);
		text_append(m, type, before, strlen(before));
		text_append(m, type, argument, strlen(argument));
		before = ", ";
	}
	if (m->bad)
		return;
	m->at++;
	text_append(m, type, ">", 1);
	remember(m, type);
}

/* S_, S<number in base 36>_ */
static void substitution_read(struct mangled *m, char *type)
{
	char *end = NULL;
	unsigned long i = 0;

	m->at++;
	if (isdigit((unsigned char)*m->at) || isupper((unsigned char)*m->at)) {
		i = strtoul(m->at, &end, 36) + 1;
		m->at = end;
	}
	if (*m->at != '_' || i >= m->n) {
		m->bad = true;
		return;
	}
	m->at++;
	text_append(m, type, m->known[i], strlen(m->known[i]));
}

/* One part of a name: St, a substitution, a name, or arguments of the template so far. */
static void part_read(struct mangled *m, char *type)
{
	if (!strncmp(m->at, "St", 2)) {
		m->at += 2;
		text_append(m, type, "std", 3);
	} else if (*m->at == 'S') {
		substitution_read(m, type);
	} else if (*m->at == 'I') {
		arguments_read(m, type);
	} else {
		name_read(m, type);
		if (!m->bad)
			remember(m, type);
	}
}

/* N<part>...E */
static void nested_read(struct mangled *m, char *type)
{
	m->at++;
	do
		part_read(m, type);
	while (!m->bad && *m->at != 'E');
	if (!m->bad)
		m->at++;
}

/* A name that is in no other, or in std. */
static void plain_read(struct mangled *m, char *type)
{
	bool in_std = !strncmp(m->at, "St", 2);

	part_read(m, type);
	if (in_std && !m->bad)
		part_read(m, type);
	if (*m->at == 'I' && !m->bad)
		arguments_read(m, type);
}

static const char *builtin_type(char code)
{
	static const struct {
		char code;
		const char *name;
	} types[] = {
		{ 'v', "void" },	   { 'b', "bool" },	     { 'c', "char" },
		{ 'a', "signed char" },	   { 'h', "unsigned char" }, { 's', "short" },
		{ 't', "unsigned short" }, { 'i', "int" },	     { 'j', "unsigned int" },
		{ 'l', "long" },	   { 'm', "unsigned long" }, { 'x', "long long" },
		{ 'f', "float" },	   { 'd', "double" },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (types[i].code == code)
			return types[i].name;
	return NULL;
}

/* What stands behind the type that a letter qualifies. */
static const char *qualifier(char code)
{
	return code == 'R' ? "&" : code == 'O' ? "&&" : code == 'P' ? "*" : code == 'K' ? " const" : NULL;
}

/* Reads a type into TYPE, which is empty. */
static void type_read(struct mangled *m, char *type)
{
	const char *behind, *builtin;

	if (m->bad || m->depth == DEPTH) {
		m->bad = true;
		return;
	}
	behind = qualifier(*m->at);
	builtin = builtin_type(*m->at);
	m->depth++;
	if (behind) {
		m->at++;
		type_read(m, type);
		text_append(m, type, behind, strlen(behind));
		if (!m->bad)
			remember(m, type);
	} else if (builtin) {
		m->at++;
		text_append(m, type, builtin, strlen(builtin));
	} else if (*m->at == 'N') {
		nested_read(m, type);
	} else {
		plain_read(m, type);
	}
	m->depth--;
}

int nps_mangled_types__each(const char *symbol, nps_mangled_type_fn each, void *arg)
{
	char name[NPS_MANGLED_TYPE_MAX] = "";
	struct mangled m = { .at = symbol + 2 };

	if (strncmp(symbol, "_ZN", 3) != 0)
		return -EINVAL;
	nested_read(&m, name);
	if (m.bad || !m.n || !*m.at)
		return -EINVAL;
	m.n--; /* the function itself cannot be repeated */
	if (!strcmp(m.at, "v"))
		return 0;
	while (*m.at) {
		char type[NPS_MANGLED_TYPE_MAX] = "";
		int err;

		type_read(&m, type);
		if (m.bad)
			return -EINVAL;
		err = each(type, arg);
		if (err)
			return err;
	}
	return 0;
}
