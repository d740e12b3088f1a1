# shellcheck shell=bash
# The network of the pods, which enforces NetworkPolicy: Calico's agent (Felix) as a program of the node, and its CNI
# plugin. No containers, no routes and no addresses of Calico's own: one node needs none. Sourced by ../devcluster.

FELIX_HEALTH=9099
DISTRIBUTIONS_PLUGINS=/usr/lib/cni

# What containerd runs for each pod: Calico's plugin, and the distribution's for addresses and the loopback.
lay_out_plugins() { cp -u "$DISTRIBUTIONS_PLUGINS"/{host-local,loopback} "$NETWORK_PROGRAMS/plugins/"; }

start_felix() {
    is_running felix && return
    kube apply --server-side --force-conflicts -f "$NETWORK_PROGRAMS/kinds" >/dev/null
    kube wait --for=condition=Established --timeout=30s -f "$NETWORK_PROGRAMS/kinds" >/dev/null ||
        fail "the API server does not serve the network's kinds of objects"
    network_objects | kube apply --server-side --force-conflicts -f - >/dev/null
    # Without it no policy would be carried out from then on: so it is started again whenever it ends.
    run felix env "${FELIX_SETTINGS[@]}" FELIX_IPTABLESBACKEND="$(iptables_backend)" \
        bash -c 'while :; do setpriv --pdeathsig KILL "$1"; sleep 0.2; done' felix-is-kept "$NETWORK_PROGRAMS/calico-felix"
    await 30 "the network's agent" felix_is_ready
    # Until now the node was not ready for pods: none begins before its policies hold. containerd watches the folder.
    pod_network >cni/.pods
    mv cni/.pods cni/05-calico.conflist
}

FELIX_SETTINGS=(
    KUBECONFIG="$KUBECONFIG" FELIX_DATASTORETYPE=kubernetes FELIX_FELIXHOSTNAME="$NODE" FELIX_USAGEREPORTINGENABLED=false
    FELIX_IPV6SUPPORT=false FELIX_XDPENABLED=false FELIX_MTUIFACEPATTERN=uplink
    # What pods say to the node itself is judged by their policies alone.
    FELIX_DEFAULTENDPOINTTOHOSTACTION=Return
    FELIX_HEALTHENABLED=true FELIX_HEALTHHOST=127.0.0.1 FELIX_HEALTHPORT="$FELIX_HEALTH"
    FELIX_LOGSEVERITYSCREEN=warning FELIX_LOGFILEPATH=none FELIX_LOGSEVERITYFILE=none FELIX_LOGSEVERITYSYS=none
)

# kube-proxy and the agent must write the same tables.
iptables_backend() { if iptables --version | grep -q nf_tables; then echo nft; else echo legacy; fi; }

# Inside the node.
felix_is_ready() {
    curl --fail --silent --max-time 2 --noproxy '*' "http://127.0.0.1:$FELIX_HEALTH/readiness" >/dev/null
}

# DNS is a program of the node here. Policies that let pods speak to kube-system mean pods: so the node's address is
# made one of that namespace's. The first object is what Calico's installer would leave; the plugin asks for it.
network_objects() {
    cat <<YAML
apiVersion: crd.projectcalico.org/v1
kind: ClusterInformation
metadata: {name: default}
spec: {datastoreReady: true}
---
apiVersion: crd.projectcalico.org/v1
kind: NetworkSet
metadata: {name: names, namespace: kube-system, labels: {projectcalico.org/orchestrator: k8s}}
spec: {nets: ["$NODE_ADDRESS/32"]}
YAML
}

# Pods reach each other, the node, and the machine by its end of the cable, as far as policies let them.
pod_network() {
    cat <<JSON
{"cniVersion": "0.4.0", "name": "devcluster", "plugins": [
  {"type": "calico", "datastore_type": "kubernetes", "nodename": "$NODE", "nodename_file_optional": true,
   "mtu": 1500, "log_level": "warning",
   "kubernetes": {"kubeconfig": "$KUBECONFIG"}, "policy": {"type": "k8s"},
   "ipam": {"type": "host-local", "dataDir": "/run/cni", "subnet": "usePodCidr"}}]}
JSON
}
