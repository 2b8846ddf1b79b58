/* SPDX-License-Identifier: Apache-2.0 */
/* Every captured machine that has a file expect-energy: what RAPL finds there, compared line by line.
 * The lines were written by hand from the kernel's documents:
 *
 *	interface NAME STATE
 *	domain NAME INTERFACE            in this order
 *	probe INTERFACE NAME STATE UJ_NUM/UJ_DEN wrap UNITS parts N
 *	warning BEGINNING                one for every warning
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "source/energy/energy.h"
#include "source/counters/topology.h"

#define MACHINES_MIN 14
#define MAX_LINES 128
#define LINE_SIZE 400

struct lines {
	unsigned n;
	char text[MAX_LINES][LINE_SIZE];
};

static const char *sysroot_dir(void)
{
	const char *dir = getenv("SYSROOT");

	return dir ? dir : "tests/sysroot";
}

static void __attribute__((format(printf, 2, 3))) add_line(struct lines *l, const char *fmt, ...)
{
	va_list ap;

	assert_true(l->n < MAX_LINES);
	va_start(ap, fmt);
	vsnprintf(l->text[l->n++], LINE_SIZE, fmt, ap);
	va_end(ap);
}

static void read_expect(const char *path, struct lines *l)
{
	char line[LINE_SIZE];
	FILE *f = fopen(path, "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] && line[0] != '#')
			add_line(l, "%s", line);
	}
	fclose(f);
}

static void list_source(const struct energy_source_ops *ops, const struct energy_source *src, struct lines *l)
{
	const char *name = energy_interface_name(ops->interface), *reason;
	const struct energy_probe *p;
	enum energy_state state = ops->state(src, &reason);
	unsigned n = ops->probes(src, &p);

	add_line(l, "interface %s %s", name, energy_state_name(state));
	if (state != ENERGY_OK)
		assert_true(strlen(reason) > 10);
	for (unsigned i = 0; i < n; i++) {
		add_line(l, "probe %s %s %s %llu/%llu wrap %llu parts %u", name, p[i].name,
			 energy_state_name(p[i].state), (unsigned long long)p[i].uj_num,
			 (unsigned long long)p[i].uj_den, (unsigned long long)p[i].wrap_units, p[i].parts);
		if (p[i].state != ENERGY_OK)
			assert_true(strlen(p[i].reason) > 10);
	}
}

/* Found lines into l; then two readings of counters that stand still: no energy, no doubt. */
static void list_machine(const struct fsroot *root, struct lines *l)
{
	const struct energy_source_ops *ops[4];
	struct energy_source *src[4];
	struct schema s = { 0 };
	struct reading r = { .schema = &s };
	struct perf_seam seam = { 0 };
	struct rapl_options o = { .root = root, .seam = &seam, .mode = RAPL_AUTO };
	struct rapl *rp;
	char text[LINE_SIZE];
	struct err err;
	unsigned n;

	assert_int_equal(topology_read(root, &s, &err), 0);
	perf_seam_recorded(root, &seam);
	assert_int_equal(rapl_open(&o, &s, &rp, &err), 0);
	n = rapl_interfaces(rp, ops, src, 4);
	assert_int_equal(n, 3);
	for (unsigned i = 0; i < n; i++)
		list_source(ops[i], src[i], l);
	for (unsigned i = 0; i < s.n_domains; i++) {
		add_line(l, "domain %s %s", s.domains[i].name, energy_interface_name(s.domains[i].interface));
		assert_true(strlen(s.domains[i].reason) > 10);
		assert_true(s.domains[i].package < s.n_packages);
	}
	rapl_read(rp, &r, 1000000000, 1000000000);
	rapl_read(rp, &r, 2000000000, 2000000000);
	for (unsigned i = 0; i < s.n_domains; i++) {
		const struct reading_domain *d = &r.domains[i];

		assert_int_equal(d->units, 0);
		assert_false(d->stale);
		assert_int_equal(d->errors + d->resets + d->dropped + d->wraps, 0);
		assert_int_equal(d->time_ns, 2000000000);
	}
	while (rapl_next_warning(rp, text, sizeof(text)))
		add_line(l, "warning %s", text);
	rapl_close(rp);
	perf_seam_free(&seam);
	free(s.cpus);
}

static bool line_fits(const char *want, const char *got)
{
	return strncmp(want, "warning ", 8) == 0 ? strncmp(want, got, strlen(want)) == 0 : strcmp(want, got) == 0;
}

/* Lines of `a` that stand not in `b`, each of b answering one of a. */
static unsigned missing(const char *machine, const struct lines *want, const struct lines *got, bool say_got)
{
	bool used[MAX_LINES] = { false };
	const struct lines *a = say_got ? got : want, *b = say_got ? want : got;
	unsigned bad = 0;

	for (unsigned i = 0; i < a->n; i++) {
		unsigned j;

		for (j = 0; j < b->n; j++) {
			if (!used[j] && line_fits(say_got ? b->text[j] : a->text[i], say_got ? a->text[i] : b->text[j]))
				break;
		}
		if (j < b->n) {
			used[j] = true;
			continue;
		}
		print_error("%s: %s: %s\n", machine, say_got ? "found, not expected" : "expected, not found",
			    a->text[i]);
		bad++;
	}
	return bad;
}

static unsigned domains_out_of_order(const char *machine, const struct lines *want, const struct lines *got)
{
	unsigned w = 0, g = 0;

	for (;; w++, g++) {
		while (w < want->n && strncmp(want->text[w], "domain ", 7))
			w++;
		while (g < got->n && strncmp(got->text[g], "domain ", 7))
			g++;
		if (w == want->n || g == got->n)
			return 0;
		if (strcmp(want->text[w], got->text[g])) {
			print_error("%s: %s stands where %s should\n", machine, got->text[g], want->text[w]);
			return 1;
		}
	}
}

static unsigned check_machine(const char *name)
{
	struct lines *want = calloc(1, sizeof(*want)), *got = calloc(1, sizeof(*got));
	struct fsroot *root;
	char path[512];
	unsigned bad;

	assert_non_null(want);
	assert_non_null(got);
	snprintf(path, sizeof(path), "%s/%s/expect-energy", sysroot_dir(), name);
	read_expect(path, want);
	snprintf(path, sizeof(path), "%s/%s", sysroot_dir(), name);
	assert_int_equal(fsroot_open(path, &root), 0);
	assert_true(fsroot_exists(root, "/source"));
	list_machine(root, got);
	fsroot_close(root);
	bad = missing(name, want, got, false) + missing(name, want, got, true);
	if (!bad)
		bad = domains_out_of_order(name, want, got);
	free(want);
	free(got);
	return bad;
}

static void all_machines(void **state)
{
	DIR *d = opendir(sysroot_dir());
	const struct dirent *e;
	unsigned machines = 0, bad = 0;
	char path[512];
	FILE *f;

	assert_non_null(d);
	while ((e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s/expect-energy", sysroot_dir(), e->d_name);
		f = e->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (!f)
			continue;
		fclose(f);
		machines++;
		bad += check_machine(e->d_name);
	}
	closedir(d);
	print_message("%u machines\n", machines);
	assert_int_equal(bad, 0);
	assert_true(machines >= MACHINES_MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(all_machines) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
