# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Sourced. An apt of its own, with lists, cache and architecture apart from this machine's, so that
# packages can be fetched and unpacked while those of the machine stay as they are.

# This machine's archives of its own release, "URI SUITE COMPONENT" a line; third parties, which may
# not have another architecture or release, are told by their suite's name.
apt_archives() {
	codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		sort -u | awk -v c="$codename" 'index($2, c) == 1'
}

apt_keys() {
	for k in /usr/share/keyrings/debian-archive-keyring.gpg /usr/share/keyrings/debian-archive-keyring.pgp; do
		[ -e "$k" ] && echo " signed-by=$k" && return
	done
}

# apt_own_sources ARCH: sources.list of this machine's release.
apt_own_sources() {
	apt_archives | awk -v a="$1" -v k="$(apt_keys)" '{ print "deb [arch=" a k "]", $1, $2, $3 }'
}

# apt_suite_sources ARCH SUITE...: sources.list of other releases, from where this machine has its own:
# NAME-security lies where its own security suite does, everything else beside its own release.
apt_suite_sources() {
	arch=$1
	shift
	apt_archives | awk -v a="$arch" -v k="$(apt_keys)" -v suites="$*" '
	$3 != "main" { next }
	$2 ~ /-security$/ { security = $1 }
	$2 !~ /-/ { base = $1 }
	END {
		n = split(suites, suite, " ")
		for (i = 1; i <= n; i++) {
			uri = suite[i] ~ /-security$/ ? security : base
			if (uri != "") print "deb [arch=" a k "]", uri, suite[i], "main"
		}
	}'
}

# apt_begin DIR ARCH: empty lists and configuration in DIR, an absolute path, sources.list from standard
# input. How this machine reaches its archives (proxies and the like) is kept, and nothing else of its
# settings: its hooks would clean up after an apt that is not its own. 1 without any source.
apt_begin() {
	rm -rf "$1/state" "$1/cache"
	mkdir -p "$1/state/lists/partial" "$1/cache/archives/partial" || return 1
	: >"$1/state/status"
	cat >"$1/sources.list"
	{
		apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets'
		cat <<-EOF
			Dir::Etc::main "/dev/null";
			Dir::Etc::parts "/dev/null";
			Dir::Etc::preferences "/dev/null";
			Dir::Etc::preferencesparts "/dev/null";
			Dir::Etc::sourcelist "$1/sources.list";
			Dir::Etc::sourceparts "/dev/null";
			Dir::State "$1/state";
			Dir::State::status "$1/state/status";
			Dir::Cache "$1/cache";
			APT::Architecture "$2";
			APT::Architectures { "$2"; };
			APT::Install-Recommends "false";
			APT::Sandbox::User "root";
			Acquire::Languages "none";
			Acquire::Retries "2";
		EOF
	} >"$1/apt.conf"
	[ -s "$1/sources.list" ]
}
