# shellcheck shell=bash
# Nodes that there are not: objects which kwok keeps ready, and whose pods it says run. A thousand fit on two cores. No part
# of `up`: kwok is built and started with the first of them, and ends with the last. Sourced by ../devcluster.

FAKE=kwok.x-k8s.io/node=fake
# Their pods' network: none of it is ever used, and the real node keeps its own.
FAKE_PODS=10.244.255.0/24
FAKE_BUILT=$PROGRAM_CACHE/kwok-$(cat "$HERE"/fake_nodes/go.{mod,sum} | sha256sum | cut -c1-16)

# nodes COUNT [SHAPE...]: that many more, or with 0 none any more.
change_fake_nodes() {
    local count=${1:?how many}
    [[ $count =~ ^[0-9]{1,4}$ ]] || fail "how many nodes: a number up to 9999, not $count"
    node_pid >/dev/null || fail "the cluster is down: devcluster up"
    if [ "$count" = 0 ]; then
        remove_fake_nodes
        return
    fi
    # Before anything is made: a mistake in the shape changes nothing.
    local file
    file=$(mktemp)
    # shellcheck disable=SC2064 # now: the name is gone when the script ends
    trap "rm -f '$file'" EXIT
    fake_nodes "$((10#$count))" "${@:2}" >"$file"
    build_kwok
    in_node start-kwok
    kube create -f "$file" >/dev/null || fail "not all of them are new; devcluster nodes 0 removes those there are"
    await 120 "the fake nodes" all_fake_nodes_begun
    say "there are $(kube get nodes -l "$FAKE" -o name | wc -l) fake nodes"
}

# Ready, and without the taint of nodes that have just begun, which goes a moment later.
all_fake_nodes_begun() {
    local each='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {.spec.taints[*].key}{"\n"}{end}' seen
    seen=$(kube get nodes -l "$FAKE" -o jsonpath="$each") || return 1
    ! grep -qvFx "True ${FAKE%=*}" <<<"$seen"
}

build_kwok() {
    [ -x "$FAKE_BUILT/kwok" ] && return
    command -v go >/dev/null || fail "needs Go to build kwok"
    say "building kwok (a minute on two cores, once) ..."
    mkdir -p "$FAKE_BUILT"
    nice -n 10 go build -C "$HERE/fake_nodes" -mod=readonly -trimpath -buildvcs=false -ldflags "-s -w" \
        -o "$FAKE_BUILT/" sigs.k8s.io/kwok/cmd/kwok
}

update_kwok() { (cd "$HERE/fake_nodes" && go mod tidy); }

# Inside the node. A lease of 120 s is renewed every 30 s: often enough for the controllers, who wait for 50 s, and a
# thousand nodes write 33 times a second, not 100. No port: what does not run has no logs.
start_kwok() {
    cd "$STATE"
    run kwok env KWOK_WORKDIR="$STATE/kwok" "$FAKE_BUILT/kwok" \
        --config="$HERE/fake_nodes/kwok.yaml" --v=WARN --kubeconfig=admin.kubeconfig \
        --manage-all-nodes=false --manage-nodes-with-label-selector="$FAKE" --node-lease-duration-seconds=120 --node-port=0
}

# Inside the node.
end_kwok() {
    local pid
    pid=$(living "$STATE/run/kwok") || return 0
    kill -9 "$pid"
    while is_running kwok; do sleep 0.05; done
}

# Pods that are still on them are removed by the cluster, which takes them for lost: a minute, more where there are thousands.
remove_fake_nodes() {
    [ -n "$(kube get nodes -l "$FAKE" -o name)" ] || return 0
    kube delete --raw "/api/v1/nodes?labelSelector=${FAKE//=/%3D}" >/dev/null
    in_node end-kwok
    # The next kwok has another name, and would wait for two minutes until theirs ran out. The kubelet makes its own again.
    kube delete --raw /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases >/dev/null
    say "the fake nodes are gone"
}

# fake_nodes COUNT [SHAPE...]: their manifests. The taint keeps off what does not ask for fake nodes.
fake_nodes() {
    local count=$1 name=node labels='' amounts='' word index
    local -A amount=([cpu]=8 [memory]=32Gi [pods]=110 [ephemeral-storage]=100Gi)
    shift
    for word in "$@"; do
        case $word in
        name=*) name=${word#name=} ;;
        label=*=*)
            word=${word#label=}
            labels+=", \"${word%%=*}\": \"${word#*=}\""
            ;;
        cpu=* | memory=* | pods=* | ephemeral-storage=* | */*=*) amount[${word%%=*}]=${word#*=} ;;
        *) fail "a fake node has no $word; it has name=, cpu=, memory=, pods=, ephemeral-storage=, label=NAME=VALUE, and devices such as nvidia.com/gpu=4" ;;
        esac
    done
    [[ $name =~ ^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?$ ]] || fail "name=$name: a few lower-case letters, digits and dashes"
    for word in "${!amount[@]}"; do amounts+=", \"$word\": \"${amount[$word]}\""; done
    for ((index = 0; index < count; index++)); do
        one_fake_node "fake-$name-$index" "$labels" "{${amounts#, }}"
    done
}

one_fake_node() {
    cat <<JSON
{"apiVersion": "v1", "kind": "Node",
 "metadata": {"name": "$1", "labels": {"${FAKE%=*}": "${FAKE#*=}", "kubernetes.io/hostname": "$1",
  "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"$2}},
 "spec": {"podCIDR": "$FAKE_PODS", "podCIDRs": ["$FAKE_PODS"],
  "taints": [{"key": "${FAKE%=*}", "value": "${FAKE#*=}", "effect": "NoSchedule"}]},
 "status": {"allocatable": $3, "capacity": $3}}
JSON
}
