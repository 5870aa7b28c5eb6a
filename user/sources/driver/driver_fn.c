/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/driver/driver_fn.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "drvfn.skel.h"
#include "sources/driver/bpf_misses.h"
#include "sources/driver/trace_format.h"
#include "sources/driver/tracefs.h"

/* Functions by kind of event, the better one of a kind first. */
static const struct driver_function {
	enum nps_driver_kind kind;
	const char *name;
	bool reads_sqe; /* needs the layout */
	const char *entry, *exit; /* programs of kprobes */
	const char *fentry, *fexit; /* programs of fentry and fexit */
} functions[] = {
	{ NPS_DRIVER_TASKS, "tsagent_sqe_update", true, "agent_sqe_entered", "sqe_returned",
	  "agent_sqe_fentry", "agent_sqe_fexit" },
	{ NPS_DRIVER_TASKS, "trs_chan_ops_sqe_update", true, "chan_sqe_entered", "sqe_returned",
	  "chan_sqe_fentry", "chan_sqe_fexit" },
	{ NPS_DRIVER_COMPLETIONS, "tsagent_cqe_update", false, "agent_cqe_entered", "agent_cqe_returned",
	  "agent_cqe_fentry", "agent_cqe_fexit" },
	{ NPS_DRIVER_COPIES, "hal_kernel_devdrv_dma_sync_copy", false, "dma_entered", "dma_returned",
	  "dma_fentry", "dma_fexit" },
};

/* Drivers whose sources are known: version of the release, as in the module or the package. */
static const struct {
	const char *version;
	struct nps_sqe_layout layout;
} known[] = {
	{ "ef377e9", { .pid = 0, .sqid = 16, .sqeid = 20, .sqe = 24, .size = 32 } },
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

bool nps_driver_fn__layout(const char *version, struct nps_sqe_layout *layout)
{
	for (size_t i = 0; i < COUNT(known); i++)
		if (!strcmp(known[i].version, version)) {
			*layout = known[i].layout;
			return true;
		}
	return false;
}

/* A line is "ADDRESS TYPE NAME", for symbols of modules followed by "\t[MODULE]". */
static bool parse_symbol(const char *line, struct nps_driver_symbol *s)
{
	const char *type = strchr(line, ' ');
	size_t length = strlen(s->name), of;

	if (!type || (type[1] != 't' && type[1] != 'T') || type[2] != ' ' ||
	    strncmp(type + 3, s->name, length) != 0)
		return false;
	line = type + 3 + length;
	if (!strchr(" \t\n", *line))
		return false;
	line += strspn(line, " \t[");
	of = strcspn(line, "]\n");
	if (of >= sizeof(s->module))
		return false; /* no module name is that long */
	memcpy(s->module, line, of);
	s->module[of] = '\0';
	return true;
}

size_t nps_driver_fn__resolve(FILE *symbols, struct nps_driver_symbol *wanted, size_t n)
{
	char *line = NULL;
	size_t room = 0, found = 0;

	while (found < n && getline(&line, &room, symbols) > 0)
		for (size_t i = 0; i < n; i++)
			if (!wanted[i].there && parse_symbol(line, &wanted[i])) {
				wanted[i].there = true;
				found++;
			}
	free(line);
	return found;
}

/*
 * The list of symbols is long, and the kernel generates it during the read, so all are searched in one pass.
 */
static void find_symbols(struct nps_driver_symbol *wanted, size_t n)
{
	FILE *f = fopen("/proc/kallsyms", "re");

	if (!f)
		return;
	nps_driver_fn__resolve(f, wanted, n);
	fclose(f);
}

/* --- layouts --- */

static bool struct_member_at(const struct btf *btf, const struct btf_type *t, const char *name, uint32_t *at)
{
	const struct btf_member *m = btf_members(t);

	for (uint16_t i = 0; i < btf_vlen(t); i++) {
		const char *own = btf__name_by_offset(btf, m[i].name_off);

		if (own && !strcmp(own, name)) {
			*at = btf_member_bit_offset(t, i) / 8;
			return true;
		}
	}
	return false;
}

static bool layout_of_types(const struct btf *btf, struct nps_sqe_layout *layout)
{
	int id = btf__find_by_name_kind(btf, "trs_sqe_update_info", BTF_KIND_STRUCT);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

	return t && struct_member_at(btf, t, "pid", &layout->pid) &&
	       struct_member_at(btf, t, "sqid", &layout->sqid) &&
	       struct_member_at(btf, t, "sqeid", &layout->sqeid) &&
	       struct_member_at(btf, t, "sqe", &layout->sqe) &&
	       struct_member_at(btf, t, "size", &layout->size);
}

static struct btf *types_of(const char *module)
{
	struct btf *kernel = module[0] ? btf__load_vmlinux_btf() : NULL;
	struct btf *own = kernel ? btf__load_module_btf(module, kernel) : NULL;

	if (!own)
		btf__free(kernel);
	return own;
}

static void free_types(struct btf *btf)
{
	struct btf *kernel = btf ? (struct btf *)btf__base_btf(btf) : NULL;

	btf__free(btf);
	btf__free(kernel);
}

static bool read_word(const char *path, const char *prefix, char *word, size_t size)
{
	FILE *f = fopen(path, "re");
	char line[256];

	word[0] = '\0';
	while (f && !word[0] && fgets(line, sizeof(line), f))
		if (!strncmp(line, prefix, strlen(prefix))) {
			snprintf(word, size, "%s", line + strlen(prefix));
			word[strcspn(word, " \t\r\n")] = '\0';
		}
	if (f)
		fclose(f);
	return word[0];
}

/* Version in the module, else in the package that it came in. */
static void version_of(const char *module, char *version, size_t size)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/module/%s/version", module);
	if (!read_word(path, "", version, size))
		read_word("/usr/local/Ascend/driver/version.info", "Version=", version, size);
}

