/* SPDX-License-Identifier: Apache-2.0 */
/* Files that another run or another program left in the spool: a trace (first byte 't'; one that is taken is encoded for
 * each profile), or a segment file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "encode/zico/zico.h"
#include "store/spool/spool.h"
#include "store/trace_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(const struct trace *t)
{
	struct buf agent = { 0 }, body = { 0 };
	struct err err;

	for (unsigned i = 0; zico_profile_name(i); i++) {
		struct zico_options o = { .profile = zico_profile_name(i), .big_endian = i & 1, .body_max = 1 << 16 };
		struct zico *z = NULL;

		if (zico_new(&o, &z, &err) == 0) {
			buf_reset(&agent);
			buf_reset(&body);
			if (zico_encode(z, t, &agent, &body, &err) == 0 && body.len > 1 << 16)
				abort();
		}
		zico_free(z);
	}
	buf_free(&agent);
	buf_free(&body);
}

static void read_trace(const uint8_t *data, size_t size)
{
	struct trace *t = NULL;
	struct err err;

	if (trace_record_read(data, size, &t, &err) != 0)
		return;
	encode(t);
	trace_record_free(t);
}

static void read_segment(const char *dir, const uint8_t *data, size_t size)
{
	struct spool_options o = { .dir = dir, .max_bytes = 1 << 20 };
	struct spool *s = NULL;
	struct spool_mark m;
	struct buf b = { 0 };
	struct err err;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/cursor", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/0000000000000001.spool", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd) != 0)
		abort();
	if (spool_open(&o, &s, &err) != 0)
		abort();
	for (int n = 0; spool_next(s, 0, &b, &m) == 0; n++) {
		if (n > (int)size)
			abort();
		spool_done(s, &m);
	}
	spool_append(s, 0, "last", 4);
	buf_reset(&b);
	if (spool_next(s, 0, &b, &m) != 0 || b.len != 4)
		abort();
	spool_close(s);
	unlink(path);
	snprintf(path, sizeof(path), "%s/0000000000000002.spool", dir);
	unlink(path);
	buf_free(&b);
}

static char dir[] = "/tmp/jouled-fuzz-spool-XXXXXX";

static void remove_dir(void)
{
	static const char *const files[] = { "cursor", "lock" };
	char path[80];

	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		unlink(path);
	}
	rmdir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int made;

	if (!made && (!mkdtemp(dir) || atexit(remove_dir)))
		abort();
	made = 1;
	if (size && data[0] == 't')
		read_trace(data + 1, size - 1);
	else
		read_segment(dir, data, size);
	return 0;
}
