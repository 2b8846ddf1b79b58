# SPDX-License-Identifier: Apache-2.0
# make bench: tests/bench/*.c is one program, build/bench/bench; tests/bench/run.sh runs all of it and
# writes build/bench.md. ROUNDS (21), PERF=/path/to/perf and EVENT=cycles may be
# given.
BENCH_SRC := $(sort $(filter-out tests/bench/alloc_count.c tests/bench/bench_encode.c tests/bench/bench_fleet.c tests/bench/profile_busy.c tests/bench/limit.bpf.c,$(wildcard tests/bench/*.c)))
BENCH_OBJ := $(BENCH_SRC:%.c=$(B)/obj/%.o)
ROUNDS ?= 21
PERF ?=
EVENT ?= tsc

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

$(B)/bench/bench_encode $(B)/bench/bench_fleet: $(B)/bench/%: tests/bench/%.c $(B)/libjouled.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CPPFLAGS) -Iuser $(ALL_CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(B)/libjouled.a $(LDLIBS)

$(B)/bench/alloc_count.so: tests/bench/alloc_count.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -Wno-missing-prototypes -fPIC -shared -MMD -MP -o $@ $<

$(B)/bench/profile_busy: tests/bench/profile_busy.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $<

bench-programs: $(B)/bench/bench $(B)/bench/alloc_count.so $(B)/bench/profile_busy $(PROGRAMS) $(if $(wildcard tests/bench/bench_encode.c),$(B)/bench/bench_encode)

bench: deps test-deps
	$(Q)sh deploy/deps.sh rt-tests
	$(Q)$(MAKE) --no-print-directory $(JOBS) bench-programs
	$(Q)ROUNDS=$(ROUNDS) PERF=$(PERF) EVENT=$(EVENT) sh tests/bench/run.sh $(B)

# Real trials of the gate: TRIALS, CHANGE in percent, FIGURE
bench-gate: $(PROGRAMS)
	$(Q)sh tests/bench/gate.sh $(B)

# NODES nodes into one store for SECONDS
NODES ?= 1000
SECONDS ?= 120
bench-fleet: deps test-deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(B)/bench/bench_fleet
	$(Q)python=python3; $$python -c 'import google.protobuf' 2>/dev/null || python=/usr/bin/python3; \
		B=$(B) $$python tests/fleet/bench.py $(NODES) $(SECONDS)

$(B)/rivals/modules.so: tests/rivals/modules.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -Wno-missing-prototypes -fPIC -shared -MMD -MP -o $@ $<

# Beside what a user could run instead: RIVAL_ROUNDS, EVENT
RIVAL_ROUNDS ?= 9
bench-rivals: deps test-deps
	$(Q)sh deploy/deps.sh rt-tests nginx-light wrk prometheus-node-exporter linux-perf
	$(Q)$(MAKE) --no-print-directory $(JOBS) bench-programs $(B)/rivals/modules.so
	$(Q)EVENT='$(filter-out tsc,$(EVENT))' python3 tests/rivals/run.py $(B) $(RIVAL_ROUNDS)

.PHONY: bench-programs bench-gate bench-fleet bench-rivals
-include $(BENCH_OBJ:.o=.d) $(B)/bench/limit.bpf.d $(B)/bench/bench_encode.d $(B)/bench/bench_fleet.d $(B)/bench/alloc_count.d $(B)/bench/profile_busy.d $(B)/rivals/modules.d
