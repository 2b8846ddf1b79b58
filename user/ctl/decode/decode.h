/* SPDX-License-Identifier: Apache-2.0 */
/* Binary formats, read back: one record at a time from an input to an output, up to the first byte that is not as
 * the format says. Lengths, counts and names are bounded before memory is taken: 64 MiB in all, whatever the
 * input. */
#ifndef JD_CTL_DECODE_H
#define JD_CTL_DECODE_H
#include "input.h"
#include "ctl/core/out.h"

struct decoding {
	struct input *in;
	struct out *out;
	const char *format; /* "vjoule" "zico" "snapshot"; NULL = by the first bytes */
	const char *dialect; /* of vjoule: "document", "v0.2"; NULL = by its header */
};

/* Decodes every record up to the end of the input. Returns 0, or a negative errno that input_failure() describes; the
 * records before the failure are written. */
int decode_all(struct decoding *d);
/* Name of the nth format, for messages; NULL behind the last one. */
const char *decode_format_name(unsigned n);

/* For decode*.c alone. next returns 1 for a record, 0 at the end, or negative errno. close accepts NULL. */
struct decoder {
	int (*open)(struct decoding *d, void **ret_state);
	int (*next)(void *state);
	void (*close)(void *state);
};
extern const struct decoder decoder_vjoule, decoder_zico, decoder_snapshot;

/* Ends the record that was begun. Returns 1, or a failure of the input when the record's text is too large. */
int decode_record_end(struct decoding *d, uint64_t offset);

/* Stores in the input that the output cannot be written, so that callers find every failure in one place. Returns the
 * first failure. */
int decode_write_failed(struct decoding *d, int rc);

#endif
