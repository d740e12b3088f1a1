"""Inputs of many files: what is asked for while they are put in place."""

from __future__ import annotations

from pathlib import Path

from yardmaster_runner.order import Bundle, FilesPage, RemoteFile
from yardmaster_runner.stage import Stager, just_before

FILES = [RemoteFile(f"{number:02}.bin", 1, "", "http://store/") for number in range(7)]


def _after(path: str) -> FilesPage:
    rest = [file for file in FILES if file.path > path]
    return FilesPage(tuple(rest[:3]), rest[2].path if len(rest) > 3 else "")


def test_what_stands_just_before_a_path_is_before_it_and_behind_the_one_before():
    for path in ("a", "a/b", "ab!", "\ue000", "名", "0", "\x01"):
        before = just_before(path)
        assert before < path
        before.encode()
    assert "09.bin" < just_before("10.bin") < "10.bin"
    assert _after(just_before("04.bin")).files[0].path == "04.bin"


def test_each_page_has_notes_of_its_own(tmp_path: Path, monkeypatch):
    asked: list[str] = []

    def fetched(stager, version, bundle, file):
        Path(version.path_of(file)).write_bytes(b"x")

    def more(version: str, after: str) -> FilesPage:
        asked.append(after)
        return _after(after)

    monkeypatch.setattr(Stager, "_fetch", fetched)
    first = _after("")
    bundle = Bundle("v1", "", first.files, next=first.next)
    (tmp_path / "cache").mkdir()
    Stager(None, str(tmp_path / "cache"), None, more).place(bundle, str(tmp_path / "data"), is_copied=False)
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [file.path for file in FILES]
    assert asked == ["02.bin", "05.bin"]
    assert sorted(path.name for path in (tmp_path / "cache").glob("*.checked*")) == [
        "v1.checked", "v1.checked-1", "v1.checked-2",
    ]  # fmt: skip
    monkeypatch.setattr(Stager, "_fetch", None)  # nothing is fetched again
    Stager(None, str(tmp_path / "cache"), None, more).place(bundle, str(tmp_path / "again"), is_copied=False)
    assert len(list((tmp_path / "again").iterdir())) == 7
