# shellcheck shell=bash
# Processes that outlive the command which started them. Sourced by ../devcluster.

# remember PID FILE, and `living FILE`: the pid, or failure. A number alone may be another process's by now: the time at
# which it started tells.
remember() { echo "$1 $(start_time "$1")" >"$2"; }

living() {
    local pid started
    read -r pid started 2>/dev/null <"$1" || return 1
    [ "$(start_time "$pid")" = "$started" ] || return 1
    echo "$pid"
}

start_time() {
    local -a fields
    # The program's name stands in brackets and may hold anything, so count from behind it.
    read -ra fields <<<"$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null)"
    echo "${fields[19]:-ended}"
}

# Become a command in a session of its own, without our lock. To be called in the background.
detached() {
    if [ -n "${DEVCLUSTER_LOCK:-}" ]; then
        exec {DEVCLUSTER_LOCK}>&-
        unset DEVCLUSTER_LOCK
    fi
    exec setsid "$@" </dev/null
}
