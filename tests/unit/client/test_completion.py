"""Completion: which words may follow, in real shells too, and with names that were made to do harm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.real.portal import ROOT
from tests.unit.client.flaky_server import FlakyServer
from yardmaster_client.cli import completion_names
from yardmaster_client.cli.completing import Word, candidates
from yardmaster_client.cli.completion import words_of
from yardmaster_client.cli.main import app, run

COMMAND = typer.main.get_command(app)
NAMES = {
    "jobs": ["digits", "reviews"],
    "datasets": ["mnist"],
    "namespaces": ["vision"],
    "models": ["m1"],
    "code": ["c1"],
}


def words(*typed: str) -> list[str]:
    asked = candidates(COMMAND, typed, lambda subject, begins: [Word(one) for one in NAMES.get(subject, ())])
    return [one.value for one in asked]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["jobs", "wa"], ["wait"]),
        (["jobs", "show", ""], ["digits", "reviews"]),
        (["jobs", "wait", "digits", "re"], ["reviews"]),
        (["jobs", "show", "digits", ""], []),
        (["jobs", "wait", "--timeout", ""], []),
        (["jobs", "wait", "--timeout", "5", "dig"], ["digits"]),
        (["jobs", "wait", "--timeout=5", "dig"], ["digits"]),
        (["jobs", "wait", "--quiet", "dig"], ["digits"]),
        (["jobs", "list", "--phase", "RUN"], ["RUNNING"]),
        (["jobs", "list", "-n", ""], ["vision"]),
        (["jobs", "list", "--namespace", "v"], ["vision"]),
        (["datasets", "show", "m"], ["mnist"]),
        (["models", "batch", "m1", "--dataset", "m"], ["mnist"]),
        (["models", "promote", "m1", "--to", "p"], ["production"]),
        (["code", "open", ""], ["c1"]),
        (["tensorboard", "digits", "r"], ["reviews"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["login", "--scope", "da"], ["data"]),
        (["jobs", "launch", "job"], []),
        (["jobs", "show", "--", "--"], []),
        (["nonsense", "wait", ""], []),
        (["jobs", "nonsense", ""], []),
    ],
)
def test_what_may_follow(typed: list[str], expected: list[str]):
    assert words(*typed) == expected


def test_commands_and_options_are_those_that_there_are():
    assert {"login", "jobs", "datasets", "models", "completion"} <= set(words(""))
    assert "_complete" not in words("")
    assert {"--timeout", "--quiet", "--json", "--help"} == set(words("jobs", "wait", "-"))
    assert words("lo") == ["login", "logout"]
    assert words("login", "--ur") == [], "hidden options stay hidden"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("yardmaster jobs sh", ["yardmaster", "jobs", "sh"]),
        ("yardmaster jobs ", ["yardmaster", "jobs", ""]),
        ("yardmaster  jobs show 'my jo", ["yardmaster", "jobs", "show", "my jo"]),
        ('yardmaster jobs show "my jo', ["yardmaster", "jobs", "show", "my jo"]),
        ("yardmaster jobs show my\\ jo", ["yardmaster", "jobs", "show", "my jo"]),
        ("yardmaster jobs show my\\ ", ["yardmaster", "jobs", "show", "my "]),
        ("yardmaster jobs show my\\", ["yardmaster", "jobs", "show", "my"]),
        ("yardmaster jobs show 'my ", ["yardmaster", "jobs", "show", "my "]),
        ("", [""]),
    ],
)
def test_a_line_is_taken_apart_as_a_shell_does_it(line: str, expected: list[str]):
    assert words_of(line) == expected


HARM = ["$(touch harmed)", "`touch harmed`", "; touch harmed", "'; touch harmed; '", '"$(touch harmed)"', "two words"]
HIDDEN = ["line\nbreak", "tab\tbed", "\x1b]0;title\x07", "x" * 101, "\u202eabc"]

LONG = 20.0
"""Seconds that are granted to a portal that answers."""
PROGRAM = f"""import runpy
from yardmaster_client.cli import completion_names
completion_names.PATIENCE = {LONG}
runpy.run_module("yardmaster_client", run_name="__main__")
"""


@pytest.fixture
def portal(server: FlakyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FlakyServer:
    rows = [{"id": f"{number}2345678-0000-7000-8000-000000000000", "name": name, "phase": "RUNNING"}
            for number, name in enumerate([*HARM, *HIDDEN])]  # fmt: skip
    server.answers = [(200, {"results": rows, "next": None})]
    monkeypatch.setattr(completion_names, "PATIENCE", LONG)
    monkeypatch.setenv("YARDMASTER_URL", server.url)
    monkeypatch.setenv("YARDMASTER_TOKEN", "secret-token")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return server


def test_names_are_asked_for_once_a_minute_and_kept_for_their_owner(portal: FlakyServer, tmp_path: Path, monkeypatch):
    assert [name for name, _ in completion_names.names_of("jobs")] == HARM
    assert completion_names.names_of("jobs", "two")[-1] == ("two words", "RUNNING")
    assert len(portal.asked) == 1
    (file,) = (tmp_path / "cache").rglob("*.json")
    assert file.stat().st_mode & 0o777 == 0o600
    assert "secret-token" not in file.read_text() + str(file)
    monkeypatch.setattr(completion_names, "FRESH", 0.0)
    portal.answers = [(500, {})]
    assert [name for name, _ in completion_names.names_of("jobs")] == HARM, "what was kept is better than nothing"
    assert len(portal.asked) == 2
    monkeypatch.setenv("YARDMASTER_TOKEN", "anothers")
    assert completion_names.names_of("jobs") == []


def test_ids_are_completed_where_no_name_begins_so(portal: FlakyServer):
    found = completion_names.names_of("jobs", "12345")
    assert found[1][0].startswith("12345678-")


def test_a_portal_that_is_slow_or_away_holds_no_key_up(portal: FlakyServer, monkeypatch, capsys):
    release = threading.Event()

    def slow(asked: Any) -> tuple[int, Any]:
        release.wait(60)
        return 200, {"results": [], "next": None}

    monkeypatch.setattr(completion_names, "PATIENCE", 0.05)
    portal.by_path = slow
    try:
        assert run(["_complete", "--", "yardmaster", "jobs", "show", ""]) == 0
    finally:
        release.set()
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("kept", ["", "[]", '{"at": "x"}', '{"at": 1e12, "rows": [{}]}', '{"at": 0, "rows": 3}'])
def test_a_broken_cache_is_no_cache(portal: FlakyServer, tmp_path: Path, kept: str):
    completion_names.names_of("jobs")
    (file,) = (tmp_path / "cache").rglob("*.json")
    file.write_text(kept)
    assert [name for name, _ in completion_names.names_of("jobs")] == HARM


def test_without_a_sign_in_there_are_no_names(monkeypatch, tmp_path: Path, capsys):
    for name in ("YARDMASTER_URL", "YARDMASTER_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert run(["_complete", "--", "yardmaster", "jobs", "show", ""]) == 0
    assert capsys.readouterr() == ("", "")


class InShell:
    """Runs a shell in which the command is found, and no file was made by what it completed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        command, program = folder / "bin" / "yardmaster", folder / "program.py"
        program.write_text(PROGRAM)
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n')
        command.chmod(0o755)

    def __call__(self, shell: str, script: str) -> list[str]:
        words = {"bash": ["--norc", "--noprofile", "-c"], "zsh": ["-f", "-c"], "fish": ["--no-config", "-c"]}[shell]
        told = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT / "platform"), "HOME": str(self.folder)}  # fmt: skip
        done = subprocess.run([shell, *words, script], env=told, cwd=self.folder, capture_output=True, text=True,
                              check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert not (self.folder / "harmed").exists()
        return done.stdout.splitlines()


@pytest.fixture
def shell(portal: FlakyServer, tmp_path: Path) -> InShell:
    return InShell(tmp_path)


def in_bash(line: str) -> str:
    return f"""source <(yardmaster completion bash)
        COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}
        _yardmaster yardmaster; [ ${{#COMPREPLY[@]}} = 0 ] || printf '%s\\n' "${{COMPREPLY[@]}}" """


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_in_bash(shell: InShell):
    assert shell("bash", in_bash("yardmaster jobs wai")) == ["wait"]
    offered = shell("bash", in_bash("yardmaster jobs show "))
    assert len(offered) == len(HARM)
    for name, word in zip(HARM, offered, strict=True):
        assert shell("bash", f"printf '%s\\n' {word}") == [name], "the shell reads the word as the name"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh")
def test_in_zsh(shell: InShell):
    script = """compdef() { true }; source <(yardmaster completion zsh)
        compadd() { print -l -- "${values[@]}" }; _files() { print files }
        words=(yardmaster jobs show ''); CURRENT=4; _yardmaster
        words=(yardmaster jobs launch ''); CURRENT=4; _yardmaster"""
    assert shell("zsh", script) == [*HARM, "files"]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("fish"), reason="no fish")
def test_in_fish(shell: InShell):
    script = "yardmaster completion fish | source; complete --do-complete 'yardmaster jobs show '"
    offered = shell("fish", script)
    assert [one.partition("\t")[0] for one in offered if one.endswith("RUNNING")] == HARM


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_no_script_evaluates_what_it_reads(capsys, name: str):
    assert run(["completion", name]) == 0
    script = capsys.readouterr().out
    assert "_complete" in script
    assert "eval" not in script
    assert run(["completion", "tcsh"]) == 2
