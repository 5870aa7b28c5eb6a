/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree of stacks as a picture: the width is time, the order is by name; a frame stands on its caller.
 * Every frame carries its offset and weight as whole numbers, from which the script zooms and sums up.
 */
#include "export/flame_graph.h"

#include "base/json_writer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 1200
#define ROW 17
#define TOP 58 /* above the frames */
#define BOTTOM 12
#define CHAR 6.6 /* width of a letter, about */
#define MANY 60000 /* frames that a browser can still handle */
#define NARROW 8000 /* with more of them those are left out that are narrower than this part of the whole */

struct picture {
	const struct nps_flame *f;
	const struct nps_flame_labels *labels;
	struct nps_writer w;
	uint64_t total, least;
	uint32_t depth, left_out;
	uint64_t *x; /* of each node */
	uint16_t *row;
};

static void put_svg_text(struct nps_writer *w, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '&':
			nps_writer__lit(w, "&amp;");
			break;
		case '<':
			nps_writer__lit(w, "&lt;");
			break;
		case '>':
			nps_writer__lit(w, "&gt;");
			break;
		case '"':
			nps_writer__lit(w, "&quot;");
			break;
		case '\'':
			nps_writer__lit(w, "&#39;");
			break;
		default: /* control characters and U+FFFE, U+FFFF are not allowed in XML */
			if ((unsigned char)*s < ' ' || !strncmp(s, "\xef\xbf\xbe", 3) ||
			    !strncmp(s, "\xef\xbf\xbf", 3)) {
				nps_writer__lit(w, "?");
				s += (unsigned char)*s < ' ' ? 0 : 2;
			} else {
				nps_writer__bytes(w, s, 1);
			}
		}
	}
}