/* Fills the layout and notes its source; false: unknown. */
static bool find_layout(struct nps_driver_way *w, const struct btf *types, struct nps_sqe_layout *layout)
{
	char version[64], module[sizeof(w->module)];

	memcpy(module, w->module, sizeof(module));
	if (types && layout_of_types(types, layout)) {
		snprintf(w->detail, sizeof(w->detail), "layout from its types");
		return true;
	}
	version_of(module, version, sizeof(version));
	if (nps_driver_fn__layout(version, layout)) {
		snprintf(w->detail, sizeof(w->detail), "layout of version %.60s", version);
		return true;
	}
	snprintf(w->detail, sizeof(w->detail),
		 "%.55s has no types, and the layout of its version (%.60s) is not known", module,
		 version[0] ? version : "unknown");
	return false;
}

/* --- rows --- */

static void find_way(const struct nps_capability *cap, const struct driver_function *fn,
		     const struct nps_driver_symbol *symbol, struct nps_driver_ways *ways)
{
	struct nps_driver_way *w = &ways->way[fn->kind];
	struct btf *types;

	if (w->method != NPS_DRIVER_BY_NONE || !symbol->there)
		return;
	memcpy(w->module, symbol->module, sizeof(w->module));
	snprintf(w->function, sizeof(w->function), "%s", fn->name);
	types = types_of(w->module);
	w->detail[0] = '\0';
	if (!fn->reads_sqe || find_layout(w, types, &ways->layout))
		w->method = types && cap->fentry ? NPS_DRIVER_BY_FEXIT : NPS_DRIVER_BY_KPROBE;
	free_types(types);
}

static void find_functions(const struct nps_capability *cap, struct nps_driver_ways *ways)
{
	struct nps_driver_symbol symbols[COUNT(functions)] = {};

	for (size_t i = 0; i < COUNT(functions); i++)
		symbols[i].name = functions[i].name;
	find_symbols(symbols, COUNT(functions));
	for (size_t i = 0; i < COUNT(functions); i++)
		find_way(cap, &functions[i], &symbols[i], ways);
}

