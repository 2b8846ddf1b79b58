/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. getopt is not used: the flags come from the table of keys, the same argv is
 * read again at SIGHUP, and a misspelt flag is answered with the nearest one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/text.h"
#include "keys.h"

static int unknown_flag(const char *arg, struct err *err)
{
	char shown[64], name[64];
	const char *near;

	text_escape(shown, sizeof(shown), arg);
	if (arg[0] != '-')
		return err_set(err, -EINVAL, "%s: not an option; see jouled --help", shown);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(arg + 1 + (arg[1] == '-'), "="), arg + 1 + (arg[1] == '-'));
	near = arg[1] == '-' ? key_nearest(config_keys, name, true) : NULL;
	if (near)
		return err_set(err, -EINVAL, "%s: unknown option; did you mean --%s?", shown, near);
	return err_set(err, -EINVAL, "%s: unknown option; see jouled --help", shown);
}

/* --name, --name=value, --name value. next: the argument after it, or NULL. Returns how many arguments it took. */
static int long_flag(const char *whole, const char *next, struct flag_value *ret, struct err *err)
{
	const char *arg = whole + 2, *equals = strchr(arg, '=');
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)(equals ? (size_t)(equals - arg) : strlen(arg)), arg);
	ret->key = key_find_flag(name, 0);
	if (!ret->key)
		return unknown_flag(whole, err);
	ret->shown = ret->key->flag;
	if (ret->key->type == KEY_BOOL) {
		ret->value = "true";
		return equals ? err_set(err, -EINVAL, "--%s: takes no value; leave %s out", ret->shown, equals) : 1;
	}
	ret->value = equals ? equals + 1 : next;
	if (!ret->value)
		return err_set(err, -EINVAL, "--%s: needs a value; --%s %s", ret->shown, ret->shown, ret->key->arg);
	return equals ? 1 : 2;
}

/* -i5s, -i 5s, -q; *at walks over -qv. Returns how many arguments are done, 0 = more letters here. */
static int short_flag(const char *arg, const char *next, size_t *at, struct flag_value *ret, struct err *err)
{
	char letter = arg[*at];
	bool last = !arg[*at + 1];

	ret->key = key_find_flag(NULL, letter);
	if (!ret->key || !letter)
		return unknown_flag(arg, err);
	ret->shown = ret->key->flag;
	if (ret->key->type == KEY_BOOL) {
		ret->value = "true";
		++*at;
		return last ? 1 : 0;
	}
	ret->value = last ? next : arg + *at + 1;
	if (!ret->value)
		return err_set(err, -EINVAL, "-%c: needs a value; -%c %s", letter, letter, ret->key->arg);
	return last ? 2 : 1;
}

int flags_read(int argc, char **argv, struct flag_value *ret, bool *ret_doctor, struct err *err)
{
	bool doctor = argc > 1 && strcmp(argv[1], "doctor") == 0;
	int n = 0, took;

	for (int i = 1 + doctor; i < argc; i += took) {
		const char *next = i + 1 < argc ? argv[i + 1] : NULL;
		size_t at = 1;

		if (argv[i][0] != '-' || !argv[i][1])
			return unknown_flag(argv[i], err);
		if (argv[i][1] == '-') {
			took = long_flag(argv[i], next, &ret[n++], err);
		} else {
			do {
				took = short_flag(argv[i], next, &at, &ret[n++], err);
			} while (took == 0);
		}
		if (took < 0)
			return took;
	}
	*ret_doctor = doctor;
	return n;
}

static int apply(struct config *c, const struct flag_value *f, bool first_output, struct err *err)
{
	char flag[64];
	struct origin o = { .flag = flag, .path = "" };

	if (f->key->type == KEY_MAPS) {
		/* Outputs of the command line replace those of the file: flags override. */
		for (; first_output && c->outputs.n; c->outputs.n--)
			key_free(config_output_keys, &c->outputs.v[c->outputs.n - 1]);
		return output_from_flag(c, f->value, err);
	}
	snprintf(flag, sizeof(flag), "--%s", f->shown);
	return key_set(f->key, c, f->value, &o, err);
}

int flags_apply(struct config *c, const struct flag_value *values, int n, struct err *err)
{
	bool first_output = true;
	int rc = 0;

	for (int i = 0; i < n && !rc; i++) {
		rc = apply(c, &values[i], first_output, err);
		if (values[i].key->type == KEY_MAPS)
			first_output = false;
	}
	return rc;
}
