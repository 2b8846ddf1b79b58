// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "meter_ops.h"

#define LONGEST_NS (3 * NS_PER_S) /* between two values of one trapezoid, or three paces */
#define FIRST_RETRY_NS (200 * NS_PER_MS) /* ten paces, between these two */
#define RETRY_NS (2 * NS_PER_S)
#define LAST_RETRY_NS (30 * NS_PER_S)
#define DENIED_RETRY_NS (300 * NS_PER_S)
#define GIVE_UP 5 /* failed looks until it is opened anew */
#define FLOOD_NS (20 * NS_PER_MS) /* pause before the next look at a meter that prints too much */

static const struct meter_ops *const kinds[] = { &meter_hwmon,  &meter_serial,  &meter_command, &meter_fifo,
						 &meter_shelly, &meter_tasmota, &meter_dcmi,    &meter_redfish };

/* The first messages are kept: they tell the cause. */
void meter_warn(struct meter *m, const char *text)
{
	struct meters *all = m->all;

	if (all->n_warnings < sizeof(all->warning) / sizeof(all->warning[0]))
		snprintf(all->warning[all->n_warnings++], sizeof(all->warning[0]), "meter %u (%s): %.440s", m->number,
			 m->ops->type, text);
}

static struct meter_channel *channel_of(struct meter *m, unsigned device, unsigned channel)
{
	struct meter_channel *c;

	for (unsigned i = 0; i < m->n_channels; i++)
		if (m->channels[i].desc.device == m->number + device && m->channels[i].desc.channel == channel)
			return &m->channels[i];
	if (m->n_channels == METER_CHANNELS || m->number + device >= METER_MAX_DEVICES || channel >= METER_MAX_CHANNELS)
		return NULL;
	c = &m->channels[m->n_channels++];
	c->desc = (struct meter_desc){ .device = (uint8_t)(m->number + device),
				       .channel = (uint8_t)channel,
				       .domain = m->domain,
				       .pace_ns = m->pace_ns };
	snprintf(c->desc.type, sizeof(c->desc.type), "%s", m->ops->type);
	snprintf(c->desc.label, sizeof(c->desc.label), "%.80s", m->url ? m->url : m->device ? m->device : "");
	return c;
}

int meter_put(struct meter *m, unsigned device, unsigned channel, int64_t power_uw)
{
	struct meters *all = m->all;
	uint64_t now = clock_mono_ns();
	int64_t real = clock_real_ns();
	struct meter_channel *c;

	if (power_uw > METER_MAX_UW || power_uw < -METER_MAX_UW)
		return -ERANGE;
	pthread_mutex_lock(&all->lock);
	c = channel_of(m, device, channel);
	if (c) {
		meter_energy_add(&c->energy, power_uw, now, m->longest_ns);
		all->kept[all->n_kept++ % METER_KEPT] = (struct meter_sample){ c->desc.device, c->desc.channel, real,
									       now, power_uw };
		m->newest_ns = now;
	}
	pthread_mutex_unlock(&all->lock);
	return c ? 0 : -ERANGE;
}

void meter_label(struct meter *m, unsigned channel, const char *label)
{
	struct meter_channel *c;

	pthread_mutex_lock(&m->all->lock);
	c = channel_of(m, 0, channel);
	if (c)
		snprintf(c->desc.label, sizeof(c->desc.label), "%.90s", label);
	pthread_mutex_unlock(&m->all->lock);
}

static void tell(struct meter *m, const char *text)
{
	pthread_mutex_lock(&m->all->lock);
	meter_warn(m, text);
	pthread_mutex_unlock(&m->all->lock);
}

/* A failure is told once, and so is its end. The pauses between tries to open grow. */
static uint64_t fail(struct meter *m, const struct err *err)
{
	uint64_t pause = 10 * m->pace_ns;

	m->failures++;
	pthread_mutex_lock(&m->all->lock);
	m->bad++;
	pthread_mutex_unlock(&m->all->lock);
	if (m->is_open && m->failures < GIVE_UP && !m->denied)
		return m->pace_ns;
	if (!m->told)
		tell(m, err->text);
	m->told = true;
	if (m->is_open)
		m->ops->close(m);
	m->is_open = false;
	if (m->denied)
		return DENIED_RETRY_NS;
	pause = (pause < FIRST_RETRY_NS ? FIRST_RETRY_NS : pause > RETRY_NS ? RETRY_NS : pause) << m->pauses;
	m->pauses += m->pauses < 4;
	return pause < LAST_RETRY_NS ? pause : LAST_RETRY_NS;
}

