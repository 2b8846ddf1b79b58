/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is asked for before it is needed. */
#ifndef JD_PREFETCH_H
#define JD_PREFETCH_H

/* Of a static function that does nothing but prefetch. It must be inlined: gcc takes such a function for one without an
 * effect, and leaves out the calls. */
#define PREFETCHING inline __attribute__((always_inline))

#endif
