# shellcheck shell=bash
# What is said to people, and the checks that every command begins with. Sourced by ../devcluster.

say() { echo "devcluster: $*" >&2; }

fail() {
    say "$*"
    exit 1
}

need_root() {
    [ "$(id -u)" = 0 ] || fail "needs root, for namespaces and containers: sudo make cluster"
    [ "$(uname -s)" = Linux ] || fail "needs Linux, this is $(uname -s)"
}

# The cache holds an administrator's key and what root executes: nobody else may look into it or write it.
prepare_places() {
    mkdir -p "$CACHE"
    [ "$(stat -c %u "$CACHE")" = "$(id -u)" ] || fail "$CACHE belongs to somebody else; remove it, or set XDG_CACHE_HOME"
    chmod 700 "$CACHE"
    mkdir -p "$PROGRAM_CACHE" "$IMAGE_STORE" "$NODE_IMAGES" "$STATE"
}

# One command at a time changes the cluster. Exported, because what is started in the background, also inside the node,
# must know which file to close: else it would hold the lock as long as it lives. See `detached`.
hold_the_lock() {
    exec {DEVCLUSTER_LOCK}>"$CACHE/lock"
    export DEVCLUSTER_LOCK
    flock --nonblock "$DEVCLUSTER_LOCK" || {
        say "waiting for another devcluster command to end"
        flock "$DEVCLUSTER_LOCK"
    }
}

# await SECONDS WHAT COMMAND...: until the command succeeds, or fail and say where to look.
await() {
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || fail "$what did not come about; the logs are in $STATE/log"
        sleep 0.2
    done
}
