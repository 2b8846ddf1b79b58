/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys and the functions on its rows, for the files of this folder. */
#ifndef JD_CONFIG_KEYS_H
#define JD_CONFIG_KEYS_H
#include "config.h"
#include "formats.h"

#define CONFIG_MAX_KEYS 56 /* rows of one map; at most 64, as a bit stands for each option of an output */
#define CONFIG_MAX_FILE ((size_t)1 << 20)
#define CONFIG_DEFAULT_SOCKET "/run/jouled/jouled.sock"
#define CONFIG_NAME_MAX 96 /* dotted name of a key */

enum key_type {
	KEY_STRING, /* char * */
	KEY_WORD, /* char *, one of words */
	KEY_ENUM, /* an enum, index into words */
	KEY_COUNT, /* uint64_t */
	KEY_BYTES, /* uint64_t */
	KEY_DURATION, /* uint64_t ns */
	KEY_WATTS, /* double; without default NaN */
	KEY_PERCENT, /* double, 0.01 for 1% */
	KEY_BOOL, /* bool */
	KEY_LIST, /* struct str_list; min..max entries */
	KEY_MAP, /* sub: rows of the same struct, also of a section in it */
	KEY_MAPS, /* list of maps, each an element of its own */
};

struct key;
struct origin;

/* A list of maps: elements of elem_size behind a pointer at key.offset, their number elsewhere. */
struct key_maps {
	size_t elem_size, count_offset, line_offset;
	/* Completes one element and checks its keys against each other. lines[i] = line of sub[i], 0 = not given. */
	int (*finish)(void *elem, unsigned *lines, const struct origin *o, struct err *err);
};

struct key {
	const char *name;
	enum key_type type;
	size_t offset;
	const char *def; /* parsed like a value; NULL = empty, zero, NaN */
	const char *def_doc; /* the default in the words of the manual; NULL = def */
	const char *help; /* a sentence */
	const char *const *words;
	const char *(*word)(unsigned i); /* in place of words: the i-th; NULL after the last */
	uint64_t min, max;
	const char *(*refuse)(const char *value); /* returns NULL, or the words for an allowed value */
	const struct key *sub; /* ends with a NULL name */
	const char *off; /* KEY_MAP: the key of sub that the value `off` sets to none */
	const struct key_maps *maps;
	const char *flag; /* without the dashes */
	const char *arg; /* its argument in --help */
	char letter;
	bool hidden; /* NAME=VALUE, of which messages show NAME only */
	bool flag_only; /* not a key of the file */
};

/* The origin of a value. Messages about the value name it. */
struct origin {
	const char *file; /* NULL = the command line */
	unsigned line;
	const char *flag; /* "--interval", which names the key itself, or "-o hwpc=tcp://x:1" */
	bool quoted; /* the value is a text, even if it looks like a number */
	const char *path; /* names of the maps around it: "cgroups.", "" at the top */
};

extern const struct key config_keys[];
extern const struct key config_output_keys[];
extern const struct key config_spans_keys[];
extern const struct key config_gpu_keys[];
extern const struct key config_kubelet_keys[];
extern const struct key config_meter_keys[];
extern const struct key_maps config_meters_maps;

/* value.c */
int key_defaults(const struct key *keys, void *base);
void key_free(const struct key *keys, void *base);
int key_set(const struct key *k, void *base, const char *text, const struct origin *o, struct err *err);
int key_list_add(const struct key *k, void *base, const char *text, const struct origin *o, struct err *err);
void *key_maps_add(const struct key *k, void *base); /* a new element with defaults; NULL = no memory */
const struct key *key_find(const struct key *keys, const char *name, bool in_file);
const struct key *key_find_flag(const char *name, char letter);
const char *key_nearest(const struct key *keys, const char *name, bool flags); /* NULL = none is near */
void key_expected(const struct key *k, char *ret_text, size_t size);
int key_error(const struct origin *o, const char *name, struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* outputs.c */
const char *output_format_name(unsigned i); /* NULL after the last */
/* The names of the formats that know an option of outputs, a blank between them. False when all know it. */
bool output_option_formats(const struct key *k, char *ret, size_t size);
int output_finish(void *elem, unsigned *lines, const struct origin *o, struct err *err);
int output_from_flag(struct config *c, const char *text, struct err *err);

/* yaml.c: reads the file at path into c. */
int config_yaml(struct config *c, const char *path, struct err *err);

/* flags.c */
struct flag_value {
	const struct key *key;
	const char *value;
	const char *shown;
};
/* Splits argv into flags and values. Returns their number or -EINVAL. ret has room for one value a byte of argv. */
int flags_read(int argc, char **argv, struct flag_value *ret, bool *ret_doctor, struct err *err);
int flags_apply(struct config *c, const struct flag_value *values, int n, struct err *err);

#endif
