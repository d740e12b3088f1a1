"""A version's files here: code as a folder to work in and back, datasets at hand without a second download."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_code_is_opened_changed_and_saved_as_a_new_version(yardmaster, ada, tmp_path: Path, script: Path):
    (script / ".ipynb_checkpoints").mkdir()
    (script / ".ipynb_checkpoints" / "x.py").write_text("")
    assert yardmaster("code", "save", script, "opened", "--note", "first").code == 0
    done = yardmaster("code", "open", "opened")
    assert done.code == 0, done.err
    place = tmp_path / "opened"
    assert [path.name for path in place.iterdir()] == ["train.py"]
    assert yardmaster("code", "save", "opened", "--json").json["latest"]["number"] == 1, "nothing has changed"
    (place / "train.py").write_text("print('changed')\n")
    assert yardmaster("code", "save", "opened", "--json").json["latest"]["number"] == 2
    assert yardmaster("code", "open", "opened@1", "before").code == 0
    assert (tmp_path / "before" / "train.py").read_text() == "print('hello')\n"
    ada.code.delete(ada.code.find("opened").id)


def test_a_folder_with_files_is_not_opened_into(yardmaster, ada, tmp_path: Path, script: Path):
    ada.code.save(script, "precious")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "mine.py").write_text("unsaved")
    refused = yardmaster("code", "open", "precious")
    assert refused.code == 2
    assert "new or empty" in refused.err
    assert [path.name for path in (tmp_path / "precious").iterdir()] == ["mine.py"]
    ada.code.delete(ada.code.find("precious").id)


def test_a_version_is_downloaded_once_and_each_has_a_folder_of_its_own(ada, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "rows.csv"
    places = []
    for text in ("a,b\n1,2\n", "a,b\n3,4\n"):
        source.write_text(text)
        ada.datasets.put("kept-here", [source])
        places.append(ada.datasets.local("kept-here"))
    assert [(place / "rows.csv").read_text() for place in places] == ["a,b\n1,2\n", "a,b\n3,4\n"]
    monkeypatch.setattr(ada.datasets, "download", lambda *_: pytest.fail("it is here already"))
    assert ada.datasets.local("kept-here@1") == places[0]
    assert not list((tmp_path / "cache").rglob("*.part"))
    ada.datasets.delete(ada.datasets.find("kept-here").id)


def test_a_download_that_was_cut_off_is_no_version(ada, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "rows.csv").write_text("a\n1\n")
    ada.datasets.put("cut-off", [tmp_path / "rows.csv"])
    with monkeypatch.context() as patched:
        patched.setattr(ada.datasets, "download", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ada.datasets.local("cut-off")
    assert (ada.datasets.local("cut-off") / "rows.csv").read_text() == "a\n1\n"
    ada.datasets.delete(ada.datasets.find("cut-off").id)
