/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl --completion WORD...: what may stand in the place of the last word, one a line; "@file" for a
 * file's name. Said from the table of verbs, so that deploy/bash-completion/joulectl knows each of them. */
#ifndef JD_CTL_COMPLETION_H
#define JD_CTL_COMPLETION_H

void completion_print(int n, char **words);

#endif
