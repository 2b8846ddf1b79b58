/* SPDX-License-Identifier: Apache-2.0 */
/* top without a terminal: a table or a JSON object per interval. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/log.h"
#include "ctl/core/verb.h"
#include "encode/table.h"
#include "top.h"

static void put(void *arg, enum top_style style, const char *text)
{
	fputs(text, arg);
}

static void end_line(void *arg)
{
	putc('\n', arg);
}

static unsigned terminal_width(void)
{
	struct winsize w;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

static void print_table(struct top_view *v, unsigned limit)
{
	struct top_paint p = { .width = terminal_width(), .put = put, .end_line = end_line, .arg = stdout };

	if (v->samples > 1)
		putchar('\n');
	top_draw_head(v, &p, 8);
	top_draw_columns(v, &p);
	for (unsigned i = 0; i < v->n_order && (!limit || i < limit); i++)
		top_draw_row(v, v->order[i], &p, false);
	if (limit && v->n_order > limit)
		printf("%u more\n", v->n_order - limit);
	top_draw_legend(v, &p);
	if (v->marks & ~(unsigned)QUALITY_WRAPPED)
		top_end(&p);
}

static int show(struct top_view *v, const struct snapshot *s, const struct top_plain *how, struct buf *text)
{
	int rc = 0;

	if (how->json) {
		buf_reset(text);
		top_json(s, text);
		if (text->failed)
			rc = -ENOMEM;
		else
			fwrite(text->data, 1, text->len, stdout);
	} else {
		rc = top_view_take(v, s);
		if (!rc)
			print_table(v, how->limit);
	}
	if (!rc && (fflush(stdout) || ferror(stdout)))
		rc = -EPIPE;
	return rc;
}

/* Returns 0 when all intervals that were asked for are printed; otherwise negative errno with err set. */
static int show_all(struct top_view *v, struct top_feed *f, const struct top_plain *how, struct buf *text,
		    struct err *err)
{
	bool lost = false;

	for (uint64_t n = 0; !how->count || n < how->count;) {
		struct snapshot *s;
		int rc = top_feed_next(f, &s, err);

		if (rc == 1) {
			lost = false;
			n++;
			rc = show(v, s, how, text);
			if (rc)
				return rc == -EPIPE ? 0 :
						      err_set(err, rc, "stdout: %s; free some", strerrordesc_np(-rc));
			continue;
		}
		if (!rc || how->replay)
			return rc;
		if (!lost)
			log_warn("top: %s; trying again", err->text);
		lost = true;
	}
	return 0;
}

int top_plain_run(struct top_view *v, struct top_source *src, const struct top_plain *how)
{
	struct top_feed *f = NULL;
	struct buf text = { 0 };
	struct err err = { 0 };
	int rc;

	src->key_fd = -1;
	rc = top_feed_open(src, &f, &err);
	if (!rc)
		rc = show_all(v, f, how, &text, &err);
	top_feed_close(f);
	buf_free(&text);
	if (rc)
		log_error("top: %s", err.text);
	return rc ? CTL_FAILED : CTL_OK;
}