/* The driver's tracepoint for a kind of event. */
static const struct {
	enum nps_driver_kind kind;
	const char *program;
} traces[NPS_TRACE_SYSTEMS] = { [NPS_TRACE_CHAN] = { NPS_DRIVER_TASKS, "sqe_traced" },
				[NPS_TRACE_CORE] = { NPS_DRIVER_COMPLETIONS, "cqe_traced" } };

static int find_traces(void *arg)
{
	struct nps_driver_ways *ways = arg;

	for (int i = 0; i < NPS_TRACE_SYSTEMS; i++)
		ways->traced[i] = nps_trace_switch__there(&nps_trace_paths, i) &&
				  nps_trace_format__read(i, &ways->trace[i]);
	return 0;
}

/* Uses the tracepoint for a kind that has no better method, if there is one. */
static bool claim_trace(struct nps_driver_ways *ways, enum nps_trace_system system)
{
	struct nps_driver_way *w = &ways->way[traces[system].kind];

	if (w->method != NPS_DRIVER_BY_NONE || !ways->traced[system])
		return false;
	w->method = NPS_DRIVER_BY_TRACEPOINT;
	snprintf(w->function, sizeof(w->function), "%s:%s", nps_trace_system[system],
		 nps_trace_event[system]);
	return true;
}

void nps_driver_ways__find(const struct nps_capability *cap, struct nps_driver_ways *ways)
{
	memset(ways, 0, sizeof(*ways));
	for (size_t i = 0; i < NPS_DRIVER_KINDS; i++)
		snprintf(ways->way[i].detail, sizeof(ways->way[i].detail), "no such function in this kernel");
	if (nps_capability__is_legacy(cap)) {
		for (size_t i = 0; i < NPS_DRIVER_KINDS; i++)
			snprintf(ways->way[i].detail, sizeof(ways->way[i].detail),
				 "this kernel lacks BTF or ring buffers");
		return;
	}
	find_functions(cap, ways);
	nps_tracefs__with(find_traces, ways);
	for (int i = 0; i < NPS_TRACE_SYSTEMS; i++)
		claim_trace(ways, i);
}

const char *nps_driver_method__name(enum nps_driver_method method)
{
	static const char *const names[] = { "none", "tracepoint", "kprobe", "fexit" };

	return names[method];
}

static const char *const kind_names[NPS_DRIVER_KINDS] = { "tasks", "CQEs", "copies" };

bool nps_driver_ways__missing(const struct nps_driver_ways *ways, char *text, size_t size)
{
	const char *why = NULL; /* of the kinds written last */
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < NPS_DRIVER_KINDS && at < size; i++) {
		const struct nps_driver_way *w = &ways->way[i];

		if (w->method != NPS_DRIVER_BY_NONE)
			continue;
		if (why && strcmp(why, w->detail) != 0)
			at += (size_t)snprintf(text + at, size - at, ": %s; %s", why, kind_names[i]);
		else
			at += (size_t)snprintf(text + at, size - at, "%s%s", why ? ", " : "", kind_names[i]);
		why = w->detail;
	}
	if (why && at < size)
		snprintf(text + at, size - at, ": %s", why);
	return why;
}

void nps_driver_ways__print(const struct nps_driver_ways *ways, FILE *out)
{
	char what[32];

	for (size_t i = 0; i < NPS_DRIVER_KINDS; i++) {
		const struct nps_driver_way *w = &ways->way[i];

		snprintf(what, sizeof(what), "driver: %s", kind_names[i]);
		fprintf(out, "  %-18s %-4s %s%s%s%s%s\n", what, w->method ? "yes" : "no",
			w->method ? nps_driver_method__name(w->method) : w->detail, w->method ? " on " : "",
			w->method ? w->function : "", w->method && w->detail[0] ? ", " : "",
			w->method ? w->detail : "");
	}
}

void nps_driver_ways__describe(const struct nps_driver_ways *ways, cJSON *driver)
{
	cJSON *list = cJSON_AddObjectToObject(driver, "functions");

	for (size_t i = 0; i < NPS_DRIVER_KINDS; i++) {
		const struct nps_driver_way *w = &ways->way[i];
		cJSON *j = cJSON_AddObjectToObject(list, kind_names[i]);

		cJSON_AddStringToObject(j, "how", nps_driver_method__name(w->method));
		cJSON_AddStringToObject(j, "function", w->function);
		cJSON_AddStringToObject(j, "module", w->module);
		cJSON_AddStringToObject(j, "detail", w->detail);
	}
}

