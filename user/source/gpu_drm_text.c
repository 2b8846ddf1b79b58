// SPDX-License-Identifier: Apache-2.0
#include "gpu_drm.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define MAX_CAPACITY 64

/* "123 ns": digits, and behind them the unit or nothing. */
static bool take_number(const char *value, const char *unit, uint64_t *ret)
{
	uint64_t v = 0;

	if (!isdigit((unsigned char)*value))
		return false;
	for (; isdigit((unsigned char)*value); value++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*value - '0'), &v))
			return false;
	value += strspn(value, " \t");
	if (*value && strcmp(value, unit) != 0)
		return false;
	*ret = v;
	return true;
}

static struct drm_engine *engine_of(struct drm_use *u, const char *name)
{
	struct drm_engine *e;

	for (unsigned i = 0; i < u->n; i++)
		if (strcmp(u->engines[i].name, name) == 0)
			return &u->engines[i];
	if (u->n == DRM_ENGINES || !*name || strlen(name) >= sizeof(e->name))
		return NULL;
	e = &u->engines[u->n++];
	*e = (struct drm_engine){ .capacity = 1 };
	memcpy(e->name, name, strlen(name));
	return e;
}

static const char *below(const char *key, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(key, prefix, n) == 0 ? key + n : NULL;
}

static void take_engine(struct drm_use *u, const char *key, const char *value)
{
	const char *capacity = below(key, "drm-engine-capacity-"), *ns = below(key, "drm-engine-");
	const char *total = below(key, "drm-total-cycles-"), *cycles = below(key, "drm-cycles-");
	const char *name = capacity ? capacity : ns ? ns : total ? total : cycles;
	struct drm_engine *e;
	uint64_t v;

	if (!name || !take_number(value, !capacity && ns ? "ns" : "", &v) || !(e = engine_of(u, name)))
		return;
	if (capacity) {
		e->capacity = v >= 1 && v <= MAX_CAPACITY ? (uint32_t)v : 1;
	} else if (ns) {
		e->ns = v;
		e->by_ns = true;
	} else if (total) {
		e->total = v;
	} else {
		e->cycles = v;
		e->by_cycles = true;
	}
}

static void take_line(struct drm_use *u, char *line, bool *client)
{
	char *value = strchr(line, ':');

	if (!value)
		return;
	*value++ = '\0';
	value += strspn(value, " \t");
	if (strcmp(line, "drm-pdev") == 0)
		snprintf(u->pci, sizeof(u->pci), "%s", value);
	else if (strcmp(line, "drm-client-id") == 0)
		*client = take_number(value, "", &u->client);
	else
		take_engine(u, line, value);
}

bool drm_parse(const char *text, struct drm_use *ret)
{
	struct drm_use u = { .n = 0 };
	bool client = false;

	while (*text) {
		size_t len = strcspn(text, "\n");
		char line[128];

		if (len < sizeof(line)) {
			memcpy(line, text, len);
			line[len] = '\0';
			take_line(&u, line, &client);
		}
		text += len + (text[len] == '\n');
	}
	if (!client || !u.n || !*u.pci)
		return false;
	*ret = u;
	return true;
}

/* part of whole, in millionths of each engine. What went back, or is more than there was, is not believed. */
static uint32_t millionths(uint64_t part, uint64_t whole, uint32_t capacity)
{
	uint64_t v = whole ? (uint64_t)((unsigned __int128)part * 1000000 / whole / capacity) : 0;

	return v <= 1000000 ? (uint32_t)v : 1000000;
}

uint32_t drm_share(const struct drm_use *old, const struct drm_use *now, uint64_t ns)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < now->n; i++) {
		const struct drm_engine *e = &now->engines[i], *was = NULL;

		for (unsigned k = 0; k < old->n; k++)
			if (strcmp(old->engines[k].name, e->name) == 0)
				was = &old->engines[k];
		if (!was)
			continue;
		if (e->by_ns && was->by_ns && e->ns >= was->ns)
			sum += millionths(e->ns - was->ns, ns, e->capacity);
		else if (e->by_cycles && was->by_cycles && e->cycles >= was->cycles && e->total > was->total)
			sum += millionths(e->cycles - was->cycles, e->total - was->total, e->capacity);
	}
	return sum;
}
