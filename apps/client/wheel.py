"""The wheel of the command and SDK, made from the sources beside the portal: the same sources give the same bytes.

Two modules of the runner are part of it, under a name of their own: a session of the workbench has the whole runner,
which an incomplete package of the same name would hide. Files are stored, not compressed: what a compressor writes
depends on its version, and all processes of a portal must serve the same bytes.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import importlib.util
import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from yardmaster_client.version import VERSION

PACKAGE = "yardmaster_client"
DISTRIBUTION = "yardmaster-client"
FILE_NAME = f"{PACKAGE}-{VERSION}-py3-none-any.whl"
PYTHON = ">=3.11"
REQUIREMENTS = (
    "httpx2>=2.16,<3",
    "pyyaml>=6,<7",
    "rich>=14,<16",
    "typer>=0.20,<1",
    "urllib3>=2.5,<3",
    "websockets>=15,<18",
)
"""What the package imports, in ranges that leave pip a choice. A test compares them with the sources and the lock."""

_RUNNER = "yardmaster_runner"
_INSIDE = f"{PACKAGE}.from_runner"
_FROM_RUNNER = re.compile(rf"^(\s*)from {_RUNNER}\.(\w+) import ", re.MULTILINE)
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_METADATA = f"""Metadata-Version: 2.1
Name: {DISTRIBUTION}
Version: {VERSION}
Summary: The command and the Python SDK of Yardmaster, a self-hosted portal for distributed TensorFlow training.
Requires-Python: {PYTHON}
Classifier: Typing :: Typed
{{requirements}}
"""
_WHEEL = f"Wheel-Version: 1.0\nGenerator: yardmaster {VERSION}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_ENTRY_POINTS = f"[console_scripts]\nyardmaster = {PACKAGE}.cli:main\n"


@dataclass(frozen=True)
class Wheel:
    """A wheel file."""

    name: str
    content: bytes
    sha256: str


@cache
def wheel() -> Wheel:
    """Made once in each process: it takes some ten milliseconds."""
    content = wheel_of(package_files())
    return Wheel(FILE_NAME, content, hashlib.sha256(content).hexdigest())


def package_files() -> dict[str, bytes]:
    """The files of the package by their path in the wheel."""
    files = {f"{PACKAGE}/py.typed": b""}
    used: set[str] = set()
    for path, text in _sources(_folder_of(PACKAGE)):
        used |= {found[2] for found in _FROM_RUNNER.finditer(text)}
        files[f"{PACKAGE}/{path}"] = _from_inside(text).encode()
    inside = _INSIDE.replace(".", "/")
    files[f"{inside}/__init__.py"] = b'"""Modules of the runner that the client uses, too."""\n'
    for module in sorted(used):
        text = (_folder_of(_RUNNER) / f"{module}.py").read_text()
        files[f"{inside}/{module}.py"] = _standing_alone(module, text).encode()
    return files


def wheel_of(files: dict[str, bytes]) -> bytes:
    """A wheel of these files, with all that pip reads of it."""
    about = f"{PACKAGE}-{VERSION}.dist-info"
    requirements = "\n".join(f"Requires-Dist: {one}" for one in REQUIREMENTS)
    entries = {path: files[path] for path in sorted(files)} | {
        f"{about}/METADATA": _METADATA.format(requirements=requirements).encode(),
        f"{about}/WHEEL": _WHEEL.encode(),
        f"{about}/entry_points.txt": _ENTRY_POINTS.encode(),
        f"{about}/top_level.txt": f"{PACKAGE}\n".encode(),
    }
    record = "".join(f"{path},{_hash(content)},{len(content)}\n" for path, content in entries.items())
    entries[f"{about}/RECORD"] = f"{record}{about}/RECORD,,\n".encode()
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for path, content in entries.items():
            entry = zipfile.ZipInfo(path, _LONG_AGO)
            entry.create_system = 3  # Unix, wherever it is made
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)
    return target.getvalue()


def _sources(folder: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(folder.rglob("*.py")):
        yield file.relative_to(folder).as_posix(), file.read_text()


def _folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"The sources of {package} are not beside the portal.")
    return Path(next(iter(spec.submodule_search_locations)))


def _from_inside(text: str) -> str:
    return _FROM_RUNNER.sub(rf"\1from {_INSIDE}.\2 import ", text)


def _standing_alone(module: str, text: str) -> str:
    """Raises ValueError where the module imports more of the runner: the wheel would lack it."""
    for node in ast.walk(ast.parse(text)):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if any(name.partition(".")[0] == _RUNNER for name in names):
            raise ValueError(f"{_RUNNER}.{module} imports {names[0]}, which the client's wheel does not have.")
    return text


def _hash(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return f"sha256={digest.decode().rstrip('=')}"
