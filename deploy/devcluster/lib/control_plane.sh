# shellcheck shell=bash
# etcd, the API server, the controllers and the scheduler. Started inside the node. Sourced by ../devcluster.

kube() { kubectl --kubeconfig "$KUBECONFIG" "$@"; }

start_etcd() {
    # Without fsync: a cluster that is thrown away need not outlive a power cut, and writes are ten times as fast.
    run etcd etcd --data-dir etcd --unsafe-no-fsync
}

start_apiserver() {
    # Watches without lists: Debian's etcd has none of them, and whoever is given one that fails waits, and asks again.
    run apiserver "$PROGRAMS/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --feature-gates=WatchList=false \
        --service-cluster-ip-range="$SERVICES" --bind-address=0.0.0.0 --advertise-address="$NODE_ADDRESS" \
        --allow-privileged=true \
        --client-ca-file=pki/ca.crt --tls-cert-file=pki/apiserver.crt --tls-private-key-file=pki/apiserver.key \
        --kubelet-client-certificate=pki/kubelet-client.crt --kubelet-client-key=pki/kubelet-client.key \
        --kubelet-certificate-authority=pki/ca.crt --kubelet-preferred-address-types=InternalIP \
        --service-account-key-file=pki/serviceaccounts.pub --service-account-signing-key-file=pki/serviceaccounts.key \
        --service-account-issuer=https://kubernetes.default.svc \
        --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction
    await 90 "a ready API server" kube get --raw /readyz
}

start_controller_manager() {
    run controller-manager "$PROGRAMS/kube-controller-manager" --kubeconfig=controller-manager.kubeconfig \
        --service-account-private-key-file=pki/serviceaccounts.key --root-ca-file=pki/ca.crt \
        --use-service-account-credentials --cluster-cidr="$PODS" --allocate-node-cidrs --leader-elect=false \
        --flex-volume-plugin-dir="$STATE/kubelet/volume-plugins"
}

start_scheduler() {
    run scheduler "$PROGRAMS/kube-scheduler" --kubeconfig=scheduler.kubeconfig --leader-elect=false
}
