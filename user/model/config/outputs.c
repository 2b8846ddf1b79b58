/* SPDX-License-Identifier: Apache-2.0 */
/* One output: "FORMAT=URL?key=value&..." of the command line, and the rules between its keys. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "keys.h"

static const struct {
	const char *start;
	bool rest;
	enum output_place place;
} schemes[] = {
	{ "stdout:", false, PLACE_STDOUT },
	{ "null:", false, PLACE_NULL },
	{ "file:///", true, PLACE_FILE },
	{ "tcp://", true, PLACE_TCP },
	{ "tcp-listen://", true, PLACE_TCP_LISTEN },
	{ "unix:///", true, PLACE_UNIX },
	{ "unix-listen:///", true, PLACE_UNIX_LISTEN },
	{ "vsock-listen://", true, PLACE_VSOCK_LISTEN },
	{ "http-listen://", true, PLACE_HTTP_LISTEN },
	{ "http://", true, PLACE_COLLECTOR },
	{ "https://", true, PLACE_COLLECTOR },
	{ "kafka://", true, PLACE_KAFKA },
};

enum output_place output_place(const char *url)
{
	for (unsigned i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		size_t len = strlen(schemes[i].start);

		if (strncmp(url, schemes[i].start, len) == 0)
			return (url[len] != '\0') == schemes[i].rest ? schemes[i].place : 0;
	}
	return 0;
}

const struct output_format *output_format_find(const char *name)
{
	for (const struct output_format *f = output_formats; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

const char *output_format_name(unsigned i)
{
	return output_formats[i].name;
}

static unsigned row_of(const struct key *k)
{
	return (unsigned)(k - config_output_keys);
}

static unsigned row(const char *name)
{
	return row_of(key_find(config_output_keys, name, false));
}

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
		if ((at == list || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
	return false;
}

/* Adds a name to a list with a blank between two. */
static void add_name(char *ret, size_t size, const char *name)
{
	size_t at = strlen(ret);

	snprintf(ret + at, size - at, "%s%s", at ? " " : "", name);
}

bool output_option_formats(const struct key *k, char *ret, size_t size)
{
	*ret = '\0';
	for (const struct output_format *f = output_formats; f->name; f++)
		if (f->options && has_word(f->options, k->name))
			add_name(ret, size, f->name);
	return *ret;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %XX (RFC 3986) in place; false when one is broken or would hide a NUL. */
static bool decode_percent(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s != '%') {
			*to++ = *s;
			continue;
		}
		if (hex(s[1]) < 0 || hex(s[2]) < 0 || !(hex(s[1]) | hex(s[2])))
			return false;
		*to++ = (char)(hex(s[1]) << 4 | hex(s[2]));
		s += 2;
	}
	*to = '\0';
	return true;
}

/* Settings of librdkafka in a URL: config.NAME=VALUE is an entry of config. */
#define KAFKA_PREFIX "config."

static int set_option(struct output_config *out, char *option, unsigned *lines, const struct origin *o, struct err *err)
{
	char *value = strchr(option, '='), shown[64];
	const struct key *k;
	const char *near;

	if (strncmp(option, KAFKA_PREFIX, strlen(KAFKA_PREFIX)) == 0 && value && decode_percent(value)) {
		k = key_find(config_output_keys, "config", false);
		lines[row_of(k)] = o->line ? o->line : 1;
		return key_list_add(k, out, option + strlen(KAFKA_PREFIX), o, err);
	}

	if (value)
		*value++ = '\0';
	k = key_find(config_output_keys, option, false);
	text_escape(shown, sizeof(shown), option);
	if (!k || row_of(k) == row("format") || row_of(k) == row("to")) {
		near = key_nearest(config_output_keys, option, false);
		return key_error(o, "", err, "unknown option \"%s\"; %s%s%s", shown, near ? "did you mean " : "see ",
				 near ? near : "jouled --help", near ? "?" : "");
	}
	lines[row_of(k)] = o->line ? o->line : 1;
	if (!value && k->type == KEY_BOOL)
		return key_set(k, out, "true", o, err);
	if (!value || !decode_percent(value))
		return key_error(o, "", err, "option %s: no value, or a broken %%XX in it; write %s=VALUE", shown,
				 shown);
	/* one entry each time: patterns and events may hold commas */
	return k->type == KEY_LIST ? key_list_add(k, out, value, o, err) : key_set(k, out, value, o, err);
}

