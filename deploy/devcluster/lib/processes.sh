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

# Become a command in a session of its own, without our lock and whatever else is open: a lock under which we
# were called would be held as long as the cluster lives. To be called in the background.
detached() {
    local open
    unset DEVCLUSTER_LOCK
    for open in "/proc/$BASHPID/fd"/*; do
        open=${open##*/}
        [ "$open" -le 2 ] || exec {open}>&-
    done
    exec setsid "$@" </dev/null
}
