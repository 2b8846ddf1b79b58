/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent's formula has learned, in the lines of joulectl status and joulectl doctor. */
#include <stdio.h>
#include "ctl/core/ask.h"
#include "learned.h"

/* "CYCLES, clock (error x 0.31)": the columns of a domain in use. A trial of each tells the held-out error with it over that
 * without. */
static void print_terms(const json_t *terms)
{
	const json_t *e, *ratio;
	const char *between = "";
	size_t i;

	json_array_foreach(terms, i, e) {
		if (!ask_is(e, "in_use"))
			continue;
		printf("%s%s", between, ask_text(e, "name"));
		ratio = json_object_get(e, "error_ratio");
		if (json_is_number(ratio))
			printf(" (error x %.2f)", json_number_value(ratio));
		between = ", ";
	}
	printf("%s", *between ? "" : "the one column of share");
}

/* What formula model has learned of each domain, whether it splits or, under auto, share does. */
static void print_domains(const json_t *list)
{
	const json_t *e;
	size_t i;

	json_array_foreach(list, i, e) {
		printf("%-11s %s, split by %s: ", i ? "" : "Learned", ask_text(e, "domain"), ask_text(e, "split_by"));
		if (!ask_number(e, "held_out_points")) {
			printf("nothing learned yet\n");
			continue;
		}
		printf("terms: ");
		print_terms(json_object_get(e, "terms"));
		printf("; held-out error %.1f %% (share %.1f %%)\n",
		       100 * json_number_value(json_object_get(e, "held_out_error")),
		       100 * json_number_value(json_object_get(e, "held_out_error_share")));
	}
}

bool learned_print(const json_t *status)
{
	const json_t *list = json_object_get(status, "learned");
	bool reason = json_object_get(status, "formula_reason");

	if (reason)
		printf("Formula     auto: %s: %s\n", ask_text(status, "formula"), ask_text(status, "formula_reason"));
	print_domains(list);
	return reason || json_array_size(list);
}
