/* SPDX-License-Identifier: Apache-2.0 */
/* A controller of cgroup v2 that is enabled for the cgroups below the root, as long as one test runs. */
#ifndef JD_TEST_CONTROLLER_H
#define JD_TEST_CONTROLLER_H
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char controller_file[64]; /* cgroup.subtree_control of the root, while a controller is enabled by us */
static char controller_name[32];

/* The words of a file of a cgroup without the end of the line; false when it cannot be read. */
static inline bool controller_words(const char *mount, const char *file, char *ret, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", mount, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, ret, size - 1);
	if (fd >= 0)
		close(fd);
	ret[n > 0 ? n : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return n >= 0;
}

static inline bool controller_write(char sign)
{
	char text[40];
	int fd = open(controller_file, O_WRONLY | O_CLOEXEC), n;
	bool done;

	n = snprintf(text, sizeof(text), "%c%s", sign, controller_name);
	done = fd >= 0 && write(fd, text, (size_t)n) == n;
	if (fd >= 0)
		close(fd);
	return done;
}

static inline bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += n)
		if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return true;
	return false;
}

/* Enables the controller `name`, unless it is enabled; NULL: the first that there is, unless any is enabled.
 * Does nothing where there is none, and the test says what it misses. */
static inline void controller_enable(const char *name)
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char there[256], enabled[256];

	for (unsigned i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		if (!controller_words(mounts[i], "cgroup.controllers", there, sizeof(there)) || !there[0] ||
		    !controller_words(mounts[i], "cgroup.subtree_control", enabled, sizeof(enabled)))
			continue;
		if (name ? has_word(enabled, name) || !has_word(there, name) : enabled[0] != '\0')
			return;
		snprintf(controller_file, sizeof(controller_file), "%s/cgroup.subtree_control", mounts[i]);
		snprintf(controller_name, sizeof(controller_name), "%.*s", (int)strcspn(name ? name : there, " "),
			 name ? name : there);
		if (!controller_write('+'))
			controller_file[0] = '\0';
		return;
	}
}

/* Setup and teardown of a test, so that the controller is disabled again although the test failed. */
static inline int any_controller(void **state)
{
	controller_enable(NULL);
	return 0;
}

static inline int memory_controller(void **state)
{
	controller_enable("memory");
	return 0;
}

static inline int controller_restore(void **state)
{
	bool done = !controller_file[0] || controller_write('-');

	controller_file[0] = '\0';
	return done ? 0 : -1;
}

#endif
