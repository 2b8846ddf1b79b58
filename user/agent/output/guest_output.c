/* SPDX-License-Identifier: Apache-2.0 */
#include "guest_output.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "encode/guest_lines.h"
#include "source/guest/guests.h"

#define MAX_GUESTS 256
#define PATH_BYTES 4096

/* A channel of the sink: the cgroup of one machine, sent to the peer admitted to it. Its totals go on without a
 * client. */
struct guest_share {
	uint32_t channel;
	char *path;
	struct encoder *encoder; /* measuring thread; NULL until the next snapshot */
};

struct output_guests {
	char *to;
	struct guests *finder; /* loop thread; NULL: one guest, given by its CID */
	uint32_t cid;
	struct buf line; /* measuring thread */
	pthread_mutex_t lock; /* protects the rest */
	struct guest_share shares[MAX_GUESTS];
	unsigned n;
	uint32_t channels; /* channels given so far */
	uint64_t refused, said, said_withheld;
	struct err why; /* of the last refusal */
};

int output_guests_open(const struct output_config *oc, const struct machine_config *m, struct output_guests **ret,
		       struct err *err)
{
	struct output_guests *g = calloc(1, sizeof(*g));
	int rc = 0;

	if (!g || !(g->to = strdup(oc->to))) {
		free(g);
		return err_set(err, -ENOMEM, "output %s: out of memory; free some", oc->to);
	}
	pthread_mutex_init(&g->lock, NULL);
	if (!oc->guest) {
		rc = guests_open(m->root, m->cgroups.hierarchy, &g->finder, err);
	} else {
		g->cid = (uint32_t)strtoul(oc->to + strlen("vsock-listen://"), NULL, 10);
		g->shares[0].channel = g->channels = g->n = 1;
		g->shares[0].path = strdup(oc->guest);
		rc = g->shares[0].path ? 0 : err_set(err, -ENOMEM, "output %s: out of memory; free some", oc->to);
	}
	if (rc)
		output_guests_close(g);
	else
		*ret = g;
	return rc;
}

static void forget(struct output_guests *g, unsigned i)
{
	if (g->shares[i].encoder)
		encode_share.destroy(g->shares[i].encoder);
	free(g->shares[i].path);
	g->shares[i] = g->shares[--g->n];
}

/* With the lock held: makes room for one more, if needed that of a machine that has gone. */
static bool make_room(struct output_guests *g)
{
	for (unsigned i = g->n; g->n == MAX_GUESTS && i-- > 0;)
		if (g->shares[i].encoder && !share_alive(g->shares[i].encoder))
			forget(g, i);
	return g->n < MAX_GUESTS;
}

/* Returns the channel of a path, a new one if needed; 0 = no room. */
static uint32_t channel_of(struct output_guests *g, const char *path)
{
	uint32_t channel = 0;

	pthread_mutex_lock(&g->lock);
	for (unsigned i = 0; i < g->n && !channel; i++)
		if (strcmp(g->shares[i].path, path) == 0)
			channel = g->shares[i].channel;
	if (!channel && make_room(g) && (g->shares[g->n].path = strdup(path))) {
		channel = ++g->channels;
		g->shares[g->n].channel = channel;
		g->shares[g->n++].encoder = NULL;
	}
	pthread_mutex_unlock(&g->lock);
	return channel;
}

static int refuse(struct output_guests *g, const struct err *err)
{
	pthread_mutex_lock(&g->lock);
	g->refused++;
	g->why = *err;
	pthread_mutex_unlock(&g->lock);
	return err->code;
}

/* Runs on the loop's thread. */
static int admit(void *ctx, uint32_t cid, uint32_t *ret_channel)
{
	struct output_guests *g = ctx;
	struct err err = { 0 };
	char path[PATH_BYTES];
	uint32_t channel = 1;

	if (!g->finder && cid != g->cid)
		err_set(&err, -EPERM, "CID %u: this output is for %u", cid, g->cid);
	else if (g->finder && guests_find(g->finder, cid, path, sizeof(path), &err) == 0)
		channel = channel_of(g, path);
	if (!err.code && !channel)
		err_set(&err, -ENOSPC, "CID %u: more than %d machines; name some with outputs of their own", cid,
			MAX_GUESTS);
	if (err.code)
		return refuse(g, &err);
	*ret_channel = channel;
	return 0;
}

void output_guests_admit(struct output_guests *g, struct sink_options *o)
{
	if (!g)
		return;
	o->admit = admit;
	o->admit_ctx = g;
}

static int make_encoder(struct output_guests *g, struct guest_share *share, const struct schema *schema)
{
	const struct encode_options o = {
		.guest = share->path,
		.guest_literal = g->finder != NULL,
		.epoch = (uint64_t)clock_real_ns() + share->channel,
	};

	return share->encoder ? 0 : encode_share.create(&o, schema, &share->encoder, NULL);
}

void output_guests_send(struct output_guests *g, struct sink *sink, const struct snapshot *s)
{
	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	for (unsigned i = 0; i < g->n; i++) {
		struct guest_share *share = &g->shares[i];

		buf_reset(&g->line);
		if (make_encoder(g, share, s->schema) != 0 ||
		    encode_share.encode(share->encoder, s, NULL, &g->line) != 0)
			log_warn("output %s: a share could not be made: %s", g->to, strerror(ENOMEM));
		else if (g->line.len)
			sink_submit_to(sink, share->channel, g->line.data, g->line.len);
	}
	pthread_mutex_unlock(&g->lock);
}

/* True at 1, 2, 4, 8 and so on: a guest may try for ever, and an absent guest gets no data for ever. */
static bool worth_telling(uint64_t *said, uint64_t n)
{
	if (n < (*said ? 2 * *said : 1))
		return false;
	*said = n;
	return true;
}

void output_guests_say(struct output_guests *g)
{
	struct encoder_stats st = { 0 };
	struct err why;
	uint64_t n;

	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	n = g->refused;
	why = g->why;
	/* a missing guest is reported only when it is named: other guests come and go */
	if (!g->finder && g->shares[0].encoder)
		st = *encode_share.stats(g->shares[0].encoder);
	pthread_mutex_unlock(&g->lock);
	if (worth_telling(&g->said_withheld, st.withheld_ticks))
		log_warn("output %s: %llu reports withheld: %s", g->to, (unsigned long long)st.withheld_ticks,
			 st.reason);
	if (worth_telling(&g->said, n))
		log_warn("output %s: connections turned away so far: %llu: %s", g->to, (unsigned long long)n, why.text);
}

void output_guests_close(struct output_guests *g)
{
	if (!g)
		return;
	while (g->n)
		forget(g, g->n - 1);
	guests_close(g->finder);
	buf_free(&g->line);
	pthread_mutex_destroy(&g->lock);
	free(g->to);
	free(g);
}