/* True when documents are pushed to a server, whose own parameters stand in the URL too. */
static bool is_pushed(const struct output_config *out)
{
	const struct output_format *f = output_format_find(out->format);

	return f && f->push && output_place(out->to) == PLACE_COLLECTOR;
}

/* True when the option is one of this format, or of all. */
static bool is_own(const struct output_config *out, const char *option)
{
	char name[64], formats[200];
	const struct key *k;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(option, "="), option);
	k = key_find(config_output_keys, name, false);
	return k && row_of(k) != row("format") && row_of(k) != row("to") &&
	       (!output_option_formats(k, formats, sizeof(formats)) || has_word(formats, out->format));
}

/* Puts a parameter of the server's back behind the URL. room: bytes of out->to. */
static void give_back(struct output_config *out, size_t room, const char *parameter)
{
	size_t at = strlen(out->to);

	snprintf(out->to + at, room - at, "%s%s", strchr(out->to, '?') ? "&" : "?", parameter);
}

/* Cuts the query off `to` and applies it. What is the server's own stays, in its order. */
static int set_query(struct output_config *out, unsigned *lines, const struct origin *o, struct err *err)
{
	char *query = strchr(out->to, '?'), *copy, *next;
	const size_t room = strlen(out->to) + 1;
	bool pushed = is_pushed(out);
	int rc = 0;

	if (!query)
		return 0;
	copy = strdup(query + 1);
	if (!copy)
		return err_set(err, -ENOMEM, "configuration: out of memory; free some");
	*query = '\0';
	for (char *option = strtok_r(copy, "&", &next); option && !rc; option = strtok_r(NULL, "&", &next)) {
		if (pushed && !is_own(out, option)) {
			give_back(out, room, option);
			continue;
		}
		rc = set_option(out, option, lines, o, err);
		if (!rc && pushed)
			out->own_options |= UINT64_C(1) << row_of(key_find(config_output_keys, option, false));
	}
	free(copy);
	return rc;
}

/* A URL that ends with its host gets the path of the format. */
static int add_path(struct output_config *out)
{
	const struct output_format *f = output_format_find(out->format);
	char *host, *to;
	size_t n;

	if (!is_pushed(out) || !f->path)
		return 0;
	host = strstr(out->to, "://") + 3;
	n = strcspn(host, "/?#");
	if (host[n] == '#' || (host[n] == '/' && host[n + 1] && host[n + 1] != '?'))
		return 0;
	if (asprintf(&to, "%.*s%s%s", (int)(host - out->to + (ptrdiff_t)n), out->to, f->path,
		     host + n + (host[n] == '/')) < 0)
		return -ENOMEM;
	free(out->to);
	out->to = to;
	return 0;
}

/* True for a URL of a server that has a user, a password or a token in it: all who see the command line, the log or the
 * status would see them. */
static bool has_credentials(const char *url)
{
	static const char *const names[] = { "p", "u", "password", "username", "token", "access_token", "api_key" };
	const char *at = strstr(url, "://"), *query = strchr(url, '?');

	if (!at || (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0))
		return false;
	if (memchr(at + 3, '@', strcspn(at + 3, "/?#")))
		return true;
	for (const char *p = query; p; p = strchr(p + 1, '&'))
		for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			size_t n = strlen(names[i]);

			if (strncasecmp(p + 1, names[i], n) == 0 && p[1 + n] == '=')
				return true;
		}
	return false;
}

/* True when a message must not repeat the URL: settings of librdkafka may be refused because they are secrets. */
static bool may_hide(const char *url)
{
	return has_credentials(url) || (output_place(url) == PLACE_KAFKA && strstr(url, KAFKA_PREFIX));
}

