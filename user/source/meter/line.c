// SPDX-License-Identifier: Apache-2.0
/* Lines of a command or FIFO: words dNcM=VALUE, watts unless a unit follows (uW, mW, W, kW). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/parse.h"
#include "meter_ops.h"

#define WORD_MAX 48

static bool unit_of(const char *unit, double *ret)
{
	static const struct {
		const char *name;
		double watts;
	} units[] = {
		{ "", 1 }, { "W", 1 }, { "mW", 1e-3 }, { "uW", 1e-6 }, { "kW", 1e3 },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(unit, units[i].name) != 0)
			continue;
		*ret = units[i].watts;
		return true;
	}
	return false;
}

/* d0c0=12.5mW; the digits are one each, as the readers of the tree know them. */
static bool parse_word(char *word, struct meter_value *ret)
{
	char *number = word + 5, unit[WORD_MAX];
	size_t len;
	double value, scale;

	if (word[0] != 'd' || !isdigit((unsigned char)word[1]) || word[2] != 'c' || !isdigit((unsigned char)word[3]) ||
	    word[4] != '=')
		return false;
	len = strspn(number, "+-.0123456789eE");
	snprintf(unit, sizeof(unit), "%s", number + len);
	number[len] = '\0';
	if (!unit_of(unit, &scale) || parse_double(number, &value) != 0 || !meter_watts(value * scale, &ret->power_uw))
		return false;
	ret->device = (uint8_t)(word[1] - '0');
	ret->channel = (uint8_t)(word[3] - '0');
	return true;
}

unsigned meter_parse_line(const char *line, struct meter_value *ret, unsigned max)
{
	unsigned n = 0;

	while (*line && n < max) {
		char word[WORD_MAX];
		size_t len;

		line += strspn(line, " \t\r,;");
		len = strcspn(line, " \t\r,;");
		if (len && len < sizeof(word)) {
			memcpy(word, line, len);
			word[len] = '\0';
			n += parse_word(word, &ret[n]);
		}
		line += len;
	}
	return n;
}

/* A meter's present values, and its silence. */

#define SILENT_NS (10 * NS_PER_S) /* at least, until it is told */

static bool is_silent(const struct meter *m, const struct meter_channel *c, uint64_t now_ns, uint64_t longest_ns)
{
	uint64_t since = c->energy.have ? c->energy.power_ns : m->opened_ns;

	return now_ns > since + longest_ns;
}

/* Number of channels without a value for longest_ns: the sum of the others is not the whole. */
static unsigned silent_channels(const struct meter *m, uint64_t now_ns, uint64_t longest_ns,
				const struct meter_channel **ret_first)
{
	unsigned n = 0;

	for (unsigned i = m->n_channels; i-- > 0;) {
		if (!is_silent(m, &m->channels[i], now_ns, longest_ns))
			continue;
		n++;
		*ret_first = &m->channels[i];
	}
	return n;
}

/* A meter that sends by itself has no error when it is silent, nor has a meter of many channels when one of them is. */
void meter_tell_silence(struct meter *m)
{
	uint64_t now = clock_mono_ns(), longest = m->longest_ns > SILENT_NS ? m->longest_ns : SILENT_NS, since;
	const struct meter_channel *first = NULL;
	unsigned silent;
	char text[80];
	bool all;

	pthread_mutex_lock(&m->all->lock);
	since = m->newest_ns > m->opened_ns ? m->newest_ns : m->opened_ns;
	all = now > since + longest;
	silent = silent_channels(m, now, longest, &first);
	if (!all && m->newest_ns < m->opened_ns) {
		/* after opening, the earlier judgement holds until the meter answers or had the time to */
		pthread_mutex_unlock(&m->all->lock);
		return;
	}
	if (!m->silent && all) {
		meter_warn(m, m->newest_ns ? "it says nothing any more; its energy is not known meanwhile" :
					     "it has not said a value yet");
	} else if (!m->silent && silent && silent < m->n_channels) {
		snprintf(text, sizeof(text), "d%uc%u has no value; the energy of the meter is partial",
			 first->desc.device, first->desc.channel);
		meter_warn(m, text);
	} else if (m->silent && !all && !silent) {
		meter_warn(m, "all of it talks again; what it measured meanwhile is not known");
	}
	m->silent = all || (silent && silent < m->n_channels);
	pthread_mutex_unlock(&m->all->lock);
}

static void read_one(struct meter *m, struct reading *r)
{
	const struct meter_channel *first;
	unsigned silent = silent_channels(m, r->mono_ns, m->longest_ns, &first);
	/* until the first value nothing is known: that interval is partial */
	struct reading_domain d = { .uj_num = 1,
				    .uj_den = 1,
				    .time_ns = m->newest_ns ? m->newest_ns : m->all->opened_ns,
				    .errors = m->newest_ns != 0 };

	for (unsigned i = 0; i < m->n_channels; i++) {
		d.units += m->channels[i].energy.uj;
		d.errors += m->channels[i].energy.gaps;
	}
	/* a cumulative count of events: each reading that found one adds to it */
	m->silent_readings += silent && silent < m->n_channels;
	d.errors += m->silent_readings;
	d.stale = !m->newest_ns || r->mono_ns > m->newest_ns + m->longest_ns;
	r->domains[m->domain] = d;
}

void meters_read(struct meters *all, struct reading *r)
{
	if (!all || pthread_mutex_trylock(&all->lock) != 0)
		return;
	for (unsigned i = 0; i < all->n; i++)
		read_one(&all->list[i], r);
	pthread_mutex_unlock(&all->lock);
}
