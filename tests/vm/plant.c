/* SPDX-License-Identifier: Apache-2.0 */
/* plant FILE: a supply, a board, a disk and a network card around the simulated RAPL (modules/README), null_blk and eth0. Prints the
 * power at the wall every 100 ms, as a meter of type fifo reads it, puts what disk and card drew into the simulated psys, and writes what
 * was drawn so far into FILE, microjoules: "total supply disk network".
 *
 *	work   = 20 mJ per MB of nullb0, 500 mJ per MB that eth0 sent
 *	inside = 20 W + packages + dram + work
 *	wall   = inside + 3 W + 0.06 inside + 0.002 / W x inside^2
 *	psys   = packages + dram + its own idle power + work */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DISK_J_MB 0.02
#define NETWORK_J_MB 0.5

struct seen {
	double ns, uj, disk_mb, network_mb;
};

struct drawn { /* joules */
	double total, supply, disk, network, put; /* put: into psys */
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Energy of packages and dram; the lines are "name unit package die energy_uj ...", the first "mono NS ...". */
static void read_rapl(struct seen *s)
{
	FILE *f = fopen("/proc/simrapl", "re");
	unsigned long long mono, uj;
	char line[256], name[32];

	if (!f || !fgets(line, sizeof(line), f) || sscanf(line, "mono %llu", &mono) != 1)
		die("/proc/simrapl");
	s->ns = (double)mono;
	s->uj = 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%31s %*s %*s %*s %llu", name, &uj) == 2 &&
		    (!strcmp(name, "package") || !strcmp(name, "dram")))
			s->uj += (double)uj;
	fclose(f);
}

static void read_work(struct seen *s)
{
	FILE *f = fopen("/sys/block/nullb0/stat", "re");
	unsigned long long in, out, sent;

	if (!f || fscanf(f, "%*u %*u %llu %*u %*u %*u %llu", &in, &out) != 2)
		die("/sys/block/nullb0/stat");
	fclose(f);
	s->disk_mb = (double)(in + out) * 512 / 1e6;
	f = fopen("/sys/class/net/eth0/statistics/tx_bytes", "re");
	if (!f || fscanf(f, "%llu", &sent) != 1)
		die("/sys/class/net/eth0/statistics/tx_bytes");
	fclose(f);
	s->network_mb = (double)sent / 1e6;
}

static void put_into_psys(struct drawn *d)
{
	unsigned long uj = (unsigned long)((d->disk + d->network - d->put) * 1e6);
	FILE *f;

	if (!uj)
		return;
	f = fopen("/sys/module/simrapl/parameters/inject", "we");
	if (!f || fprintf(f, "0 psys %lu\n", uj) < 0 || fclose(f) != 0)
		die("/sys/module/simrapl/parameters/inject");
	d->put += (double)uj / 1e6;
}

static void write_truth(const char *file, const struct drawn *d)
{
	FILE *f = fopen(file, "we");

	if (!f)
		die(file);
	fprintf(f, "%.0f %.0f %.0f %.0f\n", d->total * 1e6, d->supply * 1e6, d->disk * 1e6, d->network * 1e6);
	fclose(f);
}

int main(int argc, char **argv)
{
	struct drawn drawn = { 0 };
	struct seen now, before = { 0 };

	if (argc != 2)
		return 2;
	signal(SIGPIPE, SIG_IGN); /* the agent may end */
	for (;; before = now) {
		double s, disk_w, network_w, inside, loss;

		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		read_rapl(&now);
		read_work(&now);
		s = (now.ns - before.ns) / 1e9;
		if (before.ns == 0 || s <= 0)
			continue;
		disk_w = DISK_J_MB * (now.disk_mb - before.disk_mb) / s;
		network_w = NETWORK_J_MB * (now.network_mb - before.network_mb) / s;
		inside = 20 + (now.uj - before.uj) / 1e6 / s + disk_w + network_w;
		loss = 3 + 0.06 * inside + 0.002 * inside * inside;
		drawn.total += (inside + loss) * s;
		drawn.supply += loss * s;
		drawn.disk += disk_w * s;
		drawn.network += network_w * s;
		put_into_psys(&drawn);
		printf("d0c0=%.4f\n", inside + loss);
		fflush(stdout);
		clearerr(stdout);
		write_truth(argv[1], &drawn);
	}
}
