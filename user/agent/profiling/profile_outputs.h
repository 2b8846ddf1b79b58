/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of the continuous profile on their way to the outputs that take them: files in a directory, or a server. */
#ifndef JD_PROFILE_OUTPUTS_H
#define JD_PROFILE_OUTPUTS_H
#include "profile/chunk_files.h"

struct plan;

/* A chunk, plain and packed, in whose time energy_uj was given to its rows. plan NULL: nobody takes it. changed: the plan
 * came into force meanwhile, and may leave out what the chunk has. */
void profile_outputs_send(const struct plan *plan, const struct buf *plain, const struct buf *packed,
			  const struct chunk_file *c, uint64_t energy_uj, bool changed);

#endif
