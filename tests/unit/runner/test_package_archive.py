"""An archive of installed packages: what goes in comes out elsewhere, and nothing else comes out."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest

from yardmaster_runner.package_archive import BadArchive, pack, size_of, unpack

LIBRARY = "lib/python3.11/site-packages"


def _installed(folder: Path) -> str:
    packages = folder / LIBRARY
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    (packages / "greet.py").write_text("word = 1\n")
    (packages / "beneath.pth").write_text("ours\n")
    (packages / "link.py").symlink_to("/etc/passwd")
    (folder / "pyvenv.cfg").write_text("home = /usr\n")
    (folder / "bin" / "python").symlink_to("/usr/bin/python3")
    (folder / "bin" / "pip").write_text("#!/bin/sh\n")
    (folder / "bin" / "greet").write_text(f"#!{folder}/bin/python\nimport greet\n")
    os.chmod(folder / "bin" / "greet", 0o755)
    os.utime(packages / "greet.py", (1_000_000, 1_000_000))
    return str(folder)


def test_programs_run_with_the_interpreter_of_the_place_that_they_are_unpacked_to(tmp_path: Path) -> None:
    archive, there = str(tmp_path / "packages.tar.gz"), tmp_path / "there"
    pack(_installed(tmp_path / "here"), archive)
    unpack(archive, str(there), 1 << 20)
    assert (there / "bin" / "greet").read_text() == f"#!{there}/bin/python\nimport greet\n"
    assert os.access(there / "bin" / "greet", os.X_OK)
    found = sorted(str(one.relative_to(there)) for one in there.rglob("*") if not one.is_dir())
    assert found == ["bin/greet", f"{LIBRARY}/greet.py"]
    assert (there / LIBRARY / "greet.py").stat().st_mtime == 1_000_000


def test_the_size_is_that_of_what_is_packed(tmp_path: Path) -> None:
    folder = _installed(tmp_path / "here")
    assert size_of(folder) == len("word = 1\n") + len(f"#!{folder}/bin/python\nimport greet\n")


def _archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> str:
    with tarfile.open(path, "w:gz") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return str(path)


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname = kind, target
    return found


@pytest.mark.parametrize(
    "member",
    [
        _member("../outside.py"),
        _member("/etc/cron.d/x"),
        _member("lib/../../outside.py"),
        _member("lib//x.py"),
        _member("pyvenv.cfg"),
        _member("code/train.py"),
        _member("lib/link", tarfile.SYMTYPE, "/etc"),
        _member("lib/hard", tarfile.LNKTYPE, "../../x"),
        _member("lib/device", tarfile.CHRTYPE),
        _member("lib/pipe", tarfile.FIFOTYPE),
    ],
    ids=lambda one: f"{one.name}-{one.type.decode()}",
)
def test_what_does_not_belong_in_it_is_refused(tmp_path: Path, member: tarfile.TarInfo) -> None:
    source = _archive(tmp_path / "bad.tar.gz", (member, b""))
    with pytest.raises(BadArchive, match="has no place"):
        unpack(source, str(tmp_path / "there"), 1 << 20)
    assert not (tmp_path / "outside.py").exists()


def test_more_than_the_limit_is_refused_before_it_is_written(tmp_path: Path) -> None:
    source = _archive(tmp_path / "large.tar.gz", (_member("lib/large.bin"), bytes(2 << 20)))
    with pytest.raises(BadArchive, match="allowed"):
        unpack(source, str(tmp_path / "there"), 1 << 20)
    assert not list((tmp_path / "there").rglob("*"))


@pytest.mark.parametrize(
    "content", [b"", b"no archive", gzip.compress(b"x" * 600)], ids=["empty", "not packed", "packed, but no tar"]
)
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.tar.gz").write_bytes(content)
    with pytest.raises(BadArchive, match="damaged"):
        unpack(str(tmp_path / "bad.tar.gz"), str(tmp_path / "there"), 1 << 20)
