# shellcheck shell=bash
# What other clusters fetch from a registry: the container that holds a pod's network, a shell for volumes, and a Debian
# with Python to build on. Made from this machine's own packages. Sourced by ../devcluster.

PAUSE_IMAGE=$IMAGES_OF/pause:1
BUSYBOX_IMAGE=$IMAGES_OF/busybox:1
DEBIAN_RELEASE=$(. /etc/os-release && echo "${VERSION_CODENAME:-unknown}")
PYTHON_IMAGE=$IMAGES_OF/python:$DEBIAN_RELEASE

build_small_images() {
    is_built "$PAUSE_IMAGE" || build_from_busybox "$PAUSE_IMAGE" '["/bin/busybox", "sleep", "2147483647"]'
    is_built "$BUSYBOX_IMAGE" || build_from_busybox "$BUSYBOX_IMAGE" '["/bin/sh"]'
}

build_from_busybox() {
    local container name
    container=$(buildah_here from scratch)
    for name in busybox sh mkdir rm sleep; do
        buildah_here add --quiet "$container" /bin/busybox "/bin/$name" >/dev/null
    done
    buildah_here config --entrypoint "$2" --env PATH=/bin "$container"
    buildah_here commit --quiet --rm "$container" "$1" >/dev/null
}

build_python_image() {
    is_built "$PYTHON_IMAGE" && return
    say "building a Debian with Python (two minutes, once) ..."
    local rootfs container
    rootfs=$(mktemp -d "$IMAGE_STORE/rootfs.XXXXXX")
    quietly nice -n 10 debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates \
        "$DEBIAN_RELEASE" "$rootfs" "$(package_mirror)"
    rm -rf "$rootfs"/var/cache/apt/archives/*.deb "$rootfs"/var/lib/apt/lists/* "$rootfs"/usr/share/{doc,man,locale}/*
    container=$(buildah_here from scratch)
    buildah_here add --quiet "$container" "$rootfs" / >/dev/null
    buildah_here config --env PATH=/usr/local/bin:/usr/bin:/bin "$container"
    buildah_here commit --quiet --rm "$container" "$PYTHON_IMAGE" >/dev/null
    rm -rf --one-file-system "$rootfs"
}

# The mirror that this machine's apt uses.
package_mirror() {
    # shellcheck disable=SC2016 # apt fills it in
    apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Codename: $DEBIAN_RELEASE" 'Origin: Debian' | head -n 1
}
