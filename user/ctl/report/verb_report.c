/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl report: prints energy per run and repetition of an experiment tree. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/parse.h"
#include "base/text.h"
#include "ctl/core/choice.h"
#include "ctl/plot/plot.h"
#include "ctl/core/put.h"
#include "report.h"
#include "ctl/core/verb.h"

enum {
	OPTION_SOURCE,
	OPTION_JSON,
	OPTION_CSV,
	OPTION_IDLE,
	OPTION_UNIT,
	OPTION_COMPAT,
	OPTION_PLOT,
	OPTION_PICTURE,
	OPTION_WIDTH,
	OPTION_PRICE,
	OPTION_CARBON
};

static const struct verb_option options[] = {
	[OPTION_SOURCE] = { "source", 's', "NAMES",
			    "hd, sd, external, rapl, cgroup, joined by commas; all there are unless given" },
	[OPTION_JSON] = { "json", 'j', NULL, "one object" },
	[OPTION_CSV] = { "csv", 'c', NULL, "a line per repetition and source, then mean and stddev of the run" },
	[OPTION_IDLE] = { "external-idle", 0, "WATTS", "taken off external power, 0 unless given" },
	[OPTION_UNIT] = { "external-unit", 0, "UNIT", "mW or 10mW, whatever system_info.json says" },
	[OPTION_COMPAT] = { "compat", 0, NULL,
			    "as the original reader: external counts are 10 mW, 632.625 W are taken off, a row without power makes energy unknown" },
	[OPTION_PLOT] = { "plot", 'o', "FILE", "a picture of the first source as SVG" },
	[OPTION_PICTURE] = { "picture", 0, "WHAT",
			     "power (over time) or sweep (energy and time by setting, the default for several runs)" },
	[OPTION_WIDTH] = { "width", 'w', "PIXELS", "of the picture, 320 to 8000; 960 unless given" },
	[OPTION_PRICE] = { "price", 0, "N", "of a kWh, for a column of costs" },
	[OPTION_CARBON] = { "carbon", 0, "N|FILE",
			    "grams of CO2 per kWh, or a file with lines TIME,GRAMS, for a column of CO2" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Prints energy, time, mean power, energy-delay products (EDP, ED2P), utilisation and clocks of recorded runs. DIR is the root of the "
	"tree or any directory below it, down to one repetition.",
	"Sources: hd is total_power_samples.csv, sd gpu-power.csv, external the wall meter, rapl the machine's energy counters, cgroup the "
	"run's own share of them. Of two epochs and more the first is dropped, of three and more the last one too; without epochs all that "
	"every file has counts. Time is that of the last row that counts.",
	"It warns when the GPU's counter, its power and external power disagree, and leaves out what cannot be read. joulectl check "
	"says what the original analysis code makes of a tree.",
	NULL,
};

static int choose_sources(const char *text, unsigned *ret, struct err *err)
{
	unsigned found = 0;

	for (const char *at = text; at && *at; at += *at == ',') {
		size_t len = strcspn(at, ",");
		bool known = false;

		for (unsigned s = 0; s < REPORT_SOURCES; s++)
			if (strlen(report_source_name[s]) == len && strncmp(at, report_source_name[s], len) == 0) {
				found |= 1u << s;
				known = true;
			}
		if (!known)
			return err_set(err, -EINVAL,
				       "report: --source %.*s: no such source; hd, sd, external, rapl or cgroup",
				       (int)(len < 40 ? len : 40), at);
		at += len;
	}
	if (text && !found)
		return err_set(err, -EINVAL, "report: --source: no name; hd, sd, external, rapl or cgroup");
	*ret = text ? found : (1u << REPORT_SOURCES) - 1;
	return 0;
}

static int read_options(const struct verb_call *call, struct report_options *o, struct err *err)
{
	static const char *const units[] = { "mW", "10mW", NULL };
	const char *idle = call->option[OPTION_IDLE], *unit = call->option[OPTION_UNIT];
	int rc = choose_sources(call->option[OPTION_SOURCE], &o->sources, err);

	if (rc)
		return rc;
	o->compat = call->option[OPTION_COMPAT] != NULL;
	if (o->compat && (idle || unit))
		return err_set(
			err, -EINVAL,
			"report: --compat: has its own unit and idle power; leave out --external-unit and --external-idle");
	if (call->option[OPTION_JSON] && call->option[OPTION_CSV])
		return err_set(err, -EINVAL, "report: --json and --csv: choose one");
	o->external_idle_w = o->compat ? REPORT_COMPAT_IDLE_W : 0;
	if (idle && (parse_double(idle, &o->external_idle_w) != 0 || fabs(o->external_idle_w) > 1e9))
		return err_set(err, -EINVAL, "report: --external-idle %.40s: no power in watts; such as 65.5", idle);
	rc = choice_word("report: --external-unit", unit, units, -1, err);
	if (unit && rc < 0)
		return rc;
	o->external_mw = !unit ? 0 : rc ? 10 : 1;
	return 0;
}

static int read_cost(const struct verb_call *call, struct cost *ret, struct err *err)
{
	const char *price = call->option[OPTION_PRICE], *carbon = call->option[OPTION_CARBON];
	struct err why = { 0 };
	int rc = price ? cost_set_price(ret, price, &why) : 0;

	if (!rc && carbon)
		rc = cost_set_carbon(ret, carbon, &why);
	return rc ? err_set(err, rc, "report: %s", why.text) : 0;
}

static enum report_source first_source(const struct report *r)
{
	struct statistics stats;

	for (unsigned s = 0; s < REPORT_SOURCES; s++)
		for (unsigned i = 0; i < r->n_runs; i++)
			if (report_stats(r, &r->runs[i], s, REPORT_ENERGY, &stats))
				return s;
	return REPORT_HD;
}

static int plot(const struct verb_call *call, const struct report *r, int picture, unsigned width, struct err *err)
{
	const char *path = call->option[OPTION_PLOT];
	bool sweep = picture == 1 || (picture < 0 && r->n_runs > 1);
	struct buf b = { 0 };
	int rc = (sweep ? report_plot_sweep : report_plot_power)(r, first_source(r), width, &b, err);

	if (!rc && b.failed)
		rc = err_set(err, -ENOMEM, "report: out of memory; name a directory below it");
	if (!rc)
		rc = put_file(path, &b, err);
	buf_free(&b);
	return rc;
}

/* Is the trap one of the original reader only? joulectl report reads such a file without a problem. */
static bool only_for_others(const char *trap)
{
	static const char *const traps[] = { "index-missing",   "time-zone",          "mixed-fractions",
					     "index-in-events", "empty-file",         "empty-samples",
					     "file-in-run",     "file-in-experiment", "hidden-repetition",
					     "repetition-name", "dot-directory" };

	for (unsigned i = 0; i < sizeof(traps) / sizeof(traps[0]); i++)
		if (strcmp(trap, traps[i]) == 0)
			return true;
	return false;
}

static void say_warnings(const struct report *r, const char *dir)
{
	unsigned others = 0;

	for (unsigned i = 0; i < r->warnings.n; i++)
		log_warn("%s: %s", r->warnings.list[i].file, r->warnings.list[i].text);
	for (unsigned i = 0; i < r->found.n; i++) {
		const struct tree_finding *f = &r->found.list[i];

		others += f->effect == TREE_ABORTS && only_for_others(f->trap);
		if (!only_for_others(f->trap))
			log_warn("%s:%lu: %s", f->file, f->line, f->text);
	}
	if (r->found.left_out + r->warnings.left_out)
		log_warn("%s: %lu further warnings", dir, r->found.left_out + r->warnings.left_out);
	if (others)
		log_warn("%s: the original analysis code would stop at %u places; joulectl check %s names them", dir,
			 others, dir);
}

static int report(const struct verb_call *call, struct report *r, int picture, unsigned width)
{
	struct buf b = { 0 };
	struct err err = { 0 };
	int rc = report_read(r, call->args[0], &err);

	say_warnings(r, call->args[0]);
	if (!rc) {
		(call->option[OPTION_JSON] ? report_write_json :
		 call->option[OPTION_CSV]  ? report_write_csv :
					     report_write_text)(r, &b);
		rc = b.failed ? err_set(&err, -ENOMEM, "report: out of memory; name a directory below it") :
				put_file(NULL, &b, &err);
	}
	if (!rc && call->option[OPTION_PLOT])
		rc = plot(call, r, picture, width, &err);
	if (rc)
		log_error("%s", err.text);
	buf_free(&b);
	return rc ? CTL_FAILED : CTL_OK;
}

static int run(const struct verb_call *call)
{
	static const char *const pictures[] = { "power", "sweep", NULL };
	struct report r = { 0 };
	struct cost cost;
	struct err err = { 0 };
	uint64_t width = 960;
	int rc, picture = -1;

	cost_init(&cost);
	r.o.cost = &cost;
	rc = call->n ? read_options(call, &r.o, &err) :
		       err_set(&err, -EINVAL, "report: no directory; name the one that joulectl record --root wrote");
	if (!rc)
		rc = read_cost(call, &cost, &err);
	if (!rc)
		rc = choice_number("report: --width", call->option[OPTION_WIDTH],
				   choice_range(PLOT_WIDTH_MIN, PLOT_WIDTH_MAX), &width, &err);
	if (!rc && call->option[OPTION_PICTURE]) {
		picture = choice_word("report: --picture", call->option[OPTION_PICTURE], pictures, -1, &err);
		rc = picture < 0 ? picture : 0;
	}
	if (rc) {
		log_error("%s", err.text);
		rc = CTL_USAGE;
	} else {
		rc = report(call, &r, picture, (unsigned)width);
	}
	report_free(&r);
	cost_free(&cost);
	return rc;
}

const struct verb verb_report = {
	.name = "report",
	.synopsis = "DIR",
	.help = "Prints energy, energy-delay products and more per run of an experiment tree",
	.about = about,
	.options = options,
	.max_args = 1,
	.run = run,
};
