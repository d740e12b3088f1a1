# shellcheck shell=bash
# The end of a cluster. Sourced by ../devcluster.

# Whatever state the cluster is in, also when somebody killed half of it: afterwards only the cache is there.
take_down() {
    local pid
    if pid=$(node_pid); then
        end_node "$pid"
    fi
    remove_leftovers
    say "down; what was built stays in $CACHE (devcluster purge deletes it)"
}

end_node() {
    # containerd keeps the images: let it close its database. All else is thrown away and needs no farewell.
    in_node stop-containerd || say "containerd did not stop by itself"
    kill -9 "$1" 2>/dev/null || true
    # The first process is gone only when the kernel has ended all others of its namespace.
    await 30 "the end of the node's processes" is_gone "$1"
}

is_gone() { [ ! -e "/proc/$1" ]; }

# Inside the node.
stop_containerd() {
    local pid
    pid=$(living "$STATE/run/containerd") || return 0
    kill "$pid"
    for _ in $(seq 50); do
        is_running containerd || return 0
        sleep 0.1
    done
    return 1
}

# What a cluster leaves in the machine: its kernel objects are gone with its namespaces, these are not.
remove_leftovers() {
    local pid
    # A node whose note is lost.
    for pid in $(pgrep --full --exact "bash -c sleep infinity & wait $FIRST_PROCESS $STATE" || true); do
        kill -9 "$pid" 2>/dev/null || true
    done
    ip link delete "$CABLE" 2>/dev/null || true
    unmount_below "$CACHE"
    remove_control_groups
    restore_machine_settings
    [ -d "$STATE" ] || return 0
    find "$STATE" -mindepth 1 -maxdepth 1 -exec rm -rf --one-file-system {} +
}

# A build that was killed leaves its mounts.
unmount_below() {
    local mount
    awk -v below="$1/" 'index($2, below) == 1 {print $2}' /proc/self/mounts | sort -r | while read -r mount; do
        umount --lazy "$mount" || say "could not unmount $mount"
    done
}

# Only empty ones can be removed, so that a running kubelet's are safe.
remove_control_groups() {
    find /sys/fs/cgroup -depth -type d -path '*/kubepods*' -exec rmdir {} + 2>/dev/null || true
}

restore_machine_settings() {
    local name _ value
    [ -f "$STATE/machine-settings" ] || return 0
    while read -r name _ value; do
        sysctl -qw "$name=$value" || say "could not set $name back to $value"
    done <"$STATE/machine-settings"
}

purge_cache() {
    # Go's module cache is shared with other projects, and stays.
    rm -rf --one-file-system "$CACHE"
}
