"""A machine without a browser: what needs one says so in one line, and the rest is measured."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bench import log_viewer, pages, running
from tests.bench.lines import Line
from tests.browser import screenshots
from tests.browser.visitor import NoChromium, chromium, lacks_chromium


@pytest.fixture
def no_chromium(monkeypatch, tmp_path):
    monkeypatch.delenv("YARDMASTER_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


@contextmanager
def nothing():
    yield None


def other():
    yield Line("something else", 1, at_most=2)


def test_it_is_said_what_is_missing(no_chromium):
    assert lacks_chromium() == "no Chromium (Debian: apt install chromium)"
    with pytest.raises(NoChromium, match="apt install chromium"), chromium():
        pass


def test_a_browser_on_the_path_is_found(no_chromium, tmp_path):
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert lacks_chromium() == ""


def test_a_named_browser_must_be_there(monkeypatch, tmp_path):
    missing = tmp_path / "none"
    monkeypatch.setenv("YARDMASTER_CHROMIUM", str(missing))
    assert lacks_chromium() == f"no Chromium: YARDMASTER_CHROMIUM={missing} is not a program"


def test_benchmarks_without_a_browser_say_so_and_the_others_run(no_chromium, monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(running, "RESULTS", tmp_path)
    running.run({"viewer": log_viewer.measure, "other": other}, [])
    said = capfd.readouterr()
    assert "log viewer: not measured: no Chromium (Debian: apt install chromium)\n" in said.out
    assert "1 of 1 lines ok" in said.out
    assert said.err == ""


def test_pages_are_measured_but_for_what_a_browser_sees(no_chromium, monkeypatch, capsys):
    rest = [Line("statements", 1), Line("sockets", 2)]
    monkeypatch.setattr(pages, "world", nothing)
    monkeypatch.setattr(pages, "_statements", lambda full: rest[:1])
    monkeypatch.setattr(pages, "_idle_sockets", lambda full: rest[1:])
    assert list(pages.measure()) == rest
    assert capsys.readouterr().out == (
        "pages: first views are not measured: no Chromium (Debian: apt install chromium)\n"
    )


def test_screenshots_say_so_and_fail_before_a_portal_starts(no_chromium, tmp_path: Path, capsys):
    assert screenshots.main(tmp_path / "pictures", []) == 1
    said = capsys.readouterr()
    assert said.err == "No pictures: no Chromium (Debian: apt install chromium).\n"
    assert not (tmp_path / "pictures").exists()