/* Checks what says who jouled is to a server, and who the server is. */
static int check_login(const struct output_config *out, const unsigned *lines, struct origin o, struct err *err)
{
	static const char *const only[] = { "ca-file",       "cert-file", "key-file",   "token-file", "user",
					    "password-file", "timeout",   "spool-size", "spool-age" };
	const struct push_config *p = &out->push;

	for (unsigned i = 0; i < sizeof(only) / sizeof(only[0]); i++) {
		const bool spooled = strncmp(only[i], "spool-", 6) == 0;

		if (!lines[row(only[i])] || output_place(out->to) == PLACE_COLLECTOR ||
		    (spooled && output_place(out->to) == PLACE_KAFKA))
			continue;
		o.line = lines[row(only[i])];
		return key_error(&o, only[i], err, "%s is no server over HTTP; it belongs to http:// and https://",
				 out->to);
	}
	if (lines[row("config")] && output_place(out->to) != PLACE_KAFKA) {
		o.line = lines[row("config")];
		return key_error(&o, "config", err, "%s is no topic of Kafka; it belongs to kafka://", out->to);
	}
	o.line = lines[row("key-file")];
	if (p->key_file && !p->cert_file)
		return key_error(&o, "key-file", err, "a key without its certificate; add cert-file");
	o.line = lines[row("token-file")];
	if (p->token_file && p->user)
		return key_error(&o, "token-file", err,
				 "a token and a user; a server takes one of them, leave one out");
	o.line = lines[row(p->user ? "user" : "password-file")];
	if (!p->user != !p->password_file)
		return key_error(&o, p->user ? "user" : "password-file", err,
				 "without the other; give user and password-file");
	return 0;
}

static int check_options(const struct output_config *out, const unsigned *lines, struct origin o, struct err *err)
{
	char formats[200];

	for (const struct key *k = config_output_keys; k->name; k++) {
		if (!lines[row_of(k)] || !output_option_formats(k, formats, sizeof(formats)) ||
		    has_word(formats, out->format))
			continue;
		o.line = lines[row_of(k)];
		return key_error(&o, k->name, err, "not an option of format %s; it belongs to %s", out->format,
				 formats);
	}
	return 0;
}

/* Checks that the format goes to that kind of place. */
static int check_taker(const struct output_config *out, const unsigned *lines, struct origin o, struct err *err)
{
	static const struct {
		enum output_place place;
		const char *is, *elsewhere;
	} special[] = {
		{ PLACE_HTTP_LISTEN, "http-listen is a page of", "to tcp-listen" },
		{ PLACE_COLLECTOR, "a server over HTTP takes", "to files and sockets" },
		{ PLACE_KAFKA, "Kafka is for", "elsewhere" },
		{ PLACE_VSOCK_LISTEN, "vsock-listen is for shares of virtual machines,", "elsewhere" },
		{ 0, "that place is for", "elsewhere" },
	};
	enum output_place place = output_place(out->to);
	char names[200] = "";
	unsigned i = 0;

	if (!place || output_format_find(out->format)->places & place)
		return 0;
	for (const struct output_format *f = output_formats; f->name; f++)
		if (f->places & place)
			add_name(names, sizeof(names), f->name);
	while (special[i].place && special[i].place != place)
		i++;
	o.line = lines[row("to")];
	return key_error(&o, "to", err, "%s format %s; %s goes %s", special[i].is, names, out->format,
			 special[i].elsewhere);
}

/* A profile is one of a minute. */
static int check_interval(const struct output_config *out, const unsigned *lines, struct origin o, struct err *err)
{
	const struct output_format *f = output_format_find(out->format);

	if (!lines[row("interval")] || !f->profiles)
		return 0;
	o.line = lines[row("interval")];
	return key_error(&o, "interval", err, "format %s sends one profile a minute; leave it out", f->name);
}

