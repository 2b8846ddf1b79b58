/* SPDX-License-Identifier: Apache-2.0 */
/* bench_fleet FORMAT URL NODES CGROUPS INTERVAL-S SECONDS: as many nodes as are asked for, each with its own encoder of jouled's,
 * names of its own, five cgroups of 100 a minute that end for new ones, and one node in 100 that starts again each minute.
 * The nodes are spread over the interval and send to one server. Prints figures as NAME VALUE. tests/fleet/bench.py runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "base/http/http_client.h"
#include "encode/encode.h"
#include "encode/push.h"
#include "model/config/formats.h"

#define COUNTERS 3
#define NAMESPACES 40

struct group {
	char path[160];
	struct names *names;
	uint64_t id;
	uint32_t generation;
};

struct node {
	struct schema schema;
	struct encoder *encoder;
	struct group *groups;
	uint64_t last_ns; /* CLOCK_MONOTONIC of the last document */
};

static const struct output_format *format;
static unsigned n_nodes, n_groups, interval_s;
static struct node *nodes;
static struct snapshot snap;
static uint64_t next_id = 1000;
static struct {
	uint64_t documents, refused, failed, samples, bytes, encode_ns, pack_ns, late_ns, late_last_ns, raw_bytes;
} figures;

static void die(const char *what)
{
	fprintf(stderr, "bench_fleet: %s\n", what);
	exit(1);
}

static uint64_t some(uint64_t below)
{
	return ((uint64_t)random() << 20 ^ (uint64_t)random()) % below;
}

/* Names as of Kubernetes: as many random digits as there are. */
static void make_group(struct group *g)
{
	char pod[64], uid[40], container[72], namespace[24];
	struct names_draft d = { { 0 } };

	g->id = next_id++;
	g->generation++;
	snprintf(namespace, sizeof(namespace), "team-%llu", (unsigned long long)some(NAMESPACES));
	snprintf(pod, sizeof(pod), "service-%llu-%08llx-%05llx", (unsigned long long)some(200),
		 (unsigned long long)some(1ull << 32), (unsigned long long)some(1 << 20));
	snprintf(uid, sizeof(uid), "%08llx_%04llx_4%03llx_8%03llx_%012llx", (unsigned long long)some(1ull << 32),
		 (unsigned long long)some(1 << 16), (unsigned long long)some(1 << 12),
		 (unsigned long long)some(1 << 12), (unsigned long long)some(1ull << 48));
	for (unsigned i = 0; i < 4; i++)
		snprintf(container + i * 16, sizeof(container) - i * 16, "%08llx%08llx",
			 (unsigned long long)some(1ull << 32), (unsigned long long)some(1ull << 32));
	snprintf(g->path, sizeof(g->path), "/kubepods.slice/kubepods-pod%s.slice/cri-%.24s.scope", uid, container);
	d.field[NAME_RUNTIME] = "kubernetes";
	d.field[NAME_NAMESPACE] = namespace;
	d.field[NAME_POD] = pod;
	d.field[NAME_CONTAINER] = "main";
	names_put(g->names);
	g->names = names_new(&d);
}

static void start_node(struct node *n)
{
	const struct encode_options o = { .sensor = n->schema.sensor, .keep_ns = 300 * NS_PER_S };
	struct err err = { 0 };

	if (n->encoder)
		format->encoder->destroy(n->encoder);
	if (format->encoder->create(&o, &n->schema, &n->encoder, &err))
		die(err.text);
	n->last_ns = 0;
}

static void make_node(struct node *n, unsigned i)
{
	static const char *const events[COUNTERS] = { "CYCLES", "INSTRUCTIONS", "LLC_MISSES" };
	static const enum domain_kind kinds[] = { DOMAIN_PACKAGE, DOMAIN_DRAM };

	snprintf(n->schema.sensor, sizeof(n->schema.sensor), "node-%04u", i);
	n->schema.n_packages = 1;
	n->schema.n_domains = 2;
	for (unsigned d = 0; d < 2; d++) {
		n->schema.domains[d] = (struct domain_desc){ .kind = kinds[d], .interface = ENERGY_POWERCAP };
		snprintf(n->schema.domains[d].name, sizeof(n->schema.domains[d].name), "%s-0",
			 domain_kind_name(kinds[d]));
	}
	for (unsigned e = 0; e < COUNTERS; e++)
		snprintf(n->schema.core.ev[e].name, SCHEMA_NAME_MAX, "%s", events[e]);
	n->schema.core.n = COUNTERS;
	n->groups = calloc(n_groups, sizeof(*n->groups));
	if (!n->groups)
		die("out of memory");
	for (unsigned g = 0; g < n_groups; g++)
		make_group(&n->groups[g]);
	start_node(n);
}

