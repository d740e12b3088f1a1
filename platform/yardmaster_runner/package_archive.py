"""A set of installed packages as one archive: packed where pip has installed it, unpacked into the own Python of
another task (`own_python`). It comes from a task of the same namespace, so it is read as what a user supplies.
"""

from __future__ import annotations

import io
import os
import sysconfig
import tarfile
from typing import Iterator, Tuple

NAME = "packages.tar.gz"
MOST_FILES = 200_000
_OURS = frozenset({"beneath.pth", "pyvenv.cfg"})
_PYTHONS = ("python", "pip")
"""How the names of an environment's own programs begin."""
_MARK = b"@yardmaster-python@"
"""In the first lines of programs, in the place of the interpreter of the environment that they were installed into."""
_LONGEST_SCRIPT = 1 << 20


class BadArchive(Exception):
    """It is not what `pack` makes, or larger than is allowed."""


def size_of(python_folder: str) -> int:
    """Bytes of what is installed there."""
    return sum(os.path.getsize(path) for path, _ in _files(python_folder))


def pack(python_folder: str, target: str) -> None:
    """Write what is installed below this folder, without what `own_python` made. Raises OSError."""
    interpreter = os.path.join(python_folder, "bin", "python").encode()
    with tarfile.open(target, "w:gz", compresslevel=1) as archive:
        for path, name in _files(python_folder):
            if name.startswith("bin/"):
                _add_program(archive, path, name, interpreter)
            else:
                archive.add(path, name, recursive=False, filter=_plain)


def unpack(source: str, python_folder: str, limit: int) -> None:
    """Put the files below this folder. Raises `BadArchive`, where it may have put some, and OSError."""
    interpreter = os.path.join(python_folder, "bin", "python").encode()
    size = files = 0
    try:
        with tarfile.open(source, "r:gz") as archive:
            for member in archive:
                size, files = size + member.size, files + 1
                if size > limit or files > MOST_FILES:
                    raise BadArchive("they take more than the %d bytes that are allowed" % limit)
                _place(archive, member, python_folder, interpreter)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise BadArchive("the archive is damaged: %s" % error) from error


def _place(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: str, interpreter: bytes) -> None:
    parts = member.name.split("/")
    if not member.isreg() or parts[0] not in ("bin", _library()) or any(one in ("", ".", "..") for one in parts):
        raise BadArchive("%r has no place in it" % member.name[:200])
    opened = archive.extractfile(member)
    assert opened is not None, "it is a regular file"
    target = os.path.join(folder, *parts)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target + ".new", "wb") as file:
        if parts[0] == "bin" and member.size <= _LONGEST_SCRIPT:
            file.write(opened.read().replace(_MARK, interpreter))
        else:
            while piece := opened.read(1 << 20):
                file.write(piece)
    os.chmod(target + ".new", 0o755 if member.mode & 0o100 else 0o644)
    os.utime(target + ".new", (member.mtime, member.mtime))  # compiled modules name the time of their source
    os.replace(target + ".new", target)


def _add_program(archive: tarfile.TarFile, path: str, name: str, interpreter: bytes) -> None:
    with open(path, "rb") as file:
        content = file.read(_LONGEST_SCRIPT + 1)
    if len(content) > _LONGEST_SCRIPT or content[:2] != b"#!":
        archive.add(path, name, recursive=False, filter=_plain)
        return
    content = content.replace(interpreter, _MARK)
    entry = _plain(archive.gettarinfo(path, name))
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _files(python_folder: str) -> Iterator[Tuple[str, str]]:
    """The installed regular files and their names in the archive. Links are none of wheels' files."""
    for top in ("bin", _library()):
        for parent, folders, names in os.walk(os.path.join(python_folder, top)):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(parent, name)
                is_own = name in _OURS or (top == "bin" and name.startswith(_PYTHONS))
                if not is_own and os.path.isfile(path) and not os.path.islink(path):
                    yield path, os.path.relpath(path, python_folder).replace(os.sep, "/")


def _library() -> str:
    """`lib`: below an environment, the folder that has the packages."""
    scheme = "venv" if "venv" in sysconfig.get_scheme_names() else "posix_prefix"
    return sysconfig.get_path("purelib", scheme, {"base": "", "platbase": ""}).strip(os.sep).split(os.sep)[0]
