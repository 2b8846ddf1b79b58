// SPDX-License-Identifier: Apache-2.0
/* An output of traces without an agent around it: feed --state-dir DIR -o zico=URL. Each line of stdin is a trace as
 * JSON, {"uuid": hex, "spans": [{"id", "parent", ...}]}; "spooled UUID" is printed once it is on disk. Ends with
 * stdin. For tests that must know exactly which traces there were. FEED_DOMAINS: how many energy domains the machine
 * has; traces use the first two. */
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "agent/output/zico_output.h"
#include "base/log.h"
#include "base/loop.h"

#define DOMAINS 2

struct feed {
	struct zico_output *z;
	atomic_bool ended;
};

/* The wall clock of this program is so much before the kernel's: a wait by it lasts as after a step back. */
static int64_t ahead_s;

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	if (id == CLOCK_REALTIME)
		ts->tv_sec += ahead_s;
	return rc;
}

static uint64_t number(const json_t *j, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(j, key));
}

static const char *text(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

static enum span_end end_of(const char *name)
{
	for (enum span_end e = SPAN_EXITED; e < SPAN_UNKNOWN; e++)
		if (!strcmp(span_end_name(e), name))
			return e;
	return *name ? SPAN_UNKNOWN : SPAN_EXITED;
}

static void read_times(const json_t *j, struct span *s)
{
	s->start_ns = s->start_boot_ns = number(j, "start_ns");
	s->end_ns = number(j, "end_ns");
	s->start_real_ns = (int64_t)number(j, "real_ns");
	s->cpu_ns = number(j, "cpu_ns");
	s->wall_ns = number(j, "wall_ns");
	s->calls = number(j, "calls") ? number(j, "calls") : 1;
	s->n_domains = DOMAINS;
	for (unsigned d = 0; d < DOMAINS; d++)
		s->energy_uj[d] = (uint64_t)json_integer_value(json_array_get(json_object_get(j, "energy_uj"), d));
}

static void read_span(const json_t *j, struct span *s)
{
	s->id = number(j, "id");
	s->parent = number(j, "parent");
	s->kind = json_is_true(json_object_get(j, "function")) ? SPAN_FUNCTION : SPAN_PROCESS;
	s->end = end_of(text(j, "end"));
	s->pid = s->tid = s->ns_pid = (uint32_t)number(j, "pid");
	s->uid = (uint32_t)number(j, "uid");
	s->exit_code = (int)number(j, "exit_code");
	s->signal = (int)number(j, "signal");
	s->comm = text(j, "comm");
	s->exe = text(j, "exe");
	s->cmdline = text(j, "cmdline");
	s->cgroup = text(j, "cgroup");
	s->symbol = text(j, "symbol");
	s->binary = text(j, "binary");
	read_times(j, s);
}

static bool read_uuid(const char *hex, uint8_t uuid[16])
{
	bool ok = strlen(hex) == 32;

	for (unsigned i = 0; ok && i < 16; i++) {
		char two[3] = { hex[2 * i], hex[2 * i + 1], '\0' }, *end;

		uuid[i] = (uint8_t)strtoul(two, &end, 16);
		ok = end == two + 2;
	}
	return ok;
}

static void submit(struct feed *f, const json_t *j)
{
	static const char *const names[DOMAINS] = { "package-0", "dram-0" }, *const interfaces[DOMAINS] = {
		"powercap", "powercap"
	};
	const json_t *list = json_object_get(j, "spans");
	struct trace t = { .sensor = "feed",
			   .boot_id = "feed",
			   .n_domains = DOMAINS,
			   .domains = names,
			   .interfaces = interfaces,
			   .last = true,
			   .pod = "",
			   .pod_namespace = "",
			   .container = "",
			   .unit = "" };
	int rc;

	t.n_spans = (uint32_t)json_array_size(list);
	t.spans = calloc(t.n_spans + 1, sizeof(*t.spans));
	if (!t.spans || !read_uuid(text(j, "uuid"), t.uuid))
		exit(3);
	for (uint32_t i = 0; i < t.n_spans; i++)
		read_span(json_array_get(list, i), &t.spans[i]);
	rc = zico_output_submit(f->z, &t);
	while (!rc && zico_output_waiting(f->z, false))
		usleep(200);
	printf("%s %s\n", rc ? strerror(-rc) : "spooled", text(j, "uuid"));
	fflush(stdout);
	free(t.spans);
}

static void *read_lines(void *arg)
{
	struct feed *f = arg;
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0) {
		json_t *j = json_loads(line, 0, NULL);

		if (!j)
			exit(3);
		submit(f, j);
		json_decref(j);
	}
	free(line);
	atomic_store(&f->ended, true);
	return NULL;
}

/* Packages with their dram, the first package before all others. */
static void fill_schema(struct schema *s)
{
	const char *wanted = getenv("FEED_DOMAINS");
	unsigned n = wanted ? (unsigned)strtoul(wanted, NULL, 10) : DOMAINS;

	s->n_domains = n < SCHEMA_MAX_DOMAINS ? n : SCHEMA_MAX_DOMAINS;
	s->n_packages = (s->n_domains + 1) / 2;
	for (unsigned d = 0; d < s->n_domains; d++) {
		s->domains[d].interface = ENERGY_POWERCAP;
		snprintf(s->domains[d].name, sizeof(s->domains[d].name), "%s-%u", d % 2 ? "dram" : "package", d / 2);
	}
}

int main(int argc, char **argv)
{
	static struct schema schema = { .sensor = "feed" };
	struct feed f = { 0 };
	enum config_action action;
	struct output_context context;
	struct config *c;
	struct err err = { 0 };
	struct loop *loop;
	pthread_t reader;

	fill_schema(&schema);
	ahead_s = getenv("FEED_AHEAD_S") ? atol(getenv("FEED_AHEAD_S")) : 0;
	log_init("feed", LOG_LVL_INFO);
	if (config_load(argc, argv, &c, &action, &err) != 0 || loop_start(&loop) != 0) {
		log_error("%s", err.text);
		return 2;
	}
	context = output_context_of(c, &schema, loop);
	if (zico_output_open(&c->outputs.v[0], &context, &f.z, &err) != 0) {
		log_error("%s", err.text);
		return 2;
	}
	if (pthread_create(&reader, NULL, read_lines, &f) != 0)
		return 2;
	while (!atomic_load(&f.ended)) {
		zico_output_say(f.z);
		usleep(20000);
	}
	pthread_join(reader, NULL);
	zico_output_say(f.z);
	zico_output_close(f.z, NULL);
	loop_stop(loop);
	config_free(c);
	return 0;
}