static void format(struct nps_writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void format(struct nps_writer *w, const char *fmt, ...)
{
	char buf[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	nps_writer__bytes(w, buf, strlen(buf));
}

/* Kernel, code without a name, the rest: in shades that distinguish neighbours. */
static void color(const char *name, char out[8])
{
	uint32_t h = (uint32_t)nps_hash_bytes(name, strlen(name));
	size_t len = strlen(name);
	unsigned int a = h & 31, b = h >> 8 & 31;

	if (len > 4 && !strcmp(name + len - 4, "_[k]"))
		snprintf(out, 8, "#%02x%02x%02x", 225 + a / 2, 120 + b, 80 + a);
	else if (name[0] == '[')
		snprintf(out, 8, "#%02x%02x%02x", 190 + a, 190 + a, 190 + a);
	else
		snprintf(out, 8, "#%02x%02x%02x", 235 + a / 2, 180 + b, 80 + a);
}

static const char head[] = "<style>text{font:12px Verdana,sans-serif;pointer-events:none}g.f{cursor:pointer}"
			   "g.f:hover rect{stroke:#000}g.m "
			   "rect{fill:#e0f}.b{cursor:pointer;pointer-events:auto;fill:#00c}</style>\n";

static const char script[] =
	"<script><![CDATA[\n"
	"\"use strict\";\n"
	"(function(){\n"
	"var W=1200,C=6.6,svg=document.documentElement;\n"
	"var fs=Array.prototype.map.call(svg.querySelectorAll('g.f'),function(g){return {g:g,"
	"x:+g.dataset.x,w:+g.dataset.w,d:+g.dataset.d,n:g.dataset.n,r:g.querySelector('rect'),"
	"t:g.querySelector('text')};});\n"
	"var info=svg.getElementById('info'),back=svg.getElementById('back'),root=fs[0];\n"
	"function label(f,w){var "
	"n=Math.floor((w-4)/C);f.t.textContent=n<3?'':f.n.length<=n?f.n:f.n.slice(0,n-2)+'..';}\n"
	"function zoom(z){fs.forEach(function(f){var over=f.d<=z.d&&f.x<=z.x&&f.x+f.w>=z.x+z.w,"
	"inside=f.d>=z.d&&f.x>=z.x&&f.x+f.w<=z.x+z.w;\n"
	"if(!over&&!inside){f.g.style.display='none';return;}\n"
	"var "
	"x=over?0:(f.x-z.x)/z.w*W,w=over?W:f.w/"
	"z.w*W;f.g.style.display='';f.g.style.opacity=over&&f!==z?.5:1;\n"
	"f.r.setAttribute('x',x);f.r.setAttribute('width',w);f.t.setAttribute('x',x+3);label(f,w);});\n"
	"back.style.display=z===root?'none':'';}\n"
	"function search(){var s=prompt('Frames that match (regular expression):','');if(s===null)return;var "
	"re;\n"
	"try{re=s===''?null:new RegExp(s);}catch(e){alert('not a regular expression: '+e.message);return;}\n"
	"var sum=0,end=-1;fs.slice().sort(function(a,b){return a.x-b.x||b.w-a.w;}).forEach(function(f){\n"
	"var m=re&&f!==root&&re.test(f.n);f.g.classList.toggle('m',!!m);\n"
	"if(m&&f.x>=end){sum+=f.w;end=f.x+f.w;}});\n"
	"info.textContent=re?'matched '+(100*sum/root.w).toFixed(2)+' %':'';}\n"
	"fs.forEach(function(f){f.g.addEventListener('click',function(){zoom(f);});"
	"f.g.addEventListener('mouseover',function(){info.textContent=f.g.querySelector('title').textContent;"
	"});});\n"
	"back.addEventListener('click',function(){zoom(root);});\n"
	"svg.getElementById('find').addEventListener('click',search);\n"
	"window.addEventListener('keydown',function(e){if(e.key==='/'){e.preventDefault();search();}"
	"else if(e.key==='Escape')zoom(root);});\n"
	"})();\n"
	"]]></script>\n";

static void one_frame(struct picture *p, uint32_t i)
{
	const struct nps_flame_node *node = nps_flame__node(p->f, i);
	const char *name = nps_flame__name(p->f, i);
	double x = (double)p->x[i] / (double)p->total * WIDTH,
	       w = (double)node->total / (double)p->total * WIDTH;
	size_t room = w > 4 ? (size_t)((w - 4) / CHAR) : 0;
	unsigned int y = TOP + (p->depth - p->row[i]) * ROW;
	char fill[8];

	color(name, fill);
	nps_writer__lit(&p->w, "<g class=\"f\" data-n=\"");
	put_svg_text(&p->w, name);
	format(&p->w, "\" data-x=\"%llu\" data-w=\"%llu\" data-d=\"%u\"><title>", (unsigned long long)p->x[i],
	       (unsigned long long)node->total, p->row[i]);
	put_svg_text(&p->w, name);
	format(&p->w, " (%.10g %s, %.2f %%)</title>", (double)node->total * p->labels->scale, p->labels->unit,
	       100 * (double)node->total / (double)p->total);
	format(&p->w,
	       "<rect x=\"%.4f\" y=\"%u\" width=\"%.4f\" height=\"%d\" fill=\"%s\"/><text x=\"%.4f\" "
	       "y=\"%u\">",
	       x, y, w, ROW - 1, fill, x + 3, y + 12);
	if (room >= 3 && strlen(name) <= room) {
		put_svg_text(&p->w, name);
	} else if (room >= 3) {
		char cut[WIDTH];
		size_t n = nps_utf8_fit(name, NPS_MIN(room - 2, sizeof(cut) - 1));

		memcpy(cut, name, n);
		cut[n] = '\0';
		put_svg_text(&p->w, cut);
		nps_writer__lit(&p->w, "..");
	}
	nps_writer__lit(&p->w, "</text></g>\n");
}

/* Computes the offsets of all frames: parents come before their children, and children by name. */
static void picture_layout(struct picture *p)
{
	for (uint32_t i = 0; i < p->f->nodes.len; i++) {
		uint64_t x = p->x[i];

		p->depth = NPS_MAX(p->depth, (uint32_t)p->row[i]);
		for (uint32_t c = nps_flame__node(p->f, i)->child; c; c = nps_flame__node(p->f, c)->next) {
			p->x[c] = x;
			p->row[c] = p->row[i] + 1;
			x += nps_flame__node(p->f, c)->total;
		}
	}
}

static void write_picture(struct picture *p)
{
	unsigned int height = TOP + (p->depth + 1) * ROW + BOTTOM;

	format(&p->w,
	       "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
	       "width=\"%d\" "
	       "height=\"%u\" viewBox=\"0 0 %d %u\">\n",
	       WIDTH, height, WIDTH, height);
	nps_writer__lit(&p->w, head);
	nps_writer__lit(&p->w,
			"<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"8\" y=\"20\">");
	put_svg_text(&p->w, p->labels->title);
	nps_writer__lit(
		&p->w,
		"</text>\n<text id=\"info\" x=\"8\" y=\"42\"></text>\n"
		"<text id=\"find\" class=\"b\" x=\"1130\" y=\"20\">search</text>\n"
		"<text id=\"back\" class=\"b\" x=\"1040\" y=\"20\" style=\"display:none\">whole</text>\n");
	for (uint32_t i = 0; p->total && i < p->f->nodes.len; i++) {
		if (nps_flame__node(p->f, i)->total >= p->least)
			one_frame(p, i);
		else
			p->left_out++;
	}
	if (p->left_out)
		format(&p->w, "<text x=\"700\" y=\"20\">%u frames below %.3f %% are not drawn</text>\n",
		       p->left_out, 100.0 / NARROW);
	if (p->total)
		nps_writer__lit(&p->w, script);
	else
		format(&p->w, "<text x=\"8\" y=\"%d\">nothing of this was seen</text>\n", TOP + 12);
	nps_writer__lit(&p->w, "</svg>\n");
}

int nps_flame__write_svg(const struct nps_flame *f, int dirfd, const char *name,
			 const struct nps_flame_labels *labels)
{
	struct picture p = { .f = f, .labels = labels, .total = nps_flame__node(f, 0)->total };
	int err = -ENOMEM;

	p.least = f->nodes.len > MANY ? p.total / NARROW + 1 : 1;
	p.x = calloc(f->nodes.len, sizeof(*p.x));
	p.row = calloc(f->nodes.len, sizeof(*p.row));
	if (p.x && p.row)
		err = nps_writer__open(&p.w, dirfd, name);
	if (err)
		goto out;
	picture_layout(&p);
	write_picture(&p);
	err = nps_writer__close(&p.w);
out:
	free(p.x);
	free(p.row);
	return err;
}
