/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of runtimes, as docs/formats/names.md lists them. Pure: no file is looked at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "look.h"

/* A component of a path, and the facts from the components above it. */
struct walk {
	const char *s, *above; /* component, the one before it ("" at the top) */
	size_t n, n_above;
	bool slices; /* all above are slices of the system, which root alone makes */
	bool pods; /* below kubepods */
	bool nomad; /* below Nomad's cgroup */
	bool unit_ended; /* the unit is known; the following components are inside of it */
	unsigned level; /* 0 = first component */
};

static bool is(const char *s, size_t n, const char *word)
{
	return strlen(word) == n && memcmp(s, word, n) == 0;
}

static bool begins(const char *s, size_t n, const char *word)
{
	return n > strlen(word) && memcmp(s, word, strlen(word)) == 0;
}

static bool ends(const char *s, size_t n, const char *word)
{
	size_t m = strlen(word);

	return n > m && memcmp(s + n - m, word, m) == 0;
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool copy_id(const char *s, size_t n, char dst[NAMING_ID_LEN + 1])
{
	if (n != NAMING_ID_LEN)
		return false;
	for (size_t i = 0; i < n; i++)
		if (hex(s[i]) < 0)
			return false;
	memcpy(dst, s, n);
	dst[n] = '\0';
	return true;
}

/* PREFIX-ID.scope, PREFIX-ID. */
static bool prefixed_id(const char *s, size_t n, const char *prefix, char dst[NAMING_ID_LEN + 1])
{
	size_t m = strlen(prefix);

	if (!begins(s, n, prefix))
		return false;
	n -= ends(s, n, ".scope") ? strlen(".scope") : 0;
	return n > m && copy_id(s + m, n - m, dst);
}

bool naming_unescape(const char *s, size_t n, char *dst, size_t size)
{
	size_t at = 0;

	for (size_t i = 0; i < n; at++) {
		if (at + 1 >= size)
			return false;
		if (n - i >= 4 && s[i] == '\\' && s[i + 1] == 'x' && hex(s[i + 2]) >= 0 && hex(s[i + 3]) >= 0) {
			dst[at] = (char)(hex(s[i + 2]) << 4 | hex(s[i + 3]));
			i += 4;
		} else {
			dst[at] = s[i++];
		}
		if (!dst[at])
			return false;
	}
	dst[at] = '\0';
	return at > 0;
}

/* A UUID, whose dashes systemd's driver makes underscores, or the digits of a static pod. */
static bool copy_pod_uid(const char *s, size_t n, char dst[NAMING_UID_MAX + 1])
{
	if (n != NAMING_UID_MAX && n != 32)
		return false;
	for (size_t i = 0; i < n; i++) {
		bool dash = n == NAMING_UID_MAX && (i == 8 || i == 13 || i == 18 || i == 23);

		if (dash ? s[i] != '-' && s[i] != '_' : hex(s[i]) < 0)
			return false;
		dst[i] = dash ? '-' : s[i];
	}
	dst[n] = '\0';
	return true;
}

/* podUID, or ...-podUID.slice. */
static bool pod_of(const char *s, size_t n, char dst[NAMING_UID_MAX + 1])
{
	if (begins(s, n, "pod"))
		return copy_pod_uid(s + 3, n - 3, dst);
	if (!ends(s, n, ".slice"))
		return false;
	n -= strlen(".slice");
	for (size_t len = 32; len <= NAMING_UID_MAX; len += 4)
		if (n > len + 4 && memcmp(s + n - len - 4, "-pod", 4) == 0 && copy_pod_uid(s + n - len, len, dst))
			return true;
	return false;
}

static bool container_of_pod(const char *s, size_t n, char id[NAMING_ID_LEN + 1])
{
	return copy_id(s, n, id) || prefixed_id(s, n, "cri-containerd-", id) || prefixed_id(s, n, "crio-", id) ||
	       prefixed_id(s, n, "docker-", id);
}

/* SLICE:cri-containerd:ID, one directory in containerd's own service. containerd makes it when the kubelet uses the
 * systemd driver and containerd is not configured for it. */
static bool colon_form(const struct walk *w, struct place *p)
{
	static const char middle[] = ".slice:cri-containerd:";
	size_t m = sizeof(middle) - 1, id_at = w->n - NAMING_ID_LEN;

	if (!is(w->above, w->n_above, "containerd.service") && !is(w->above, w->n_above, "k3s.service"))
		return false;
	return w->n > NAMING_ID_LEN + m && memcmp(w->s + id_at - m, middle, m) == 0 &&
	       copy_id(w->s + id_at, NAMING_ID_LEN, p->id) && pod_of(w->s, id_at - m + strlen(".slice"), p->pod_uid);
}

static enum place_kind match_pod(struct walk *w, struct place *p)
{
	if (colon_form(w, p))
		return PLACE_POD_CONTAINER;
	if (!w->pods) {
		w->pods = w->slices && (is(w->s, w->n, "kubepods") || is(w->s, w->n, "kubepods.slice") ||
					ends(w->s, w->n, "-kubepods.slice"));
		return PLACE_NONE;
	}
	if (!*p->pod_uid)
		return pod_of(w->s, w->n, p->pod_uid) ? PLACE_POD : PLACE_NONE;
	return container_of_pod(w->s, w->n, p->id) ? PLACE_POD_CONTAINER : PLACE_POD;
}

static enum place_kind match_container(const struct walk *w, struct place *p)
{
	if (prefixed_id(w->s, w->n, "docker-", p->id))
		return PLACE_DOCKER;
	if (prefixed_id(w->s, w->n, "libpod-payload-", p->id) || prefixed_id(w->s, w->n, "libpod-", p->id))
		return PLACE_PODMAN;
	if (prefixed_id(w->s, w->n, "nerdctl-", p->id))
		return PLACE_CONTAINERD;
	if (copy_id(w->s, w->n, p->id))
		return is(w->above, w->n_above, "docker") ? PLACE_DOCKER : PLACE_BARE;
	return PLACE_NONE;
}

/* qemu-3-NAME and lxc-3-NAME of libvirt; any other name as it is. */
static const char *machine_name(const char *s)
{
	const char *at = strncmp(s, "qemu-", 5) == 0 ? s + 5 : strncmp(s, "lxc-", 4) == 0 ? s + 4 : NULL;
	size_t digits = at ? strspn(at, "0123456789") : 0;

	return digits && at[digits] == '-' && at[digits + 1] ? at + digits + 1 : s;
}

/* Takes the next component into this one where it is `word`. */
static bool join_next(struct walk *w, const char *word)
{
	const char *s = w->s + w->n + (w->s[w->n] == '/');
	size_t n = strcspn(s, "/");

	if (w->s[w->n] != '/' || !is(s, n, word))
		return false;
	w->n += 1 + n;
	return true;
}

static enum place_kind match_machine(struct walk *w, struct place *p)
{
	static const char *const old[] = { ".libvirt-qemu", ".libvirt-lxc" };
	char text[NAMING_TEXT_MAX + 1];
	enum place_kind kind = PLACE_MACHINE;
	size_t skip = 0, cut = 0;

	if (w->slices && begins(w->s, w->n, "machine-") && ends(w->s, w->n, ".scope")) {
		skip = strlen("machine-");
		cut = strlen(".scope");
	} else if (w->slices && begins(w->s, w->n, "systemd-nspawn@") && ends(w->s, w->n, ".service")) {
		skip = strlen("systemd-nspawn@");
		cut = strlen(".service");
		kind = PLACE_NSPAWN;
	} else if (w->level == 1 && is(w->above, w->n_above, "machine")) {
		for (unsigned i = 0; i < 2; i++)
			cut = ends(w->s, w->n, old[i]) ? strlen(old[i]) : cut;
	}
	if (!cut || w->n <= skip + cut || !naming_unescape(w->s + skip, w->n - skip - cut, text, sizeof(text)))
		return PLACE_NONE;
	snprintf(p->name, sizeof(p->name), "%s", machine_name(text));
	/* nspawn alone divides its scope so; a libvirt name has a number */
	if (skip && strcmp(p->name, text) == 0 && (join_next(w, "payload") || join_next(w, "supervisor")))
		kind = PLACE_NSPAWN;
	return kind;
}

static bool copy_name(struct place *p, const char *s, size_t n)
{
	if (!n || n > NAMING_TEXT_MAX)
		return false;
	memcpy(p->name, s, n);
	p->name[n] = '\0';
	return true;
}

static bool match_lxc(const struct walk *w, struct place *p)
{
	static const char *const parts[] = { "lxc.payload", "lxc.monitor" };

	for (unsigned i = 0; i < 2; i++) {
		size_t n = strlen(parts[i]);

		if (begins(w->s, w->n, parts[i]) && w->s[n] == '.' && (w->slices || p->user != NAMING_NOBODY))
			return copy_name(p, w->s + n + 1, w->n - n - 1);
		if (w->level == 1 && is(w->above, w->n_above, parts[i]))
			return copy_name(p, w->s, w->n);
	}
	return w->level == 1 && is(w->above, w->n_above, "lxc") && copy_name(p, w->s, w->n);
}

/* ALLOCATION.TASK[.scope], where the first is a UUID, below nomad.slice or nomad and there below share or reserve. */
static bool match_nomad(const struct walk *w, struct place *p)
{
	static const char *const above[] = {
		"nomad.slice", "share.slice", "reserve.slice", "nomad", "share", "reserve"
	};
	const size_t skip = NAMING_UID_MAX + 1, cut = ends(w->s, w->n, ".scope") ? strlen(".scope") : 0;
	bool below = false;

	for (unsigned i = 0; i < sizeof(above) / sizeof(above[0]); i++)
		below |= is(w->above, w->n_above, above[i]);
	if (!w->nomad || !below || w->n <= skip + cut || w->s[NAMING_UID_MAX] != '.' ||
	    !copy_pod_uid(w->s, NAMING_UID_MAX, p->id) || !copy_name(p, w->s + skip, w->n - skip - cut)) {
		p->id[0] = '\0';
		return false;
	}
	return true;
}

static enum place_kind match(struct walk *w, struct place *p)
{
	enum place_kind kind = match_pod(w, p);

	if (kind != PLACE_NONE || w->pods)
		return kind;
	kind = match_container(w, p);
	if (kind == PLACE_NONE)
		kind = match_machine(w, p);
	if (kind != PLACE_NONE)
		return kind;
	return match_nomad(w, p) ? PLACE_NOMAD : match_lxc(w, p) ? PLACE_LXC : PLACE_NONE;
}

static bool is_unit(const char *s, size_t n)
{
	return ends(s, n, ".service") || ends(s, n, ".scope") || ends(s, n, ".socket") || ends(s, n, ".mount") ||
	       ends(s, n, ".swap");
}

/* user-1000.slice; user-1000-x.slice is something else. */
static uid_t user_of_slice(const char *s, size_t n)
{
	unsigned long uid;
	char *end;

	if (!begins(s, n, "user-") || !ends(s, n, ".slice") || hex(s[5]) < 0 || hex(s[5]) > 9)
		return NAMING_NOBODY;
	uid = strtoul(s + 5, &end, 10);
	return end == s + n - strlen(".slice") && uid < NAMING_NOBODY ? (uid_t)uid : NAMING_NOBODY;
}

/* The unit a component is or is in. A user's manager has units of its own, with any names; the manager's unit stands
 * above them. */
static void follow_unit(struct walk *w, struct place *p)
{
	bool manager = begins(p->unit, strlen(p->unit), "user@") && ends(p->unit, strlen(p->unit), ".service");
	bool unit = is_unit(w->s, w->n), slice = ends(w->s, w->n, ".slice");
	size_t have = strlen(p->unit);

	if (w->unit_ended || (!unit && !slice))
		return;
	if (w->n + have + 2 > sizeof(p->unit)) {
		p->unit[0] = '\0';
		w->unit_ended = true;
		return;
	}
	if (manager && unit)
		snprintf(p->unit + have, sizeof(p->unit) - have, "/%.*s", (int)w->n, w->s);
	else if (!manager && (w->slices || !w->level))
		snprintf(p->unit, sizeof(p->unit), "%.*s", (int)w->n, w->s);
	w->unit_ended = unit && (manager || !begins(w->s, w->n, "user@"));
}

/* Updates the facts for the components below. */
static void step_down(struct walk *w, struct place *p)
{
	uid_t user = user_of_slice(w->s, w->n);

	if (w->slices && user != NAMING_NOBODY)
		p->user = user;
	w->nomad |= !w->level && (is(w->s, w->n, "nomad.slice") || is(w->s, w->n, "nomad"));
	w->slices = w->slices && (ends(w->s, w->n, ".slice") || is(w->s, w->n, "kubelet"));
	w->above = w->s;
	w->n_above = w->n;
	w->level++;
}

void naming_parse(const char *path, struct place *ret)
{
	struct walk w = { .above = "", .slices = true };
	const char *s = path;

	*ret = (struct place){ .user = NAMING_NOBODY };
	if (job_path_parse(path, &ret->job)) {
		ret->kind = PLACE_JOB;
		ret->above = ret->job.above;
		ret->end = ret->job.end;
		ret->user = ret->job.user;
	}
	while (*s) {
		enum place_kind kind;

		s += strspn(s, "/");
		w.s = s;
		w.n = strcspn(s, "/");
		if (!w.n || (ret->kind == PLACE_JOB && s == path + ret->above)) /* the unit of a job is the daemon's */
			break;
		kind = ret->kind == PLACE_JOB ? PLACE_NONE : match(&w, ret);
		if (kind != PLACE_NONE && (kind != PLACE_POD || ret->kind != PLACE_POD)) {
			ret->kind = kind;
			ret->above = (size_t)(s - path);
			ret->end = (size_t)(s + w.n - path);
		}
		/* a container lies right below its pod; deeper components are not containers */
		if (kind != PLACE_NONE && (kind != PLACE_POD || ret->end != (size_t)(s + w.n - path)))
			break;
		follow_unit(&w, ret);
		step_down(&w, ret);
		s += w.n;
	}
	if (ret->kind == PLACE_NONE)
		ret->pod_uid[0] = ret->id[0] = '\0';
	/* slices above a container are left out, a service that runs it is kept */
	if (ret->kind != PLACE_NONE && ends(ret->unit, strlen(ret->unit), ".slice"))
		ret->unit[0] = '\0';
}