/* --- probes --- */

#define MOST_LINKS (2 * NPS_DRIVER_KINDS)

struct driver_probe {
	struct bpf_link *link;
	const struct bpf_program *prog;
	enum nps_driver_kind kind;
	enum nps_driver_method method;
	bool returns;
};

struct nps_driver_fn {
	struct drvfn_bpf *skel;
	struct nps_bpf_loader *kernel;
	struct nps_trace_switch *on; /* NULL: no tracepoint is attached */
	struct driver_probe probes[MOST_LINKS];
	unsigned int n;
	bool uncounted[NPS_DRIVER_KINDS];
	uint64_t lost[NPS_DRIVER_KINDS];
};

static const struct driver_function *function_of(const struct nps_driver_way *w)
{
	for (size_t i = 0; i < COUNT(functions); i++)
		if (!strcmp(functions[i].name, w->function))
			return &functions[i];
	return NULL;
}

/* The next best of its kind; NULL: none. */
static const struct driver_function *next_best(const struct driver_function *fn)
{
	for (const struct driver_function *next = fn + 1; next < functions + COUNT(functions); next++)
		if (next->kind == fn->kind)
			return next;
	return NULL;
}

static void want(struct drvfn_bpf *skel, const char *name)
{
	struct bpf_program *prog = name ? bpf_object__find_program_by_name(skel->obj, name) : NULL;

	if (prog)
		bpf_program__set_autoload(prog, true);
}

static void programs_choose(struct drvfn_bpf *skel, const struct nps_driver_ways *ways)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, skel->obj)
	{
		bpf_program__set_autoload(prog, false);
	}
	for (size_t i = 0; i < NPS_DRIVER_KINDS; i++) {
		const struct driver_function *fn = function_of(&ways->way[i]);
		bool fexit = ways->way[i].method == NPS_DRIVER_BY_FEXIT;

		if (ways->way[i].method == NPS_DRIVER_BY_NONE || !fn)
			continue;
		want(skel, fexit ? fn->fentry : fn->entry);
		want(skel, fexit ? fn->fexit : fn->exit);
		/* Loaded as well, as fallbacks for what cannot be attached. */
		while ((fn = next_best(fn))) {
			want(skel, fn->entry);
			want(skel, fn->exit);
		}
	}
	for (int i = 0; i < NPS_TRACE_SYSTEMS; i++)
		if (ways->traced[i])
			want(skel, traces[i].program);
}

static int functions_load(struct nps_driver_fn *f, struct nps_bpf_loader *k,
			  const struct nps_driver_ways *ways, size_t ring_bytes)
{
	int err;

	f->skel = drvfn_bpf__open();
	if (!f->skel)
		return -errno;
	nps_bpf_loader__set_wake_mark((uint64_t *)&f->skel->rodata->wake_bytes, ring_bytes);
	memcpy((void *)&f->skel->rodata->layout, &ways->layout, sizeof(ways->layout));
	memcpy((void *)&f->skel->rodata->sqe_trace, &ways->trace[NPS_TRACE_CHAN], sizeof(ways->trace[0]));
	memcpy((void *)&f->skel->rodata->cqe_trace, &ways->trace[NPS_TRACE_CORE], sizeof(ways->trace[0]));
	programs_choose(f->skel, ways);
	err = nps_bpf_loader__share_maps(k, f->skel->obj);
	if (err)
		return err;
	err = nps_bpf_loader__share_streams(k, f->skel->obj);
	if (err)
		return err;
	return drvfn_bpf__load(f->skel);
}

