/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/text.h"
#include "svg.h"

#define NAME_MAX_BYTES 8192 /* of one attribute or text */

/* Colours are written out, because renderers outside of browsers know no CSS variables. */
static const char theme[] =
	":root{background:#fff}text{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",\"Noto Sans\",sans-serif;font-size:12px}\n"
	".title{font-size:18px;font-weight:600}.num{font-variant-numeric:tabular-nums}\n"
	".bg{fill:#fff}.ink{fill:#1b1f24}.dim{fill:#59636e}.grid{stroke:#1b1f24;stroke-opacity:.13}.axis{stroke:#59636e}\n"
	".area{stroke:none}.range{fill:#1b1f24;fill-opacity:.28}.key{fill:none;stroke:#59636e}.idle{fill:#c9d1d9}.rest{fill:#8b949e}.more{fill:#cf222e}.less{fill:#0969da}\n"
	".c0{fill:#0072b2}.c1{fill:#e69f00}.c2{fill:#009e73}.c3{fill:#d55e00}.c4{fill:#56b4e9}.c5{fill:#cc79a7}"
	".c6{fill:#b3a60a}.c7{fill:#6a51a3}\n"
	".line{fill:none;stroke-width:1.6;stroke-linejoin:round}.l0{stroke:#0072b2}.l1{stroke:#e69f00}.l2{stroke:#009e73}.l3{stroke:#d55e00}"
	".l4{stroke:#56b4e9}.l5{stroke:#cc79a7}.l6{stroke:#b3a60a}.l7{stroke:#6a51a3}\n"
	".mark{stroke:#1b1f24;stroke-opacity:.22;stroke-width:1}\n"
	"@media (prefers-color-scheme:dark){:root{background:#0d1117}.bg{fill:#0d1117}.ink{fill:#e6edf3}.dim{fill:#9198a1}"
	".grid{stroke:#e6edf3;stroke-opacity:.16}.axis{stroke:#9198a1}.range{fill:#e6edf3;fill-opacity:.34}.key{stroke:#9198a1}.idle{fill:#3d444d}.rest{fill:#6e7681}.more{fill:#f85149;stroke:#f85149;stroke-opacity:.6}.less{fill:#388bfd;stroke:#388bfd;stroke-opacity:.6}"
	".c0{fill:#2f8fd0}.c6{fill:#f0e442}.c7{fill:#9e86d6}.l0{stroke:#2f8fd0}.l6{stroke:#f0e442}.l7{stroke:#9e86d6}.mark{stroke:#0d1117;stroke-opacity:.4}}\n";

/* XML forbids U+FFFE and U+FFFF. They are shown as bytes, like control characters. */
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

/* Numbers have a precision of a hundredth of a pixel, and no zeros at the end. */
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

static void svg_content(struct svg *s, const char *text)
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