/* A page shows the agent's own totals, as /metrics of the query socket does. It is made for each request. */
static int check_page(const struct output_config *out, const unsigned *lines, struct origin o, struct err *err)
{
	static const struct {
		const char *key, *remedy;
	} refused[] = {
		{ "keep", "write metrics: { keep: 5m } in the configuration" },
		{ "top", "write metrics: { top: 50 } in the configuration" },
		{ "by", "write metrics: { by: namespace } in the configuration" },
		{ "max-series", "write metrics: { max-series: 5000 } in the configuration" },
		{ "cgroups", "write cgroups: { include: [...] } in the configuration" },
		{ "interval", "it is made when somebody asks; leave it out" },
		{ "queue", "nothing waits for a reader; leave it out" },
	};

	if (output_place(out->to) != PLACE_HTTP_LISTEN)
		return 0;
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (!lines[row(refused[i].key)])
			continue;
		o.line = lines[row(refused[i].key)];
		return key_error(&o, refused[i].key, err,
				 "http-listen shows the agent's own totals, as the query socket does; %s",
				 refused[i].remedy);
	}
	return 0;
}

/* Checks the keys for shares of virtual machines. */
static int check_guest(const struct output_config *out, const unsigned *lines, struct origin o, struct err *err)
{
	bool vsock = output_place(out->to) == PLACE_VSOCK_LISTEN, any = vsock && strncmp(out->to + 15, "any:", 4) == 0;
	bool number = vsock && out->to[15 + strspn(out->to + 15, "0123456789")] == ':' && out->to[15] != ':';

	o.line = lines[row("to")];
	if (vsock && !any && !number)
		return key_error(
			&o, "to", err,
			"vsock-listen serves any guest or the one with a CID; expected vsock-listen://any:PORT or "
			"vsock-listen://CID:PORT");
	/* the greatest number means any (vsock(7)); ten digits are at most 9999999999 */
	if (number && (strspn(out->to + 15, "0123456789") > 10 || strtoull(out->to + 15, NULL, 10) >= UINT32_MAX))
		return key_error(&o, "to", err, "a CID is at most 4294967294");
	if ((any || out->guest) && lines[row("cgroups")]) {
		o.line = lines[row("cgroups")];
		return key_error(&o, "cgroups", err, "a machine is told one sum over its own cgroup; leave it out");
	}
	o.line = lines[row(out->guest ? "guest" : "to")];
	if (any && out->guest)
		return key_error(
			&o, "guest", err,
			"every guest of vsock-listen://any is told of its own cgroup; name the CID in place of any");
	if (number && !out->guest)
		return key_error(
			&o, "guest", err,
			"missing; it names the cgroup of the guest with that CID, or write any in place of the CID");
	if (out->guest && !vsock && output_place(out->to) != PLACE_UNIX_LISTEN)
		return key_error(&o, "guest", err, "%s is no place for it; it belongs to unix-listen and vsock-listen",
				 out->to);
	return 0;
}

static int check_place(const struct output_config *out, const unsigned *lines, struct origin o, struct err *err)
{
	const struct output_format *f = output_format_find(out->format);
	enum output_place place = output_place(out->to);
	char shown[128];

	if (!place) {
		o.line = lines[row("to")];
		text_escape(shown, sizeof(shown), out->to);
		return key_error(
			&o, "to", err,
			"\"%s\" is no place for an output; expected stdout:, null:, file:///PATH, "
			"tcp://HOST:PORT, tcp-listen://ADDRESS:PORT, unix:///PATH, unix-listen:///PATH, vsock-listen://any:PORT, "
			"http-listen://ADDRESS:PORT, http://HOST:PORT or kafka://BROKER/TOPIC",
			shown);
	}
	if (out->zico.profile && strcmp(out->zico.profile, "auto") == 0 && place != PLACE_COLLECTOR) {
		o.line = lines[row("profile")];
		return key_error(&o, "profile", err, "auto asks a collector, and %s is none; name the profile",
				 out->to);
	}
	if (out->port_file && !(place & (PLACE_TCP_LISTEN | PLACE_HTTP_LISTEN))) {
		o.line = lines[row("port-file")];
		return key_error(&o, "port-file", err,
				 "%s has no port to write; it belongs to tcp-listen and http-listen", out->to);
	}
	if (lines[row("max-clients")] && !(place & PLACES_LISTEN)) {
		o.line = lines[row("max-clients")];
		return key_error(&o, "max-clients", err,
				 "%s has no clients; it belongs to tcp-listen, unix-listen and http-listen", out->to);
	}
	if (lines[row("wait")] && !(place & PLACES_SOCKET)) {
		o.line = lines[row("wait")];
		return key_error(&o, "wait", err, "%s has no reader to wait for; it belongs to sockets", out->to);
	}
	if (f->csv_groups && strcmp(out->file_format, "csv") == 0 && !(place & (PLACE_FILE | PLACE_NULL))) {
		o.line = lines[row("file-format")];
		return key_error(&o, "file-format", err,
				 "%s as CSV is one file per group; give a directory as file:///DIRECTORY", f->name);
	}
	return 0;
}

