/* SPDX-License-Identifier: Apache-2.0 */
/* The original's rules: the first epoch is warm-up and dropped where there are two, the last one where there are
 * three; with fewer, all that every series has. experiment_ and train_ events are not looked at. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "tree.h"

/* The time of the only event of that name and number. */
static int find_event(const struct tree_repetition *r, const char *name, int64_t data, int64_t *ret_ns, struct err *err)
{
	unsigned found = 0;

	for (size_t i = 0; i < r->n_events; i++)
		if (r->events[i].has_data && r->events[i].data == data && strcmp(r->events[i].name, name) == 0 &&
		    !found++)
			*ret_ns = r->events[i].t_ns;
	if (found == 1)
		return 0;
	return err_set(err, -ENODATA,
		       "timestamps.csv: %s %lld stands there %u times, not once: epochs must be counted from 0", name,
		       (long long)data, found);
}

static unsigned count_epochs(const struct tree_repetition *r)
{
	unsigned n = 0;

	for (size_t i = 0; i < r->n_events; i++)
		n += strcmp(r->events[i].name, "epoch_begin") == 0;
	return n;
}

/* Latest first and earliest last row of the tables from..to. */
static bool common(const struct tree_repetition *r, unsigned from, unsigned to, struct tree_window *w)
{
	bool any = false;

	for (unsigned k = from; k <= to; k++) {
		const struct tree_table *t = &r->table[k];
		int64_t first, last;

		if (!t->n)
			continue;
		first = last = t->t_ns[0];
		for (size_t i = 1; i < t->n; i++) {
			first = t->t_ns[i] < first ? t->t_ns[i] : first;
			last = t->t_ns[i] > last ? t->t_ns[i] : last;
		}
		w->start_ns = any && w->start_ns > first ? w->start_ns : first;
		w->end_ns = any && w->end_ns < last ? w->end_ns : last;
		any = true;
	}
	return any;
}

int tree_window_of(const struct tree_repetition *r, struct tree_window *ret, struct err *err)
{
	struct tree_window w = { .epochs = count_epochs(r) };
	int rc;

	if (w.epochs >= 2) {
		w.by_epochs = true;
		rc = find_event(r, "epoch_begin", 1, &w.start_ns, err);
		if (!rc)
			rc = find_event(r, "epoch_end", w.epochs >= 3 ? (int64_t)w.epochs - 2 : 1, &w.end_ns, err);
		if (rc)
			return rc;
	} else if (!common(r, TREE_GPU, TREE_EXTERNAL, &w) && !common(r, TREE_RAPL, TREE_CGROUP, &w)) {
		return err_set(err, -ENODATA, "no power in any file");
	}
	if (w.end_ns <= w.start_ns)
		return err_set(err, -ENODATA, "%s",
			       w.by_epochs ? "timestamps.csv: the epochs end before they begin" :
					     "the files have no time in common; are all of them in UTC?");
	*ret = w;
	return 0;
}
