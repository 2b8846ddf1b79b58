/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/text.h"
#include "keys.h"

#define CONFIG_DEFAULT_PATH "/etc/jouled/jouled.yaml"

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "configuration: out of memory; free some");
}

/* Reads the file of -c, or the default one where it exists. Flags are applied afterwards. */
static int load_file(struct config *c, const struct flag_value *flags, int n, struct err *err)
{
	const struct key *config = key_find_flag("config", 0);
	const char *path = NULL;
	int rc;

	for (int i = 0; i < n; i++)
		if (flags[i].key == config)
			path = flags[i].value;
	if (!path && access(CONFIG_DEFAULT_PATH, F_OK) != 0)
		return 0;
	rc = config_yaml(c, path ? path : CONFIG_DEFAULT_PATH, err);
	if (rc)
		return rc;
	free(c->program.file);
	c->program.file = strdup(path ? path : CONFIG_DEFAULT_PATH);
	return c->program.file ? 0 : no_memory(err);
}

static int default_sensor(struct config *c, struct err *err)
{
	struct origin o = { .flag = "host name", .path = "" };
	char name[256];

	c->machine.sensor_given = c->machine.sensor != NULL;
	if (c->machine.sensor)
		return 0;
	if (gethostname(name, sizeof(name)) != 0)
		return err_set(err, -errno, "host name: %s; set sensor: in the configuration", strerror(errno));
	name[sizeof(name) - 1] = '\0';
	return key_set(key_find(config_keys, "sensor", true), c, name, &o, err);
}

/* Sets the history to history.db in state-dir, unless the configuration names a file. */
static int default_history(struct config *c, struct err *err)
{
	if (!c->serving.history.path && asprintf(&c->serving.history.path, "%s/history.db", c->state_dir) < 0) {
		c->serving.history.path = NULL;
		return no_memory(err);
	}
	if (strcmp(c->serving.history.path, "none") == 0) {
		free(c->serving.history.path);
		c->serving.history.path = NULL;
	}
	return 0;
}

/* True when an output needs spans of processes. */
static bool takes_traces(const struct outputs_config *c)
{
	bool any = false;

	for (unsigned i = 0; i < c->n && c->v[i].format; i++) /* a refused output has none */
		any |= output_format_find(c->v[i].format)->traces;
	return any;
}

static int load(struct config *c, const struct flag_value *flags, int n, struct err *err)
{
	int rc = load_file(c, flags, n, err);

	if (!rc)
		rc = flags_apply(c, flags, n, err);
	if (!rc)
		rc = default_sensor(c, err);
	if (!rc)
		rc = default_history(c, err);
	c->machine.file = c->program.file;
	c->machine.state_dir = c->state_dir;
	c->machine.spans.traces = takes_traces(&c->outputs);
	c->serving.socket.asked = c->serving.socket.path != NULL;
	if (!rc && !c->serving.socket.path && !(c->serving.socket.path = strdup(CONFIG_DEFAULT_SOCKET)))
		rc = no_memory(err);
	if (!rc && strcmp(c->serving.socket.path, "none") == 0) {
		free(c->serving.socket.path);
		c->serving.socket.path = NULL;
	}
	return rc;
}

static bool has_flag(const struct flag_value *flags, int n, const char *name)
{
	const struct key *k = key_find_flag(name, 0);

	for (int i = 0; i < n; i++)
		if (flags[i].key == k)
			return true;
	return false;
}

/* Help and version are answered even if the file or another flag is wrong. */
static enum config_action choose(const struct flag_value *flags, int n, bool doctor)
{
	return has_flag(flags, n, "help")    ? ACTION_HELP :
	       has_flag(flags, n, "version") ? ACTION_VERSION :
	       doctor                        ? ACTION_DOCTOR :
	       has_flag(flags, n, "check")   ? ACTION_CHECK :
					       ACTION_RUN;
}

int config_load(int argc, char **argv, struct config **ret, enum config_action *ret_action, struct err *err)
{
	struct config *c = calloc(1, sizeof(*c));
	struct flag_value *flags = NULL;
	enum config_action action = ACTION_RUN;
	bool doctor = false;
	size_t room = 1;
	int n, rc = -ENOMEM;

	for (int i = 1; i < argc; i++)
		room += strlen(argv[i]);
	flags = calloc(room, sizeof(*flags));
	if (!c || !flags || key_defaults(config_keys, c)) {
		err_set(err, rc, "configuration: out of memory; free some");
		goto out;
	}
	rc = n = flags_read(argc, argv, flags, &doctor, err);
	if (n < 0)
		goto out;
	action = choose(flags, n, doctor);
	rc = action == ACTION_HELP || action == ACTION_VERSION ? 0 : load(c, flags, n, err);
out:
	free(flags);
	if (rc) {
		config_free(c);
		return rc;
	}
	*ret = c;
	*ret_action = action;
	return 0;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	key_free(config_keys, c);
	free(c);
}

/* Rows of the table by name, and the nearest row to a misspelt name. */

const struct key *key_find(const struct key *keys, const char *name, bool in_file)
{
	for (const struct key *k = keys; k->name; k++)
		if (!(in_file && k->flag_only) && strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

static const struct key *find_flag(const struct key *keys, const char *name, char letter)
{
	const struct key *found = NULL;

	for (const struct key *k = keys; k->name && !found; k++) {
		if (k->flag && (name ? strcmp(k->flag, name) == 0 : k->letter == letter))
			found = k;
		else if (k->type == KEY_MAP)
			found = find_flag(k->sub, name, letter);
	}
	return found;
}

const struct key *key_find_flag(const char *name, char letter)
{
	return find_flag(config_keys, name, letter);
}

static void nearest(const struct key *keys, const char *name, bool flags, unsigned *best, const char **ret)
{
	for (const struct key *k = keys; k->name; k++) {
		const char *word = flags ? k->flag : k->flag_only ? NULL : k->name;
		unsigned d = word ? text_distance(word, name) : 0;

		if (word && d < *best) {
			*best = d;
			*ret = word;
		}
		if (flags && k->type == KEY_MAP)
			nearest(k->sub, name, flags, best, ret);
	}
}

const char *key_nearest(const struct key *keys, const char *name, bool flags)
{
	size_t len = strlen(name);
	unsigned best = len > 6 ? 4 : len > 2 ? 3 : 2; /* beyond a few edits it is another word */
	const char *word = NULL;

	nearest(keys, name, flags, &best, &word);
	return word;
}
