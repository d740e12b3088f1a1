# shellcheck shell=bash
# Pods that lose the portal, and have it again: one rule in the node's own network, which ends with the node. Sourced by ../devcluster.

# Before anything is tracked or rewritten, so that neither an open connection nor a rule of kube-proxy comes first. The
# node itself, the API server and what pods say to each other do not match.
CUT=(PREROUTING --source "$PODS" --destination "$HOST_ADDRESS" -m comment --comment "devcluster cut" -j DROP)

is_cut() { enter_node iptables -w -t raw -C "${CUT[@]}" 2>/dev/null; }

cut_pods_off() { is_cut || enter_node iptables -w -t raw -I "${CUT[@]}"; }

mend_the_cut() {
    while is_cut; do
        enter_node iptables -w -t raw -D "${CUT[@]}"
    done
}
