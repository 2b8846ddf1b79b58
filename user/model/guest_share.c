/* SPDX-License-Identifier: Apache-2.0 */
/* The line of a share: "jouled-share 1 epoch=0123456789abcdef number=7 interval_ns=1000000000 package-0=1234567
 * dram-0=89:estimated\n". A reader may start in the middle of a line, because a serial port has no beginning. A text
 * that does not start with the word or is not complete is refused. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "guest_share.h"

#define WORD "jouled-share 1 "
#define QUALITIES 6

static bool number_of(const char **at, uint64_t most, uint64_t *ret)
{
	const char *s = *at;
	uint64_t v = 0;

	if (*s < '0' || *s > '9' || (*s == '0' && s[1] >= '0' && s[1] <= '9'))
		return false;
	for (; *s >= '0' && *s <= '9'; s++) {
		unsigned digit = (unsigned)(*s - '0');

		if (v > (most - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*at = s;
	*ret = v;
	return true;
}

/* "KIND-N" and "KIND-N-die-M"; psys alone has no number where it is the only one. */
bool share_domain_named(const char *name, struct share_domain *ret)
{
	struct share_domain d = { .quality = 0 };
	uint64_t package = 0, die = 0;
	const char *at = name;
	size_t len = 0;

	for (d.kind = DOMAIN_PACKAGE; d.kind <= DOMAIN_PSYS; d.kind++) {
		len = strlen(domain_kind_name(d.kind));
		if (strncmp(name, domain_kind_name(d.kind), len) == 0 && (!name[len] || name[len] == '-'))
			break;
	}
	if (d.kind > DOMAIN_PSYS || strlen(name) >= sizeof(d.name))
		return false;
	at += len;
	if (*at ? (at++, !number_of(&at, UINT16_MAX - 1, &package)) : d.kind != DOMAIN_PSYS)
		return false;
	if (strncmp(at, "-die-", 5) == 0) {
		at += 5;
		d.has_die = true;
		if (!number_of(&at, UINT16_MAX, &die))
			return false;
	}
	if (*at)
		return false;
	snprintf(d.name, sizeof(d.name), "%s", name);
	d.package = (uint16_t)package;
	d.die = (uint16_t)die;
	*ret = d;
	return true;
}

static void write_quality(unsigned quality, struct buf *out)
{
	char before = ':';

	for (unsigned i = 0; i < QUALITIES; i++) {
		if (!(quality & 1u << i))
			continue;
		buf_add_char(out, before);
		buf_add_str(out, quality_name(1u << i));
		before = '+';
	}
}

void share_write(const struct share *s, struct buf *out)
{
	buf_printf(out, WORD "epoch=%016" PRIx64 " number=%" PRIu64 " interval_ns=%" PRIu64, s->epoch, s->number,
		   s->interval_ns);
	for (unsigned i = 0; i < s->n; i++) {
		buf_add_char(out, ' ');
		buf_add_str(out, s->domains[i].name);
		buf_add_char(out, '=');
		buf_add_u64(out, s->domains[i].uj);
		write_quality(s->domains[i].quality, out);
	}
	buf_add_char(out, '\n');
}

/* Reads the words of a quality, which stand in the order of share_write, each at most once. */
static bool read_quality(const char *at, unsigned *ret)
{
	unsigned quality = 0;

	for (unsigned i = 0; i < QUALITIES && *at; i++) {
		const char *word = quality_name(1u << i);
		size_t len = strlen(word);

		if (*at != (quality ? '+' : ':') || strncmp(at + 1, word, len) != 0 ||
		    (at[1 + len] && at[1 + len] != '+'))
			continue;
		quality |= 1u << i;
		at += 1 + len;
	}
	*ret = quality;
	return !*at;
}

static bool read_domain(char *field, struct share *s)
{
	char *is = strchr(field, '=');
	struct share_domain d;
	const char *at;
	uint64_t uj;

	if (!is || s->n == SCHEMA_MAX_DOMAINS)
		return false;
	*is = '\0';
	at = is + 1;
	if (!share_domain_named(field, &d) || !number_of(&at, UINT64_MAX, &uj) || !read_quality(at, &d.quality))
		return false;
	for (unsigned i = 0; i < s->n; i++)
		if (strcmp(s->domains[i].name, d.name) == 0)
			return false;
	d.uj = uj;
	s->domains[s->n++] = d;
	return true;
}

static bool read_epoch(const char **at, uint64_t *ret)
{
	char digits[17] = "";

	if (strncmp(*at, "epoch=", 6) != 0 || strspn(*at + 6, "0123456789abcdef") != 16)
		return false;
	memcpy(digits, *at + 6, 16);
	*ret = strtoull(digits, NULL, 16);
	*at += 22;
	return true;
}

static bool read_named(const char **at, const char *name, uint64_t *ret)
{
	size_t len = strlen(name);

	if (strncmp(*at, name, len) != 0)
		return false;
	*at += len;
	return number_of(at, UINT64_MAX, ret);
}

int share_read(char *line, size_t len, struct share *ret)
{
	struct share s = { .n = 0 };
	const char *at = line;
	char *field, *next;

	if (len >= SHARE_LINE_MAX || memchr(line, '\0', len))
		return -EINVAL;
	line[len] = '\0';
	if (strncmp(at, WORD, strlen(WORD)) != 0)
		return -EINVAL;
	at += strlen(WORD);
	if (!read_epoch(&at, &s.epoch) || !read_named(&at, " number=", &s.number) ||
	    !read_named(&at, " interval_ns=", &s.interval_ns) || (*at && *at != ' '))
		return -EINVAL;
	for (field = *at ? line + (at - line) + 1 : NULL; field; field = next) {
		next = strchr(field, ' ');
		if (next)
			*next++ = '\0';
		if (!read_domain(field, &s))
			return -EINVAL;
	}
	*ret = s;
	return 0;
}
