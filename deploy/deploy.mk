# SPDX-License-Identifier: Apache-2.0
# make deb: a Debian package in build/deb. make image: a container image, jouled:VERSION, by podman; BASE names another
# Debian to build on. make uninstall: takes away what make install brought, with the same DESTDIR and PREFIX.
# make test-deploy: what they are in use.
DEB_DEPS := debhelper dpkg-dev
DEPLOY_DEPS := lintian podman runc systemd
TEST_DEPS += $(DEB_DEPS) $(DEPLOY_DEPS)

BASE ?=
REVISION = $(shell git rev-parse HEAD 2>/dev/null || echo unknown)

.PHONY: deb image uninstall test-deploy test-image
# A copy of what git would carry is built, so that the package holds nothing of this folder's; its objects
# are kept for the next time.
deb: deps
	$(Q)sh deploy/deps.sh $(DEB_DEPS)
	$(Q)sh deploy/debian/build.sh $(B) $(VERSION)

image:
	$(Q)sh deploy/deps.sh podman
	$(Q)podman build --format docker --ignorefile deploy/image/Containerfile.dockerignore -t jouled:$(VERSION) -t jouled:latest \
		--build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) $(if $(BASE),--build-arg BASE=$(BASE)) \
		-f deploy/image/Containerfile .

# Configuration and state stay, and the user that owns them.
uninstall:
	$(Q)rm -f $(DESTDIR)$(PREFIX)/sbin/jouled $(DESTDIR)$(PREFIX)/bin/joulectl $(foreach m,$(MAN),$(DESTDIR)$(PREFIX)/share/man/man$(subst .,,$(suffix $m))/$(notdir $m)) \
		$(addprefix $(DESTDIR)$(PREFIX)/share/,bash-completion/completions/joulectl bash-completion/completions/jouled \
		fish/vendor_completions.d/joulectl.fish fish/vendor_completions.d/jouled.fish) $(DESTDIR)$(ZSHDIR)/_jouled $(DESTDIR)$(UNITDIR)/jouled.service $(DESTDIR)$(UNITDIR)/jouled.socket \
		$(DESTDIR)$(PREFIX)/lib/sysusers.d/jouled.conf $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/jouled.conf
	$(Q)rm -rf $(DESTDIR)$(PREFIX)/share/doc/jouled $(DESTDIR)$(PREFIX)/lib/jouled

test-deploy: deps test-deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) all
	$(Q)$(RUN_TESTS) deploy

# Both stages of the image and both architectures: minutes.
test-image: deps test-deps
	$(Q)sh deploy/deps.sh mmdebstrap
	$(Q)B=$(B) sh tests/deploy/stages.sh
