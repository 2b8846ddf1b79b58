/* SPDX-License-Identifier: Apache-2.0 */
/* A small SVG writer over a buf: elements, attributes, text, paths, and one theme, dark and light, that
 * all our pictures share. No reference to anything outside. Names from outside are escaped;
 * what XML 1.0 cannot hold (control characters, bytes that are not UTF-8) becomes \xNN.
 *
 *	svg_begin(&s, &buf, svg_size(960, 400), "Title", "What it shows");
 *	svg_open(&s, "g"); svg_attr(&s, "class", "grid"); ... svg_close(&s);
 *	svg_end(&s);                       then look at buf.failed once
 *
 * Classes of the theme: bg, ink (text), dim (lesser text), grid and axis (lines), c0..c7 (fills that the
 * colour-blind tell apart; Okabe and Ito), line with l0..l7 (strokes of the same), idle and rest (greys), more and less (red, blue), area (a fill without outline),
 * range (laid over areas), key (a frame), title, num. */
#ifndef JD_CTL_SVG_H
#define JD_CTL_SVG_H
#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"

#define SVG_DEPTH_MAX 16
#define SVG_COLOURS 8 /* classes c0..c7 */

struct svg {
	struct buf *out;
	const char *open[SVG_DEPTH_MAX];
	unsigned depth;
	bool in_tag; /* attributes may follow */
	bool in_text; /* no line break before the end tag */
	double x, y; /* end of the path so far; a coordinate that stays the same is left out */
	bool path_begun;
};

/* Pixels, from the upper left corner of the picture. */
struct svg_point {
	double x, y;
};
struct svg_size {
	double width, height;
};

static inline struct svg_point svg_at(double x, double y)
{
	return (struct svg_point){ x, y };
}

static inline struct svg_size svg_size(double width, double height)
{
	return (struct svg_size){ width, height };
}

/* Screen readers read title and description, and browsers show title as a tooltip. */
void svg_begin(struct svg *s, struct buf *out, struct svg_size size, const char *title, const char *description);
void svg_end(struct svg *s); /* closes all open elements */

/* name is a literal; its pointer is kept until svg_close. */
void svg_open(struct svg *s, const char *name);
/* Our own script as it is; it holds no "]]>". */
void svg_script(struct svg *s, const char *script);
void svg_attr(struct svg *s, const char *name, const char *value);
void svg_attr_num(struct svg *s, const char *name, double value);
void svg_close(struct svg *s);

/* Whole elements. class and anchor ("start", "middle", "end") may be NULL. */
void svg_rect(struct svg *s, const char *class, struct svg_point at, struct svg_size size);
void svg_line(struct svg *s, const char *class, struct svg_point from, struct svg_point to);
void svg_text(struct svg *s, const char *class, const char *anchor, struct svg_point at, const char *text);
void svg_tooltip(struct svg *s, const char *text); /* <title> of the element that is open */

/* The d attribute of an open path: svg_path_begin, moves, svg_path_end. */
void svg_path_begin(struct svg *s);
void svg_move_to(struct svg *s, double x, double y);
void svg_line_to(struct svg *s, double x, double y);
void svg_path_close(struct svg *s); /* back to the last move */
void svg_path_end(struct svg *s);

/* Width in pixels that text takes at most in the theme's fonts at a size; East Asian characters count twice. */
double svg_text_width(const char *text, double size);
/* Copies text, cut in the middle with an ellipsis when it is wider than width; returns dst. */
const char *svg_fit(char *dst, size_t size, const char *text, double width, double font_size);

#endif
