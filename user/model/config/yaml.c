/* SPDX-License-Identifier: Apache-2.0 */
/* Reads jouled.yaml into the configuration: libyaml's document tree is walked along the table of keys. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>
#include "base/text.h"
#include "keys.h"

struct walk {
	yaml_document_t *doc;
	const char *file;
	char path[CONFIG_NAME_MAX];
	struct err *err;
};

static struct origin origin_at(const struct walk *w, const yaml_node_t *node)
{
	return (struct origin){ .file = w->file, .line = (unsigned)node->start_mark.line + 1, .path = w->path };
}

static const char *found_kind(const yaml_node_t *node)
{
	return node->type == YAML_SEQUENCE_NODE ? "a list" :
	       node->type == YAML_MAPPING_NODE  ? "a map" :
	       node->data.scalar.length         ? "a single value" :
						  "nothing";
}

static int wrong_kind(const struct walk *w, const struct key *k, const yaml_node_t *node)
{
	struct origin o = origin_at(w, node);
	char wanted[300];

	key_expected(k, wanted, sizeof(wanted));
	return key_error(&o, k->name, w->err, "found %s; expected %s", found_kind(node), wanted);
}

/* The text of a scalar; NULL when it holds a NUL, which YAML can write as "\0". */
static const char *scalar(const yaml_node_t *node)
{
	const char *text = (const char *)node->data.scalar.value;

	return strlen(text) == node->data.scalar.length ? text : NULL;
}

static bool is_quoted(const yaml_node_t *node)
{
	return node->data.scalar.style == YAML_SINGLE_QUOTED_SCALAR_STYLE ||
	       node->data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
}

static int walk_scalar(struct walk *w, const struct key *k, void *base, const yaml_node_t *node)
{
	struct origin o = origin_at(w, node);
	const char *text = node->type == YAML_SCALAR_NODE ? scalar(node) : NULL;

	if (node->type != YAML_SCALAR_NODE)
		return wrong_kind(w, k, node);
	if (!text)
		return key_error(&o, k->name, w->err, "the value holds a NUL byte; remove it");
	if (!is_quoted(node) && (!*text || strcmp(text, "~") == 0))
		return wrong_kind(w, k, node);
	o.quoted = is_quoted(node);
	return key_set(k, base, text, &o, w->err);
}

static int walk_list(struct walk *w, const struct key *k, void *base, const yaml_node_t *node)
{
	struct str_list *list = (struct str_list *)((char *)base + k->offset);
	int rc = 0;

	if (node->type != YAML_SEQUENCE_NODE)
		return wrong_kind(w, k, node);
	while (list->n)
		free(list->v[--list->n]);
	for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top && !rc; i++) {
		const yaml_node_t *item = yaml_document_get_node(w->doc, *i);
		struct origin o = origin_at(w, item);
		const char *text = item->type == YAML_SCALAR_NODE ? scalar(item) : NULL;

		if (!text)
			rc = key_error(&o, k->name, w->err, "an entry is not a text; expected a list such as [a, b]");
		else
			rc = key_list_add(k, base, text, &o, w->err);
	}
	return rc;
}

static int walk_map(struct walk *w, const struct key *keys, void *base, const yaml_node_t *node, unsigned *lines);

/* Walks the rows of a map. Meanwhile the dotted name is longer by "name.". */
static int walk_sub(struct walk *w, const struct key *k, void *base, const yaml_node_t *node, unsigned *lines)
{
	size_t len = strlen(w->path), add = strlen(k->name);
	int rc;

	if (len + add + 2 > sizeof(w->path))
		return wrong_kind(w, k, node);
	memcpy(w->path + len, k->name, add);
	memcpy(w->path + len + add, ".", 2);
	rc = walk_map(w, k->sub, base, node, lines);
	w->path[len] = '\0';
	return rc;
}

