# SPDX-License-Identifier: Apache-2.0
# Test programs. tests/unit/test_X.c becomes build/unit/test_X, under ASan and UBSan but for those that judge thousands of
# trials, and some also build/tsan-unit/test_X with ThreadSanitizer; tests/kernel/test_X.c becomes build/kernel/test_X
# against the program as shipped and build/kernel-san/test_X against the sanitized one;
# tests/fuzz/fuzz_X.c becomes build/fuzz/fuzz_X.
FUZZ_SECONDS ?= 4
SOAK ?= 3600

UNIT_SRC := $(sort $(wildcard tests/unit/test_*.c))
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(B)/unit/%)
KERNEL_SRC := $(sort $(wildcard tests/kernel/test_*.c))
KERNEL_BIN := $(KERNEL_SRC:tests/kernel/%.c=$(B)/kernel/%) $(KERNEL_SRC:tests/kernel/%.c=$(B)/kernel-san/%)
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$(B)/fuzz/%)
FUZZ_OBJ := $(LIB_SRC:%.c=$(B)/fuzzlib/%.o)
TEST_LIBS = $(eval TEST_LIBS := $$(shell $(PKG_CONFIG) --libs cmocka))$(TEST_LIBS)
TEST_CC = $(CC) $(CPPFLAGS) -Itests -Iuser $(ALL_CFLAGS) -Wno-missing-prototypes -Wno-unused-function \
	-Wno-format-truncation -MMD -MP
# Warnings are gcc's to judge: clang knows others.
FUZZ_SAN := -w -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

$(B)/unit/%: tests/unit/%.c $(B)/libjouled-san.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(TEST_CC) $(SAN) -o $@ $< $(B)/libjouled-san.a $(LDLIBS) $(TEST_LIBS)

# These judge so many trials that they take three times as long under sanitizers. They run as shipped; the ledger's also for a
# twentieth of its intervals under sanitizers, and tests/unit/test_model_sound.c has the model.
MANY_TRIALS := $(B)/unit/test_ledger_property $(B)/unit/test_model
$(MANY_TRIALS): $(B)/unit/%: tests/unit/%.c $(B)/libjouled.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(TEST_CC) -o $@ $< $(B)/libjouled.a $(LDLIBS) $(TEST_LIBS)

SAN_UNIT_BIN := $(B)/san-unit/test_ledger_property
$(SAN_UNIT_BIN): $(B)/san-unit/%: tests/unit/%.c $(B)/libjouled-san.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(TEST_CC) $(SAN) -DINTERVALS=50000u -o $@ $< $(B)/libjouled-san.a $(LDLIBS) $(TEST_LIBS)

# Tests with several threads are built once more with ThreadSanitizer.
TSAN_UNIT_BIN := $(patsubst %,$(B)/tsan-unit/test_%,sink_file sink_listen sink_restart sink_channels sink_unix \
	store_history spool loop naming_thread kubelet meter_faults nvml serve_query host trace_ring guests recorder serve_routes)

$(B)/tsan-unit/%: tests/unit/%.c $(B)/libjouled-tsan.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(TEST_CC) $(TSAN) -w -o $@ $< $(B)/libjouled-tsan.a $(LDLIBS) $(TEST_LIBS)

$(B)/kernel/%: tests/kernel/%.c $(B)/libjouled.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(TEST_CC) -o $@ $< $(B)/libjouled.a $(LDLIBS) $(TEST_LIBS)

$(B)/kernel-san/%: tests/kernel/%.c $(B)/libjouled-san.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(TEST_CC) $(SAN) -o $@ $< $(B)/libjouled-san.a $(LDLIBS) $(TEST_LIBS)

# libFuzzer needs clang for the library too: its coverage is compiled in.
$(B)/fuzzlib/%.o: %.c | $(SKEL)
	@mkdir -p $(@D)
	$(call say,CC-FUZZ,$@)$(CLANG) $(CPPFLAGS) $(ALL_CFLAGS) $(FUZZ_SAN) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@

$(B)/libjouled-fuzz.a: $(FUZZ_OBJ)
	$(call say,AR,$@)rm -f $@ && $(CROSS_COMPILE)ar rcs $@ $^

$(B)/fuzz/%: tests/fuzz/%.c $(B)/libjouled-fuzz.a
	@mkdir -p $(@D)
	$(call say,FUZZ,$@)$(CLANG) $(CPPFLAGS) -Itests -Iuser $(ALL_CFLAGS) -Wno-missing-prototypes $(FUZZ_SAN) -fsanitize=fuzzer \
		-MMD -MP -o $@ $< $(B)/libjouled-fuzz.a $(LDLIBS)

# The ZICO output without an agent, for tests/e2e/zico_*.py.
ZICO_FEED := $(B)/zico-feed

