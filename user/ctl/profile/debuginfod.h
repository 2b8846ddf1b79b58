/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols from servers of the debuginfod protocol (debuginfod(8), "WEBAPI"): GET URL/buildid/HEX/debuginfo. Only servers that
 * the user named are asked. What came is kept below a directory in the form of FRAME_DEBUG_DIR, if its build id is the one
 * that was asked for. */
#ifndef JD_DEBUGINFOD_H
#define JD_DEBUGINFOD_H
#include <limits.h>
#include "base/err.h"
#include "profile/symbol_files.h"

#define DEBUGINFOD_SERVERS_MAX 8

struct debuginfod {
	struct debuginfod_server {
		char *url;
		struct http_client *http;
		bool silent; /* it did not answer, and is not asked again */
	} server[DEBUGINFOD_SERVERS_MAX];
	unsigned n;
	char dir[PATH_MAX / 2];
	int part; /* the file that comes */
	uint64_t bytes; /* of it so far */
};

/* urls: parted by ','. Files are kept in $XDG_CACHE_HOME/jouled, else $HOME/.cache/jouled. 0, or negative errno with err. Call
 * debuginfod_close in any case. */
int debuginfod_open(struct debuginfod *d, const char *urls, struct err *err);
/* True: the symbols of that build id (hexadecimal) are there now. A server that fails is told in the log. */
bool debuginfod_fetch(struct debuginfod *d, struct symbol_files *files, const char *build_id);
void debuginfod_close(struct debuginfod *d); /* zeroed accepted */

#endif
