/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes are text and never empty, with the unit in the key. Collectors can show and find nothing else.
 * Unknown values are left out. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/format/cbor.h"
#include "base/text.h"
#include "zico.h"

#define NS_PER_UJ_MW 1000000u /* 1 uJ in 1 ns is 1000 W */

static uint32_t key_id(struct zico *z, const char *key)
{
	return zico_string_id(z, ZICO_TEXT, key);
}

static void put_key(struct zico *z, struct buf *out, const char *key)
{
	if (!z->profile->one_attribute)
		cbw_tag(out, ZICO_REFERENCE);
	cbw_uint(out, key_id(z, key));
}

void zico_attr(struct zico *z, struct buf *out, const char *key, const char *value)
{
	struct buf *to = z->profile->one_attribute ? out : &z->pairs;

	if (!value || !*value)
		return;
	if (z->profile->one_attribute) {
		cbw_tag(out, z->profile->attributes);
		cbw_array(out, 2);
	}
	put_key(z, to, key);
	cbw_str(to, zico_clean_value(z, value));
	z->n_pairs++;
}

static void zico_attrs_end(struct zico *z, struct buf *out)
{
	if (z->pairs.len) {
		cbw_tag(out, z->profile->attributes);
		cbw_map(out, z->n_pairs);
		buf_add(out, z->pairs.data, z->pairs.len);
	}
	out->failed |= z->pairs.failed;
	buf_reset(&z->pairs);
	z->n_pairs = 0;
}

static void attr_u64(struct zico *z, struct buf *out, const char *key, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	zico_attr(z, out, key, text);
}

static void put_energy(struct zico *z, const struct span *s, struct buf *out)
{
	uint64_t sum = 0, ns = s->calls != 1 && s->wall_ns ? s->wall_ns : s->end_ns - s->start_ns;
	char key[128];

	if (!span_energy_uj(z->t, s, &sum))
		return;
	attr_u64(z, out, "ENERGY_UJ", sum);
	for (unsigned d = 0; d < z->t->n_domains && d < s->n_domains; d++) {
		int n = snprintf(key, sizeof(key), "ENERGY_%.100s_UJ", z->t->domains[d]);

		for (int i = 0; i < n; i++)
			key[i] = isalnum((unsigned char)key[i]) ? (char)toupper((unsigned char)key[i]) : '_';
		attr_u64(z, out, key, s->energy_uj[d]);
	}
	if (ns)
		attr_u64(z, out, "AVG_POWER_MW", (uint64_t)((unsigned __int128)sum * NS_PER_UJ_MW / ns));
}

/* Writes a map in a map for readers that are known to accept it, otherwise its text. */
static void put_sources(struct zico *z, struct buf *out)
{
	const struct trace *t = z->t;
	char text[ZICO_TEXT_MAX];
	size_t n = 0;

	if (!t->n_domains || !t->interfaces)
		return;
	if (z->profile->nested) {
		put_key(z, &z->pairs, "ENERGY_SOURCES");
		cbw_map(&z->pairs, t->n_domains);
		for (unsigned d = 0; d < t->n_domains; d++) {
			cbw_str(&z->pairs, zico_clean_value(z, t->domains[d]));
			cbw_str(&z->pairs, zico_clean_value(z, t->interfaces[d]));
		}
		z->n_pairs++;
		return;
	}
	for (unsigned d = 0; d < t->n_domains && n < sizeof(text) - 1; d++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s=%s", d ? " " : "", t->domains[d],
				      t->interfaces[d]);
	zico_attr(z, out, "ENERGY_SOURCES", text);
}

static void put_top(struct zico *z, struct buf *out)
{
	const struct trace *t = z->t;

	zico_attr(z, out, "POD", t->pod);
	zico_attr(z, out, "NAMESPACE", t->pod_namespace);
	zico_attr(z, out, "CONTAINER", t->container);
	zico_attr(z, out, "UNIT", t->unit);
	zico_attr(z, out, "SENSOR", t->sensor);
	put_sources(z, out);
	if (t->part || !t->last) {
		attr_u64(z, out, "PART", t->part);
		zico_attr(z, out, "LAST_PART", t->last ? "yes" : "no");
	}
	if (z->started_earlier)
		zico_attr(z, out, "STARTED_EARLIER", "yes");
	if (z->n_kept < t->n_spans) {
		attr_u64(z, out, "SPANS_LEFT_OUT", t->n_spans - z->n_kept);
		attr_u64(z, out, "ENERGY_LEFT_OUT_UJ", z->left_out_uj);
	}
	if (z->n_unsaid)
		attr_u64(z, out, "EXCEPTIONS_LEFT_OUT", z->n_unsaid);
}