static int walk_maps(struct walk *w, const struct key *k, void *base, const yaml_node_t *node)
{
	int rc = 0;

	if (node->type != YAML_SEQUENCE_NODE ||
	    (size_t)(node->data.sequence.items.top - node->data.sequence.items.start) > k->max)
		return wrong_kind(w, k, node);
	for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top && !rc; i++) {
		const yaml_node_t *item = yaml_document_get_node(w->doc, *i);
		unsigned lines[CONFIG_MAX_KEYS] = { 0 };
		struct origin o = origin_at(w, item);
		char path[2 * CONFIG_NAME_MAX], *elem;

		if (item->type != YAML_MAPPING_NODE)
			return wrong_kind(w, k, item);
		elem = key_maps_add(k, base);
		if (!elem)
			return err_set(w->err, -ENOMEM, "configuration: out of memory; free some");
		*(unsigned *)(elem + k->maps->line_offset) = o.line;
		rc = walk_sub(w, k, elem, item, lines);
		snprintf(path, sizeof(path), "%s%s.", w->path, k->name);
		o.path = path;
		if (!rc && k->maps->finish)
			rc = k->maps->finish(elem, lines, &o, w->err);
	}
	return rc;
}

/* Walks a map, or takes the word off in its place. */
static int walk_submap(struct walk *w, const struct key *k, void *base, const yaml_node_t *node)
{
	unsigned lines[CONFIG_MAX_KEYS] = { 0 };
	struct origin o = origin_at(w, node);

	if (node->type == YAML_MAPPING_NODE)
		return walk_sub(w, k, base, node, lines);
	if (k->off && node->type == YAML_SCALAR_NODE) {
		const char *word = (const char *)node->data.scalar.value;
		const struct key *whole = key_find(k->sub, k->off, true);

		if (strcmp(word, "off") == 0)
			return key_set(whole, base, "none", &o, w->err);
		if (whole->type == KEY_WORD && strcmp(word, whole->def) == 0)
			return 0; /* the default, such as gpu: auto */
	}
	return wrong_kind(w, k, node);
}

static int walk_value(struct walk *w, const struct key *k, void *base, const yaml_node_t *node)
{
	switch (k->type) {
	case KEY_MAP:
		return walk_submap(w, k, base, node);
	case KEY_MAPS:
		return walk_maps(w, k, base, node);
	case KEY_LIST:
		return walk_list(w, k, base, node);
	default:
		return walk_scalar(w, k, base, node);
	}
}

static int unknown_key(const struct walk *w, const struct key *keys, const yaml_node_t *node)
{
	const char *name = node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : "", *near;
	struct origin o = origin_at(w, node);
	char shown[64];

	near = key_nearest(keys, name, false);
	text_escape(shown, sizeof(shown), name);
	return key_error(&o, "", w->err, "unknown key \"%s%s\"; %s%s%s", w->path, shown,
			 near ? "did you mean " : "see jouled.yaml(5)", near ? near : "", near ? "?" : "");
}

static int walk_map(struct walk *w, const struct key *keys, void *base, const yaml_node_t *node, unsigned *lines)
{
	for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
		const yaml_node_t *name = yaml_document_get_node(w->doc, p->key);
		const yaml_node_t *value = yaml_document_get_node(w->doc, p->value);
		const char *text = name->type == YAML_SCALAR_NODE ? scalar(name) : NULL;
		const struct key *k = text ? key_find(keys, text, true) : NULL;
		struct origin o = origin_at(w, name);
		int rc;

		if (!k)
			return unknown_key(w, keys, name);
		if (lines[k - keys])
			return key_error(&o, k->name, w->err, "given twice, first on line %u; remove one",
					 lines[k - keys]);
		lines[k - keys] = o.line;
		rc = walk_value(w, k, base, value);
		if (rc)
			return rc;
	}
	return 0;
}

static int check_root(const struct config *c, const unsigned *lines, const char *file, struct err *err)
{
	const struct key *max = key_find(config_keys, "estimate-max-watts", true);
	const struct key *idle = key_find(config_keys, "estimate-idle-watts", true);
	unsigned line = lines[max - config_keys] ? lines[max - config_keys] : lines[idle - config_keys];
	struct origin o = { .file = file, .line = line, .path = "" };

	if (c->machine.energy.estimate_max_watts < c->machine.energy.estimate_idle_watts)
		return key_error(&o, max->name, err,
				 "%g W is below estimate-idle-watts, %g W; full load takes at least as much",
				 c->machine.energy.estimate_max_watts, c->machine.energy.estimate_idle_watts);
	return 0;
}

