// SPDX-License-Identifier: Apache-2.0
/* Rows and samples for recorders: two rings, and a cursor per reader. */
#include <errno.h>
#include <stdlib.h>
#include "gpu_internal.h"

void gpu_put_row(struct gpus *g, const struct gpu_row *row)
{
	if (g->rows)
		g->rows[g->n_rows++ % GPU_KEPT_ROWS] = *row;
}

void gpu_put_sample(struct gpus *g, const struct gpu_sample *s)
{
	if (g->samples)
		g->samples[g->n_samples++ % GPU_KEPT_SAMPLES] = *s;
}

/* What was overwritten is skipped and counted. */
static bool next(uint64_t *at, uint64_t put, uint64_t kept, uint64_t *missed)
{
	uint64_t oldest = put > kept ? put - kept : 0;

	if (*at < oldest) {
		*missed += *at ? oldest - *at : 0;
		*at = oldest;
	}
	return *at < put;
}

void gpus_record(struct gpus *g, uint64_t row_ns)
{
	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	if (row_ns && !g->rows) {
		g->rows = calloc(GPU_KEPT_ROWS, sizeof(*g->rows));
		g->samples = calloc(GPU_KEPT_SAMPLES, sizeof(*g->samples));
	}
	if (row_ns)
		g->recording++;
	else if (g->recording)
		g->recording--;
	if (!g->recording)
		g->row_ns = 0;
	else if (row_ns && (!g->row_ns || row_ns < g->row_ns))
		g->row_ns = row_ns;
	pthread_mutex_unlock(&g->lock);
	if (g->fast)
		pacer_wake(g->fast);
	if (g->slow)
		pacer_wake(g->slow);
}

void gpus_cursor(struct gpus *g, struct gpu_cursor *ret)
{
	*ret = (struct gpu_cursor){ 0 };
	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	ret->rows = g->n_rows;
	ret->samples = g->n_samples;
	pthread_mutex_unlock(&g->lock);
}

bool gpus_next_row(struct gpus *g, struct gpu_cursor *c, struct gpu_row *ret)
{
	bool any;

	if (!g)
		return false;
	pthread_mutex_lock(&g->lock);
	any = g->rows && next(&c->rows, g->n_rows, GPU_KEPT_ROWS, &c->missed);
	if (any)
		*ret = g->rows[c->rows++ % GPU_KEPT_ROWS];
	pthread_mutex_unlock(&g->lock);
	return any;
}

bool gpus_next_sample(struct gpus *g, struct gpu_cursor *c, struct gpu_sample *ret)
{
	bool any;

	if (!g)
		return false;
	pthread_mutex_lock(&g->lock);
	any = g->samples && next(&c->samples, g->n_samples, GPU_KEPT_SAMPLES, &c->missed);
	if (any)
		*ret = g->samples[c->samples++ % GPU_KEPT_SAMPLES];
	pthread_mutex_unlock(&g->lock);
	return any;
}
