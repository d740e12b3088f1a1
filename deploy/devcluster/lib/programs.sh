# shellcheck shell=bash
# Kubernetes' programs, built from their Go modules at the versions and checksums of modules/*/go.{mod,sum}.
# Sourced by ../devcluster. A change of this file builds them anew.

KUBERNETES_PROGRAMS=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy)

build_programs() {
    [ -f "$PROGRAMS/.complete" ] && return
    command -v go >/dev/null || fail "needs Go 1.24 or later to build Kubernetes"
    mkdir -p "$PROGRAMS"
    local -a kubernetes=("${KUBERNETES_PROGRAMS[@]}")
    command -v kubectl >/dev/null || kubernetes+=(kubectl)
    say "building Kubernetes (five minutes on two cores, once) ..."
    build_module kubernetes "${kubernetes[@]/#/k8s.io/kubernetes/cmd/}"
    say "building CoreDNS and the volume provisioner ..."
    build_module coredns .
    build_module provisioner github.com/rancher/local-path-provisioner
    touch "$PROGRAMS/.complete"
}

# build_module MODULE PACKAGE...: go.mod and go.sum are only read. Go fetches what its own cache lacks.
build_module() {
    local module=$HERE/modules/$1 version
    shift
    # Kubernetes' own builds stamp the version in; without it, the server calls itself v0.0.0.
    version=$(awk '$1 == "require" && $2 == "k8s.io/kubernetes" {print $3}' "$module/go.mod")
    # A build yields to everything else that the machine does.
    nice -n 10 go build -C "$module" -mod=readonly -trimpath -buildvcs=false \
        -ldflags "-s -w${version:+ -X k8s.io/component-base/version.gitVersion=$version}" -o "$PROGRAMS/" "$@"
}

# For a person who changed a version in a go.mod; the build itself changes nothing.
update_modules() {
    local module
    for module in "$HERE"/modules/*/; do
        (cd "$module" && go mod tidy)
    done
}
