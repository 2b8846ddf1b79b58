/* SPDX-License-Identifier: Apache-2.0 */
#include "svg.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../base/text.h"

#define NAME_MAX_BYTES 8192 /* of one attribute or text */

/* Colours are written out: renderers outside of browsers know no CSS variables. */
static const char theme[] =
	":root{background:#fff}text{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",\"Noto Sans\",sans-serif;font-size:12px}\n"
	".title{font-size:18px;font-weight:600}.num{font-variant-numeric:tabular-nums}\n"
	".bg{fill:#fff}.ink{fill:#1b1f24}.dim{fill:#59636e}.grid{stroke:#1b1f24;stroke-opacity:.13}.axis{stroke:#59636e}\n"
	".edge{stroke:#fff;stroke-width:.6;stroke-linejoin:round}.idle{fill:#c9d1d9}.rest{fill:#8b949e}\n"
	".c0{fill:#0072b2}.c1{fill:#e69f00}.c2{fill:#009e73}.c3{fill:#d55e00}.c4{fill:#56b4e9}.c5{fill:#cc79a7}"
	".c6{fill:#b3a60a}.c7{fill:#6a51a3}\n"
	".line{fill:none;stroke-width:1.6;stroke-linejoin:round}.l0{stroke:#0072b2}.l1{stroke:#e69f00}.l2{stroke:#009e73}.l3{stroke:#d55e00}"
	".l4{stroke:#56b4e9}.l5{stroke:#cc79a7}.l6{stroke:#b3a60a}.l7{stroke:#6a51a3}\n"
	".mark{stroke:#1b1f24;stroke-opacity:.22;stroke-width:1}\n"
	"@media (prefers-color-scheme:dark){:root{background:#0d1117}.bg{fill:#0d1117}.ink{fill:#e6edf3}.dim{fill:#9198a1}"
	".grid{stroke:#e6edf3;stroke-opacity:.16}.axis{stroke:#9198a1}.edge{stroke:#0d1117}.idle{fill:#3d444d}.rest{fill:#6e7681}"
	".c0{fill:#2f8fd0}.c6{fill:#f0e442}.c7{fill:#9e86d6}.l0{stroke:#2f8fd0}.l6{stroke:#f0e442}.l7{stroke:#9e86d6}.mark{stroke:#0d1117;stroke-opacity:.4}}\n";

/* The two that XML forbids, U+FFFE and U+FFFF: shown as bytes, like control characters. */
static bool unwanted(const unsigned char *s, size_t n)
{
	return n == 3 && s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe;
}

static void add_escaped(struct buf *b, const char *text)
{
	char clean[NAME_MAX_BYTES];
	size_t n;

	text_clean(clean, sizeof(clean), text);
	for (const unsigned char *s = (const unsigned char *)clean; *s; s += n) {
		n = text_utf8_len(s, strlen((const char *)s));
		if (unwanted(s, n))
			buf_printf(b, "\\x%02x\\x%02x\\x%02x", s[0], s[1], s[2]);
		else if (*s == '&')
			buf_add_str(b, "&amp;");
		else if (*s == '<')
			buf_add_str(b, "&lt;");
		else if (*s == '>')
			buf_add_str(b, "&gt;");
		else if (*s == '"')
			buf_add_str(b, "&quot;");
		else if (*s == '\'')
			buf_add_str(b, "&#39;");
		else
			buf_add(b, s, n);
	}
}

/* A hundredth of a pixel is enough; without zeros at the end. */
static void add_number(struct buf *b, double v)
{
	char text[48];
	size_t n;

	if (!isfinite(v))
		v = 0;
	n = (size_t)snprintf(text, sizeof(text), "%.2f", fabs(v) < 0.005 ? 0 : fmin(fmax(v, -1e9), 1e9));
	while (text[n - 1] == '0')
		n--;
	if (text[n - 1] == '.')
		n--;
	buf_add(b, text, n);
}

static void end_tag(struct svg *s)
{
	if (s->in_tag)
		buf_add_char(s->out, '>');
	s->in_tag = false;
}

void svg_open(struct svg *s, const char *name)
{
	end_tag(s);
	if (s->depth == SVG_DEPTH_MAX) {
		s->out->failed = true;
		return;
	}
	if (s->depth)
		buf_add_char(s->out, '\n');
	s->open[s->depth++] = name;
	buf_add_char(s->out, '<');
	buf_add_str(s->out, name);
	s->in_tag = true;
	s->in_text = false;
}

