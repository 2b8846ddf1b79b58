# SPDX-License-Identifier: Apache-2.0
# make deb: a Debian package in build/deb. make image: a container image, jouled:VERSION, by podman.
# make test-deploy: what they are in use.
DEB_DEPS := debhelper dpkg-dev
DEPLOY_DEPS := lintian podman runc systemd
TEST_DEPS += $(DEB_DEPS) $(DEPLOY_DEPS)

.PHONY: deb image test-deploy test-image
# A copy of what git would carry is built, so that the package holds nothing of this folder's; its objects
# are kept for the next time.
deb: deps
	$(Q)sh deploy/deps.sh $(DEB_DEPS)
	$(Q)sh deploy/debian/build.sh $(B) $(VERSION)

image:
	$(Q)sh deploy/deps.sh podman
	$(Q)podman build --format docker --ignorefile deploy/image/Containerfile.dockerignore -t jouled:$(VERSION) -t jouled:latest \
		-f deploy/image/Containerfile .

test-deploy: deps test-deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) all
	$(Q)$(RUN_TESTS) deploy

# Both stages of the image and both architectures: minutes.
test-image: deps test-deps
	$(Q)sh deploy/deps.sh mmdebstrap
	$(Q)B=$(B) sh tests/deploy/stages.sh
