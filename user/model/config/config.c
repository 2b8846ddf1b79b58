/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "config_keys.h"

#define CONFIG_DEFAULT_PATH "/etc/jouled/jouled.yaml"

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "configuration: out of memory");
}

/* The file of -c, or the default one where it exists; flags are applied afterwards. */
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
	free(c->config_path);
	c->config_path = strdup(path ? path : CONFIG_DEFAULT_PATH);
	return c->config_path ? 0 : no_memory(err);
}

static int default_sensor(struct config *c, struct err *err)
{
	struct origin o = { .flag = "host name", .path = "" };
	char name[256];

	if (c->sensor)
		return 0;
	if (gethostname(name, sizeof(name)) != 0)
		return err_set(err, -errno, "host name: %s; set sensor: in the configuration", strerror(errno));
	name[sizeof(name) - 1] = '\0';
	return key_set(key_find(config_keys, "sensor", true), c, name, false, &o, err);
}

/* A file in the directory of what outlives the program, unless one was named. */
static int default_history(struct config *c, struct err *err)
{
	if (!c->history && asprintf(&c->history, "%s/history.db", c->state_dir) < 0) {
		c->history = NULL;
		return no_memory(err);
	}
	if (strcmp(c->history, "none") == 0) {
		free(c->history);
		c->history = NULL;
	}
	return 0;
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
	c->socket_asked = c->socket != NULL;
	if (!rc && !c->socket && !(c->socket = strdup(CONFIG_DEFAULT_SOCKET)))
		rc = no_memory(err);
	if (!rc && strcmp(c->socket, "none") == 0) {
		free(c->socket);
		c->socket = NULL;
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

/* Help and version answer whatever else is wrong, in the file too. */
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
		err_set(err, rc, "configuration: out of memory");
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
