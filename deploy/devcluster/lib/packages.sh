# shellcheck shell=bash
# What is taken from the distribution: the container runtime, etcd, the tools. Sourced by ../devcluster.

PACKAGES=(
    containerd runc containernetworking-plugins etcd-server iptables ipset iproute2 conntrack procps openssl curl
    buildah debootstrap busybox-static
)

install_packages() {
    local missing
    command -v dpkg-query >/dev/null || fail "needs Debian, or another distribution with apt and these packages: ${PACKAGES[*]}"
    missing=$(missing_packages)
    [ -z "$missing" ] && return
    [ "$(id -u)" = 0 ] || fail "these packages are missing: apt-get install --no-install-recommends $missing"
    say "installing $missing"
    apt-get update -q >/dev/null
    # shellcheck disable=SC2086 # a list of names
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >/dev/null ||
        fail "could not install: $missing"
}

missing_packages() {
    local package
    for package in "${PACKAGES[@]}"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
    done | xargs
}
