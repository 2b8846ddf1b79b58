/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl flame: spans by energy, as a picture. */
#include <errno.h>
#include "base/log.h"
#include "ctl/core/choice.h"
#include "ctl_spans.h"

#define WIDTH_MIN 320
#define WIDTH_MAX 8000

enum { OPTION_WIDTH = SPANS_OPTIONS, OPTION_OUT };

static const struct verb_option options[] = {
	SPANS_OPTION_ROWS("all"),
	[OPTION_WIDTH] = { "width", 'w', "PIXELS", "320 to 8000; 1200 unless given" },
	[OPTION_OUT] = { "out", 'o', "FILE", "where to write; standard output unless given" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Draws the spans that joulectl spans would show as a flame graph in SVG: a frame is as wide as the energy of its command "
	"with all that it started, which stands on it; commands of one name are one frame. The place that nothing stands on is what "
	"a command used itself. Without energy it is CPU time.",
	"The SVG opens in any browser, follows its dark or light setting, and has nothing from elsewhere in it; "
	"pointing at a frame tells its figures. A script in it draws a frame that is clicked over the whole width, and searches (/); "
	"without it the picture is whole. A frame bears its whole name, with its total where there is room, or nothing. "
	"--command NAME draws that command alone, over the whole width.",
	NULL,
};

static int add(void *flame, const struct spans_list *part)
{
	return spans_flame_add(flame, part);
}

static int run(const struct verb_call *call)
{
	struct flame *f = spans_flame_new(call->option[SPANS_COMMAND]);
	const struct spans_query query = { .call = call, .limit = UINT64_MAX, .each = add, .ctx = f };
	struct spans_list list = { 0 };
	struct buf out = { 0 };
	struct err err = { 0 };
	uint64_t width = 1200;
	int rc = choice_number("flame: --width", call->option[OPTION_WIDTH], choice_range(WIDTH_MIN, WIDTH_MAX), &width,
			       &err);

	if (!rc)
		rc = f ? spans_load(&query, &list, &err) : -ENOMEM;
	if (!rc)
		rc = spans_flame_draw(f, &list.missing, (unsigned)width, &out);
	if (rc == -ENODATA)
		err_set(&err, rc, "flame: no matching span has ended and used energy; ask for more, or wait");
	else if (rc == -ENOMEM)
		err_set(&err, rc, "flame: out of memory; ask for less");
	else if (!rc)
		rc = spans_write(call->option[OPTION_OUT], &out, &err);
	if (!rc || rc == -ENODATA)
		spans_warn_missing("flame", &list.missing);
	if (rc)
		log_error("%s", err.text);
	buf_free(&out);
	spans_flame_free(f);
	spans_list_free(&list);
	return !rc ? CTL_OK : rc == -EINVAL ? CTL_USAGE : CTL_FAILED;
}

const struct verb verb_flame = {
	.name = "flame",
	.synopsis = "[FILE|-]",
	.help = "Draws what ran by its energy, as a flame graph in SVG",
	.about = about,
	.options = options,
	.max_args = 1,
	.run = run,
};