void zico_span_attrs(struct zico *z, uint32_t i, struct buf *out)
{
	const struct span *s = &z->t->spans[i];
	char text[96];

	if (s->kind == SPAN_PROCESS) {
		attr_u64(z, out, "PID", s->pid);
		zico_attr(z, out, "PROC", s->comm);
		zico_attr(z, out, "CMDLINE", s->cmdline);
		zico_attr(z, out, "EXE", s->exe);
		attr_u64(z, out, "USER", s->uid);
		zico_exit_text(s, text, sizeof(text));
		zico_attr(z, out, "EXIT", text);
	} else {
		attr_u64(z, out, "TID", s->tid);
		zico_attr(z, out, "FUNCTION", s->symbol);
		zico_attr(z, out, "BINARY", s->binary);
	}
	zico_attr(z, out, "CGROUP", s->cgroup);
	put_energy(z, s, out);
	attr_u64(z, out, "CPU_TIME_NS", s->cpu_ns);
	zico_attr(z, out, "QUALITY", quality_name(s->quality | s->energy_quality));
	if (!i)
		put_top(z, out);
	zico_attrs_end(z, out);
}

static void child_exit_text(const struct span *s, char *dst, size_t size)
{
	char why[64];

	zico_exit_text(s, why, sizeof(why));
	snprintf(dst, size, "%s[%u]: %s", s->comm && *s->comm ? s->comm : "?", s->pid, why);
}

/* Writes the values that are known only once the children are written. Profiles that cannot address the records above
 * get it in the attributes of the parent and the top. */
void zico_closing_attrs(struct zico *z, uint32_t i, struct buf *out)
{
	const struct zico_node *n = zico_node(z, i);
	uint32_t killed = n->killed;
	char text[96];

	if (z->profile->upward == 0x26)
		return;
	if (!i && killed == ZICO_NONE)
		killed = z->killed_last;
	if (killed != ZICO_NONE) {
		child_exit_text(&z->t->spans[killed], text, sizeof(text));
		zico_attr(z, out, "CHILD_EXIT", text);
	}
	if (!i && z->killed_any && !z->profile->upward)
		attr_u64(z, out, "KILLED_ENERGY_UJ", z->killed_uj);
	zico_attrs_end(z, out);
}

/* [type, {key: value}], type 0 = the nearest record. */
static void put_upward(struct zico *z, uint32_t type, const char *key, const char *value, struct buf *out)
{
	bool own = z->profile->one_attribute;

	cbw_tag(out, z->profile->upward);
	cbw_array(out, own ? 3 : 2);
	cbw_uint(out, type);
	if (!own)
		cbw_map(out, 1);
	put_key(z, out, key);
	cbw_str(out, zico_clean_value(z, value));
}

/* Writes for a killed span, in its own record: the energy of all killed spans so far, for the top of the trace,
 * and its end, for the record above. */
void zico_upward_attrs(struct zico *z, uint32_t i, struct buf *out)
{
	const struct span *s = &z->t->spans[i];
	uint64_t energy_uj = 0;
	char text[96];

	if (!i || !zico_killed(s))
		return;
	zico_node(z, zico_node(z, i)->parent)->killed = i;
	z->killed_last = i;
	if (span_energy_uj(z->t, s, &energy_uj)) {
		z->killed_any = true;
		z->killed_uj += energy_uj;
	}
	if (!z->profile->upward)
		return;
	if (z->killed_any) {
		snprintf(text, sizeof(text), "%" PRIu64, z->killed_uj);
		put_upward(z, key_id(z, z->type), "KILLED_ENERGY_UJ", text, out);
	}
	if (z->profile->one_attribute)
		return;
	child_exit_text(s, text, sizeof(text));
	put_upward(z, 0, "CHILD_EXIT", text, out);
}

/* Texts that collectors accept. They are UTF-8 without control characters, because the collectors' store marks
 * types with those below 0x10. They are never empty. Names match the collectors' pattern "void
 * package.class.method()". */

