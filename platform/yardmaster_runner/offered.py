"""What a script may import of ours: `yardmaster_runner.data`, copied into a folder of its own in the work folder. Where
the job wants something done in the script's process (TensorFlow 1 mode, a notebook), `yardmaster_runner.in_script` lies
there, too.

The folder that the runner itself was found in stays out of the script's module path, since its neighbours are not the
script's (`launch`), and the runner may be one file. Beside the package lies a file that tells the script where its data
is, what `fsspec` needs to find our file system for `s3://`, and what has the script write its stacks on a signal
(`stacks`).
"""

from __future__ import annotations

import ipaddress
import json
import os
import pkgutil
from types import ModuleType
from typing import Any, Container, Dict, List, Optional

import yardmaster_runner.data
import yardmaster_runner.in_script
from yardmaster_runner.entry_point import is_notebook
from yardmaster_runner.order import Order
from yardmaster_runner.settings import Settings

VARIABLE = "YARDMASTER_DATA"
"""Names the file that says which inputs there are."""
METADATA = {
    "METADATA": "Metadata-Version: 2.1\nName: yardmaster-data\nVersion: 1\n",
    "entry_points.txt": "[fsspec.specs]\n"
    "s3 = yardmaster_runner.data.s3:MappedFileSystem\n"
    "s3a = yardmaster_runner.data.s3:MappedFileSystem\n",
}
INIT = '"""The part of Yardmaster\'s runner that scripts may use: `yardmaster_runner.data`."""\n'


def folder_in(work_dir: str) -> str:
    """What stands in the script's `PYTHONPATH`."""
    return os.path.join(work_dir, "offered")


def inputs_file_in(work_dir: str) -> str:
    return os.path.join(work_dir, "inputs.json")


def tf1_folder_in(work_dir: str) -> str:
    """What stands first in the script's `PYTHONPATH` in TensorFlow 1 mode, before a `sitecustomize` of the code."""
    return os.path.join(work_dir, "tf1")


def make(work_dir: str, order: Order) -> None:
    """Copy the packages. Raises `OSError`."""
    top = folder_in(work_dir)
    _write(os.path.join(top, "yardmaster_runner", "__init__.py"), INIT)
    _copy(yardmaster_runner.data, top)
    start = pkgutil.get_data("yardmaster_runner", "script_start.py") or b""
    first = tf1_folder_in(work_dir) if order.tf1 else top
    _write(os.path.join(first, "sitecustomize.py"), start.decode())
    for name, text in METADATA.items():
        _write(os.path.join(top, "yardmaster_data-1.dist-info", name), text)
    if order.tf1 or order.is_spark or is_notebook(order.entry_point):
        _copy(yardmaster_runner.in_script, top)


def _copy(package: ModuleType, top: str) -> None:
    """The package with those below it, through the loader: the runner may be one file."""
    paths = ["__init__.py"]
    for one in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        path = one.name[len(package.__name__) + 1 :].replace(".", "/")
        paths.append(path + ("/__init__.py" if one.ispkg else ".py"))
    for path in paths:
        source = pkgutil.get_data(package.__name__, path) or b""
        _write(os.path.join(top, *package.__name__.split("."), *path.split("/")), source.decode())


def describe_inputs(
    settings: Settings, order: Order, folders: Dict[str, str], socket: Optional[str], partial: Container[str] = ()
) -> None:
    """Write the file that `VARIABLE` names; `folders` are the inputs' own, by name. Those in `partial` have only some
    of their shards there. Raises `OSError`."""
    part = order.part_of(settings.role, settings.index)
    inputs = [
        {
            "name": one.name,
            "dataset": one.dataset,
            "folder": folders[one.name],
            "version": one.version,
            "mode": "stream" if one.is_streamed else "folder",
            "share": "shards" if one.is_divided else "all",
            "partial": one.name in partial,
            "stands_for": one.stands_for,
        }
        for one in order.inputs
    ]
    said: Dict[str, Any] = {
        "socket": socket, "stream_bytes": order.limits.stream_bytes, "part": part, "inputs": inputs,
        "machines": machines(settings, order),
    }  # fmt: skip
    _write(inputs_file_in(settings.work_dir), json.dumps(said))


def machines(settings: Settings, order: Order) -> List[str]:
    """The addresses of the machines that the tasks which train run on, by their part; the same in every task. Empty if
    they all run on one, if only their names are known, and if the tasks have no way to agree."""
    if not order.agrees or order.part_of(settings.role, settings.index) is None:
        return []
    ends = [end for role in ("chief", "worker") for end in settings.cluster.get(role, ())]
    found = [end.rpartition(":")[0].strip("[]") for end in ends]
    wanted = order.replicas.get("chief", 0) + order.replicas.get("worker", 0)
    return found if len(found) == wanted and len(set(found)) > 1 and all(map(_is_address, found)) else []


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)