$(ZICO_FEED): tests/zico/feed.c $(B)/libjouled-san.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(TEST_CC) $(SAN) -o $@ $< $(B)/libjouled-san.a $(LDLIBS)

# NVIDIA's management library, scripted (tests/gpu/fake_nvml.c).
FAKE_NVML := $(B)/gpu/libnvidia-ml.so.1
$(FAKE_NVML): $(wildcard tests/gpu/fake_*.c) $(wildcard tests/gpu/*.h) user/model/nvml.h
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(TEST_CC) -fPIC -shared -o $@ $(filter %.c,$^) -lm

# Brokers of Kafka and who reads of them, for tests/fleet.
KAFKA_MOCK := $(if $(KAFKA_SO),$(B)/fleet/kafka_mock)
$(B)/fleet/kafka_mock: tests/fleet/kafka_mock.c
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(TEST_CC) -o $@ $< $(shell $(PKG_CONFIG) --cflags --libs rdkafka)

# A machine without a PMU, for NO_PMU=1 (tests/pmu/none.c).
NO_PMU_LIB := $(B)/pmu/none.so
$(NO_PMU_LIB): tests/pmu/none.c
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(TEST_CC) -fPIC -shared -o $@ $<

TEST_BIN := $(UNIT_BIN) $(SAN_UNIT_BIN) $(TSAN_UNIT_BIN) $(KERNEL_BIN) $(FUZZ_BIN)
TEST_PROGRAMS := $(TEST_BIN) $(FAKE_NVML) $(NO_PMU_LIB) $(ZICO_FEED) $(KAFKA_MOCK) $(B)/jouled-san $(B)/jouled-tsan $(B)/joulectl-san $(B)/bench/bench $(B)/bench/bench_encode
JOBS = -j$(shell nproc)
RUN_TESTS = B=$(B) FUZZ_SECONDS=$(FUZZ_SECONDS) STRICT_SKIPS=$(STRICT_SKIPS) SUM=$(SUM) sh tests/run.sh

.PHONY: format test-programs test-repeat mutants kernel-test e2e-test fuzz-smoke golden-test
test-programs: $(TEST_PROGRAMS)

# A make of its own after the packages: what they bring is looked for anew.
test: deps test-deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) all test-programs
	$(Q)$(RUN_TESTS)

unit-test: $(UNIT_BIN) $(SAN_UNIT_BIN) $(TSAN_UNIT_BIN) $(FAKE_NVML)
	$(Q)$(RUN_TESTS) unit

kernel-test: $(KERNEL_BIN)
	$(Q)$(RUN_TESTS) kernel

e2e-test: $(PROGRAMS) $(FAKE_NVML) $(NO_PMU_LIB) $(ZICO_FEED) $(B)/jouled-san $(B)/jouled-tsan $(B)/joulectl-san
	$(Q)$(RUN_TESTS) e2e

golden-test: $(PROGRAMS)
	$(Q)$(RUN_TESTS) golden

fuzz-smoke: $(FUZZ_BIN)
	$(Q)$(RUN_TESTS) fuzz

fuzz: $(FUZZ_BIN)
	$(Q)TEST_TIMEOUT=7200 $(MAKE) --no-print-directory fuzz-smoke FUZZ_SECONDS=$(if $(filter 4,$(FUZZ_SECONDS)),300,$(FUZZ_SECONDS))

soak: deps test-deps vm-deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) vm-programs
	$(Q)B=$(B) sh tests/e2e/soak.sh $(SOAK)

# The code broken in a few dozen places; each must be seen by a test. MUTANTS='NAME...': only those.
MUTANTS ?=
mutants: deps test-deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) all $(UNIT_BIN)
	$(Q)python3 tests/mutants/mutants.py $(MUTANTS)

# TEST='kernel/test_network e2e/test_history' N=50 [LOAD=1]: how often they pass.
N ?= 50
test-repeat: deps test-deps
	$(Q)$(if $(filter 1,$(LOAD)),sh deploy/deps.sh stress-ng)
	$(Q)$(MAKE) --no-print-directory $(JOBS) all test-programs
	$(Q)B=$(B) LOAD=$(LOAD) sh tests/repeat.sh $(N) $(TEST)

lint:
	$(Q)sh tests/lint/lint.sh

format:
	$(Q)find bpf include tests user -name '*.[ch]' | xargs clang-format -i

include tests/vm/vm.mk

-include $(UNIT_BIN:%=%.d) $(SAN_UNIT_BIN:%=%.d) $(TSAN_UNIT_BIN:%=%.d) $(KERNEL_BIN:%=%.d) $(FUZZ_BIN:%=%.d) $(FUZZ_OBJ:.o=.d)
