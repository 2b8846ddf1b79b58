// SPDX-License-Identifier: Apache-2.0
/* A compiler at run time: a loop of machine code that it writes, with a frame pointer, and its name in /tmp/perf-PID.map. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* void f(uint64_t n): push %rbp; mov %rsp, %rbp; 1: dec %rdi; jnz 1b; pop %rbp; ret */
static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3 };

int main(int argc, char **argv)
{
	const uint64_t most_ms = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
	char name[64];
	struct timespec t;
	void (*run)(uint64_t n);
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *f;

	snprintf(name, sizeof(name), "/tmp/perf-%d.map", (int)getpid());
	f = fopen(name, "w");
	if (at == MAP_FAILED || !f)
		return 1;
	memcpy(at, code, sizeof(code));
	memcpy(&run, &at, sizeof(run));
	fprintf(f, "%llx %zx jit_loop\n", (unsigned long long)(uintptr_t)at, sizeof(code));
	fclose(f);
	do {
		run(10000000);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while ((uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 < most_ms);
	return unlink(name) != 0;
}
