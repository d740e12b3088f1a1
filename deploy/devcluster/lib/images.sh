# shellcheck shell=bash
# The project's images: built with buildah, copied into the node's containerd. Sourced by ../devcluster.
#
# An image is named after its inputs, `localhost/yardmaster/task:<key>`, so that the same inputs are never built or
# loaded twice; tests and people use the name that moves along, `localhost/yardmaster/task:dev`.

IMAGES_OF=localhost/yardmaster
PROJECT_IMAGES=(probe task workbench)
IMAGE_INPUTS=(deploy/images/task platform/yardmaster_runner)
# What else is in the image of notebooks.
WORKBENCH_INPUTS=(deploy/images/workbench platform/yardmaster_client examples/notebooks examples/digits)
# And in that with Spark, which is built when it is asked for.
SPARK_INPUTS=(deploy/spark)

# Those that are named; of none, those that every cluster has.
build_and_load_images() {
    node_pid >/dev/null || fail "the cluster is down: there is no node to load images into"
    [ $# -gt 0 ] || set -- "${PROJECT_IMAGES[@]}"
    local image
    build_small_images
    load_missing "$PAUSE_IMAGE" "$BUSYBOX_IMAGE"
    for image in "$@"; do
        bring_image "$image"
    done
}

# No node is needed for it.
build_images() {
    local image
    build_small_images
    for image in "${PROJECT_IMAGES[@]}"; do
        build_image "$image" "$(image_key "$image")"
    done
}

# build_image STAGE KEY: the image of a stage of deploy/images/task/Dockerfile.
build_image() {
    is_built "$IMAGES_OF/$1:$2" && return
    build_python_image
    say "building $IMAGES_OF/$1 ..."
    build_project_image "$1" "$IMAGES_OF/$1:$2"
}

bring_image() {
    local name=$IMAGES_OF/$1 key
    key=$(image_key "$1")
    node_has "$name:$key" "$name:dev" && return
    build_image "$1" "$key"
    forget_older "$name" "$key"
    say "loading $name ..."
    load_images "$name:$key"
    # Last, and only ever beside the key of the same image: so the two together tell that all was done.
    in_containerd images tag --force "$name:$key" "$name:dev" >/dev/null
}

# Names and contents, so that a file that moved counts as a change.
image_key() {
    local -a inputs=("${IMAGE_INPUTS[@]}")
    case $1 in
    probe | task) ;;
    workbench) inputs+=("${WORKBENCH_INPUTS[@]}") ;;
    spark) inputs+=("${WORKBENCH_INPUTS[@]}" "${SPARK_INPUTS[@]}") ;;
    *) fail "$1 is none of the images: ${PROJECT_IMAGES[*]} spark" ;;
    esac
    (
        cd "$PROJECT"
        find "${inputs[@]}" -type f -not -path '*/__pycache__/*' -print0 | sort -z | xargs -0 sha256sum
        echo "$PYTHON_IMAGE"
    ) | sha256sum | cut -c1-16
}

build_project_image() {
    local target=$1 tag=$2 settings
    settings=$(mktemp -d)
    # pip's settings are this machine's own and may hold a password: they are mounted, and stay out of the image.
    "$(a_python)" "$HERE/lib/pip_settings.py" "$settings/pip.conf" >"$settings/folders"
    local -a mounts=(--volume "$settings/pip.conf:/etc/pip.conf:ro" --volume /etc/ssl/certs:/etc/ssl/certs:ro)
    local folder
    while read -r folder; do mounts+=(--volume "$folder:$folder:ro"); done <"$settings/folders"
    local rc=0
    quietly buildah_here bud --layers --target "$target" --build-arg "BASE=$PYTHON_IMAGE" "${mounts[@]}" \
        --file "$PROJECT/deploy/images/task/Dockerfile" --ignorefile "$PROJECT/deploy/images/task/Dockerfile.dockerignore" \
        --tag "$tag" "$PROJECT" || rc=$?
    rm -rf "$settings"
    return $rc
}

# The checkout's own has pip for certain; Debian's may not.
a_python() {
    if [ -x "$PROJECT/.venv/bin/python" ]; then echo "$PROJECT/.venv/bin/python"; else echo python3; fi
}

# Copy images from buildah's store into the node's, through a pipe: the largest has gigabytes.
load_images() {
    local image
    for image in "$@"; do
        buildah_here push --quiet "$image" "docker-archive:/dev/stdout:$image" | in_containerd images import - >/dev/null
    done
}

unload_images() {
    local image
    for image in $(in_containerd images list --quiet); do
        [[ $image != "$1"* ]] || in_containerd images remove "$image" >/dev/null
    done
}

load_missing() {
    local image
    for image in "$@"; do
        node_has "$image" || load_images "$image"
    done
}

# Images of older inputs, which would fill the disk by gigabytes.
forget_older() {
    local image
    for image in $(in_containerd images list --quiet); do
        [[ $image != "$1:"* || $image == "$1:$2" ]] || in_containerd images remove "$image" >/dev/null
    done
    for image in $(buildah_here images --format '{{.Name}}:{{.Tag}}'); do
        # A layer of it may still be in use by the newer one.
        [[ $image != "$1:"* || $image == "$1:$2" ]] || buildah_here rmi "$image" >/dev/null 2>&1 || true
    done
}

# Whether the node has all of these images.
node_has() {
    local images image
    images=$(in_containerd images list --quiet)
    for image in "$@"; do
        [[ $'\n'$images$'\n' == *$'\n'$image$'\n'* ]] || return 1
    done
}

is_built() { buildah_here inspect --type image "$1" >/dev/null 2>&1; }

in_containerd() { ctr --address "$CONTAINERD" --namespace k8s.io "$@"; }

# A store of our own, and nothing written elsewhere: the cache is deleted as a whole, and other users' images stay out of it.
buildah_here() {
    local own=$CACHE/buildah
    mkdir -p "$own/tmp"
    printf '[network]\nnetwork_config_dir = "%s"\n' "$own/networks" >"$own/containers.conf"
    CONTAINERS_CONF=$own/containers.conf TMPDIR=$own/tmp BUILDAH_ISOLATION=chroot \
        nice -n 10 buildah --root "$IMAGE_STORE" --runroot "$own/run" --storage-driver overlay "$@"
}

# Show what a command said only if it fails.
quietly() {
    local output
    output=$(mktemp)
    if ! "$@" >"$output" 2>&1; then
        tail -n 40 "$output" >&2
        rm -f "$output"
        return 1
    fi
    rm -f "$output"
}
