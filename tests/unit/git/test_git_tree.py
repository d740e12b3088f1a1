"""The files of a commit, from trees that no `git` would make."""

from __future__ import annotations

import io
import zipfile

import pytest

from yardmaster.git.refusals import Refused
from yardmaster.git.tree import Objects, TreeWriter

FILE, FOLDER, LINK, SUBMODULE = 0o100644, 0o040000, 0o120000, 0o160000
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


def written(trees, blobs, folder="", most_files=100, most_bytes=10_000):
    """Paths and contents, and what was noted. `trees`: of each id its entries."""
    objects = Objects(trees.__getitem__, blobs.__getitem__)
    writer = TreeWriter(objects, "root", most_files=most_files, most_bytes=most_bytes)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        found = writer.write(folder, archive, lambda written: None)
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}, found


def refused(trees, blobs, **more):
    with pytest.raises(Refused) as caught:
        written(trees, blobs, **more)
    return caught.value.reason


def test_files_and_links_to_files_are_written_and_the_rest_is_named():
    trees = {
        "root": [
            (b"a.py", FILE, "a"), (b"to_a", LINK, "to_a"), (b"lib", FOLDER, "lib"), (b"sub", SUBMODULE, "x"),
            (b"to_lib", LINK, "to_lib"), (b"gone", LINK, "gone"), (b"big", FILE, "lfs"), (b".GIT", FOLDER, "none"),
        ],
        "lib": [(b"b.py", FILE, "b"), (b"up", LINK, "up"), (b"around", LINK, "around")],
    }  # fmt: skip
    blobs = {"a": b"A", "b": b"B", "to_a": b"lib/../a.py", "to_lib": b"lib", "gone": b"nothing", "lfs": POINTER,
             "up": b"../a.py", "around": b"around"}  # fmt: skip
    files, found = written(trees, blobs)
    assert files == {"a.py": b"A", "to_a": b"A", "lib/b.py": b"B", "lib/up": b"A", "big": POINTER}
    assert found.noted == {"submodules": ["sub"], "lfs": ["big"], "links": ["to_lib", "gone", "lib/around"]}
    files, _ = written(trees, blobs, folder="lib")
    assert files == {"b.py": b"B", "up": b"A"}  # a link may lead out of the folder, not out of the repository


@pytest.mark.parametrize("target", [b"/etc/passwd", b"../x", b"lib/../../x", b"..", b"x" * 5_000])
def test_a_link_out_of_the_repository_is_refused(target):
    reason = refused({"root": [(b"a", LINK, "a")]}, {"a": target})
    assert (reason.code, reason.value) == ("git_link_outside", "a")


@pytest.mark.parametrize("name", [b"..", b".", b"", b"a/b", b"a\\b", b"\xff", b"a\0b"])
def test_a_name_that_is_none_is_refused(name):
    assert refused({"root": [(name, FILE, "a")]}, {"a": b""}).code == "git_path"


def test_a_folder_that_is_not_there_is_refused_with_those_that_are():
    trees = {"root": [(b"lib", FOLDER, "lib"), (b"a", FILE, "a")], "lib": []}
    reason = refused(trees, {}, folder="lob")
    assert (reason.code, reason.field, reason.value) == ("git_folder_not_found", "folder", "lob")
    assert "lib" in reason.remedy
    assert refused(trees, {}, folder="a").code == "git_folder_not_found"
    assert refused(trees, {}, folder="lib").code == "git_no_files"


def test_many_files_many_bytes_and_deep_folders_are_refused():
    many = {"root": [(b"%d" % number, FILE, "a") for number in range(101)]}
    assert refused(many, {"a": b""}).code == "git_too_many_files"
    assert refused({"root": [(b"a", FILE, "a")]}, {"a": b"x" * 10_001}).code == "git_too_large"
    deep = {"root": [(b"f", FOLDER, "root")]}  # a folder that holds itself: no hash allows it, a broken host may
    assert refused(deep, {}).code == "git_too_deep"
    wide = {f"t{n}": [(b"%d" % k, FOLDER, f"t{n + 1}") for k in range(10)] for n in range(20)} | {"t20": []}
    assert refused({"root": wide["t0"], **wide}, {}).code == "git_too_many_files"


def test_a_commit_without_all_of_its_objects_is_broken():
    assert refused({"root": [(b"a", FILE, "a")]}, {}).code == "git_broken"
    assert refused({"root": [(b"a", FOLDER, "a")]}, {}).code == "git_broken"
