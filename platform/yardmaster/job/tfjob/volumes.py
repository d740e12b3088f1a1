"""Volumes of a pod: which of them hold data, which hold the code, and where a script finds the same in a job's task."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from yardmaster.job.spec_limits import shorten
from yardmaster.job.tfjob.parts import Kind, Part

_REMOTE = {
    "persistentVolumeClaim": ("claimName", "the claim"),
    "hostPath": ("path", "the folder of the node"),
    "nfs": ("path", "the NFS folder"),
    "csi": ("driver", "the CSI volume of"),
    "glusterfs": ("path", "the Gluster volume"),
    "cephfs": ("path", "the Ceph folder"),
    "gcePersistentDisk": ("pdName", "the disk"),
    "awsElasticBlockStore": ("volumeID", "the disk"),
    "azureFile": ("shareName", "the share"),
    "azureDisk": ("diskName", "the disk"),
}
"""Kinds that keep files beyond the pod: the key with their name, and what they are in words."""
MOST_MOUNTS = 100
_LOG_WORDS = (
    "log", "logs", "logdir", "summary", "summaries", "tensorboard", "checkpoint", "checkpoints", "ckpt", "train", "job",
    "output", "outputs", "out", "result", "results",
)  # fmt: skip
_MODEL_WORDS = ("model", "models", "export", "exported", "saved", "savedmodel")
_DATA_WORDS = ("data", "dataset", "datasets", "input", "inputs", "mnist", "images", "corpus", "tfrecord", "tfrecords")
_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Mount:
    """A volume in the container. `source`: what is mounted; empty for what goes with the pod."""

    path: str
    volume: str
    kind: str
    source: str
    words: str
    field: str
    read_only: bool = False

    @property
    def keeps_files(self) -> bool:
        return self.kind in _REMOTE

    def holds(self, path: str) -> bool:
        """Whether this absolute path lies on the volume."""
        base = self.path.rstrip("/")
        return path == self.path or path.startswith(f"{base}/")

    @property
    def dataset(self) -> str:
        """What the dataset with its files may be called."""
        plain = _NAME.sub("-", posixpath.basename(self.source.rstrip("/")) or self.volume).strip("-.")
        return plain[:100] or "data"


def mounts_of(pod: Part, container: Part) -> list[Mount]:
    """The mounts of a container, with what they mount."""
    volumes = {one.text("name"): one for one in pod.parts("volumes")}
    found = []
    for one in container.parts("volumeMounts", MOST_MOUNTS):
        name, path = one.text("name"), posixpath.normpath(one.text("mountPath") or "/")
        one.skip("mountPropagation", "recursiveReadOnly")
        sub_path = one.text("subPath") or one.text("subPathExpr")
        kind, source, words = _source_of(volumes.get(name))
        if sub_path:
            source, words = f"{source}/{sub_path}", f"{words}, its folder {shorten(sub_path)}"
        found.append(Mount(path, name, kind, source, words, one.field, one.truth("readOnly")))
    container.skip("volumeDevices")
    return found


def _source_of(volume: Part | None) -> tuple[str, str, str]:
    if volume is None:
        return "", "", "a volume that the pod does not have"
    for kind, (key, words) in _REMOTE.items():
        if volume.has(kind):
            name = volume.part(kind).text(key)
            return kind, name, f"{words} {shorten(name)}"
    for kind in ("emptyDir", "configMap", "secret", "projected", "downwardAPI"):
        if kind in dict(volume.items()):
            part = volume.part(kind)
            name = part.text("name") or part.text("secretName") if kind in ("configMap", "secret") else ""
            medium = part.text("medium") if kind == "emptyDir" else ""
            return kind, name, f"the {kind} {shorten(name)}".strip() + (" in memory" if medium else "")
    kinds = ", ".join(key for key, _ in volume.items() if key != "name")
    return "other", volume.text("name"), f"a volume of the kind {shorten(kinds)}"


def purpose_of(name: str) -> str:
    """What a flag, a variable, a path or a volume of this name is for: `data`, `log`, `model`, or empty."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    if len(words) > 1 and words[-1] in ("dir", "directory", "path", "root", "folder"):
        words = words[:-1]
    if any(word in _DATA_WORDS for word in words):
        return "data"
    if any(word in _MODEL_WORDS for word in words):
        return "model"
    return "log" if any(word in _LOG_WORDS for word in words) else ""


