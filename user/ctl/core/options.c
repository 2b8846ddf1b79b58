/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a verb, from its table. This is not getopt(3), so that a misspelt option is answered with the nearest
 * one, as jouled does. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/text.h"
#include "verb.h"

static int row_of(const struct verb *v, const char *name, size_t len, char letter)
{
	for (int i = 0; i < VERB_OPTIONS_MAX && v->options[i].name; i++) {
		const struct verb_option *o = &v->options[i];

		if (name ? strlen(o->name) == len && memcmp(o->name, name, len) == 0 : o->letter == letter)
			return i;
	}
	return -1;
}

static int unknown(const struct verb *v, const char *arg, struct err *err)
{
	char shown[64], name[64];
	const char *near = NULL;
	unsigned best;

	text_escape(shown, sizeof(shown), arg);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(arg + 2, "="), arg + 2);
	best = strlen(name) > 6 ? 4 : strlen(name) > 2 ? 3 : 2;
	for (const struct verb_option *o = v->options; o->name; o++) {
		unsigned d = text_distance(o->name, name);

		if (d < best) {
			best = d;
			near = o->name;
		}
	}
	if (near)
		return err_set(err, -EINVAL, "%s: %s: unknown option; did you mean --%s?", v->name, shown, near);
	return err_set(err, -EINVAL, "%s: %s: unknown option; see joulectl %s --help", v->name, shown, v->name);
}

static bool takes_two(const struct verb_option *o)
{
	return o->arg && strchr(o->arg, ' ');
}

/* Keeps the value of an option. 0, or -EINVAL with err. */
static int keep(const struct verb *v, int row, const char *value, struct verb_call *ret, struct err *err)
{
	const struct verb_option *o = &v->options[row];
	size_t len = strlen(o->arg);

	ret->option[row] = value;
	if (takes_two(o)) {
		ret->several[0] = value;
		return 0;
	}
	if (len < 3 || strcmp(o->arg + len - 3, "...") != 0)
		return 0;
	if (ret->n_several == VERB_SEVERAL_MAX)
		return err_set(err, -EINVAL, "%s: --%s: given more than %d times; leave some out", v->name, o->name,
			       VERB_SEVERAL_MAX);
	ret->several[ret->n_several++] = value;
	return 0;
}

/* Reads --name, --name=value or --name value. Returns the number of arguments that it took, or -EINVAL with err. */
static int long_option(const struct verb *v, int left, char **argv, struct verb_call *ret, struct err *err)
{
	const char *name = argv[0] + 2, *equals = strchr(name, '=');
	int row = row_of(v, name, equals ? (size_t)(equals - name) : strlen(name), 0);
	const struct verb_option *o = &v->options[row < 0 ? 0 : row];
	int took;

	if (row < 0)
		return unknown(v, argv[0], err);
	if (!o->arg) {
		ret->option[row] = "";
		return equals ? err_set(err, -EINVAL, "%s: --%s: takes no value; leave %s out", v->name, o->name,
					equals) :
				1;
	}
	if (!equals && left < 2)
		return err_set(err, -EINVAL, "%s: --%s: needs a value; --%s %s", v->name, o->name, o->name, o->arg);
	if (keep(v, row, equals ? equals + 1 : argv[1], ret, err))
		return -EINVAL;
	took = equals ? 1 : 2;
	if (!takes_two(o))
		return took;
	if (left <= took)
		return err_set(err, -EINVAL, "%s: --%s: needs two values; --%s %s", v->name, o->name, o->name, o->arg);
	ret->several[1] = argv[took];
	return took + 1;
}

/* Reads -j, -fF, -f F or several flags together. Returns the number of arguments that it took, or -EINVAL with err. */
static int short_options(const struct verb *v, int left, char **argv, struct verb_call *ret, struct err *err)
{
	for (const char *at = argv[0] + 1; *at; at++) {
		int row = row_of(v, NULL, 0, *at);
		char shown[3] = { '-', *at, 0 };

		if (row < 0)
			return err_set(err, -EINVAL, "%s: %s: unknown option; see joulectl %s --help", v->name, shown,
				       v->name);
		if (!v->options[row].arg) {
			ret->option[row] = "";
			continue;
		}
		if (!at[1] && left < 2)
			return err_set(err, -EINVAL, "%s: %s: needs a value; %s %s", v->name, shown, shown,
				       v->options[row].arg);
		if (keep(v, row, at[1] ? at + 1 : argv[1], ret, err))
			return -EINVAL;
		return at[1] ? 1 : 2;
	}
	return 1;
}

static bool is_help(const char *arg)
{
	return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

int verb_parse(const struct verb *v, int argc, char **argv, struct verb_call *ret, struct err *err)
{
	bool on = false; /* options go on behind the command */
	int took;

	*ret = (struct verb_call){ .args = argv };
	for (int i = 0; i < argc; i += took) {
		took = 1;
		if (is_help(argv[i])) {
			ret->help = true;
			return 0;
		}
		if (v->passes_on) {
			argv[ret->n++] = argv[i];
			continue;
		}
		if (v->command && !on && argv[i][0] != '-')
			on = v->goes_on && v->goes_on(argc - i, argv + i);
		if (v->command && !on && (argv[i][0] != '-' || !argv[i][1] || strcmp(argv[i], "--") == 0)) {
			i += strcmp(argv[i], "--") == 0;
			ret->args = argv + i;
			ret->n = argc - i;
			return 0;
		}
		if (strcmp(argv[i], "--") == 0) {
			while (++i < argc)
				argv[ret->n++] = argv[i];
			break;
		}
		if (argv[i][0] != '-' || !argv[i][1])
			argv[ret->n++] = argv[i];
		else if (argv[i][1] == '-')
			took = long_option(v, argc - i, argv + i, ret, err);
		else
			took = short_options(v, argc - i, argv + i, ret, err);
		if (took < 0)
			return took;
	}
	if (ret->n > v->max_args) {
		char shown[64];

		return err_set(err, -EINVAL, "%s: %s: one argument too many; see joulectl %s --help", v->name,
			       text_escape(shown, sizeof(shown), argv[v->max_args]), v->name);
	}
	return 0;
}
