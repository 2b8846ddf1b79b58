/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the fields of pprof's messages (github.com/google/pprof, proto/profile.proto), for writers and readers. */
#ifndef JD_PPROF_FIELDS_H
#define JD_PPROF_FIELDS_H

/* Fields of Profile. */
enum {
	SAMPLE_TYPE = 1,
	SAMPLE,
	MAPPING,
	LOCATION,
	FUNCTION,
	STRING_TABLE,
	TIME_NANOS = 9,
	DURATION_NANOS,
	PERIOD_TYPE,
	PERIOD,
	COMMENT,
	DEFAULT_SAMPLE_TYPE,
	FIELDS
};

#endif
