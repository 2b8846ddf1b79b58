/* SPDX-License-Identifier: Apache-2.0 */
/* plant FILE: a supply, a board and a disk around the simulated RAPL (modules/README) and null_blk. Prints the power at the wall as a
 * meter of type command does, every 100 ms, and writes what was drawn so far into FILE, microjoules: "total supply disk".
 *
 *	inside = 20 W + packages + dram + 20 mJ per MB of nullb0
 *	wall   = inside + 3 W + 0.06 inside + 0.002 / W x inside^2 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct seen {
	double ns, uj, mb;
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

static void read_disk(struct seen *s)
{
	FILE *f = fopen("/sys/block/nullb0/stat", "re");
	unsigned long long in, out;

	if (!f || fscanf(f, "%*u %*u %llu %*u %*u %*u %llu", &in, &out) != 2)
		die("/sys/block/nullb0/stat");
	s->mb = (double)(in + out) * 512 / 1e6;
	fclose(f);
}

int main(int argc, char **argv)
{
	double total = 0, supply = 0, disk = 0;
	struct seen now, before = { 0 };

	if (argc != 2)
		return 2;
	for (;; before = now) {
		double s, disk_w, inside, loss;
		FILE *f;

		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		read_rapl(&now);
		read_disk(&now);
		s = (now.ns - before.ns) / 1e9;
		if (before.ns == 0 || s <= 0)
			continue;
		disk_w = 0.02 * (now.mb - before.mb) / s;
		inside = 20 + (now.uj - before.uj) / 1e6 / s + disk_w;
		loss = 3 + 0.06 * inside + 0.002 * inside * inside;
		total += (inside + loss) * s;
		supply += loss * s;
		disk += disk_w * s;
		printf("d0c0=%.4f\n", inside + loss);
		fflush(stdout);
		f = fopen(argv[1], "we");
		if (!f)
			die(argv[1]);
		fprintf(f, "%.0f %.0f %.0f\n", total * 1e6, supply * 1e6, disk * 1e6);
		fclose(f);
	}
}