/* Fills the snapshot with an interval of this node. Every cgroup ran. */
static void measure(struct node *n)
{
	snap.schema = &n->schema;
	snap.end_ns = clock_mono_ns();
	snap.start_ns = n->last_ns ? n->last_ns : snap.end_ns - interval_s * NS_PER_S;
	snap.end_real_ns = clock_real_ns();
	snap.self_cpu_ns = snap.end_ns;
	snap.self_resident_bytes = 20 << 20;
	n->last_ns = snap.end_ns;
	for (unsigned d = 0; d < n->schema.n_domains; d++)
		snap.domains[d] = (struct snap_domain){ .start_ns = snap.start_ns, .end_ns = snap.end_ns, .scale = 1 };
	for (unsigned i = 0; i < snap.n_rows; i++) {
		struct snap_row *r = &snap.rows[i];
		const struct group *g = i < READING_SPECIAL_ROWS ? NULL : &n->groups[i - READING_SPECIAL_ROWS];

		*r = (struct snap_row){ .kind = g ? ROW_CGROUP : (enum row_kind)i, .key = i, .selected = true };
		r->path = g ? g->path : row_kind_name(r->kind);
		r->id = g ? g->id : 0;
		r->names = g ? g->names : NULL;
		r->generation = g ? g->generation : 0;
		r->time_ns = some(interval_s * NS_PER_S / 50);
		r->switches = some(5000);
		/* pods are asked for their health, and answer requests */
		r->traffic.rx_packets = g ? some(2000) : 0;
		r->traffic.tx_packets = r->traffic.rx_packets * 3 / 4;
		r->traffic.rx_bytes = r->traffic.rx_packets * (60 + some(600));
		r->traffic.tx_bytes = r->traffic.tx_packets * (60 + some(1200));
		for (unsigned e = 0; e < COUNTERS; e++)
			r->counters[e] = r->time_ns / (e * e * 7 + 1) * 3;
		for (unsigned d = 0; d < n->schema.n_domains; d++) {
			uint64_t uj = r->time_ns / (d ? 2000 : 300);

			*snapshot_energy(&snap, i, d) = uj;
			snap.domains[d].energy_uj += uj;
		}
	}
}

static void pack_document(const struct buf *document, struct buf *wrapped, struct buf *body)
{
	const struct push_format *f = format->push;
	const size_t head = f->head ? f->head(document->data, document->len) : 0;
	const struct push_part part = { document->data, document->data + head, head, document->len - head };
	static struct packer packer;
	const void *from = part.items;
	size_t n = part.n_items;

	buf_reset(wrapped);
	buf_reset(body);
	if (f->wrap) {
		if (f->wrap(&part, wrapped))
			die("a document cannot be wrapped");
		from = wrapped->data;
		n = wrapped->len;
	}
	if (pack(&packer, f->packing, from, n, body))
		die("out of memory");
}

static void count_samples(const struct buf *document)
{
	const struct push_format *f = format->push;
	size_t at = f->head ? f->head(document->data, document->len) : 0, n;

	for (; at < document->len && (n = f->item(document->data + at, document->len - at)); at += n)
		figures.samples++;
}