void svg_attr(struct svg *s, const char *name, const char *value)
{
	if (!s->in_tag || !value)
		return;
	buf_printf(s->out, " %s=\"", name);
	add_escaped(s->out, value);
	buf_add_char(s->out, '"');
}

void svg_attr_num(struct svg *s, const char *name, double value)
{
	if (!s->in_tag)
		return;
	buf_printf(s->out, " %s=\"", name);
	add_number(s->out, value);
	buf_add_char(s->out, '"');
}

void svg_content(struct svg *s, const char *text)
{
	end_tag(s);
	add_escaped(s->out, text);
	s->in_text = true;
}

void svg_close(struct svg *s)
{
	if (!s->depth)
		return;
	s->depth--;
	if (s->in_tag)
		buf_add_str(s->out, "/>");
	else
		buf_printf(s->out, "%s</%s>", s->in_text ? "" : "\n", s->open[s->depth]);
	s->in_tag = false;
	s->in_text = false;
}

void svg_begin(struct svg *s, struct buf *out, double width, double height, const char *title, const char *description)
{
	char box[64];

	*s = (struct svg){ .out = out };
	buf_add_str(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	svg_open(s, "svg");
	svg_attr(s, "xmlns", "http://www.w3.org/2000/svg");
	svg_attr_num(s, "width", width);
	svg_attr_num(s, "height", height);
	snprintf(box, sizeof(box), "0 0 %.0f %.0f", width, height);
	svg_attr(s, "viewBox", box);
	svg_attr(s, "role", "img");
	svg_tooltip(s, title);
	svg_open(s, "desc");
	svg_content(s, description);
	svg_close(s);
	svg_open(s, "style");
	end_tag(s);
	buf_add_char(out, '\n');
	buf_add_str(out, theme);
	s->in_text = true;
	svg_close(s);
	svg_rect(s, "bg", 0, 0, width, height);
}

void svg_end(struct svg *s)
{
	while (s->depth)
		svg_close(s);
	buf_add_char(s->out, '\n');
}

void svg_rect(struct svg *s, const char *class, double x, double y, double width, double height)
{
	svg_open(s, "rect");
	svg_attr(s, "class", class);
	svg_attr_num(s, "x", x);
	svg_attr_num(s, "y", y);
	svg_attr_num(s, "width", width);
	svg_attr_num(s, "height", height);
	svg_close(s);
}

void svg_line(struct svg *s, const char *class, double x1, double y1, double x2, double y2)
{
	svg_open(s, "line");
	svg_attr(s, "class", class);
	svg_attr_num(s, "x1", x1);
	svg_attr_num(s, "y1", y1);
	svg_attr_num(s, "x2", x2);
	svg_attr_num(s, "y2", y2);
	svg_close(s);
}

void svg_text(struct svg *s, const char *class, const char *anchor, double x, double y, const char *text)
{
	svg_open(s, "text");
	svg_attr(s, "class", class);
	svg_attr(s, "text-anchor", anchor);
	svg_attr_num(s, "x", x);
	svg_attr_num(s, "y", y);
	svg_content(s, text);
	svg_close(s);
}

void svg_tooltip(struct svg *s, const char *text)
{
	svg_open(s, "title");
	svg_content(s, text);
	svg_close(s);
}

void svg_path_begin(struct svg *s)
{
	buf_add_str(s->out, " d=\"");
	s->path_begun = false;
}

void svg_move_to(struct svg *s, double x, double y)
{
	buf_add_char(s->out, 'M');
	add_number(s->out, x);
	buf_add_char(s->out, ' ');
	add_number(s->out, y);
	s->x = x;
	s->y = y;
	s->path_begun = true;
}

/* Most lines of a step are level or upright: half the bytes. */
void svg_line_to(struct svg *s, double x, double y)
{
	bool level = fabs(y - s->y) < 0.005, upright = fabs(x - s->x) < 0.005;

	if (!s->path_begun) {
		svg_move_to(s, x, y);
		return;
	}
	if (level && upright)
		return;
	buf_add_char(s->out, level ? 'H' : upright ? 'V' : 'L');
	if (!upright)
		add_number(s->out, x);
	if (!upright && !level)
		buf_add_char(s->out, ' ');
	if (!level)
		add_number(s->out, y);
	s->x = upright ? s->x : x;
	s->y = level ? s->y : y;
}

void svg_path_close(struct svg *s)
{
	if (s->path_begun)
		buf_add_char(s->out, 'Z');
	s->path_begun = false;
}

void svg_path_end(struct svg *s)
{
	buf_add_char(s->out, '"');
}
