# shellcheck shell=bash
# The node: namespaces of their own for network, mounts and processes, held by one first process. Sourced by ../devcluster.
#
# Whoever ends the first process ends the cluster: the kernel kills every program and container in it and drops its
# mounts, bridges and iptables rules. So nothing can be left behind, however the end came about, and the machine's own
# firewall and etcd, containerd or kubelet are never touched.

FIRST_PROCESS=yardmaster-devcluster-node
# Settings of the whole machine that a kubelet changes on its own.
MACHINE_SETTINGS=(vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops)

node_pid() { living "$STATE/node"; }

begin_node() {
    local pid
    if pid=$(node_pid); then
        [ -f "$STATE/settled" ] && return
        end_node "$pid" # it was interrupted while it was being set up
    fi
    remove_leftovers
    refuse_hidden_places
    mkdir -p "$STATE"/{etcd,log/var/pods,run,cni,kubelet,manifests,volumes}
    make_credentials
    sysctl "${MACHINE_SETTINGS[@]}" 2>/dev/null >"$STATE/machine-settings"
    pid=$(start_first_process)
    remember "$pid" "$STATE/node"
    connect_node "$pid"
    in_node settle-node
    touch "$STATE/settled"
}

# The node has folders of its own in these places, so the cache must not be below them.
refuse_hidden_places() {
    case $CACHE/ in
    /run/* | /var/run/* | /var/log/* | /var/lib/*) fail "$CACHE would be hidden in the node; set XDG_CACHE_HOME to another place" ;;
    esac
}

start_first_process() {
    local waiter
    # A shell, because it also buries the processes whose parents are gone. It has no name for SIGTERM: only SIGKILL ends it.
    detached unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private \
        bash -c 'sleep infinity & wait' "$FIRST_PROCESS" "$STATE" >/dev/null 2>&1 &
    waiter=$!
    # It is called bash only after its own /proc is mounted.
    await 10 "the node's first process" pgrep --parent "$waiter" --exact bash
    pgrep --parent "$waiter" --exact bash
}

connect_node() {
    ip link add "$CABLE" type veth peer name uplink netns "$1" ||
        fail "there is a network interface $CABLE already; is another cluster of this kind up?"
    ip address add "$HOST_ADDRESS/30" dev "$CABLE"
    ip link set "$CABLE" up
    # From here, pods and Services are reached by their own addresses.
    ip route add "$PODS" via "$NODE_ADDRESS"
    ip route add "$SERVICES" via "$NODE_ADDRESS"
}

# in_node COMMAND: one of this script's own commands, inside.
in_node() { enter_node "$HERE/devcluster" "$@"; }

enter_node() {
    local pid
    pid=$(node_pid) || fail "the cluster is down"
    nsenter --target "$pid" --net --mount --pid -- "$@"
}

# In the place of this script: what ends it ends the command.
enter_network() {
    local pid
    pid=$(node_pid) || fail "the cluster is down"
    exec nsenter --target "$pid" --net -- "$@"
}

# Inside: network, and places that programs write to whatever they are told.
settle_node() {
    mount -t tmpfs tmpfs /run
    mount -t tmpfs tmpfs /var/lib
    mount --bind "$STATE/log/var" /var/log
    ip link set lo up
    ip address add "$NODE_ADDRESS/30" dev uplink
    ip link set uplink up
    ip route add default via "$HOST_ADDRESS"
    sysctl -qw net.ipv4.ip_forward=1
}
