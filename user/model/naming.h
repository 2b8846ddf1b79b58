/* SPDX-License-Identifier: Apache-2.0 */
/* The names by which people know a cgroup (docs/formats/names.md). An object never changes after it was made. It is
 * shared by counting references, which any thread may do: a row of a snapshot, its copies and the totals hold the same
 * text. Every text is valid UTF-8 without control characters, at most NAMING_TEXT_MAX bytes. Formats escape it all the
 * same, because it came from outside. */
#ifndef JD_NAMING_MODEL_H
#define JD_NAMING_MODEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/format/json.h"

#define NAMING_TEXT_MAX 253 /* a Kubernetes name's limit, the longest of all (DNS subdomain) */

enum name_field {
	NAME_RUNTIME, /* kubernetes docker podman containerd nomad lxc nspawn machine slurm systemd */
	NAME_NAMESPACE,
	NAME_POD,
	NAME_POD_UID,
	NAME_CONTAINER,
	NAME_CONTAINER_ID,
	NAME_MACHINE, /* virtual machine or registered machine */
	NAME_UNIT, /* as systemctl spells it; USER-MANAGER/UNIT for those of a user */
	NAME_USER, /* number of the user who gave the names, or whose job it is; none = root */
	NAME_JOB, /* number of a batch job */
	NAME_STEP, /* of that job: a number, batch, extern, interactive */
	NAME_FIELDS
};

struct names {
	unsigned references;
	uint16_t at[NAME_FIELDS]; /* offsets into text; 0 = none, text[0] is '\0' */
	char text[];
};

/* The texts that names are made of; NULL and "" = none. */
struct names_draft {
	const char *field[NAME_FIELDS];
};

const char *name_field_key(enum name_field f); /* "runtime", "namespace", ... */
/* True when s can be a name: 1 to NAMING_TEXT_MAX bytes of UTF-8 without control characters. */
bool name_text_ok(const char *s);
/* Copies the texts that can be names and leaves the others out. The result has one reference. NULL = no memory. */
struct names *names_new(const struct names_draft *d);
struct names *names_get(struct names *n); /* one reference more; NULL stays NULL */
void names_put(struct names *n); /* NULL accepted */
/* Returns the text of a name; "" where there is none. n may be NULL. */
static inline const char *names_text(const struct names *n, enum name_field f)
{
	return n ? n->text + n->at[f] : "";
}
/* Sets *slot to n with a reference of its own, and gives back the one that the slot held. */
void names_set(struct names **slot, struct names *n);
/* The title for people: NAMESPACE/POD/CONTAINER, else the container, machine, JOB.STEP or unit. Length as snprintf; 0 and ""
 * where there is none. */
int names_title(const struct names *n, char *dst, size_t size);
/* Writes "names":{"pod":..., ...} with the names that there are; no member for NULL. */
void names_json(struct json *j, const struct names *n);

#endif
