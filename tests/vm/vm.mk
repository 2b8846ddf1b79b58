# SPDX-License-Identifier: Apache-2.0
# make test-vm: guests with Debian's kernels under QEMU. VM='6.1 6.1/triggers': only those.
VM ?=
VM_DEPS := qemu-system-x86 seabios qemu-system-arm busybox-static cpio xz-utils kmod libelf-dev libcap2-bin linux-perf mmdebstrap

# Helpers that run in guests; static, for they may go into any.
VM_HELP := $(patsubst tests/vm/%.c,$(B)/vm/%,$(wildcard tests/vm/*.c))

.PHONY: test-vm test-vm-deploy test-guests vm-deps vm-programs
vm-programs: $(VM_HELP) $(NO_PMU_LIB) $(PROGRAMS) $(KERNEL_SRC:tests/kernel/%.c=$(B)/kernel/%)

$(VM_HELP): $(B)/vm/%: tests/vm/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -static -o $@ $<

vm-deps:
	$(Q)sh deploy/deps.sh $(VM_DEPS)

# A make of its own after the packages: what they bring is looked for anew.
test-vm: deps test-deps vm-deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) vm-programs
	$(Q)VM='$(VM)' $(RUN_TESTS) vm

test-vm-deploy: deps test-deps vm-deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) vm-programs
	$(Q)VM='$(VM)' $(RUN_TESTS) vm_deploy

# Both kinds of guests.
test-guests: deps test-deps vm-deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) vm-programs
	$(Q)VM='$(VM)' $(RUN_TESTS) vm vm_deploy