class Places:
    """Where a script that was given paths of volumes finds the same files in a job's task. `given`: the names of flags
    and variables with their values; `script`: where it lay, if on a volume."""

    def __init__(self, mounts: Sequence[Mount], script: str, given: Iterable[tuple[str, str]]) -> None:
        self.mounts = sorted(mounts, key=lambda one: -len(one.path))
        self._script = script
        self._kept: dict[str, list[str]] = {"log": [], "model": []}
        paths = [(purpose_of(name), posixpath.normpath(value)) for name, value in given if value.startswith("/")]
        on: dict[Mount | None, list[tuple[str, str]]] = {}
        for pair in paths:
            on.setdefault(self._mount(pair[1]), []).append(pair)
        found = ((one, self._data_on(one, on.get(one, []))) for one in mounts)
        self._roots = {one: root for one, root in found if root}

    def _mount(self, path: str) -> Mount | None:
        return next((one for one in self.mounts if one.holds(path)), None)

    def _has_code(self, one: Mount) -> bool:
        return bool(self._script) and one.holds(self._script)

    def _data_on(self, one: Mount, paths: Sequence[tuple[str, str]]) -> str:
        """The folder of the volume that holds data; empty where none does."""
        own = purpose_of(f"{one.path}/{one.volume}")
        if not one.keeps_files or self._has_code(one):
            return ""
        data = [path for purpose, path in paths if purpose == "data" or (not purpose and own in ("", "data"))]
        if not paths:
            return one.path if one.read_only or own in ("", "data") else ""
        if len(data) == len(paths) or one.read_only:
            return one.path
        folders = [posixpath.dirname(path) if posixpath.splitext(path)[1] else path for path in data]
        return posixpath.commonpath(folders) if folders else ""

    @property
    def inputs(self) -> list[dict[str, str]]:
        """One input for each volume with data: the one there is has no name, of several each has its own."""
        found = [{"dataset": self._dataset(one), "name": self._name(one)} for one in self._roots]
        return found if len(found) > 1 else [{"dataset": one["dataset"]} for one in found]

    def in_task(self, name: str, value: str) -> str | None:
        """The value of a flag or variable `name` that is a path, as a job's task knows it; None: it stays as it is."""
        if not value.startswith("/"):
            return None
        path, purpose = posixpath.normpath(value), purpose_of(name)
        mount = self._mount(path)
        if mount is None or not mount.keeps_files:
            return self._result(purpose, path) if purpose in ("log", "model") else None
        if self._has_code(mount):
            return None
        if purpose not in ("log", "model") and mount in self._roots:
            return self._of_data(mount, path)
        return self._result(purpose or purpose_of(f"{mount.path}/{mount.volume}"), path)

    def _of_data(self, mount: Mount, path: str) -> str:
        folder = "$DATA_DIR" if len(self._roots) == 1 else f"$DATA_DIR/{self._name(mount)}"
        root = self._roots[mount].rstrip("/")
        return folder + (path[len(root) :] if path.startswith(f"{root}/") else "")

    def _dataset(self, mount: Mount) -> str:
        below = self._roots[mount][len(mount.path.rstrip("/")) :].strip("/")
        return replace(mount, source=f"{mount.source}-{below.replace('/', '-')}" if below else mount.source).dataset

    def _name(self, mount: Mount) -> str:
        """Of its input: the names of volumes differ, but one volume may be mounted twice."""
        same = [one for one in self._roots if one.volume == mount.volume]
        ending = f"-{same.index(mount) + 1}" if len(same) > 1 else ""
        return (_NAME.sub("-", mount.volume).strip("-._") or "data")[:90] + ending

    def _result(self, purpose: str, path: str) -> str:
        """The directory for it; a second path of the same purpose is a folder in that."""
        kept = self._kept["model" if purpose == "model" else "log"]
        if path not in kept:
            kept.append(path)
        folder = "$MODEL_DIR" if purpose == "model" else "$LOG_DIR"
        return folder if path == kept[0] else f"{folder}/{posixpath.basename(path)}"

    def list_mounts(self, findings_of: Part) -> None:
        """What became of each volume."""
        for one in self.mounts:
            kind, message, remedy = self._words(one)
            upload = f"dataset:{self._dataset(one)}" if one in self._roots and not self._has_code(one) else ""
            findings_of.findings.note(kind, one.field, message, remedy, upload)

    def _words(self, one: Mount) -> tuple[Kind, str, str]:
        where = f"{shorten(one.path)} was {one.words}"
        if self._has_code(one):
            return Kind.TO_DO, f"{where}, with the script.", "Upload its files as the code."
        if one in self._roots:
            name, root = self._dataset(one), self._roots[one]
            place = self._of_data(one, root)
            message = f"{where}: {shorten(root)} is now the input {name}, which tasks find at {place}."
            remedy = f"Upload its files as a dataset: yardmaster datasets upload FOLDER --name {name}"
            return Kind.TO_DO, message, remedy
        if one.keeps_files:
            message = f"{where}: here $LOG_DIR, $MODEL_DIR and the working folder are kept."
            return Kind.CHANGED, message, ""
        kind, what, remedy = _WITH_THE_POD.get(one.kind, _LEFT_OUT)
        return kind, where + what, remedy


_LEFT_OUT = (Kind.LEFT_OUT, ", which is left out.", "")
_WITH_THE_POD = {
    "emptyDir": (Kind.TAKEN, ": a task has its own /tmp, /dev/shm and working folder.", ""),
    "configMap": (Kind.TO_DO, ", which is left out.", "Put its files into the code."),
    "secret": (
        Kind.TO_DO,
        ", which is left out.",
        "Create a secret of the namespace for each file, and add secrets with file to the job file.",
    ),
}
"""By kind: what became of it, in words, and what to do."""
