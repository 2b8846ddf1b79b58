/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl --completion WORD... prints the words that can replace the last one, one per line; "@file" stands for the
 * name of a file. They come from the table of verbs, so deploy/bash-completion/joulectl needs no list of its own. */
#ifndef JD_CTL_COMPLETION_H
#define JD_CTL_COMPLETION_H

void completion_print(int n, char **words);

#endif
