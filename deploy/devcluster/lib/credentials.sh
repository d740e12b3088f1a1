# shellcheck shell=bash
# Keys, certificates and kubeconfigs of one life of the cluster. Sourced by ../devcluster.

# Made anew with every new cluster: nothing that was copied from an old one opens this one.
make_credentials() {
    [ -f "$STATE/admin.kubeconfig" ] && return
    local kubernetes=kubernetes.default.svc
    mkdir -p "$STATE/pki"
    (
        umask 077
        cd "$STATE/pki"
        key ca
        openssl req -x509 -key ca.key -days 365 -subj /CN=yardmaster-devcluster -out ca.crt
        key serviceaccounts
        openssl pkey -in serviceaccounts.key -pubout -out serviceaccounts.pub
        certificate apiserver /CN=kube-apiserver \
            "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:$kubernetes,DNS:$kubernetes.cluster.local,IP:127.0.0.1,IP:$FIRST_SERVICE,IP:$NODE_ADDRESS"
        certificate kubelet "/O=system:nodes/CN=system:node:$NODE" "DNS:$NODE,IP:127.0.0.1,IP:$NODE_ADDRESS"
        certificate kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client DNS:kube-apiserver
        certificate controller-manager /CN=system:kube-controller-manager DNS:controller-manager
        certificate scheduler /CN=system:kube-scheduler DNS:scheduler
        certificate proxy /CN=system:kube-proxy DNS:proxy
        certificate coredns /CN=coredns DNS:coredns
        certificate admin /O=system:masters/CN=admin DNS:admin
        local user
        # The administrator's comes last: it says that all the others are there.
        for user in kubelet controller-manager scheduler proxy coredns admin; do
            kubeconfig "$user" >"../$user.kubeconfig.new"
            mv "../$user.kubeconfig.new" "../$user.kubeconfig"
        done
    )
}

key() { openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key"; }

# certificate NAME SUBJECT SUBJECT_ALT_NAMES
certificate() {
    key "$1"
    openssl req -new -key "$1.key" -subj "$2" |
        openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -out "$1.crt" \
            -extfile <(printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$3") 2>/dev/null
}

kubeconfig() {
    cat <<YAML
apiVersion: v1
kind: Config
current-context: devcluster
contexts: [{name: devcluster, context: {cluster: devcluster, user: $1}}]
clusters:
- name: devcluster
  cluster: {server: "https://$NODE_ADDRESS:6443", certificate-authority-data: $(base64 -w0 ca.crt)}
users:
- name: $1
  user: {client-certificate-data: $(base64 -w0 "$1.crt"), client-key-data: $(base64 -w0 "$1.key")}
YAML
}
