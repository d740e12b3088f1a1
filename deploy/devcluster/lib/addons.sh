# shellcheck shell=bash
# What users of a cluster expect beside the API: names, and volumes that several pods share. Sourced by ../devcluster.

# CoreDNS is a process of the node, not a pod: so names work before the first image is there.
start_coredns() {
    coredns_settings >Corefile
    run coredns "$PROGRAMS/coredns" -conf Corefile
}

coredns_settings() {
    cat <<COREFILE
.:53 {
  bind $NODE_ADDRESS
  ready $NODE_ADDRESS:8181
  errors
  cache 5
  kubernetes cluster.local in-addr.arpa {
    kubeconfig $STATE/coredns.kubeconfig devcluster
    ttl 5
  }
}
COREFILE
}

start_provisioner() {
    printf '{"sharedFileSystemPath": "%s"}\n' "$STATE/volumes" >volumes.json
    cat >volume-helper.json <<JSON
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "helper"},
 "spec": {"containers": [{"name": "helper", "image": "$BUSYBOX_IMAGE", "imagePullPolicy": "Never"}]}}
JSON
    run provisioner env POD_NAMESPACE=kube-system "$PROGRAMS/local-path-provisioner" start --config volumes.json \
        --kubeconfig admin.kubeconfig --provisioner-name rancher.io/local-path --configmap-name local-path-config \
        --helper-image "$BUSYBOX_IMAGE" --helper-pod-file volume-helper.json --service-account-name default
}

# Applied each time: where nothing changed, nothing happens.
finish_addons() {
    kube apply --server-side --force-conflicts -f "$HERE/manifests" >/dev/null
    await 120 "the node" kube get node "$NODE"
    kube wait --for=condition=Ready "node/$NODE" --timeout=60s >/dev/null || fail "the node does not become ready"
    await 30 "the cluster's DNS" curl --fail --silent --max-time 2 --noproxy '*' "http://$NODE_ADDRESS:8181/ready"
    # A pod that is made before its account is refused.
    await 30 "the default service account" kube get serviceaccount default
}
