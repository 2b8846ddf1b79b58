/* SPDX-License-Identifier: Apache-2.0 */
#include "moments.h"
#include <stdlib.h>
#include "base/array.h"

/* Tells what *told lacks of uj. */
static int tell(struct moments *m, uint32_t thread, uint32_t at, uint64_t uj, uint64_t *told)
{
	if (uj <= *told || (m->n_shares >= MOMENT_SHARES_MAX && !m->ending))
		return 0;
	if (ARRAY_ROOM(m->shares, m->shares_cap, (size_t)m->n_shares + 1))
		return -ENOMEM;
	m->shares[m->n_shares++] = (struct moment_share){ thread, m->n - 1, at, uj - *told };
	m->late_uj += m->ending ? uj - *told : 0;
	*told = uj;
	return 0;
}

/* Energy of a domain so far: that of the rows, or of one process's stacks. */
static uint64_t domain_uj(const struct profile *s, unsigned domain)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->shares.n_rows && !s->pid; i++)
		sum += profile_wants_row(s, &s->shares.rows[i]) ? s->shares.rows[i].sum_uj[domain] : 0;
	for (uint32_t i = 0; i < s->stacks.n && s->pid; i++)
		sum += profile_wants_stack(s, i) ? row_shares_uj(&s->shares, i, domain) : 0;
	return sum;
}

static int take_sums(struct moments *m)
{
	const struct profile *s = m->of.s;
	const unsigned n_domains = s->shares.n_domains;
	const bool again = m->n && (m->n >= MOMENTS_MAX || m->end_ns[m->n - 1] == s->ended_ns);
	const uint32_t at = again ? m->n - 1 : m->n;

	if (ARRAY_ROOM(m->end_ns, m->cap, at + 1) || ARRAY_ROOM(m->sum_uj, m->sums_cap, ((size_t)at + 1) * n_domains))
		return -ENOMEM;
	m->n = at + 1;
	m->end_ns[at] = s->ended_ns;
	for (unsigned d = 0; d < n_domains; d++)
		m->sum_uj[(size_t)at * n_domains + d] = domain_uj(s, d);
	return 0;
}

int moments_take(struct moments *m)
{
	const struct profile *s = m->of.s;
	int rc = take_sums(m);

	if (rc || ARRAY_ZEROED(m->stack_uj, m->stacks_cap, s->stacks.n) ||
	    ARRAY_ZEROED(m->row_uj, m->rows_cap, s->shares.n_rows))
		return -ENOMEM;
	for (uint32_t i = 0; i < s->stacks.n && !rc; i++)
		if (profile_wants_stack(s, i))
			rc = tell(m, 1 + s->stacks.v[i].process, i, profile_stack_uj(&m->of, i), &m->stack_uj[i]);
	for (uint32_t i = 0; i < s->shares.n_rows && !s->pid && !rc; i++)
		if (profile_wants_row(s, &s->shares.rows[i]))
			rc = tell(m, 0, i, profile_none_uj(&m->of, &s->shares.rows[i]), &m->row_uj[i]);
	return rc;
}

static int order(const void *a, const void *b)
{
	const struct moment_share *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->moment != y->moment)
		return x->moment < y->moment ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

int moments_end(struct moments *m)
{
	uint32_t n = 0;
	int rc;

	m->ending = true;
	rc = moments_take(m);
	for (uint32_t i = 0; i < m->n_shares; i++)
		if (!m->shares[i].thread || profile_wants_stack(m->of.s, m->shares[i].at))
			m->shares[n++] = m->shares[i];
	m->n_shares = n;
	if (n)
		qsort(m->shares, n, sizeof(*m->shares), order);
	return rc;
}

void moments_free(struct moments *m)
{
	free(m->end_ns);
	free(m->sum_uj);
	free(m->shares);
	free(m->stack_uj);
	free(m->row_uj);
	*m = (struct moments){ 0 };
}
