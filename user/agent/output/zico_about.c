/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes by which the agent describes itself and its machine to collectors. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "base/log.h"
#include "base/text.h"
#include "zico_output.h"

#define CUT " ..."

static void add(struct zico_about *a, const char *key, const char *value)
{
	if (*value && a->n < ZICO_AGENT_ATTRS)
		a->attrs[a->n++] = (struct zico_attr){ key, value };
}

/* Cuts at a blank, because half a word could be read as another word. */
static void cut(char *text, size_t max)
{
	size_t n = max - strlen(CUT);

	while (n && text[n] != ' ')
		n--;
	if (!n)
		n = max - strlen(CUT); /* one long word */
	memcpy(text + n, CUT, sizeof(CUT));
}

static void add_cut(struct zico_about *a, const char *key, char *text, unsigned max, const char *to)
{
	size_t len = strlen(text);

	if (max && len > max) {
		cut(text, max);
		log_warn("output %s: %s is cut from %zu to %zu bytes: collectors of ZICO store %u", to, key, len,
			 strlen(text), max);
	}
	add(a, key, text);
}

static bool is_utf8(const char *s)
{
	const unsigned char *at = (const unsigned char *)s;
	size_t left = strlen(s), n;

	for (; left; at += n, left -= n)
		if (!(n = text_utf8_len(at, left)))
			return false;
	return true;
}

static int fits(const struct output_config *oc, const char *what, const char *text, unsigned max, struct err *err)
{
	char shown[64];

	if (text && !is_utf8(text))
		return err_set(err, -EINVAL,
			       "output %.*s: %s \"%s\" is no UTF-8; a registration is JSON, write it in UTF-8",
			       TEXT_SUBJECT(oc->to), what, text_escape(shown, sizeof(shown), text));
	if (text && max && strlen(text) > max)
		return err_set(err, -EINVAL,
			       "output %.*s: %s \"%s...\" has %zu bytes, of which collectors store %u; shorten it",
			       TEXT_SUBJECT(oc->to), what, text_escape(shown, 40, text), strlen(text), max);
	return 0;
}

static int attr_fits(const struct output_config *oc, const char *attr, unsigned max, struct err *err)
{
	const char *is = strchr(attr, '=');
	char name[1024], what[80], shown[48];
	int rc;

	if (!is)
		return 0;
	if (is - attr >= (ptrdiff_t)sizeof(name))
		return fits(oc, "the name of attrs", attr, max, err);
	snprintf(name, sizeof(name), "%.*s", (int)(is - attr), attr);
	rc = fits(oc, "the name of attrs", name, max, err);
	snprintf(what, sizeof(what), "attrs %s", text_escape(shown, sizeof(shown), name));
	return rc ? rc : fits(oc, what, is + 1, max, err);
}

int zico_about_fits(const struct output_config *oc, const struct zico_profile *p, const char *sensor, struct err *err)
{
	int rc = fits(oc, "sensor", sensor, p->name_max, err);

	if (!rc)
		rc = fits(oc, "app", oc->zico.app, p->app_max, err);
	if (!rc)
		rc = fits(oc, "env", oc->zico.env, p->app_max, err);
	for (unsigned i = 0; i < oc->zico.attrs.n && !rc; i++)
		rc = attr_fits(oc, oc->zico.attrs.v[i], p->attribute_max, err);
	return rc;
}

static void put_domains(struct zico_about *a, const struct schema *s)
{
	size_t n = 0, q = 0;

	for (unsigned d = 0; d < s->n_domains; d++) {
		const struct domain_desc *m = &s->domains[d];
		const char *quality = quality_name(m->interface == ENERGY_ESTIMATE ? QUALITY_ESTIMATED :
										     QUALITY_MEASURED);

		if (n < sizeof(a->sources) - 1)
			n += (size_t)snprintf(a->sources + n, sizeof(a->sources) - n, "%s%s=%s", d ? " " : "", m->name,
					      energy_interface_name(m->interface));
		if (q < sizeof(a->energy_quality) - 1)
			q += (size_t)snprintf(a->energy_quality + q, sizeof(a->energy_quality) - q, "%s%s=%s",
					      d ? " " : "", m->name, quality);
	}
}

void zico_about(struct zico_about *a, const char *formula, const struct schema *s, unsigned attribute_max,
		const char *to)
{
	struct utsname u;

	if (uname(&u) == 0)
		snprintf(a->kernel, sizeof(a->kernel), "%.40s %.80s %.30s", u.sysname, u.release, u.machine);
	if (s->n_packages)
		snprintf(a->packages, sizeof(a->packages), "%u", s->n_packages);
	put_domains(a, s);
	add(a, "HOSTNAME", s->sensor);
	add(a, "KERNEL", a->kernel);
	add(a, "AGENT", "jouled " JOULED_VERSION);
	add(a, "PACKAGES", a->packages);
	if (!s->n_domains)
		add(a, "ENERGY_SOURCES", "none");
	add_cut(a, "ENERGY_SOURCES", a->sources, attribute_max, to);
	add_cut(a, "ENERGY_QUALITY", a->energy_quality, attribute_max, to);
	snprintf(a->formula, sizeof(a->formula), "%s", formula ? formula : "");
	add(a, "FORMULA", a->formula);
}

void zico_host(const char *state_dir, uint8_t ret_uuid[16])
{
	char path[DELIVERY_PATH_MAX];
	uint8_t made[16] = { 0 };
	int fd;

	snprintf(path, sizeof(path), "%s/host.uuid", state_dir ? state_dir : ".");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && read(fd, ret_uuid, 16) == 16) {
		close(fd);
		return;
	}
	if (fd >= 0)
		close(fd);
	if (getrandom(made, sizeof(made), 0) != sizeof(made))
		memset(made, 0, sizeof(made));
	made[6] = (uint8_t)((made[6] & 0x0f) | 0x40); /* RFC 4122: random */
	made[8] = (uint8_t)((made[8] & 0x3f) | 0x80);
	memcpy(ret_uuid, made, 16);
	/* when the file cannot be written, the next start has another uuid */
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	if (write(fd, made, sizeof(made)) != (ssize_t)sizeof(made))
		unlink(path);
	close(fd);
}
