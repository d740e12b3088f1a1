# shellcheck shell=bash
# What runs pods: containerd, the kubelet, and kube-proxy for Service addresses. Started inside the node. Sourced by ../devcluster.

start_containerd() {
    containerd_settings >containerd.toml
    lay_out_plugins
    run containerd containerd --config containerd.toml
    await 30 containerd ctr --address "$CONTAINERD" version
}

containerd_settings() {
    cat <<TOML
version = 2
root = "$NODE_IMAGES"
state = "/run/containerd"
[grpc]
  address = "$CONTAINERD"
[plugins."io.containerd.internal.v1.opt"]
  path = "/run/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$PAUSE_IMAGE"
  disable_apparmor = true
  # A machine that is itself a container may not lower its own score.
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "$NETWORK_PROGRAMS/plugins"
  conf_dir = "$STATE/cni"
TOML
}

start_kubelet() {
    kubelet_settings >kubelet.yaml
    await 60 "the kubelet" kubelet_is_up
}

# It ends where containerd answers and its part for pods is not ready yet, so it is started again.
kubelet_is_up() {
    run_kubelet
    : </dev/tcp/127.0.0.1/10248
}

run_kubelet() {
    run kubelet "$PROGRAMS/kubelet" --config=kubelet.yaml --kubeconfig=kubelet.kubeconfig --hostname-override="$NODE" \
        --root-dir="$STATE/kubelet" --node-ip="$NODE_ADDRESS"
}

kubelet_settings() {
    cat <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $STATE/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $STATE/pki/kubelet.crt
tlsPrivateKeyFile: $STATE/pki/kubelet.key
containerRuntimeEndpoint: unix://$CONTAINERD
staticPodPath: $STATE/manifests
volumePluginDir: $STATE/kubelet/volume-plugins
clusterDomain: cluster.local
clusterDNS: [$DNS_SERVICE]
# Names outside the cluster do not matter here, and the machine's own resolver may not be reachable from pods.
resolvConf: /dev/null
# Works with and without systemd, on both generations of control groups.
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
maxPods: 250
# What begins processes without end takes its pod's, not the machine's.
podPidsLimit: 2048
# The machine's disk may be as full as its owner likes; the images that \`make cluster\` loaded must stay.
evictionHard: {memory.available: 100Mi}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
YAML
}

start_proxy() {
    # The node's network is not the machine's: the limits of connection tracking are not its to set, hence the zeros.
    run proxy "$PROGRAMS/kube-proxy" --kubeconfig=proxy.kubeconfig --cluster-cidr="$PODS" --hostname-override="$NODE" \
        --proxy-mode=iptables --conntrack-max-per-core=0 \
        --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0
}