static void send_document(struct http_client *c, const char *url, struct node *n)
{
	static struct buf document, wrapped, body;
	static struct http_answer answer;
	const char *headers[4] = { packing_header(format->push->packing) };
	struct http_ask ask = { .url = url, .headers = headers, .post = true, .type = format->push->type };
	struct err err = { 0 };
	uint64_t t0 = clock_mono_ns(), t1;

	if (format->push->headers)
		headers[1] = format->push->headers[0];
	buf_reset(&document);
	if (format->encoder->encode(n->encoder, &snap, NULL, &document))
		die("a document cannot be made");
	t1 = clock_mono_ns();
	pack_document(&document, &wrapped, &body);
	figures.encode_ns += t1 - t0;
	figures.pack_ns += clock_mono_ns() - t1;
	count_samples(&document);
	ask.body = body.data;
	ask.len = body.len;
	figures.documents++;
	figures.raw_bytes += document.len;
	figures.bytes += body.len;
	if (http_client_ask(c, &ask, &answer, &err))
		figures.failed++;
	else if (answer.status / 100 != 2 && figures.refused++ == 0)
		fprintf(stderr, "bench_fleet: %ld %.200s\n", answer.status, answer.body.data);
}

static void churn(struct node *n)
{
	/* documents a minute x share: five cgroups of 100, one start of 100 */
	if (some(100 * 60 / interval_s) == 0)
		start_node(n);
	for (unsigned g = 0; g < n_groups; g++)
		if (some(20 * 60 / interval_s) == 0)
			make_group(&n->groups[g]);
}

int main(int argc, char **argv)
{
	struct http_client_options o = { .subject = "the store" };
	struct http_client *c = NULL;
	struct err err = { 0 };
	uint64_t began_ns, seconds, all;

	if (argc != 7 || !(format = output_format_find(argv[1])) || !format->push || !format->encoder)
		die("FORMAT URL NODES CGROUPS INTERVAL-S SECONDS");
	n_nodes = (unsigned)strtoul(argv[3], NULL, 10);
	n_groups = (unsigned)strtoul(argv[4], NULL, 10);
	interval_s = (unsigned)strtoul(argv[5], NULL, 10);
	seconds = strtoull(argv[6], NULL, 10);
	nodes = calloc(n_nodes, sizeof(*nodes));
	if (!n_nodes || !interval_s || !nodes || http_client_new(&o, &c, &err))
		die(*err.text ? err.text : "arguments");
	for (unsigned i = 0; i < n_nodes; i++)
		make_node(&nodes[i], i);
	snap.schema = &nodes[0].schema;
	if (snapshot_reserve(&snap, READING_SPECIAL_ROWS + n_groups, 1))
		die("out of memory");
	snap.n_rows = READING_SPECIAL_ROWS + n_groups;
	began_ns = clock_mono_ns();
	all = seconds * n_nodes / interval_s;
	for (uint64_t i = 0; i < all; i++) {
		const uint64_t due_ns = began_ns + i * interval_s * NS_PER_S / n_nodes;
		struct node *n = &nodes[i % n_nodes];
		uint64_t now_ns = clock_mono_ns();

		if (now_ns < due_ns)
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
					&(struct timespec){ (time_t)(due_ns / NS_PER_S), (long)(due_ns % NS_PER_S) },
					NULL);
		measure(n);
		send_document(c, argv[2], n);
		churn(n);
		now_ns = clock_mono_ns() - due_ns;
		figures.late_ns = now_ns > figures.late_ns ? now_ns : figures.late_ns;
		if (i + n_nodes >= all && now_ns > figures.late_last_ns)
			figures.late_last_ns = now_ns; /* of the last round of all nodes */
	}
	printf("documents %llu\nrefused %llu\nfailed %llu\nsamples %llu\nbytes %llu\nraw_bytes %llu\n",
	       (unsigned long long)figures.documents, (unsigned long long)figures.refused,
	       (unsigned long long)figures.failed, (unsigned long long)figures.samples,
	       (unsigned long long)figures.bytes, (unsigned long long)figures.raw_bytes);
	printf("encode_ns %llu\npack_ns %llu\nlate_ms %llu\nlate_last_ms %llu\ncgroups %llu\n",
	       (unsigned long long)figures.encode_ns, (unsigned long long)figures.pack_ns,
	       (unsigned long long)(figures.late_ns / NS_PER_MS),
	       (unsigned long long)(figures.late_last_ns / NS_PER_MS), (unsigned long long)(next_id - 1000));
	http_client_free(c);
	return 0;
}
