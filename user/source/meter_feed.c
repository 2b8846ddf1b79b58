// SPDX-License-Identifier: Apache-2.0
/* Channels and samples for recorders: a ring, and a cursor per reader. */
#include "meter_internal.h"

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