/* U+0085, U+2028, U+2029 end a line. "." in that pattern does not match them, and the name would not be shown. */
static bool ends_line(const char *s, size_t n)
{
	return (n == 2 && !memcmp(s, "\xc2\x85", 2)) ||
	       (n == 3 && (!memcmp(s, "\xe2\x80\xa8", 3) || !memcmp(s, "\xe2\x80\xa9", 3)));
}

static void add_replacement(struct buf *b)
{
	buf_add(b, "\xef\xbf\xbd", 3);
}

/* Adds one character of s and returns the bytes it took. With punctuation only letters, digits and these
 * characters stay, and '_' replaces others. Without it a blank replaces control characters. */
static size_t add_char(struct buf *b, const char *s, size_t left, const char *punctuation)
{
	unsigned char c = (unsigned char)*s;
	size_t n = text_utf8_len((const unsigned char *)s, left);

	if (!n) {
		add_replacement(b);
		return 1;
	}
	if (punctuation && ends_line(s, n))
		buf_add_char(b, '_');
	else if (n > 1)
		buf_add(b, s, n);
	else if (punctuation)
		buf_add_char(b, isalnum(c) || (c && strchr(punctuation, c)) ? (char)c : '_');
	else
		buf_add_char(b, c < 0x20 || c == 0x7f ? ' ' : (char)c);
	return n;
}

static const char *finish(struct zico *z, const char *instead)
{
	struct buf *b = &z->text;

	if (!b->len)
		buf_add_str(b, instead);
	buf_add_char(b, '\0');
	z->names.failed |= b->failed;
	return b->failed ? instead : (const char *)b->data;
}

static void add_text(struct buf *b, const char *s, const char *punctuation)
{
	size_t left = strnlen(s, ZICO_TEXT_MAX), n;

	for (; left; s += n, left -= n)
		n = add_char(b, s, left, punctuation);
}

const char *zico_clean_value(struct zico *z, const char *s)
{
	buf_reset(&z->text);
	add_text(&z->text, s, NULL);
	return finish(z, "?");
}

/* Adds the components of a path, each after a dot. */
static void add_path(struct buf *b, const char *path)
{
	size_t left = strnlen(path, ZICO_TEXT_MAX), n;

	for (; left; path += n, left -= n) {
		if (*path != '/') {
			n = add_char(b, path, left, "._-@:$");
			continue;
		}
		n = 1;
		if (left > 1 && path[1] != '/')
			buf_add_char(b, '.');
	}
}

/* "cgroup.system.slice.nginx.service"; for functions "binary.usr.sbin.nginx". */
const char *zico_clean_class(struct zico *z, const struct span *s)
{
	struct buf *b = &z->text;
	const char *path = s->kind == SPAN_FUNCTION ? s->binary : s->cgroup;
	size_t start;

	buf_reset(b);
	buf_add_str(b, s->kind == SPAN_FUNCTION ? "binary" : "cgroup");
	start = b->len;
	if (path && *path && *path != '/')
		buf_add_char(b, '.');
	add_path(b, path ? path : "");
	if (b->len == start)
		buf_add_str(b, path && *path ? ".root" : ".unknown");
	return finish(z, "cgroup.unknown");
}

const char *zico_clean_name(struct zico *z, const struct span *s)
{
	const char *name = s->kind == SPAN_FUNCTION ? s->symbol : s->comm;

	buf_reset(&z->text);
	add_text(&z->text, name ? name : "", "_-@:$/+");
	return finish(z, "unknown");
}

static const char *skip_type(const char *s)
{
	while (*s == '[')
		s++;
	if (*s && strchr("BCDFIJSZ", *s))
		return s + 1;
	if (*s != 'L' || strchr("/;", s[1]) || !s[1])
		return NULL;
	for (s++; *s && *s != ';'; s++)
		if (strchr(".[()", *s) || (*s == '/' && (s[1] == '/' || s[1] == ';')))
			return NULL;
	return *s ? s + 1 : NULL;
}

bool zico_signature_ok(const char *s)
{
	if (*s++ != '(')
		return false;
	while (s && *s && *s != ')')
		s = skip_type(s);
	if (!s || !*s)
		return false;
	s++;
	s = *s == 'V' ? s + 1 : skip_type(s);
	return s && !*s;
}
