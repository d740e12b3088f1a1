# shellcheck shell=bash
# Where the cluster keeps its things, what they are called, and its addresses. Sourced by ../devcluster.

# Nothing of this is in the checkout, so that a fresh clone and a second checkout find what was built.
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/yardmaster/devcluster
STATE=$CACHE/state             # lives as long as the node: keys, etcd, logs, volumes
PROGRAM_CACHE=$CACHE/programs  # one folder for each set of inputs
IMAGE_STORE=$CACHE/images      # buildah's
NODE_IMAGES=$CACHE/containerd  # containerd's: kept over `down`, so that images load once

# The programs are the same as long as what they are made of is.
PROGRAMS_KEY=$(cd "$HERE" && cat modules/*/go.mod modules/*/go.sum modules/*/*.go lib/programs.sh | sha256sum | cut -c1-16)
PROGRAMS=$PROGRAM_CACHE/$PROGRAMS_KEY
NETWORK_KEY=$(cd "$HERE" && cat network/go.mod network/go.sum lib/network_programs.sh | sha256sum | cut -c1-16)
NETWORK_PROGRAMS=$PROGRAM_CACHE/network-$NETWORK_KEY
export KUBECONFIG=$STATE/admin.kubeconfig

NODE=devnode
PODS=10.244.0.0/16
NODE_PODS=10.244.0.0/24
SERVICES=10.96.0.0/16
FIRST_SERVICE=10.96.0.1
DNS_SERVICE=10.96.0.10
# The node's network has one cable: this end is the machine's, that end is the node's.
CABLE=yardmaster0
HOST_ADDRESS=10.245.0.1
NODE_ADDRESS=10.245.0.2
CONTAINERD=$STATE/containerd.sock

PATH=$PROGRAMS:$PATH:/usr/sbin:/sbin
export PATH
