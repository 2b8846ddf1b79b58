/* SPDX-License-Identifier: Apache-2.0 */
#include "run_rounds.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/array.h"
#include "base/clock.h"
#include "base/statistics.h"
#include "base/text.h"

#define INPUT_MAX ((size_t)256 << 20)
#define ROUNDS_OF_UNTIL 5 /* fewest rounds before --until ends the runs */

static int lost_input(const char *name, struct err *err)
{
	return err_set(err, -errno, "--input %.200s: %s; name another file", name, strerror(errno));
}

/* Reads standard input to its end into memory, for every run. */
static int keep_input(struct run_rounds *r, struct err *err)
{
	static char piece[65536];
	size_t all = 0;
	ssize_t n;

	r->input_fd = memfd_create("input", MFD_CLOEXEC);
	if (r->input_fd < 0)
		return lost_input("-", err);
	while ((n = read(STDIN_FILENO, piece, sizeof(piece))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return lost_input("-", err);
		all += (size_t)n;
		if (all > INPUT_MAX)
			return err_set(err, -EFBIG, "--input -: more than %zu MiB; put it into a file, --input FILE",
				       INPUT_MAX >> 20);
		for (ssize_t at = 0, w; at < n; at += w) {
			w = write(r->input_fd, piece + at, (size_t)(n - at));
			if (w < 0)
				return lost_input("-", err);
		}
	}
	snprintf(r->input, sizeof(r->input), "standard input, read once: %zu bytes", all);
	return 0;
}

static int choose_input(struct run_rounds *r, struct err *err)
{
	const char *name = r->plan.input;
	bool many = r->plan.n_sides > 1 || r->plan.rounds > 1 || r->plan.warmup;
	char shown[90];
	int fd;

	r->input_fd = -1;
	if (name && strcmp(name, "-") == 0)
		return keep_input(r, err);
	if (!name) {
		snprintf(r->input, sizeof(r->input), "%s", many ? "/dev/null" : "that of joulectl");
		return 0;
	}
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return lost_input(name, err);
	close(fd);
	snprintf(r->input, sizeof(r->input), "%s", text_escape(shown, sizeof(shown), name));
	return 0;
}

/* Returns the descriptor for a run, which input_close closes; 0 = our standard input; negative errno with err. */
static int input_open(const struct run_rounds *r, struct err *err)
{
	const char *name = r->plan.input ? r->plan.input : "/dev/null";
	int fd;

	if (r->input_fd >= 0)
		return lseek(r->input_fd, 0, SEEK_SET) == 0 ? r->input_fd : lost_input("-", err);
	if (!r->plan.input && strcmp(r->input, "/dev/null") != 0)
		return 0;
	fd = open(name, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : lost_input(name, err);
}

static void input_close(const struct run_rounds *r, int fd)
{
	if (fd > 0 && fd != r->input_fd)
		close(fd);
}

/* Shows where we are and the time that is left. The cursor stays at the start of the line, so that a command's output
 * writes over it. */
static void show(const struct run_rounds *r, unsigned side, unsigned place)
{
	unsigned all = r->plan.rounds * r->plan.n_sides, done = (r->n_rounds - 1) * r->plan.n_sides + place;
	double so_far = (double)(clock_mono_ns() - r->began_ns) / 1e9, left = done ? so_far / done * (all - done) : 0;
	const char name[4] = { series_letter(side), ':', ' ', '\0' };
	char time[40] = "";

	if (!r->shows)
		return;
	if (done)
		snprintf(time, sizeof(time), left >= 90 ? ", about %.0f min left" : ", about %.0f s left",
			 left >= 90 ? left / 60 : left);
	dprintf(STDERR_FILENO, "\r\033[K%srun %u of %s%u%s\r", r->plan.n_sides > 1 ? name : "", r->n_rounds,
		r->plan.until > 0 || r->enough ? "at most " : "", r->plan.rounds, time);
}

static void show_nothing(const struct run_rounds *r)
{
	if (r->shows)
		dprintf(STDERR_FILENO, "\r\033[K");
}

static int run_side(struct run_rounds *r, unsigned side, struct run_result *ret, struct err *err)
{
	const char name[2] = { series_letter(side), '\0' };
	int rc = 0, fd = 0;

	*ret = (struct run_result){ 0 };
	if (r->plan.prepare)
		rc = run_shell("--prepare", r->plan.prepare, name, &r->measure.signals, err);
	if (!rc && run_signals_look(&r->measure.signals))
		return -EINTR;
	if (!rc)
		rc = fd = input_open(r, err);
	if (rc >= 0)
		rc = run_measure_once(&r->measure, r->plan.side[side].argv, fd, ret, err);
	input_close(r, fd);
	return rc;
}

static int warm_up(struct run_rounds *r, struct err *err)
{
	struct run_result unused;
	int rc = 0;

	for (unsigned i = 0; i < r->plan.warmup; i++)
		for (unsigned k = 0; k < r->plan.n_sides && !rc && !r->measure.signals.told; k++) {
			if (r->shows)
				dprintf(STDERR_FILENO, "\r\033[Kwarm-up %u of %u\r", i + 1, r->plan.warmup);
			rc = run_side(r, k, &unused, err);
			if (!rc && !unused.started)
				rc = err_set(err, -ENOEXEC, "%s; name a program", unused.error);
		}
	return rc;
}

static int make_room(struct run_rounds *r, struct err *err)
{
	unsigned cap = r->cap ? 2 * r->cap : 64;
	unsigned *order;

	if (r->n_rounds < r->cap)
		return 0;
	cap = cap > r->plan.rounds ? r->plan.rounds : cap;
	order = realloc(r->order, (size_t)cap * r->plan.n_sides * sizeof(*order));
	r->order = order ? order : r->order;
	for (unsigned k = 0; order && k < r->plan.n_sides; k++) {
		struct run_result *more = realloc(r->results[k], cap * sizeof(*more));

		if (!more)
			return err_set(err, -ENOMEM, "out of memory; ask for fewer repeats");
		r->results[k] = more;
	}
	r->cap = cap;
	return order ? 0 : err_set(err, -ENOMEM, "out of memory; ask for fewer repeats");
}

/* Runs each command once. 1 = go on, 0 = a command cannot be started, or a signal asked for the end. */
static int run_round(struct run_rounds *r, struct err *err)
{
	unsigned n = r->plan.n_sides, *order;
	int rc = make_room(r, err);

	if (rc)
		return rc;
	order = r->order + (size_t)r->n_rounds++ * n;
	for (unsigned i = 0; i < n; i++)
		order[i] = i;
	random_shuffle(&r->random, order, n);
	for (unsigned i = 0; i < n; i++) {
		unsigned side = order[i];
		struct run_result *result = &r->results[side][r->done[side]];

		show(r, side, i);
		rc = run_side(r, side, result, err);
		if (rc == -EINTR && !err->code)
			return 0;
		if (rc)
			return rc;
		r->done[side]++;
		if (!result->started || r->measure.signals.told)
			return 0;
	}
	return 1;
}

static bool narrow_enough(const struct run_rounds *r)
{
	struct run_comparison c;
	struct series s;
	bool enough = false;

	if (r->plan.until <= 0 || r->n_rounds < ROUNDS_OF_UNTIL)
		return false;
	if (run_rounds_compare(r, &c, &s) == 0)
		enough = series_width(&s) <= r->plan.until;
	series_free(&s);
	return enough;
}

int run_rounds_run(struct run_rounds *r, struct err *err)
{
	struct run_signals *signals = &r->measure.signals;
	struct err end = { 0 };
	int rc = choose_input(r, err), cleaned;

	r->shows = isatty(STDERR_FILENO) && (r->plan.n_sides > 1 || r->plan.rounds > 1);
	r->random.state = r->plan.seed;
	r->measure.tells_others = r->plan.rounds >= STATISTICS_OUTLIERS_LEAST;
	if (rc)
		return rc;
	if (r->plan.setup)
		rc = run_shell("--setup", r->plan.setup, NULL, signals, err);
	if (!rc)
		rc = warm_up(r, err);
	r->began_ns = clock_mono_ns();
	rc = rc ? rc : 1;
	while (rc > 0 && r->n_rounds < r->plan.rounds && !signals->told) {
		rc = run_round(r, err);
		if (rc > 0 && narrow_enough(r))
			rc = 0;
		if (rc > 0 && r->enough) {
			int enough = r->enough(r->arg, r, err);

			rc = enough < 0 ? enough : !enough;
		}
	}
	show_nothing(r);
	rc = rc > 0 ? 0 : rc;
	cleaned = r->plan.cleanup ? run_shell("--cleanup", r->plan.cleanup, NULL, signals, &end) : 0;
	if (cleaned && !rc) {
		*err = end;
		rc = cleaned;
	}
	return rc;
}

void run_rounds_free(struct run_rounds *r)
{
	for (unsigned k = 0; k < SERIES_SIDES_MAX; k++)
		free(r->results[k]);
	free(r->order);
	if (r->input_fd > 0)
		close(r->input_fd);
}

int run_rounds_compare(const struct run_rounds *r, struct run_comparison *ret, struct series *ret_series)
{
	unsigned whole = r->n_rounds;

	*ret = (struct run_comparison){ .n_sides = r->plan.n_sides,
					.order = r->order,
					.warmup = r->plan.warmup,
					.input = r->input,
					.series = ret_series };
	for (unsigned k = 0; k < r->plan.n_sides; k++) {
		const struct run_side *side = &r->plan.side[k];
		struct run_report *report = &ret->side[k];

		*report = (struct run_report){ .command = side->words,
					       .text = side->text,
					       .shell = side->argv != side->words,
					       .side = (char)(r->plan.n_sides > 1 ? series_letter(k) : 0),
					       .facts = &r->measure.with.facts,
					       .cost = r->cost,
					       .runs = r->results[k],
					       .n = r->done[k] };
		for (unsigned i = 0; i < r->done[k] && !report->exit_status; i++)
			report->exit_status = r->results[k][i].exit_status;
		whole = r->done[k] < whole ? r->done[k] : whole;
	}
	if (run_series_fill(ret, whole, r->plan.seed, ret_series))
		return -ENOMEM;
	ret_series->judge = r->plan.figure;
	return 0;
}
