# SPDX-License-Identifier: Apache-2.0
# Test programs. tests/unit/test_X.c becomes build/unit/test_X, always under ASan and UBSan.
UNIT_SRC := $(sort $(wildcard tests/unit/test_*.c))
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(B)/unit/%)
TEST_LIBS = $(shell $(PKG_CONFIG) --libs cmocka)

$(B)/unit/%: tests/unit/%.c $(B)/libjouled-san.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(CC) $(CPPFLAGS) -Itests -Iuser $(ALL_CFLAGS) -Wno-missing-prototypes $(SAN) -MMD -MP -o $@ $< \
		$(B)/libjouled-san.a $(LDLIBS) $(TEST_LIBS)

unit-test: $(UNIT_BIN)
	$(Q)for t in $(UNIT_BIN); do echo "== $$t"; $$t || exit 1; done

-include $(UNIT_BIN:%=%.d)
