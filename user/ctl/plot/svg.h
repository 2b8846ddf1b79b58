/* SPDX-License-Identifier: Apache-2.0 */
/* A small SVG writer over a buf: elements, attributes, text, paths, and one theme, dark and light, that
 * all our pictures share. No script, no reference to anything outside. Names from outside are escaped;
 * what XML 1.0 cannot hold (control characters, bytes that are not UTF-8) becomes \xNN.
 *
 *	svg_begin(&s, &buf, 960, 400, "Title", "What it shows");
 *	svg_open(&s, "g"); svg_attr(&s, "class", "grid"); ... svg_close(&s);
 *	svg_end(&s);                       then look at buf.failed once
 *
 * Classes of the theme: bg, ink (text), dim (lesser text), grid and axis (lines), c0..c7 (fills that the
 * colour-blind tell apart; Okabe and Ito), line with l0..l7 (strokes of the same), idle and rest (greys), title, num, edge. */
#ifndef JD_CTL_SVG_H
#define JD_CTL_SVG_H
#include <stdbool.h>
#include <stddef.h>
#include "../base/buf.h"

#define SVG_DEPTH_MAX 16
#define SVG_COLOURS 8 /* classes c0..c7 */

struct svg {
	struct buf *out;
	const char *open[SVG_DEPTH_MAX];
	unsigned depth;
	bool in_tag; /* attributes may follow */
	bool in_text; /* no line break before the end tag */
	double x, y; /* of the path, to leave out what does not move */
	bool path_begun;
};

/* width, height: pixels. title and description are for screen readers and tooltips. */
void svg_begin(struct svg *s, struct buf *out, double width, double height, const char *title, const char *description);
void svg_end(struct svg *s); /* closes whatever is open */

/* name: a literal, kept until its svg_close. */
void svg_open(struct svg *s, const char *name);
void svg_attr(struct svg *s, const char *name, const char *value);
void svg_attr_num(struct svg *s, const char *name, double value);
void svg_content(struct svg *s, const char *text);
void svg_close(struct svg *s);

/* Whole elements. class and anchor ("start", "middle", "end") may be NULL. */
void svg_rect(struct svg *s, const char *class, double x, double y, double width, double height);
void svg_line(struct svg *s, const char *class, double x1, double y1, double x2, double y2);
void svg_text(struct svg *s, const char *class, const char *anchor, double x, double y, const char *text);
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
