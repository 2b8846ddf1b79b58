/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"
#include <signal.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "ctl/core/janitor.h"

volatile sig_atomic_t audit_interrupted;

static void on_signal(int sig)
{
	audit_interrupted = 1;
}

static void take_signals(void)
{
	/* no SA_RESTART: a sleep ends */
	struct sigaction on = { .sa_handler = on_signal };

	sigaction(SIGINT, &on, NULL);
	sigaction(SIGTERM, &on, NULL);
	sigaction(SIGHUP, &on, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Domains whose energy is measured. An estimate is made of the CPU time that it would be compared with, and what CPUs do
 * is not seen in the energy of a GPU or in a slow meter. */
static int choose_domains(struct audit_session *s, struct err *err)
{
	const struct run_facts *f = &s->with.facts;
	bool any = false, estimated = false;

	for (unsigned d = 0; d < f->n_domains; d++) {
		enum domain_kind k = f->domain[d].kind;

		estimated |= f->domain[d].reason[0] != '\0';
		s->audited[d] = !f->domain[d].reason[0] &&
				(k == DOMAIN_PACKAGE || k == DOMAIN_CORE || k == DOMAIN_DRAM);
		any |= s->audited[d];
	}
	if (!f->split)
		return err_set(err, -ENODATA,
			       "audit: the agent has formula none, which charges nobody; start it with share or model");
	if (any)
		return 0;
	return err_set(
		err, -ENODATA, "audit: %s; see joulectl doctor",
		estimated ? "energy is estimated here from the CPU time that it would be compared with; it needs RAPL" :
			    "no energy is measured here; it needs RAPL");
}

int audit_session_open(struct audit_session *s, const struct audit_plan *p, struct err *err)
{
	char mount[RUN_PATH_MAX];
	int rc;

	*s = (struct audit_session){ .plan = p, .random = { p->seed } };
	rc = run_agent_find(&s->with, &p->wish, mount, err);
	if (!rc)
		rc = run_place_find(mount, &s->place, err);
	if (!rc)
		rc = choose_domains(s, err);
	snprintf(s->place.prefix, sizeof(s->place.prefix), "jouled-audit-%d-", (int)getpid());
	if (!rc && !p->n_cgroups)
		rc = janitor_start(run_place_sweep, &s->place, -1, &s->janitor, err);
	take_signals();
	s->begin_ns = clock_mono_ns();
	return rc;
}

void audit_session_close(struct audit_session *s)
{
	run_agent_close(&s->with);
	janitor_dismiss(s->janitor);
}

bool audit_goes_on(const struct audit_session *s, uint64_t needed_ns)
{
	return !audit_interrupted && clock_mono_ns() + needed_ns <= s->begin_ns + s->plan->duration_ns;
}

void audit_sleep(uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };

	if (!audit_interrupted)
		nanosleep(&t, NULL);
}

void audit_progress(const struct audit_session *s, const char *what, unsigned done)
{
	uint64_t now = (clock_mono_ns() - s->begin_ns) / NS_PER_S, all = s->plan->duration_ns / NS_PER_S;

	if (!s->plan->quiet)
		dprintf(STDERR_FILENO, "\r%llu:%02llu of %llu:%02llu, %u %s   ", (unsigned long long)now / 60,
			(unsigned long long)now % 60, (unsigned long long)all / 60, (unsigned long long)all % 60, done,
			what);
}

void audit_progress_end(const struct audit_session *s)
{
	if (!s->plan->quiet)
		dprintf(STDERR_FILENO, "\r%60s\r", "");
}

int audit_read(struct audit_session *s, const struct buf *body, const char *const *paths, unsigned n,
	       struct run_rows *rows, struct audit_reading *ret, struct err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < n && !rc; i++) {
		struct run_reading r = {
			.facts = &s->with.facts, .machine = &ret->machine, .rows = &rows[i], .below = paths[i]
		};

		rc = run_reading_parse((const char *)body->data, body->len, &r, err);
		if (!rc)
			run_result_fill(&ret->of[i], &s->with.facts, &rows[i], &ret->machine, &ret->machine);
	}
	return rc;
}
