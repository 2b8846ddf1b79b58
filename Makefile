# SPDX-License-Identifier: Apache-2.0
# make run | run-fleet | test | bench | soak | mutants | fuzz | lint | install | deb | image | clean. V=1 shows every command.
VERSION := 0.1.0
ARCH ?= $(shell uname -m)
CROSS_COMPILE ?=
CC := $(CROSS_COMPILE)gcc
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/bin/bpftool) bpftool)
PKG_CONFIG ?= pkg-config
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
DESTDIR ?=
# where zsh looks: for what packages bring, and for what was installed by hand
ZSHDIR ?= $(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
B ?= build
ARGS ?=

V ?= 0
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' $(1) $(2);)

BPF_ARCH_x86_64 := x86
BPF_ARCH_aarch64 := arm64
VMLINUX_x86_64 := x86_64
VMLINUX_aarch64 := arm64

# Debian packages: what building needs, and what only the tests need.
BUILD_DEPS := gcc libc6-dev make clang llvm bpftool pkg-config libbpf-dev libelf-dev libdw-dev zlib1g-dev \
	libpfm4-dev libevent-dev libcbor-dev libyaml-dev libcap-ng-dev libjansson-dev libmicrohttpd-dev libsqlite3-dev \
	libcurl4-openssl-dev libncurses-dev liblz4-dev liblzma-dev libseccomp-dev libsnappy-dev libisal-dev libiberty-dev librdkafka-dev
TEST_DEPS := dwz libcmocka-dev libclang-rt-dev python3 python3-jsonschema python3-pyte python3-pandas universal-ctags clang-format cppcheck shellcheck strace curl openssl man-db chromium-headless-shell fonts-dejavu-core zsh fish protobuf-compiler python3-protobuf slurmctld slurmd slurm-client munge lxc systemd-container busybox-static linux-perf musl-tools sqlite3 debuginfod

LIBS := libbpf libelf libdw zlib libevent_core libevent_pthreads libcbor yaml-0.1 libcap-ng jansson libmicrohttpd sqlite3 libcurl ncursesw liblz4 liblzma libseccomp snappy libisal
CPPFLAGS += -D_GNU_SOURCE -DJOULED_VERSION='"$(VERSION)"' -DJOULED_LIBDIR='"$(PREFIX)/lib/jouled"' -Iinclude -Iuser -I$(B)/skel
CFLAGS ?= -O2 -g
# Empty where somebody else's compiler has warnings of its own.
WERROR ?= -Werror
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wvla -Wformat=2 -Wno-unused-parameter $(WERROR)
# pkg-config is asked once, and only where something is built: before `make deps` it knows no libraries.
LIBS_CFLAGS = $(eval LIBS_CFLAGS := $$(shell $(PKG_CONFIG) --cflags $(LIBS)))$(LIBS_CFLAGS)
LIBS_LDLIBS = $(eval LIBS_LDLIBS := $$(shell $(PKG_CONFIG) --libs $(LIBS)))$(LIBS_LDLIBS)
ALL_CFLAGS = -std=gnu11 $(CFLAGS) -fno-strict-aliasing -pthread $(WARN) $(LIBS_CFLAGS)
# Each program needs what it uses: jouled no JSON reader, joulectl no BPF.
LDLIBS = -Wl,--as-needed $(LIBS_LDLIBS) -lpfm -liberty -lm -pthread
BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH_$(ARCH)) -Iinclude -Ivmlinux/$(VMLINUX_$(ARCH)) \
	$(if $(filter x86_64,$(ARCH)),-I/usr/include/x86_64-linux-gnu,-I/usr/include/aarch64-linux-gnu) \
	-Wall -Wextra -Wno-unused-parameter -Wno-missing-declarations -Werror
# What a sanitizer reports needs functions and lines alone: -g1 builds in three quarters of the time.
SAN := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

# Threads: no other sanitizer can be in the same program.
TSAN := -O1 -g1 -fsanitize=thread -fno-omit-frame-pointer

# Outputs to Kafka, where librdkafka is: a library that the agent loads when it has one.
KAFKA_SRC := user/sink/kafka/kafka_plugin.c
KAFKA_SO := $(if $(shell $(PKG_CONFIG) --exists rdkafka && echo yes),$(B)/kafka.so)