/* How often the kernel skipped the probe. False: that is not counted. */
static bool misses_of(const struct driver_probe *p, uint64_t *missed)
{
	uint64_t program, kprobe = 0;
	bool counted = nps_bpf_misses__program(bpf_program__fd(p->prog), &program);

	if (p->method == NPS_DRIVER_BY_KPROBE) /* kernels count either both or neither */
		counted = nps_bpf_misses__kprobe(bpf_link__fd(p->link), &kprobe);
	*missed = program + kprobe;
	/* Misses of tracepoints are counted since 6.7, but older kernels return 0 as well. */
	return counted && p->method != NPS_DRIVER_BY_TRACEPOINT;
}

static int functions_keep(struct nps_driver_fn *f, const struct driver_probe *p)
{
	uint64_t missed;

	if (!p->link)
		return -errno;
	f->probes[f->n] = *p;
	if (!p->returns)
		f->uncounted[p->kind] = !misses_of(&f->probes[f->n], &missed);
	f->n++;
	return 0;
}

static int attach_one(struct nps_driver_fn *f, const struct driver_function *fn, const char *name, bool fexit,
		      bool returns)
{
	struct driver_probe p = { .prog = bpf_object__find_program_by_name(f->skel->obj, name),
				  .kind = fn->kind,
				  .method = fexit ? NPS_DRIVER_BY_FEXIT : NPS_DRIVER_BY_KPROBE,
				  .returns = returns };

	if (!p.prog || f->n == MOST_LINKS)
		return -ENOENT;
	p.link = fexit ? bpf_program__attach(p.prog) : bpf_program__attach_kprobe(p.prog, returns, fn->name);
	return functions_keep(f, &p);
}

static void undo(struct nps_driver_fn *f, unsigned int n)
{
	while (f->n > n)
		bpf_link__destroy(f->probes[--f->n].link);
}

struct trace {
	struct nps_driver_fn *f;
	enum nps_trace_system system;
};

static int attach_trace(void *arg)
{
	const struct trace *t = arg;
	struct driver_probe p = { .kind = traces[t->system].kind, .method = NPS_DRIVER_BY_TRACEPOINT };

	p.prog = bpf_object__find_program_by_name(t->f->skel->obj, traces[t->system].program);
	if (!p.prog || t->f->n == MOST_LINKS)
		return -ENOENT;
	p.link = bpf_program__attach_tracepoint(p.prog, nps_trace_system[t->system],
						nps_trace_event[t->system]);
	return functions_keep(t->f, &p);
}

static enum nps_trace_system system_of(enum nps_driver_kind kind)
{
	return kind == NPS_DRIVER_TASKS ? NPS_TRACE_CHAN : NPS_TRACE_CORE;
}

/* The return first: an entry without its return would stay open. */
static int attach_way(struct nps_driver_fn *f, const struct nps_driver_way *w, enum nps_driver_kind kind)
{
	const struct driver_function *fn = function_of(w);
	bool fexit = w->method == NPS_DRIVER_BY_FEXIT;
	unsigned int had = f->n;
	int err;

	if (w->method == NPS_DRIVER_BY_TRACEPOINT)
		return nps_tracefs__with(attach_trace, &(struct trace){ f, system_of(kind) });
	err = attach_one(f, fn, fexit ? fn->fexit : fn->exit, fexit, true);
	if (err)
		goto fail;
	err = attach_one(f, fn, fexit ? fn->fentry : fn->entry, fexit, false);
	if (err)
		goto fail;
	return 0;
fail:
	undo(f, had);
	return err;
}

/* Falls back to kprobes: a kernel that loads programs with types may still refuse to attach them. */
static bool fall_back(struct nps_driver_ways *ways)
{
	bool any = false;

	for (size_t i = 0; i < NPS_DRIVER_KINDS; i++)
		if (ways->way[i].method == NPS_DRIVER_BY_FEXIT) {
			ways->way[i].method = NPS_DRIVER_BY_KPROBE;
			any = true;
		}
	return any;
}

