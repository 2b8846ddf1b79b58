/* SPDX-License-Identifier: Apache-2.0 */
/* Wire formats, read back: one record at a time from an input to an output, up to the first byte that
 * is not as the format says. All lengths, counts and names are bounded before memory is taken: 64 MiB
 * in all, whatever the input. */
#ifndef JD_CTL_DECODE_H
#define JD_CTL_DECODE_H
#include "input.h"
#include "out.h"

struct decoding {
	struct input *in;
	struct out *out;
	const char *format; /* "vjoule" "hwpc" "power" "zico" "snapshot"; NULL = by the first bytes */
	const char *dialect; /* of vjoule: "document", "v0.2"; NULL = by its header */
};

/* One record after the other to their end. 0, or a negative errno which input_failure() describes;
 * what came before the failure is written. */
int decode_all(struct decoding *d);
/* "vjoule, hwpc, ..." for messages; NULL for the nth behind the last. */
const char *decode_format_name(unsigned n);

/* Inside of decode*.c. next: 1 = a record, 0 = the end. close takes NULL. */
struct decoder {
	int (*open)(struct decoding *d, void **ret_state);
	int (*next)(void *state);
	void (*close)(void *state);
};
extern const struct decoder decoder_vjoule, decoder_json, decoder_csv, decoder_zico, decoder_snapshot;

/* YYYY-MM-DDThh:mm:ss, with a fraction and an offset or Z behind it, or not. */
bool decode_is_iso_time(const char *s);
/* Ends the record that was begun. 1, or a failure of the input when it is too large. */
int decode_record_end(struct decoding *d, uint64_t offset);

/* The output cannot be written: a failure of the input too, so that there is one place to look. */
int decode_write_failed(struct decoding *d, int code);

#endif
