/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_data.h"
#include <string.h>

#define ROOM_MOST ((size_t)15 << 20)
#define STACKS_MOST 24576u /* of a minute */
#define FRAMES_MOST (768u << 10)
#define PLACES_MOST 32768u
#define NAME_BYTES_MOST ((size_t)5 << 20)
#define MAPS_MOST 131072u

void profile_bound(struct profile *p, struct room *room)
{
	room->most = ROOM_MOST;
	p->names.bytes_most = NAME_BYTES_MOST;
	p->names.room = p->code.room = p->stacks.room = p->shares.room = room;
	room_set(room, ROOM_NAMES, p->names.bytes);
	p->code.maps_most = MAPS_MOST;
	p->stacks.beside = row_shares_beside(p->shares.n_domains);
	p->stacks.most = STACKS_MOST;
	p->stacks.most_frames = FRAMES_MOST;
	p->stacks.most_places = PLACES_MOST;
	if (p->sampler)
		sampler_use_room(p->sampler, room);
}

void profile_free(struct profile *p)
{
	sampler_close(p->sampler);
	frame_names_free(&p->names);
	row_shares_free(&p->shares);
	stacks_free(&p->stacks);
	code_close(&p->code);
}

bool profile_wants_row(const struct profile *p, const struct share_row *row)
{
	const size_t len = p->cgroup ? strlen(p->cgroup) : 0;

	if (!p->cgroup)
		return true;
	if (row->kind != SHARE_CGROUP)
		return false;
	return len == 1 || (strncmp(row->name, p->cgroup, len) == 0 && (!row->name[len] || row->name[len] == '/'));
}

bool profile_wants_stack(const struct profile *p, uint32_t stack)
{
	const uint32_t row = stack < p->shares.stacks_cap ? p->shares.row_of[stack] : HASH_NONE;

	return row != HASH_NONE && profile_wants_row(p, &p->shares.rows[row]) &&
	       (!p->pid || p->code.processes[p->stacks.v[stack].process].pid == p->pid);
}

bool profile_counts(const struct profile_report *r, unsigned domain)
{
	return r->domain == PROFILE_ALL_DOMAINS ? r->s->domain[domain].summed : (unsigned)r->domain == domain;
}

uint64_t profile_stack_uj(const struct profile_report *r, uint32_t stack)
{
	uint64_t sum = 0;

	for (unsigned d = 0; d < r->s->shares.n_domains; d++)
		sum += profile_counts(r, d) ? row_shares_uj(&r->s->shares, stack, d) : 0;
	return sum;
}

uint64_t profile_none_uj(const struct profile_report *r, const struct share_row *row)
{
	uint64_t sum = 0;

	for (unsigned d = 0; d < r->s->shares.n_domains; d++)
		sum += profile_counts(r, d) ? row->none_uj[d] : 0;
	return sum;
}

const struct share_row *profile_row(const struct profile_report *r, uint32_t stack)
{
	return &r->s->shares.rows[r->s->shares.row_of[stack]];
}

/* Callers beyond the program's start are no callers: the stack ends there. Kernel threads have no such start. */
unsigned profile_reach(const struct profile_report *r, uint32_t stack, bool *ret_whole)
{
	const struct stack *s = &r->s->stacks.v[stack];
	const uint64_t *frames = r->s->stacks.frames + s->first;
	unsigned n = s->n;

	*ret_whole = s->kernel_thread;
	for (unsigned i = s->n; i-- > 0 && !*ret_whole;) {
		*ret_whole = frame_name(&r->s->names, frames[i])->start;
		n = *ret_whole ? i + 1 : n;
	}
	*ret_whole |= s->whole;
	return n;
}

/* A stack that does not show the program's start is marked, and no root is invented for it. */
unsigned profile_labels(const struct profile_report *r, uint32_t stack, const char *ret[PROFILE_LABELS_MAX],
			unsigned *ret_first)
{
	const struct stack *s = &r->s->stacks.v[stack];
	bool whole;
	unsigned n = profile_reach(r, stack, &whole), used = 0;

	ret[used++] = profile_row(r, stack)->name;
	ret[used++] = r->s->code.processes[s->process].comm;
	if (!whole)
		ret[used++] = PROFILE_TRUNCATED;
	*ret_first = used;
	while (n-- > 0) {
		const struct frame_name *f = frame_name(&r->s->names, r->s->stacks.frames[s->first + n]);

		ret[used++] = f->text;
		for (uint32_t i = f->n_inlined; i-- > 0;)
			ret[used++] = f->inlined[i].text;
	}
	return used;
}
