/* SPDX-License-Identifier: Apache-2.0 */
#include "kafka_load.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#define NAME "kafka.so"

/* NULL: it is in neither place. */
static void *open_library(char *why, size_t size)
{
	/* the loader puts the program's folder in the place of $ORIGIN, unless the program has capabilities of its file */
	void *library = dlopen("$ORIGIN/" NAME, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		library = dlopen(JOULED_LIBDIR "/" NAME, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		snprintf(why, size, "%s", dlerror());
	return library;
}

int kafka_load(const struct kafka_plugin **ret, struct err *err)
{
	static const struct kafka_plugin *loaded;
	const struct kafka_plugin *p;
	char why[300];
	void *library;

	if (!loaded) {
		library = open_library(why, sizeof(why));
		if (!library)
			return err_set(err, -ENOENT, "%s; install the package jouled-kafka", why);
		p = dlsym(library, KAFKA_PLUGIN_SYMBOL);
		if (!p || p->form != KAFKA_PLUGIN_FORM) {
			dlclose(library);
			return err_set(err, -EINVAL,
				       "%s is of another version than this program; install both from one",
				       JOULED_LIBDIR "/" NAME);
		}
		loaded = p;
	}
	*ret = loaded;
	return 0;
}
