/* SPDX-License-Identifier: Apache-2.0 */
/* Build helper: fills a manual page. Copies standard input to standard output and puts the table of
 * keys (jouled.yaml(5)) where a line is @KEYS@, the flags (jouled(8)) where it is @FLAGS@, and a section
 * per verb (joulectl(1)) where it is @VERB name@. */
#include <stdio.h>
#include <string.h>
#include "ctl/verbs.h"
#include "model/config/config.h"

static int unknown; /* verbs that are not there */

static void put_line(const char *line)
{
	const char *at = strstr(line, "@VERSION@");
	char verb[32];

	if (strcmp(line, "@KEYS@\n") == 0)
		config_print_keys_man();
	else if (strcmp(line, "@FLAGS@\n") == 0)
		config_print_flags_man();
	else if (sscanf(line, "@VERB %31[a-z]@", verb) == 1)
		unknown += verb_print_man(verb) != 0;
	else if (at)
		printf("%.*s%s%s", (int)(at - line), line, JOULED_VERSION, at + strlen("@VERSION@"));
	else
		fputs(line, stdout);
}

int main(void)
{
	char line[1024];

	while (fgets(line, sizeof(line), stdin))
		put_line(line);
	return ferror(stdin) || fflush(stdout) || unknown ? 1 : 0;
}