BPF_SRC := $(wildcard bpf/*.bpf.c)
SKEL := $(BPF_SRC:bpf/%.bpf.c=$(B)/skel/%.skel.h)
# Everything but the two main files is in the library, for the tests; a program takes from it only what it calls.
LIB_SRC := $(filter-out user/agent/jouled.c user/ctl/joulectl.c $(KAFKA_SRC),$(sort $(shell find user -name '*.c')))
LIB_OBJ := $(LIB_SRC:%.c=$(B)/obj/%.o)
SAN_LIB_OBJ := $(LIB_SRC:%.c=$(B)/san/%.o)
TSAN_LIB_OBJ := $(patsubst %.c,$(B)/tsan/%.o,$(filter-out user/ctl/%,$(LIB_SRC))) # it is for the agent

PROGRAMS := $(B)/jouled $(B)/joulectl $(KAFKA_SO)
MAN := $(B)/man/jouled.8 $(B)/man/jouled.yaml.5 $(B)/man/joulectl.1

.PHONY: all deps test-deps run run-fleet test unit-test bench soak fuzz lint install clean vmlinux man pictures
.DELETE_ON_ERROR:
.SECONDARY:
all: $(PROGRAMS) man

$(B)/bpf/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF,$@)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $(@:.o=.tmp.o) && \
		$(BPFTOOL) gen object $@ $(@:.o=.tmp.o) && rm -f $(@:.o=.tmp.o)

$(B)/skel/%.skel.h: $(B)/bpf/%.bpf.o
	@mkdir -p $(@D)
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

$(B)/obj/%.o: %.c | $(SKEL)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(B)/san/%.o: %.c | $(SKEL)
	@mkdir -p $(@D)
	$(call say,CC-SAN,$@)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(SAN) -MMD -MP -c $< -o $@

# Warnings are for the other builds to give: this one makes some of its own.
$(B)/tsan/%.o: %.c | $(SKEL)
	@mkdir -p $(@D)
	$(call say,CC-TSAN,$@)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(TSAN) -w -MMD -MP -c $< -o $@

# Files for the browser are in the object; the compiler does not tell.
$(foreach d,obj san tsan fuzzlib,$(B)/$(d)/user/serve/page.o): user/serve/page.html
$(foreach d,obj san tsan fuzzlib,$(B)/$(d)/user/ctl/spans/flame.o): user/ctl/spans/flame.js

$(B)/libjouled.a: $(LIB_OBJ)
	$(call say,AR,$@)rm -f $@ && $(CROSS_COMPILE)ar rcs $@ $^

$(B)/libjouled-san.a: $(SAN_LIB_OBJ)
	$(call say,AR,$@)rm -f $@ && $(CROSS_COMPILE)ar rcs $@ $^

$(B)/jouled: $(B)/obj/user/agent/jouled.o $(B)/libjouled.a
	$(call say,LD,$@)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/jouled-san: $(B)/san/user/agent/jouled.o $(B)/libjouled-san.a
	$(call say,LD,$@)$(CC) $(ALL_CFLAGS) $(SAN) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/libjouled-tsan.a: $(TSAN_LIB_OBJ)
	$(call say,AR,$@)rm -f $@ && $(CROSS_COMPILE)ar rcs $@ $^

$(B)/jouled-tsan: $(B)/tsan/user/agent/jouled.o $(B)/libjouled-tsan.a
	$(call say,LD,$@)$(CC) $(ALL_CFLAGS) $(TSAN) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/joulectl: $(B)/obj/user/ctl/joulectl.o $(B)/libjouled.a
	$(call say,LD,$@)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/joulectl-san: $(B)/san/user/ctl/joulectl.o $(B)/libjouled-san.a
	$(call say,LD,$@)$(CC) $(ALL_CFLAGS) $(SAN) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/kafka.so: $(KAFKA_SRC) user/sink/kafka/kafka_plugin.h
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC -shared $(LDFLAGS) -o $@ $< $(shell $(PKG_CONFIG) --cflags --libs rdkafka)

# The tables that parse configuration and command lines also write their manual.
$(B)/mankeys: docs/man/keys.c $(B)/libjouled.a
	$(call say,LD,$@)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# It runs here: a cross build is given that of a native one, MANKEYS=build/mankeys.
MANKEYS ?= $(B)/mankeys
$(B)/man/%: docs/man/%.in $(MANKEYS)
	@mkdir -p $(@D)
	$(call say,MAN,$@)$(MANKEYS) < $< > $@

man: $(MAN)

# Of deploy/, what the installed pages tell to copy, under the names that they name.
EXAMPLES := ci grafana prometheus slurm

install: all
	$(Q)install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man5 $(DESTDIR)$(PREFIX)/share/man/man8
	$(Q)install -m 755 $(B)/jouled $(DESTDIR)$(PREFIX)/sbin/
	$(Q)install -m 755 $(B)/joulectl $(DESTDIR)$(PREFIX)/bin/
	$(Q)$(if $(KAFKA_SO),install -D -m 644 $(KAFKA_SO) $(DESTDIR)$(PREFIX)/lib/jouled/kafka.so)
	$(Q)install -m 644 $(filter %.1,$(MAN)) $(DESTDIR)$(PREFIX)/share/man/man1/
	$(Q)install -m 644 $(filter %.5,$(MAN)) $(DESTDIR)$(PREFIX)/share/man/man5/
	$(Q)install -m 644 $(filter %.8,$(MAN)) $(DESTDIR)$(PREFIX)/share/man/man8/
	$(Q)install -D -m 644 deploy/completions/jouled.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/joulectl
	$(Q)ln -sf joulectl $(DESTDIR)$(PREFIX)/share/bash-completion/completions/jouled
	$(Q)install -D -m 644 deploy/completions/jouled.zsh $(DESTDIR)$(ZSHDIR)/_jouled
	$(Q)install -D -m 644 deploy/completions/jouled.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/joulectl.fish
	$(Q)ln -sf joulectl.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/jouled.fish
	$(Q)install -d $(DESTDIR)$(PREFIX)/share/doc/jouled/docs/formats $(DESTDIR)$(PREFIX)/share/doc/jouled/docs/pictures
	$(Q)install -m 644 docs/*.md $(DESTDIR)$(PREFIX)/share/doc/jouled/docs/
	$(Q)install -m 644 docs/formats/* $(DESTDIR)$(PREFIX)/share/doc/jouled/docs/formats/
	$(Q)install -m 644 docs/pictures/*.svg $(DESTDIR)$(PREFIX)/share/doc/jouled/docs/pictures/
	$(Q)for file in $$(find $(EXAMPLES:%=deploy/%) -type f); do \
		install -D -m $$([ -x $$file ] && echo 755 || echo 644) $$file $(DESTDIR)$(PREFIX)/share/doc/jouled/$$file || exit 1; \
	done
	$(Q)install -D -m 644 deploy/jouled.yaml $(DESTDIR)$(PREFIX)/share/doc/jouled/examples/jouled.yaml
	$(Q)[ -e $(DESTDIR)$(SYSCONFDIR)/jouled/jouled.yaml ] || install -D -m 644 deploy/jouled.yaml $(DESTDIR)$(SYSCONFDIR)/jouled/jouled.yaml
	$(Q)install -d $(DESTDIR)$(UNITDIR)
	$(Q)sed 's#@SBIN@#$(PREFIX)/sbin#' deploy/systemd/jouled.service > $(DESTDIR)$(UNITDIR)/jouled.service
	$(Q)install -m 644 deploy/systemd/jouled.socket $(DESTDIR)$(UNITDIR)/
	$(Q)install -D -m 644 deploy/systemd/jouled.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/jouled.conf
	$(Q)install -D -m 644 deploy/systemd/jouled.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/jouled.conf

deps:
	$(Q)sh deploy/deps.sh $(BUILD_DEPS)

test-deps:
	$(Q)sh deploy/deps.sh $(TEST_DEPS)

# A make of its own after the packages: what they bring is looked for anew.
run: deps
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/jouled
	$(Q)$(B)/jouled $(ARGS)

# Three nodes and a store on this machine.
run-fleet: deps
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/jouled
	$(Q)B=$(B) sh tests/fleet/run.sh

include tests/tests.mk
include tests/bench/bench.mk
include deploy/deploy.mk
include tests/cluster/cluster.mk

# Kernel types regenerated from the running kernel (5.16 or newer) and trimmed to what is used.
vmlinux:
	$(Q)BPFTOOL=$(BPFTOOL) CLANG=$(CLANG) sh vmlinux/trim.sh

# The pictures of docs/: the rooms from the table that lint checks, power over time from a recorded run, two profiles compared.
pictures: $(B)/joulectl
	$(Q)python3 docs/pictures/house.py tests/lint/includes.table user > docs/pictures/house.svg
	$(Q)$(B)/joulectl plot docs/pictures/run.jd -o docs/pictures/run.svg
	$(Q)$(B)/joulectl profile --diff docs/pictures/profile-before.folded docs/pictures/profile-after.folded -o docs/pictures/profile.svg

clean:
	$(Q)rm -rf $(B)

MAIN_D := $(foreach d,obj san tsan,$(B)/$(d)/user/agent/jouled.d $(B)/$(d)/user/ctl/joulectl.d)
-include $(BPF_SRC:bpf/%.bpf.c=$(B)/bpf/%.bpf.d) $(LIB_OBJ:.o=.d) $(SAN_LIB_OBJ:.o=.d) $(TSAN_LIB_OBJ:.o=.d) $(MAIN_D)
