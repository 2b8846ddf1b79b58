// SPDX-License-Identifier: Apache-2.0
/* The limit program of a report: what has to be done for one, and nothing else. At each interval it flushes the CPUs that are busy,
 * adds what their rows hold to one line of memory a row, copies as many bytes as a document has and wakes a thread, which
 * writes them to a file. It looks up no cgroup, takes no difference and turns no number into bytes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "own.h"
#include "source/counters/rows.h"

#define MAX_CGROUPS 16384

struct writer {
	int fd;
	uint8_t *document, *rendered;
	size_t bytes;
	sem_t work;
};

static void *write_documents(void *arg)
{
	struct writer *w = arg;

	for (;;) {
		while (sem_wait(&w->work))
			;
		if (write(w->fd, w->document, w->bytes) != (ssize_t)w->bytes)
			bench_die("a document", errno);
	}
	return NULL;
}

static void start_writer(struct writer *w, const char *path)
{
	pthread_t thread;

	w->document = malloc(w->bytes);
	w->rendered = malloc(w->bytes);
	w->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (!w->document || !w->rendered || w->fd < 0)
		bench_die(path, errno);
	memset(w->document, 1, w->bytes);
	memset(w->rendered, 1, w->bytes);
	sem_init(&w->work, 0, 0);
	if (pthread_create(&thread, NULL, write_documents, w))
		bench_die("a thread", ENOMEM);
}

/* An idle CPU is not woken; its bank is then added up once more. */
static void add_rows(struct own *o, uint64_t *sums)
{
	struct counters *c = o->counters;
	unsigned bank[2];

	for (unsigned cpu = 0; cpu < 2; cpu++) {
		bank[cpu] = READ_ONCE(c->states[cpu].bank) & 1;
		if (READ_ONCE(c->states[cpu].key) != JD_KEY_IDLE)
			counters_flip(c, cpu);
	}
	for (unsigned cpu = 0; cpu < 2; cpu++)
		sums += own_add_bank(o, cpu, bank[cpu], sums);
}

/* Until the next beat; false when standard input has ended. */
static bool sleep_until(uint64_t at_ns)
{
	uint64_t now = bench_now_ns(), left = at_ns > now ? at_ns - now : 0;
	struct timespec t = { (time_t)(left / 1000000000), (long)(left % 1000000000) };
	struct pollfd in = { STDIN_FILENO, POLLIN, 0 };

	return ppoll(&in, 1, &t, NULL) == 0;
}

int bench_report(int argc, char **argv)
{
	uint64_t beat_ns = argc > 1 ? strtoull(argv[1], NULL, 10) * 1000000 : 0, at;
	struct writer w = { .bytes = argc > 3 ? strtoull(argv[2], NULL, 10) : 0 };
	uint64_t *sums;
	struct own *o;

	if (!beat_ns)
		return 2;
	bench_unpin();
	o = own_open(1, MAX_CGROUPS);
	sums = calloc((size_t)2 * o->counters->bank_rows, sizeof(struct jd_row));
	if (!sums)
		bench_die("memory", ENOMEM);
	if (w.bytes)
		start_writer(&w, argv[3]);
	puts("ready");
	fflush(stdout);
	for (at = bench_now_ns() + beat_ns; sleep_until(at); at += beat_ns) {
		add_rows(o, sums);
		if (!w.bytes)
			continue;
		memcpy(w.document, w.rendered, w.bytes);
		sem_post(&w.work);
	}
	program_detach(&o->p);
	return 0;
}
