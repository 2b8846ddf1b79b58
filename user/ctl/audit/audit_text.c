/* SPDX-License-Identifier: Apache-2.0 */
/* The result of an audit in words. */
#include "session.h"
#include <math.h>
#include <string.h>
#include "base/clock.h"

static double percent(double v)
{
	return v * 100;
}

static void add_line(struct buf *b, const struct audit_line *l)
{
	buf_printf(b, "  %-24s %-12s %-9s ", l->cgroup, l->domain, l->draw);
	if (isnan(l->bias) && l->pairs < AUDIT_ROUNDS_LEAST) {
		buf_printf(b, "cannot be told after %llu pairs: it takes at least %d; audit longer (-d)\n",
			   (unsigned long long)l->pairs, AUDIT_ROUNDS_LEAST);
		return;
	}
	if (isnan(l->bias)) {
		buf_printf(b, "cannot be told after %llu pairs: draws %.3f W, which is not told from none\n",
			   (unsigned long long)l->pairs, l->drawn_w);
		return;
	}
	buf_printf(b, "draws %.3f W, charged %.3f W: %+.1f %% (%+.1f to %+.1f), %llu pairs\n", l->drawn_w, l->charged_w,
		   percent(l->bias), percent(l->low), percent(l->high), (unsigned long long)l->pairs);
	if (l->displaced >= 0.01)
		buf_printf(b, "    others took %.0f %% of its CPU time while it was frozen%s\n", percent(l->displaced),
			   l->judged ? "" : ": this is the draw of an exchange, not its own, and is not judged");
}

static bool has_draw(const struct audit *a, const char *draw)
{
	for (unsigned i = 0; i < a->n; i++)
		if (strcmp(a->line[i].draw, draw) == 0)
			return true;
	return false;
}

/* Which draw is told: under saturation the words mean different figures. */
static void add_words(struct buf *b, const struct audit *a)
{
	if (has_draw(a, AUDIT_DRAW_AVERAGE))
		buf_add_str(
			b,
			"alone: while the other load rests. marginal: what the domain draws more because of it while the "
			"other runs.\naverage: alone, and beside the other with half of what they share, and half of what it "
			"shares with other work; this\nis judged, for a ledger that adds up can charge it.\n");
	else
		buf_add_str(
			b,
			"marginal: what the machine draws less without it. Where power grows less than work (saturation), "
			"it is below the\naverage, which a ledger that adds up charges; a bias above 0 is then no "
			"error of the split. joulectl audit without\n--cgroup tells the two apart.\n");
	if (isnan(a->saturation))
		return;
	buf_printf(b, "A load beside another one draws %.3f (%.3f to %.3f) of what it draws alone: ", a->saturation,
		   a->saturation_low, a->saturation_high);
	if (a->saturation_high < 1)
		buf_add_str(b, "this machine saturates, marginal draws are below averages.\n");
	else if (a->saturation_low > 1)
		buf_add_str(b, "together they cost more, marginal draws are above averages.\n");
	else
		buf_add_str(b, "power adds up, marginal and average are not told apart.\n");
}

static void add_verdict(struct buf *b, const struct audit *a)
{
	if (isnan(a->within))
		buf_printf(
			b,
			"Nothing can be told: too few pairs, or draws too small for this machine's noise; audit longer (-d).\n");
	else
		buf_printf(b, "On this machine the split is right within %.1f %% (formula %s, at 95 %%).\n",
			   percent(a->within), a->formula);
	if (a->better[0])
		buf_printf(b, "Better here: formula %s: %s.\n", a->better, a->why);
	else if (a->why[0])
		buf_printf(b, "Neither formula is better here as far as can be told: %s.\n", a->why);
}

void audit_write_text(const struct audit *a, struct buf *b)
{
	add_verdict(b, a);
	for (unsigned i = 0; i < a->n; i++)
		add_line(b, &a->line[i]);
	add_words(b, a);
	buf_printf(b, "%.0f s%s, seed %llu", (double)a->duration_ns / 1e9, a->ended_early ? ", ended early" : "",
		   (unsigned long long)a->seed);
	if (a->frozen_ns)
		buf_printf(b, ", frozen for %.3f s (%.3f %%)", (double)a->frozen_ns / 1e9,
			   100 * (double)a->frozen_ns / (double)a->duration_ns);
	buf_add_str(b, ".\n");
}