static uint64_t step(void *arg)
{
	struct meter *m = arg;
	struct err err = { 0 };
	int rc = 0;

	if (!m->is_open) {
		rc = m->ops->open(m, &err);
		if (rc)
			return fail(m, &err);
		m->is_open = true;
		pthread_mutex_lock(&m->all->lock);
		m->opened_ns = clock_mono_ns();
		pthread_mutex_unlock(&m->all->lock);
	}
	rc = m->ops->look(m, &err);
	if (rc < 0)
		return fail(m, &err);
	meter_tell_silence(m);
	m->failures = 0;
	if (m->newest_ns >= m->opened_ns) { /* a meter that sends by itself may have been silent since it was opened */
		if (m->told)
			tell(m, "it answers again; what it measured meanwhile is not known");
		m->told = false;
		m->pauses = 0;
	}
	return rc > 0 ? FLOOD_NS : m->ops->streams ? 0 : m->pace_ns;
}

static bool copy_text(const char *from, char **ret)
{
	*ret = from ? strdup(from) : NULL;
	return !from || *ret;
}

static int set_up(struct meters *all, unsigned i, const struct meter_config *c, struct schema *s)
{
	struct meter *m = &all->list[i];
	struct domain_desc *d = &s->domains[s->n_domains];

	*m = (struct meter){ .all = all, .number = i };
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		if (strcmp(kinds[k]->type, c->type) == 0)
			m->ops = kinds[k];
	if (!m->ops || s->n_domains == SCHEMA_MAX_DOMAINS)
		return -EINVAL;
	if (!copy_text(c->device, &m->device) || !copy_text(c->url, &m->url) || !copy_text(c->user, &m->user) ||
	    !copy_text(c->password_file, &m->password_file) || !copy_text(c->ca_file, &m->ca_file) ||
	    str_list_copy(&c->command, &m->command) || str_list_copy(&c->channels, &m->channels_wanted))
		return -ENOMEM;
	m->pace_ns = c->pace_ns ? c->pace_ns : m->ops->pace_ns;
	m->longest_ns = 3 * m->pace_ns > LONGEST_NS ? 3 * m->pace_ns : LONGEST_NS;
	m->domain = (uint16_t)s->n_domains++;
	*d = (struct domain_desc){ .kind = DOMAIN_EXTERNAL, .package = (uint16_t)i, .interface = ENERGY_METER };
	snprintf(d->name, sizeof(d->name), "external-%u", i);
	snprintf(d->id, sizeof(d->id), "%.90s",
		 m->url       ? m->url :
		 m->device    ? m->device :
		 m->command.n ? m->command.v[0] :
				c->type);
	snprintf(d->reason, sizeof(d->reason), "integral of a meter of type %s", c->type);
	return 0;
}

int meters_open(const struct fsroot *root, const struct meters_config *list, struct schema *s, struct meters **ret,
		struct err *err)
{
	unsigned n = list->n;
	struct meters *all;
	int rc = 0;

	*ret = NULL;
	if (!n)
		return 0;
	all = calloc(1, sizeof(*all));
	if (!all)
		return err_set(err, -ENOMEM, "meters: out of memory; free some");
	all->root = root;
	all->opened_ns = clock_mono_ns();
	pthread_mutex_init(&all->lock, NULL);
	all->list = calloc(n, sizeof(*all->list));
	all->kept = calloc(METER_KEPT, sizeof(*all->kept));
	if (!all->list || !all->kept)
		rc = -ENOMEM;
	for (unsigned i = 0; i < n && !rc; i++) {
		rc = set_up(all, i, &list->v[i], s);
		all->n++;
	}
	if (rc) {
		meters_close(all);
		return err_set(err, rc, "meters: %s",
			       rc == -ENOMEM ? "out of memory" : "too many energy domains; configure fewer");
	}
	*ret = all;
	return 0;
}

int meters_start(struct meters *all)
{
	int rc = 0;

	for (unsigned i = 0; all && i < all->n && !rc; i++) {
		char name[16];

		snprintf(name, sizeof(name), "meter-%u", i % 100);
		rc = pacer_start(name, step, &all->list[i], &all->list[i].pacer);
	}
	return rc;
}

bool meters_next_warning(struct meters *all, char *ret_text, size_t size)
{
	bool any;

	if (!all || pthread_mutex_trylock(&all->lock) != 0)
		return false;
	any = all->n_warnings > 0;
	if (any) {
		snprintf(ret_text, size, "%s", all->warning[0]);
		memmove(all->warning[0], all->warning[1], --all->n_warnings * sizeof(all->warning[0]));
	}
	pthread_mutex_unlock(&all->lock);
	return any;
}

