# shellcheck shell=bash
# Calico's agent (Felix), its CNI plugin and its kinds of objects, from the Go module whose version and checksums
# network/go.{mod,sum} say. Sourced by ../devcluster. A change of this file builds them anew.
#
# Not beside the other modules: those are one set, which all would be built again for a change of the network.

CALICO=github.com/projectcalico/calico

build_network() {
    [ -f "$NETWORK_PROGRAMS/.complete" ] && return
    command -v go >/dev/null || fail "needs Go 1.24 or later to build the network"
    mkdir -p "$NETWORK_PROGRAMS/plugins"
    say "building the network (two minutes on two cores, once) ..."
    build_of_calico "$NETWORK_PROGRAMS/" "$CALICO/felix/cmd/calico-felix"
    build_of_calico "$NETWORK_PROGRAMS/plugins/" "$CALICO/cni-plugin/cmd/calico"
    rm -rf "$NETWORK_PROGRAMS/kinds"
    cp -r --no-preserve=mode "$(go list -C "$HERE/network" -mod=readonly -m -f '{{.Dir}}' "$CALICO")/libcalico-go/config/crd" \
        "$NETWORK_PROGRAMS/kinds"
    touch "$NETWORK_PROGRAMS/.complete"
}

# build_of_calico FOLDER PACKAGE. Without C: what needs it (eBPF) is not used here.
build_of_calico() {
    CGO_ENABLED=0 nice -n 10 go build -C "$HERE/network" -mod=readonly -trimpath -buildvcs=false -ldflags "-s -w" -o "$@"
}

# Windows' part of the module is in no proxy, so `tidy` complains (-e: and goes on).
update_network_module() { (cd "$HERE/network" && go mod tidy -e); }
