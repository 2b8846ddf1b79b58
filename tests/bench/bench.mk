# SPDX-License-Identifier: Apache-2.0
# make bench: tests/bench/*.c is one program, build/bench/bench; tests/bench/run.sh runs all of it and
# writes build/bench.md. ROUNDS (21) and PERF=/path/to/perf may be given.
BENCH_SRC := $(sort $(filter-out tests/bench/alloc_count.c tests/bench/bench_encode.c tests/bench/limit.bpf.c,$(wildcard tests/bench/*.c)))
BENCH_OBJ := $(BENCH_SRC:%.c=$(B)/obj/%.o)
ROUNDS ?= 21
PERF ?=

$(B)/bench/limit.bpf.o: tests/bench/limit.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF,$@)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@

$(B)/bench/limit.skel.h: $(B)/bench/limit.bpf.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name limit_bpf > $@

$(BENCH_OBJ): $(B)/obj/tests/bench/%.o: tests/bench/%.c $(B)/bench/limit.skel.h | $(SKEL)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) -I$(B)/bench -Itests/bench -Iuser $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(B)/bench/bench: $(BENCH_OBJ) $(B)/libjouled.a
	$(call say,LD,$@)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)