int output_finish(void *elem, unsigned *lines, const struct origin *o, struct err *err)
{
	struct output_config *out = elem;
	struct origin at = *o;
	int rc;

	if (!out->format || !out->to)
		return key_error(o, out->format ? "to" : "format", err, "missing; every output has a format and a to");
	at.line = lines[row("to")];
	if (has_credentials(out->to))
		return key_error(
			&at, "to", err,
			"the URL holds a user, a password or a token, which others would see; give token-file, or "
			"user and password-file");
	rc = set_query(out, lines, &at, err);
	if (!rc && add_path(out))
		rc = err_set(err, -ENOMEM, "configuration: out of memory; free some");
	out->waits = lines[row("wait")];
	if (!rc)
		rc = check_options(out, lines, at, err);
	if (!rc)
		rc = check_taker(out, lines, at, err);
	if (!rc)
		rc = check_interval(out, lines, at, err);
	if (!rc)
		rc = check_page(out, lines, at, err);
	if (!rc)
		rc = check_place(out, lines, at, err);
	if (!rc)
		rc = check_login(out, lines, at, err);
	return rc ? rc : check_guest(out, lines, at, err);
}

void config_print_pushed(const struct config *c)
{
	for (unsigned i = 0; i < c->outputs.n; i++) {
		const struct output_config *out = &c->outputs.v[i];
		char names[400] = "";

		if (!is_pushed(out))
			continue;
		for (const struct key *k = config_output_keys; k->name; k++)
			if (out->own_options >> row_of(k) & 1)
				add_name(names, sizeof(names), k->name);
		printf("output %s: the server gets %s; jouled takes of its URL: %s\n", out->format, out->to,
		       *names ? names : "nothing");
	}
}

int output_from_flag(struct config *c, const char *text, struct err *err)
{
	const struct key *outputs = key_find(config_keys, "outputs", true);
	unsigned lines[CONFIG_MAX_KEYS] = { 0 };
	size_t len = strcspn(text, "=:?");
	char format[32], shown[128], flag[160];
	struct origin o = { .flag = flag, .path = "" };
	struct output_config *out;
	int rc;

	snprintf(flag, sizeof(flag), "-o %s", text_escape(shown, sizeof(shown), text));
	if (text[len] == '=' && may_hide(text + len + 1))
		snprintf(flag, sizeof(flag), "-o %.*s=...", len < sizeof(format) ? (int)len : 0, text);
	if (strncmp(text, "null:", 5) == 0) {
		len = 4;
	} else if (text[len] != '=' || len >= sizeof(format)) {
		return key_error(&o, "", err,
				 "no format and place; expected FORMAT=URL, such as hwpc=tcp://127.0.0.1:9080");
	}
	if (c->outputs.n >= outputs->max)
		return key_error(&o, "", err, "more than %llu outputs; leave some out",
				 (unsigned long long)outputs->max);
	out = key_maps_add(outputs, c);
	if (!out)
		return err_set(err, -ENOMEM, "configuration: out of memory; free some");
	snprintf(format, sizeof(format), "%.*s", (int)len, text);
	rc = key_set(key_find(config_output_keys, "format", false), out, format, &o, err);
	if (!rc)
		rc = key_set(key_find(config_output_keys, "to", false), out, text[len] == '=' ? text + len + 1 : text,
			     &o, err);
	return rc ? rc : output_finish(out, lines, &o, err);
}