static bool attach_next_best(struct nps_driver_fn *f, struct nps_driver_way *w)
{
	const struct driver_function *fn = function_of(w);
	struct nps_driver_way next = *w;

	next.method = NPS_DRIVER_BY_KPROBE;
	while (fn && (fn = next_best(fn))) {
		struct nps_driver_symbol symbol = { .name = fn->name };

		find_symbols(&symbol, 1);
		snprintf(next.function, sizeof(next.function), "%s", fn->name);
		memcpy(next.module, symbol.module, sizeof(next.module));
		if (!symbol.there || attach_way(f, &next, fn->kind))
			continue;
		*w = next;
		return true;
	}
	return false;
}

/*
 * If a function could not be attached: uses the next one of the kind, or the driver's tracepoint, or nothing.
 */
static void attach_last(struct nps_driver_fn *f, struct nps_driver_ways *ways, enum nps_driver_kind kind,
			int err)
{
	struct nps_driver_way *w = &ways->way[kind];
	bool was_traced = w->method == NPS_DRIVER_BY_TRACEPOINT;
	char probed[sizeof(w->function)], traced[sizeof(w->function)];

	memcpy(probed, w->function, sizeof(probed));
	snprintf(w->detail, sizeof(w->detail), "%.47s cannot be probed: %s", probed, strerror(-err));
	if (attach_next_best(f, w))
		return;
	w->method = NPS_DRIVER_BY_NONE;
	if (was_traced || kind == NPS_DRIVER_COPIES || !claim_trace(ways, system_of(kind)))
		return;
	err = attach_way(f, w, kind);
	if (!err)
		return;
	w->method = NPS_DRIVER_BY_NONE;
	memcpy(traced, w->function, sizeof(traced));
	snprintf(w->detail, sizeof(w->detail), "neither %.47s nor %.47s can be probed: %s", probed, traced,
		 strerror(-err));
}

static int functions_attach(struct nps_driver_fn *f, struct nps_driver_ways *ways, bool *fexit_refused)
{
	for (size_t i = 0; i < NPS_DRIVER_KINDS; i++) {
		struct nps_driver_way *w = &ways->way[i];
		int err = w->method == NPS_DRIVER_BY_NONE ? 0 : attach_way(f, w, i);

		if (err && w->method == NPS_DRIVER_BY_FEXIT) {
			*fexit_refused = true;
			return err;
		}
		if (err)
			attach_last(f, ways, i, err);
	}
	return f->n ? 0 : -ENOENT;
}

static void undo_traces(struct nps_driver_fn *f, enum nps_driver_kind kind)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < f->n; i++)
		if (f->probes[i].method == NPS_DRIVER_BY_TRACEPOINT && f->probes[i].kind == kind)
			bpf_link__destroy(f->probes[i].link);
		else
			f->probes[n++] = f->probes[i];
	f->n = n;
	f->uncounted[kind] = false;
}

_Static_assert(NPS_LEARN_QUEUES == 1U << NPS_TRACE_CHAN && NPS_LEARN_STREAMS == 1U << NPS_TRACE_CORE, "bits");

/* Tracepoints are silent until their switches are on; those that cannot be switched on are detached. */
static int tracepoints_switch_on(struct nps_driver_fn *f, struct nps_driver_ways *ways)
{
	unsigned int systems = 0;
	int err;

	for (unsigned int i = 0; i < f->n; i++)
		if (f->probes[i].method == NPS_DRIVER_BY_TRACEPOINT)
			systems |= 1U << system_of(f->probes[i].kind);
	if (!systems)
		return 0;
	err = nps_trace_switch__on(&nps_trace_paths, systems, &f->on);
	for (int i = 0; i < NPS_TRACE_SYSTEMS; i++) {
		struct nps_driver_way *w = &ways->way[traces[i].kind];
		int state = err ? err : nps_trace_switch__state(f->on, i);

		if (!(systems & 1U << i) || !state)
			continue;
		undo_traces(f, traces[i].kind);
		systems &= ~(1U << i);
		w->method = NPS_DRIVER_BY_NONE;
		snprintf(w->detail, sizeof(w->detail), "trace_enable of the driver cannot be switched on: %s",
			 strerror(-state));
	}
	nps_bpf_loader__learn(f->kernel, systems);
	return f->n ? 0 : err;
}

