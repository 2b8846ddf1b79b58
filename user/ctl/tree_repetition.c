/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../base/buf.h"
#include "tree.h"
#include "tree_csv.h"

/* "package-0 estimated": what the recorder says of its energy columns. */
static void take_quality(struct tree_repetition *r, json_t *all)
{
	const char *domain;
	json_t *v;

	json_object_foreach(all, domain, v) {
		const char *word = json_string_value(v);

		if (!*r->quality && word && strcmp(word, "measured") != 0 && strcmp(word, "wrapped") != 0)
			snprintf(r->quality, sizeof(r->quality), "%.30s %.30s", domain, word);
	}
}

static void take_info(struct tree_repetition *r, const json_t *doc, const char *file, struct tree_findings *f)
{
	const char *unit = json_string_value(json_object_get(doc, "external_unit"));
	const char *from = json_string_value(json_object_get(doc, "power_samples_from"));
	const char *device = json_string_value(json_object_get(doc, "device_name"));

	r->has_info = true;
	take_quality(r, json_object_get(doc, "energy_quality"));
	if (unit && strcmp(unit, "mW") == 0)
		r->external_mw = 1;
	else if (unit && strcmp(unit, "10mW") == 0)
		r->external_mw = 10;
	else if (unit)
		tree_find(f, TREE_NOTE, "external-unit", file, 0, "external_unit is neither mW nor 10mW; taken for mW");
	snprintf(r->samples_from, sizeof(r->samples_from), "%s", from ? from : "");
	snprintf(r->device, sizeof(r->device), "%s", device ? device : "");
}

/* The whole file; -EFBIG beyond TREE_INFO_MAX. */
static int slurp(int fd, struct buf *b)
{
	for (;;) {
		uint8_t *p = buf_reserve(b, 65536);
		ssize_t n = p ? read(fd, p, 65536) : -1;

		if (n == 0)
			return 0;
		if (!p || (n < 0 && errno != EINTR))
			return p ? -errno : -ENOMEM;
		b->len += n > 0 ? (size_t)n : 0;
		if (b->len > TREE_INFO_MAX)
			return -EFBIG;
	}
}

static int read_info(int dir, const char *shown, struct tree_repetition *r, struct tree_findings *f)
{
	int fd = tree_file_open(dir, "system_info.json"), rc;
	struct buf b = { 0 };
	char file[1024];
	json_error_t why;
	json_t *doc;

	snprintf(file, sizeof(file), "%s/system_info.json", shown);
	if (fd < 0) {
		r->info_broken = fd != -ENOENT;
		if (fd != -ENOENT)
			tree_find(f, TREE_ABORTS, "unreadable", file, 0, "%s", strerrordesc_np(-fd));
		return 0;
	}
	rc = slurp(fd, &b);
	close(fd);
	if (rc) {
		r->info_broken = true;
		tree_find(f, TREE_ABORTS, "unreadable", file, 0, "%s", strerrordesc_np(-rc));
	} else if (!(doc = json_loadb(b.len ? (const char *)b.data : "", b.len, 0, &why))) {
		r->info_broken = true;
		tree_find(f, TREE_ABORTS, "bad-json", file, why.line > 0 ? (unsigned long)why.line : 0, "no JSON: %s",
			  why.text);
	} else {
		take_info(r, doc, file, f);
		json_decref(doc);
	}
	buf_free(&b);
	return rc == -ENOMEM ? rc : 0;
}

void tree_repetition_free(struct tree_repetition *r)
{
	for (unsigned i = 0; i < TREE_TABLES; i++)
		tree_table_free(&r->table[i]);
	free(r->events);
	*r = (struct tree_repetition){ 0 };
}

int tree_repetition_read(const struct tree_place *p, struct tree_repetition *ret, struct tree_findings *f,
			 struct err *err)
{
	int dir = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	*ret = (struct tree_repetition){ 0 };
	if (dir < 0)
		return err_set(err, -errno, "%s: %s", p->path, strerrordesc_np(errno));
	rc = read_info(dir, p->shown, ret, f);
	if (!rc)
		rc = tree_events_read(dir, p->shown, ret, f);
	for (unsigned i = 0; i < TREE_TABLES && !rc; i++)
		rc = tree_table_read(dir, i, p->shown, &ret->table[i], f);
	close(dir);
	if (!rc)
		return 0;
	tree_repetition_free(ret);
	return err_set(err, rc, "%s: out of memory; name a directory below it", p->path);
}
