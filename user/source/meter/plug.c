// SPDX-License-Identifier: Apache-2.0
/* Plugs over HTTP: one GET a look, on the meter's own thread. The first address that answers with a power is kept. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/http/http_client.h"
#include "meter_ops.h"

#define TIMEOUT_NS (5 * NS_PER_S)

struct plug {
	struct http_client *http;
	const char *const *paths;
	int (*parse)(const char *text, size_t n, int64_t *ret_uw, unsigned max);
	unsigned path;
	struct http_answer answer;
};

static int open_plug(struct meter *m, const char *const *paths, int (*parse)(const char *, size_t, int64_t *, unsigned),
		     struct err *err)
{
	const struct http_client_options o = {
		.subject = m->url,
		.timeout_ns = TIMEOUT_NS,
		.stop = &m->all->stop,
		.not_this = "this is no such plug",
	};
	struct plug *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return err_set(err, -ENOMEM, "%s: out of memory; free some", m->url);
	rc = http_client_new(&o, &p->http, err);
	if (rc) {
		free(p);
		return rc;
	}
	p->paths = paths;
	p->parse = parse;
	m->state = p;
	return 0;
}

static int shelly_open(struct meter *m, struct err *err)
{
	static const char *const paths[] = { "/rpc/Shelly.GetStatus", "/rpc/Switch.GetStatus?id=0", "/status", NULL };

	return open_plug(m, paths, meter_shelly_parse, err);
}

static int tasmota_open(struct meter *m, struct err *err)
{
	static const char *const paths[] = { "/cm?cmnd=Status%208", "/cm?cmnd=Status%2010", NULL };

	return open_plug(m, paths, meter_tasmota_parse, err);
}

static int get(const struct meter *m, struct err *err)
{
	struct plug *p = m->state;
	char url[640];
	size_t len = strlen(m->url);

	while (len && m->url[len - 1] == '/')
		len--;
	snprintf(url, sizeof(url), "%.*s%s", (int)len, m->url, p->paths[p->path]);
	return http_client_ask(p->http, &(struct http_ask){ .url = url }, &p->answer, err);
}

static int plug_look(struct meter *m, struct err *err)
{
	struct plug *p = m->state;
	int64_t uw[METER_MAX_CHANNELS];
	int n = -EBADMSG;

	for (unsigned tries = 0; n < 0 && p->paths[tries]; tries++) {
		int rc = get(m, err);

		if (rc)
			return rc;
		n = p->answer.status != 200 ?
			    -EBADMSG :
			    p->parse((const char *)p->answer.body.data, p->answer.body.len, uw, METER_MAX_CHANNELS);
		if (n < 0 && !p->paths[++p->path])
			p->path = 0;
	}
	if (n < 0)
		return err_set(err, n, "%s: no power in its answer (status %ld); is it a %s with a meter", m->url,
			       p->answer.status, m->ops->type);
	if (m->answered && n != m->answered)
		return err_set(
			err, -EBADMSG,
			"%s: it had %d meters and now has %d: which is which is not known; restart jouled if it is another",
			m->url, m->answered, n);
	m->answered = n;
	for (int i = 0; i < n; i++)
		if (uw[i] != METER_NO_VALUE)
			meter_put(m, 0, (unsigned)i, uw[i]);
	return 0;
}

static void plug_close(struct meter *m)
{
	struct plug *p = m->state;

	http_client_free(p->http);
	buf_free(&p->answer.body);
	free(p);
	m->state = NULL;
}

const struct meter_ops meter_shelly = { "shelly", NS_PER_S, false, shelly_open, plug_look, plug_close };
const struct meter_ops meter_tasmota = { "tasmota", NS_PER_S, false, tasmota_open, plug_look, plug_close };

/* Answers of plugs. Shelly of the first generation: meters[].power, emeters[].power; of later ones: objects with
 * apower (switches, PM) or act_power (EM1), or a_act_power to c_act_power (EM). Tasmota: ENERGY.Power, a number or a
 * list of them; old firmware: StatusPWR.Power. All in watts. */

struct found {
	int64_t *uw;
	unsigned n, known, max;
};

static void take(struct found *f, const json_t *v)
{
	if (f->n == f->max)
		return;
	f->uw[f->n] = METER_NO_VALUE;
	f->known += json_is_number(v) && meter_watts(json_number_value(v), &f->uw[f->n]);
	f->n++;
}

/* An element may say of itself that its measurement failed (is_valid, first generation). */
static void take_list(struct found *f, const json_t *list)
{
	const json_t *element;
	size_t i;

	json_array_foreach(list, i, element) {
		bool object = json_is_object(element);

		take(f, !object                                             ? element :
			json_is_false(json_object_get(element, "is_valid")) ? NULL :
									      json_object_get(element, "power"));
	}
}

static void take_component(struct found *f, const json_t *o)
{
	static const char *const names[] = { "apower", "act_power", "a_act_power", "b_act_power", "c_act_power" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (json_object_get(o, names[i]))
			take(f, json_object_get(o, names[i]));
}

static int finish(json_t *root, const struct found *f)
{
	json_decref(root);
	return f->known ? (int)f->n : -EBADMSG;
}

int meter_shelly_parse(const char *text, size_t n, int64_t *ret_uw, unsigned max)
{
	json_t *root = json_loadb(text, n, 0, NULL), *o;
	struct found f = { ret_uw, 0, 0, max };
	const char *key;

	if (!json_is_object(root))
		return finish(root, &f);
	take_list(&f, json_object_get(root, "emeters"));
	if (!f.n)
		take_list(&f, json_object_get(root, "meters"));
	if (!f.n)
		take_component(&f, root);
	if (!f.n)
		json_object_foreach(root, key, o)
			if (json_is_object(o))
				take_component(&f, o);
	return finish(root, &f);
}

int meter_tasmota_parse(const char *text, size_t n, int64_t *ret_uw, unsigned max)
{
	json_t *root = json_loadb(text, n, 0, NULL);
	struct found f = { ret_uw, 0, 0, max };
	const json_t *power = json_object_get(json_object_get(json_object_get(root, "StatusSNS"), "ENERGY"), "Power");

	if (!power)
		power = json_object_get(json_object_get(root, "StatusPWR"), "Power");
	if (json_is_array(power))
		take_list(&f, power);
	else if (power)
		take(&f, power);
	return finish(root, &f);
}