static int try(struct nps_bpf_loader *k, struct nps_driver_ways *ways, size_t ring_bytes,
	       struct nps_driver_fn **out, bool *fexit_refused)
{
	struct nps_driver_fn *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->kernel = k;
	err = functions_load(f, k, ways, ring_bytes);
	*fexit_refused = err;
	if (err)
		goto fail;
	err = functions_attach(f, ways, fexit_refused);
	if (err)
		goto fail;
	err = tracepoints_switch_on(f, ways);
	if (err)
		goto fail;
	*out = f;
	return 0;
fail:
	nps_driver_fn__free(f);
	return err;
}

int nps_driver_fn__start(struct nps_bpf_loader *k, struct nps_driver_ways *ways, size_t ring_bytes,
			 struct nps_driver_fn **out)
{
	bool refused = false;
	int err;

	*out = NULL;
	err = try(k, ways, ring_bytes, out, &refused);
	if (err && refused && fall_back(ways))
		err = try(k, ways, ring_bytes, out, &refused);
	for (size_t i = 0; err && i < NPS_DRIVER_KINDS; i++) {
		struct nps_driver_way *w = &ways->way[i];

		if (w->method != NPS_DRIVER_BY_NONE)
			snprintf(w->detail, sizeof(w->detail), "the probe of %.47s cannot be loaded: %s",
				 w->function, strerror(-err));
		w->method = NPS_DRIVER_BY_NONE;
	}
	return err;
}

void nps_driver_fn__end(struct nps_driver_fn *f, uint64_t now)
{
	if (f)
		f->skel->bss->ended_at = now;
}

/* Calls without a return event, and without a later call in the same thread. */
static uint64_t count_open(const struct bpf_map *map)
{
	uint32_t key, *last = NULL;
	uint64_t n = 0;

	for (; !bpf_map_get_next_key(bpf_map__fd(map), last, &key); last = &key)
		n++;
	return n;
}

/*
 * A missed return leaves its call open, or was counted at the thread's
 * next call, so only entries are counted here.
 */
static void functions_count_misses(struct nps_driver_fn *f)
{
	for (unsigned int i = 0; i < f->n; i++) {
		uint64_t missed;

		misses_of(&f->probes[i], &missed);
		if (!f->probes[i].returns)
			f->lost[f->probes[i].kind] += missed;
	}
}

struct nps_trace_switch *nps_driver_fn__release_switch(struct nps_driver_fn *f)
{
	struct nps_trace_switch *on = f ? f->on : NULL;

	if (f)
		f->on = NULL;
	return on;
}

void nps_driver_fn__detach(struct nps_driver_fn *f)
{
	if (!f || !f->n)
		return;
	nps_trace_switch__off(f->on);
	f->on = NULL;
	nps_bpf_loader__learn(f->kernel, 0);
	functions_count_misses(f);
	undo(f, 0);
	f->lost[NPS_DRIVER_TASKS] += count_open(f->skel->maps.open_sqes);
	f->lost[NPS_DRIVER_COMPLETIONS] += count_open(f->skel->maps.open_cqes);
	f->lost[NPS_DRIVER_COPIES] += count_open(f->skel->maps.open_copies);
}

uint64_t nps_driver_fn__lost(const struct nps_driver_fn *f, enum nps_driver_kind kind)
{
	return f ? f->lost[kind] : 0;
}

bool nps_driver_fn__uncounted(const struct nps_driver_fn *f, enum nps_driver_kind kind)
{
	return f && f->uncounted[kind];
}

bool nps_driver_fn__partly(const struct nps_driver_fn *f)
{
	return f && nps_trace_switch__refused(f->on);
}

const struct bpf_object *nps_driver_fn__object(const struct nps_driver_fn *f)
{
	return f ? f->skel->obj : NULL;
}

void nps_driver_fn__free(struct nps_driver_fn *f)
{
	if (!f)
		return;
	nps_trace_switch__off(f->on);
	nps_bpf_loader__learn(f->kernel, 0);
	undo(f, 0);
	drvfn_bpf__destroy(f->skel);
	free(f);
}
