/* SPDX-License-Identifier: Apache-2.0 */
/* Who a client of HTTP says it is: a token, or a user and a password, from files that are read again for each request.
 * So a file that is replaced holds from the next request on. Their contents never appear in a message. */
#ifndef JD_HTTP_SECRET_H
#define JD_HTTP_SECRET_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

#define HTTP_SECRET_MAX 8192

struct http_secret_files {
	const char *token_file; /* NULL = no token */
	const char *token_scheme; /* literal before the token: "Bearer"; NULL = that */
	const char *user, *password_file; /* Basic; NULL = none */
};

/* Writes the header "Authorization: ..." into dst; "" when there is neither token nor user. 0, or -EACCES with err: a file
 * cannot be read, or what is in it can be no secret (empty, more than 8 KiB, a control byte). */
int http_secret_header(const struct http_secret_files *f, char dst[HTTP_SECRET_MAX * 2], struct err *err);
/* Reads a file whose one line is a secret; a line feed at its end is no part of it. 0, or -EACCES as above. */
int http_secret_read(const char *path, char dst[HTTP_SECRET_MAX], struct err *err);
/* A number that changes when one of the files is replaced or written. NULL paths are skipped. */
uint64_t http_files_stamp(const char *const *paths, unsigned n);

#endif
