// SPDX-License-Identifier: Apache-2.0
/* Preloaded into a meter that wants /proc/modules on a kernel without modules: it finds an empty list. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

int open64(const char *path, int flags, ...)
{
	int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return next(strcmp(path, "/proc/modules") ? path : "/dev/null", flags, mode);
}