void meters_close(struct meters *all)
{
	if (!all)
		return;
	atomic_store(&all->stop, true);
	for (unsigned i = 0; all->list && i < all->n; i++) {
		struct meter *m = &all->list[i];

		pacer_stop(m->pacer);
		if (m->is_open)
			m->ops->close(m);
		free(m->device);
		free(m->url);
		free(m->user);
		free(m->password_file);
		free(m->ca_file);
		str_list_free(&m->command);
		str_list_free(&m->channels_wanted);
	}
	pthread_mutex_destroy(&all->lock);
	free(all->kept);
	free(all->list);
	free(all);
}

/* Channels and samples for recorders: a ring, and a cursor per reader. */

unsigned meters_channels(const struct meters *all)
{
	unsigned n = 0;

	for (unsigned i = 0; all && i < all->n; i++) {
		pthread_mutex_lock((pthread_mutex_t *)&all->lock);
		n += all->list[i].n_channels;
		pthread_mutex_unlock((pthread_mutex_t *)&all->lock);
	}
	return n;
}

/* Channels with a value; one may be known by its name alone. The lock is held. */
static unsigned values_of(const struct meter *m)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->n_channels; i++)
		n += m->channels[i].energy.have;
	return n;
}

unsigned meters_silent(struct meters *all)
{
	unsigned n = 0;

	for (unsigned i = 0; all && i < all->n; i++) {
		pthread_mutex_lock(&all->lock);
		n += values_of(&all->list[i]) == 0;
		pthread_mutex_unlock(&all->lock);
	}
	return n;
}

unsigned meters_values(struct meters *all, unsigned domain)
{
	unsigned n = 0;

	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; i < all->n; i++)
		n += all->list[i].domain == domain ? values_of(&all->list[i]) : 0;
	pthread_mutex_unlock(&all->lock);
	return n;
}

bool meters_settled(struct meters *all)
{
	bool settled = true;

	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; i < all->n; i++)
		settled = settled && (values_of(&all->list[i]) || atomic_load(&all->list[i].told));
	pthread_mutex_unlock(&all->lock);
	return settled;
}

void meters_desc(struct meters *all, unsigned i, struct meter_desc *ret)
{
	pthread_mutex_lock(&all->lock);
	for (unsigned k = 0; k < all->n; i -= all->list[k++].n_channels) {
		if (i >= all->list[k].n_channels)
			continue;
		*ret = all->list[k].channels[i].desc;
		break;
	}
	pthread_mutex_unlock(&all->lock);
}

void meters_cursor(struct meters *all, struct meter_cursor *ret)
{
	*ret = (struct meter_cursor){ 0 };
	if (!all)
		return;
	pthread_mutex_lock(&all->lock);
	ret->next = all->n_kept;
	pthread_mutex_unlock(&all->lock);
}

bool meters_next(struct meters *all, struct meter_cursor *c, struct meter_sample *ret)
{
	uint64_t oldest;
	bool any;

	if (!all)
		return false;
	pthread_mutex_lock(&all->lock);
	oldest = all->n_kept > METER_KEPT ? all->n_kept - METER_KEPT : 0;
	if (c->next < oldest) {
		c->missed += c->next ? oldest - c->next : 0;
		c->next = oldest;
	}
	any = c->next < all->n_kept;
	if (any)
		*ret = all->kept[c->next++ % METER_KEPT];
	pthread_mutex_unlock(&all->lock);
	return any;
}

#define UW_NS_PER_UJ 1000000000ull

void meter_energy_add(struct meter_energy *e, int64_t power_uw, uint64_t now_ns, uint64_t longest_ns)
{
	uint64_t ns = now_ns - e->power_ns;
	int64_t sum = e->power_uw + power_uw;
	unsigned __int128 work;

	if (e->have && now_ns <= e->power_ns)
		return;
	if (e->have && ns <= longest_ns && sum > 0) {
		work = (unsigned __int128)(uint64_t)sum * ns / 2 + e->rest;
		e->uj += (uint64_t)(work / UW_NS_PER_UJ);
		e->rest = (uint64_t)(work % UW_NS_PER_UJ);
	} else if (e->have && ns > longest_ns) {
		e->gaps++;
	}
	e->have = true;
	e->power_uw = power_uw;
	e->power_ns = now_ns;
}

bool meter_watts(double watts, int64_t *ret_uw)
{
	if (!isfinite(watts) || fabs(watts) * 1e6 > (double)METER_MAX_UW)
		return false;
	*ret_uw = llround(watts * 1e6);
	return true;
}
