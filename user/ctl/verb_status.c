/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl status: the state of the agent. */
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "ctl/core/ask.h"
#include "ctl/core/verb.h"
#include "learned.h"

enum { OPTION_JSON, OPTION_SOCKET };

static const struct verb_option options[] = {
	[OPTION_JSON] = { "json", 'j', NULL, "as the agent tells it" },
	[OPTION_SOCKET] = { "socket", 0, "PATH", "of the agent; JOULED_SOCKET, or /run/jouled/jouled.sock" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"What it measures and from where, with a reason for what it does not; where its outputs stand, what they dropped "
	"and what is worth knowing about them; where the history stands; which terms formula model has learned of each domain; "
	"what was lost; and what the agent itself costs, in its own process and in the kernel at each task switch.",
	NULL,
};

static void print_head(const json_t *doc)
{
	char up[32], every[32];

	printf("jouled %s on %s: up %s, an interval every %s\n", ask_text(doc, "version"), ask_text(doc, "sensor"),
	       ask_duration(up, ask_number(doc, "uptime_ns")), ask_duration(every, ask_number(doc, "interval_ns")));
	printf("%lld CPUs, cgroups: %lld alive, %lld ended\n", ask_number(doc, "cpus"), ask_number(doc, "cgroups"),
	       ask_number(doc, "cgroups_ended"));
}

static void print_sources(const json_t *list)
{
	const json_t *e;
	size_t i;

	printf("\nSources\n");
	json_array_foreach(list, i, e)
		printf("  %-10s %-18s %s\n", ask_text(e, "state"), ask_text(e, "name"), ask_text(e, "reason"));
}

static void print_notes(const json_t *list)
{
	const json_t *e;
	size_t i;

	json_array_foreach(list, i, e) {
		char safe[512];

		text_escape(safe, sizeof(safe), json_is_string(e) ? json_string_value(e) : "");
		printf("             %s\n", safe);
	}
}

/* "vjoule to tcp-listen://127.0.0.1:0: listening ...". The colon of stdout: and null: is not written twice. */
static void print_place(const json_t *e)
{
	const char *to = ask_text(e, "to");

	printf("  %-10s %s to %.*s: %s", ask_is(e, "up") ? "up" : "DOWN", ask_text(e, "format"), text_subject_len(to),
	       to, ask_text(e, "state"));
}

static void print_outputs(const json_t *list)
{
	const json_t *e;
	size_t i;

	if (!json_array_size(list))
		return;
	printf("\nOutputs\n");
	json_array_foreach(list, i, e) {
		print_place(e);
		printf("; %lld documents, %lld bytes, %lld queued", ask_number(e, "documents"), ask_number(e, "bytes"),
		       ask_number(e, "queued_documents"));
		if (ask_number(e, "spooled_documents"))
			printf(", %lld on disk", ask_number(e, "spooled_documents"));
		if (ask_number(e, "dropped_documents"))
			printf(", %lld DROPPED", ask_number(e, "dropped_documents"));
		if (ask_number(e, "dropped_energy_uj"))
			printf(", %.3f J in dropped documents", (double)ask_number(e, "dropped_energy_uj") / 1e6);
		if (ask_number(e, "dropped_series"))
			printf(", %lld series REFUSED", ask_number(e, "dropped_series"));
		putchar('\n');
		print_notes(json_object_get(e, "notes"));
	}
}

static void print_history(const json_t *h)
{
	printf("History     %s", ask_text(h, "state"));
	if (*ask_text(h, "reason"))
		printf(": %s", ask_text(h, "reason"));
	if (json_object_get(h, "path"))
		printf("; %s, %.1f MiB", ask_text(h, "path"), (double)ask_number(h, "bytes") / 1048576);
	if (ask_number(h, "lost_intervals"))
		printf(", %lld intervals LOST", ask_number(h, "lost_intervals"));
	printf("%s\n", ask_is(h, "killed_before") ? "; goes on after a kill, which may have cost one second" : "");
}

static void print_traces(const json_t *t)
{
	if (!t)
		return;
	printf("Traces      %lld handed over with %lld spans", ask_number(t, "handed_over"), ask_number(t, "spans"));
	if (ask_number(t, "parts"))
		printf(", %lld of them parts of trees that go on", ask_number(t, "parts"));
	printf("; %lld spans held, %lld open trees", ask_number(t, "held_spans"), ask_number(t, "open_trees"));
	if (ask_number(t, "lost_spans"))
		printf(", %lld spans LOST", ask_number(t, "lost_spans"));
	putchar('\n');
}

static void print_wall(const json_t *w)
{
	if (w)
		printf("Wall        %s: %s\n", ask_text(w, "state"), ask_text(w, "reason"));
}

/* When the last audit was, and what it says: docs/audit.md. */
static void print_audit(const json_t *a)
{
	const json_t *within = json_object_get(a, "within");
	char when[24], better[200] = "";

	if (!a) {
		printf("Audit       none yet; joulectl audit tells how right the split is here\n");
		return;
	}
	clock_iso_ms(ask_number(a, "time_ns"), when);
	if (json_string_length(json_object_get(a, "better")))
		snprintf(better, sizeof(better), "; better here: formula %s", ask_text(a, "better"));
	if (json_is_number(within))
		printf("Audit       %.19s: the split is right within %.1f %% (formula %s, by %s, at 95 %%)%s\n", when,
		       json_number_value(within) * 100, ask_text(a, "formula"), ask_text(a, "method"), better);
	else
		printf("Audit       %.19s: nothing could be told; audit longer\n", when);
}

static void print_self(const json_t *self)
{
	printf("Itself      %.3f s of CPU, %.1f MiB", (double)ask_number(self, "cpu_ns") / 1e9,
	       (double)ask_number(self, "resident_bytes") / 1048576);
	if (json_object_get(self, "energy_uj"))
		printf(", %.3f J (%s)", (double)ask_number(self, "energy_uj") / 1e6, ask_text(self, "energy_quality"));
	if (json_object_get(self, "kernel_ns_per_switch"))
		printf("; in the kernel %lld ns per switch", ask_number(self, "kernel_ns_per_switch"));
	printf(", %.1f MiB of maps; energy and the last CPU are read within %.3f ms",
	       (double)ask_number(self, "map_bytes") / 1048576, (double)ask_number(self, "reading_gap_ns") / 1e6);
	if (json_object_get(self, "reading_spread_ns"))
		printf(", all CPUs within %.3f ms", (double)ask_number(self, "reading_spread_ns") / 1e6);
	printf("\n");
}

static void print_rest(const json_t *doc)
{
	const json_t *losses = json_object_get(doc, "losses"), *socket = json_object_get(doc, "socket");
	const char *key;
	json_t *n;
	const char *between = "";

	printf("\nSocket      %lld of %lld clients, %lld requests, %lld refused\n", ask_number(socket, "clients"),
	       ask_number(socket, "clients_max"), ask_number(socket, "requests"),
	       ask_number(socket, "refused_clients"));
	print_traces(json_object_get(doc, "traces"));
	print_wall(json_object_get(doc, "wall"));
	print_history(json_object_get(doc, "history"));
	print_audit(json_object_get(doc, "audit"));
	learned_print(doc);
	print_self(json_object_get(doc, "self"));
	printf("Losses      ");
	json_object_foreach((json_t *)losses, key, n) {
		char safe[64];

		if (strcmp(key, "switches_mended") == 0)
			continue; /* not lost */
		snprintf(safe, sizeof(safe), "%s", key);
		for (char *c = safe; *c; c++)
			*c = *c == '_' ? ' ' : *c;
		if (json_integer_value(n)) {
			printf("%s%lld %s", between, (long long)json_integer_value(n), safe);
			between = ", ";
		}
	}
	printf("%s\n", *between ? "" : "none");
	if (ask_number(losses, "switches_mended"))
		printf("Mended      %lld switches that the kernel did not report: their CPU time is exact, what events counted in "
		       "them is with the later task\n",
		       ask_number(losses, "switches_mended"));
}

static int run(const struct verb_call *call)
{
	struct buf body = { 0 };
	struct err err = { 0 };
	json_t *doc = NULL;
	int rc = ask_agent(call->option[OPTION_SOCKET], "/v1/status", &body, &err);

	if (!rc && call->option[OPTION_JSON]) {
		ask_print(&body);
	} else if (!rc) {
		doc = ask_parse(&body, &err);
		rc = doc ? 0 : err.code;
	}
	if (doc) {
		print_head(doc);
		print_sources(json_object_get(doc, "sources"));
		print_outputs(json_object_get(doc, "outputs"));
		print_rest(doc);
	}
	if (rc)
		log_error("status: %s", err.text);
	json_decref(doc);
	buf_free(&body);
	return rc ? CTL_FAILED : CTL_OK;
}

const struct verb verb_status = {
	.name = "status",
	.synopsis = "",
	.help = "Shows the state of the agent: sources, outputs, losses, its own cost",
	.about = about,
	.options = options,
	.max_args = 0,
	.run = run,
};
