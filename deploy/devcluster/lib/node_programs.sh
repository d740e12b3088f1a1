# shellcheck shell=bash
# The programs that make the cluster, as background processes of the node. Everything here runs inside the node, where
# a process's number is the node's own. Sourced by ../devcluster.

PROGRAMS_IN_ORDER=(etcd apiserver controller-manager scheduler containerd kubelet proxy felix coredns provisioner)

start_programs() {
    # containerd and the API server hold a file for every pod and watch; some shells allow 1024 where 100,000 may be had.
    ulimit -Sn "$(ulimit -Hn)"
    cd "$STATE"
    local program
    for program in "${PROGRAMS_IN_ORDER[@]}"; do
        "start_${program//-/_}"
    done
}

# run NAME COMMAND...: in the background unless it runs already. Its output goes to the log, which keeps one life.
run() {
    local name=$1
    shift
    is_running "$name" && return
    detached "$@" >"$STATE/log/$name.log" 2>&1 &
    remember $! "$STATE/run/$name"
}

is_running() { living "$STATE/run/$1" >/dev/null; }

restart_program() {
    is_running "$1" || fail "$1 does not run; there are: ${PROGRAMS_IN_ORDER[*]}"
    kill -9 "$(living "$STATE/run/$1")"
    while is_running "$1"; do sleep 0.05; done
    cd "$STATE"
    "start_${1//-/_}"
}

program_status() {
    local program lacking=0
    for program in "${PROGRAMS_IN_ORDER[@]}"; do
        if is_running "$program"; then
            printf '  %-20s runs\n' "$program"
        else
            printf '  %-20s does NOT run, see %s\n' "$program" "$STATE/log/$program.log"
            lacking=1
        fi
    done
    if is_running felix && ! felix_is_ready; then
        printf '  %-20s is NOT ready: new policies wait, see %s\n' felix "$STATE/log/felix.log"
        lacking=1
    fi
    return $lacking
}