void svg_begin(struct svg *s, struct buf *out, struct svg_size size, const char *title, const char *description)
{
	char box[64];

	*s = (struct svg){ .out = out };
	buf_add_str(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	svg_open(s, "svg");
	svg_attr(s, "xmlns", "http://www.w3.org/2000/svg");
	svg_attr_num(s, "width", size.width);
	svg_attr_num(s, "height", size.height);
	snprintf(box, sizeof(box), "0 0 %.0f %.0f", size.width, size.height);
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
	svg_rect(s, "bg", svg_at(0, 0), size);
}

void svg_script(struct svg *s, const char *script)
{
	svg_open(s, "script");
	end_tag(s);
	buf_add_str(s->out, "<![CDATA[\n");
	buf_add_str(s->out, script);
	buf_add_str(s->out, "]]>");
	s->in_text = true;
	svg_close(s);
}

void svg_end(struct svg *s)
{
	while (s->depth)
		svg_close(s);
	buf_add_char(s->out, '\n');
}

void svg_rect(struct svg *s, const char *class, struct svg_point at, struct svg_size size)
{
	svg_open(s, "rect");
	svg_attr(s, "class", class);
	svg_attr_num(s, "x", at.x);
	svg_attr_num(s, "y", at.y);
	svg_attr_num(s, "width", size.width);
	svg_attr_num(s, "height", size.height);
	svg_close(s);
}

void svg_line(struct svg *s, const char *class, struct svg_point from, struct svg_point to)
{
	svg_open(s, "line");
	svg_attr(s, "class", class);
	svg_attr_num(s, "x1", from.x);
	svg_attr_num(s, "y1", from.y);
	svg_attr_num(s, "x2", to.x);
	svg_attr_num(s, "y2", to.y);
	svg_close(s);
}

void svg_text(struct svg *s, const char *class, const char *anchor, struct svg_point at, const char *text)
{
	svg_open(s, "text");
	svg_attr(s, "class", class);
	svg_attr(s, "text-anchor", anchor);
	svg_attr_num(s, "x", at.x);
	svg_attr_num(s, "y", at.y);
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

/* Most lines of a step are level or upright. H and V take half the bytes of L. */
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

/* The width of text is estimated without the font, for DejaVu Sans, the widest font that the theme names. */

#define ELLIPSIS "\xe2\x80\xa6"

/* Width of a character of n bytes, in units of the font's size. n = 0 is a byte that is not UTF-8. */
static double width_of(const unsigned char *s, size_t n)
{
	if (n == 1) {
		if (*s < 0x20 || *s == 0x7f)
			return 4 * 0.64; /* \xNN */
		if (strchr("ijl.,:;|!'I()[]{}/\\-ftr \"", *s))
			return 0.46;
		if (strchr("mwMW@%", *s))
			return 1;
		return *s >= 'A' && *s <= 'Z' ? 0.76 : 0.65;
	}
	if (!n)
		return 4 * 0.64;
	return n == 2 ? 0.85 : 1.05;
}

double svg_text_width(const char *text, double size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t left = strlen(text);
	double sum = 0;

	while (left) {
		size_t n = text_utf8_len(s, left);

		sum += width_of(s, n);
		s += n ? n : 1;
		left -= n ? n : 1;
	}
	return sum * size;
}

/* front() returns how many bytes at the front of the text fit into width, back() how many at its end. */
static size_t front(const char *text, double width, double size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t left = strlen(text), at = 0;

	while (left) {
		size_t n = text_utf8_len(s + at, left), step = n ? n : 1;

		width -= width_of(s + at, n) * size;
		if (width < 0)
			break;
		at += step;
		left -= step;
	}
	return at;
}

static size_t back(const char *text, double width, double size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t at = strlen(text), end = at;

	while (at) {
		size_t begin = at - 1, n;

		while (begin && at - begin < 4 && (s[begin] & 0xc0) == 0x80)
			begin--;
		n = text_utf8_len(s + begin, at - begin);
		if (n != at - begin) {
			begin = at - 1;
			n = 0;
		}
		width -= width_of(s + begin, n) * size;
		if (width < 0)
			break;
		at = begin;
	}
	return end - at;
}

const char *svg_fit(char *dst, size_t size, const char *text, double width, double font_size)
{
	size_t len = strlen(text), head, tail;

	if (!size)
		return dst;
	if (svg_text_width(text, font_size) <= width && len < size) {
		memcpy(dst, text, len + 1);
		return dst;
	}
	width -= font_size;
	/* the end of a path says more than its beginning */
	tail = back(text, width * 0.62, font_size);
	head = front(text, width - svg_text_width(text + len - tail, font_size), font_size);
	if (head + tail + sizeof(ELLIPSIS) > size) {
		dst[0] = '\0';
		return dst;
	}
	memcpy(dst, text, head);
	memcpy(dst + head, ELLIPSIS, sizeof(ELLIPSIS) - 1);
	memcpy(dst + head + sizeof(ELLIPSIS) - 1, text + len - tail, tail + 1);
	return dst;
}
