/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "secret.h"

#define REMEDY "give it one line that is the secret, readable by jouled"

int http_secret_read(const char *path, char dst[HTTP_SECRET_MAX], struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, dst, HTTP_SECRET_MAX);
	int why = errno;

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return err_set(err, -EACCES, "%s: %s; " REMEDY, path, strerrordesc_np(why));
	if (n == HTTP_SECRET_MAX)
		return err_set(err, -EACCES, "%s: longer than %d bytes; " REMEDY, path, HTTP_SECRET_MAX - 1);
	while (n && (dst[n - 1] == '\n' || dst[n - 1] == '\r'))
		n--;
	for (ssize_t i = 0; i < n; i++)
		if ((unsigned char)dst[i] < 0x20 || dst[i] == 0x7f)
			return err_set(err, -EACCES, "%s: it has a control byte; " REMEDY, path);
	dst[n] = '\0';
	return n ? 0 : err_set(err, -EACCES, "%s: it is empty; " REMEDY, path);
}

/* RFC 4648, with padding. dst has room for 4 bytes for each 3, and a NUL. */
static void base64(char *dst, const unsigned char *p, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (; n; p += n < 3 ? n : 3, n -= n < 3 ? n : 3) {
		uint32_t v = (uint32_t)p[0] << 16 | (n > 1 ? p[1] << 8 : 0) | (n > 2 ? p[2] : 0);

		*dst++ = digits[v >> 18];
		*dst++ = digits[v >> 12 & 63];
		*dst++ = n > 1 ? digits[v >> 6 & 63] : '=';
		*dst++ = n > 2 ? digits[v & 63] : '=';
	}
	*dst = '\0';
}

int http_secret_header(const struct http_secret_files *f, char dst[HTTP_SECRET_MAX * 2], struct err *err)
{
	static const char head[] = "Authorization: Basic ";
	char secret[HTTP_SECRET_MAX], both[HTTP_SECRET_MAX + 256];
	int rc = 0, n;

	*dst = '\0';
	if (f->token_file) {
		rc = http_secret_read(f->token_file, secret, err);
		if (!rc)
			snprintf(dst, HTTP_SECRET_MAX * 2, "Authorization: %s %s",
				 f->token_scheme ? f->token_scheme : "Bearer", secret);
	} else if (f->user && f->password_file) {
		rc = http_secret_read(f->password_file, secret, err);
		n = rc ? 0 : snprintf(both, sizeof(both), "%.200s:%s", f->user, secret);
		memcpy(dst, head, sizeof(head));
		base64(dst + sizeof(head) - 1, (const unsigned char *)both, (size_t)n);
		explicit_bzero(both, sizeof(both));
	}
	explicit_bzero(secret, sizeof(secret));
	return rc;
}

uint64_t http_files_stamp(const char *const *paths, unsigned n)
{
	uint64_t stamp = 0;
	struct stat st;

	for (unsigned i = 0; i < n; i++) {
		if (!paths[i])
			continue;
		if (stat(paths[i], &st) != 0)
			st = (struct stat){ 0 };
		stamp = stamp * 1000003 + st.st_ino;
		stamp = stamp * 1000003 + (uint64_t)st.st_size;
		stamp = stamp * 1000003 + (uint64_t)st.st_mtim.tv_sec;
		stamp = stamp * 1000003 + (uint64_t)st.st_mtim.tv_nsec;
	}
	return stamp;
}