static int syntax_error(const yaml_parser_t *p, const char *file, struct err *err)
{
	unsigned long line = (p->problem_mark.line ? p->problem_mark.line : p->context_mark.line) + 1;

	if (p->error == YAML_MEMORY_ERROR)
		return err_set(err, -ENOMEM, "%s: out of memory; free some", file);
	return err_set(err, -EINVAL, "%s:%lu: not YAML: %s%s%s; correct the syntax", file, line,
		       p->context ? p->context : "", p->context ? ", " : "", p->problem ? p->problem : "broken");
}

static int walk_document(struct config *c, yaml_document_t *doc, const char *file, struct err *err)
{
	struct walk w = { .doc = doc, .file = file, .err = err };
	const yaml_node_t *root = yaml_document_get_root_node(doc);
	unsigned lines[CONFIG_MAX_KEYS] = { 0 };
	int rc;

	if (!root || (root->type == YAML_SCALAR_NODE && !root->data.scalar.length))
		return 0; /* nothing but comments */
	if (root->type != YAML_MAPPING_NODE)
		return err_set(err, -EINVAL, "%s:%u: found %s; expected keys, such as interval: 1s", file,
			       (unsigned)root->start_mark.line + 1, found_kind(root));
	rc = walk_map(&w, config_keys, c, root, lines);
	return rc ? rc : check_root(c, lines, file, err);
}

static int parse_text(struct config *c, const unsigned char *text, size_t len, const char *file, struct err *err)
{
	yaml_document_t doc, second;
	yaml_parser_t parser;
	int rc;

	if (!yaml_parser_initialize(&parser))
		return err_set(err, -ENOMEM, "%s: out of memory; free some", file);
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, text, len);
	if (!yaml_parser_load(&parser, &doc)) {
		rc = syntax_error(&parser, file, err);
		yaml_parser_delete(&parser);
		return rc;
	}
	rc = walk_document(c, &doc, file, err);
	if (!rc && !yaml_parser_load(&parser, &second)) {
		rc = syntax_error(&parser, file, err);
	} else if (!rc) {
		const yaml_node_t *more = yaml_document_get_root_node(&second);

		if (more)
			rc = err_set(err, -EINVAL, "%s:%u: a second document; keep one", file,
				     (unsigned)more->start_mark.line + 1);
		yaml_document_delete(&second);
	}
	yaml_document_delete(&doc);
	yaml_parser_delete(&parser);
	return rc;
}

static int check_utf8(const unsigned char *text, size_t len, const char *file, struct err *err)
{
	unsigned line = 1;

	for (size_t i = 0, n; i < len; i += n) {
		n = text_utf8_len(text + i, len - i);
		if (!n)
			return err_set(err, -EINVAL, "%s:%u: byte 0x%02x is not UTF-8; save the file as UTF-8", file,
				       line, text[i]);
		line += text[i] == '\n';
	}
	return 0;
}

/* Reads at most CONFIG_MAX_FILE bytes. The size of the file is not trusted. */
static int read_whole(const char *path, unsigned char *text, size_t *ret_len, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), rc;
	ssize_t n = fd < 0 ? -1 : 1;
	size_t len = 0;

	while (n > 0 && len <= CONFIG_MAX_FILE) {
		n = read(fd, text + len, CONFIG_MAX_FILE + 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	rc = n < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	if (rc)
		return err_set(err, rc, "%s: cannot be read: %s; give a readable file with --config", path,
			       strerror(-rc));
	if (len > CONFIG_MAX_FILE)
		return err_set(err, -EFBIG, "%s: larger than 1 MiB; a configuration is smaller", path);
	*ret_len = len;
	return 0;
}

int config_yaml(struct config *c, const char *path, struct err *err)
{
	unsigned char *text = malloc(CONFIG_MAX_FILE + 1);
	size_t len = 0;
	int rc;

	if (!text)
		return err_set(err, -ENOMEM, "%s: out of memory; free some", path);
	rc = read_whole(path, text, &len, err);
	if (!rc)
		rc = check_utf8(text, len, path, err);
	if (!rc)
		rc = parse_text(c, text, len, path, err);
	free(text);
	return rc;
}
