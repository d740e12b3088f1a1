"""What others wrote does nothing to the terminal or the files of who looks at it."""

from __future__ import annotations

import io
import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.text import Text

from yardmaster_client.cli import buckets, making, output
from yardmaster_client.cli.job_code import fetched
from yardmaster_client.cli.logs import _writer
from yardmaster_client.cli.task_command import connecting
from yardmaster_client.downloads import folder_named
from yardmaster_client.git import GitImport
from yardmaster_client.jobfile import JobFileError, read_job_file
from yardmaster_client.models import LogLine
from yardmaster_client.portal import Yardmaster

HOSTILE = "a\x1b]0;title\x07b\x1b[2Jc\x9b2Jd\re\x08f\u202eg\x7f[link=https://evil.example]h"
_OWN = re.compile("\x1b\\[[0-9;]*m")
_LEFT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture(autouse=True)
def _a_terminal(monkeypatch):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "300"}.items():
        monkeypatch.setenv(name, value)


def harmless(printed: str) -> str:
    """What was printed, without the colours of our own."""
    text = _OWN.sub("", printed)
    assert not _LEFT.search(text), repr(text)
    assert "[link=https://evil.example]h" in text
    return text


def test_tables_and_facts_show_control_characters_and_send_none(capsys):
    output.print_table(["NAME", HOSTILE], [[HOSTILE, Text(HOSTILE, style="red")]])
    output.print_facts([(HOSTILE, HOSTILE)])
    assert "\ufffd" in harmless(capsys.readouterr().out)


def test_sentences_and_errors_send_none(capsys):
    output.out().print(HOSTILE)
    output.notes().print(Text.assemble(("x", "bold"), HOSTILE))
    output.fail(ValueError(HOSTILE))
    seen = capsys.readouterr()
    harmless(seen.out)
    harmless(seen.err)


def shown_while_waiting(capsys) -> str:
    """What a wait wrote on the terminal, whose own signs redraw the line."""
    printed = capsys.readouterr().err
    for sent in ("\x1b]", "\x1b[2J", "\x07", "\x9b", "\x08", "\u202e", "\x7f"):
        assert sent not in printed, repr(printed)
    assert "a\ufffd]0;title\ufffdb" in printed
    assert "[link=https://evil.example]h" in printed
    return printed


def test_the_wait_for_code_from_git_sends_none(capsys):
    begun = GitImport("1", "fetching", repository="https://h/a", problem={"detail": HOSTILE})
    ready = GitImport("1", "ready", repository="https://h/a", commit="a" * 40, code_version="v1")

    def fetch(*, each, **wanted):
        each(begun)
        return ready

    portal = SimpleNamespace(code=SimpleNamespace(fetch=fetch))
    assert fetched(portal, "git+https://h/a", "", None) == "v1"
    assert "Trying again." in shown_while_waiting(capsys)

    portal.code.fetch = lambda **wanted: ready
    fetched(portal, f"git+https://h/{HOSTILE}", "", None)
    assert "Fetching git+https://h/" in shown_while_waiting(capsys)


def test_the_wait_for_a_dataset_sends_none(capsys, monkeypatch):
    def wait(made_id, each):
        each({"name": HOSTILE, "received": 5})
        return {"state": "ready", "name": "digits"}

    portal = SimpleNamespace(dataset_make=lambda *given, **more: {"id": "1"}, dataset_make_wait=wait)
    monkeypatch.setattr(Yardmaster, "from_environment", lambda: nullcontext(portal))
    making.make("keras/mnist")
    assert "5 B received" in shown_while_waiting(capsys)


def test_the_wait_for_a_scan_sends_none(capsys):
    def wait(bucket_id, each):
        each({"files": 5, "state": "scanning", "problem": {"detail": HOSTILE}})
        return {}

    buckets._waited(SimpleNamespace(bucket_wait=wait), "1")
    assert "5 objects so far" in shown_while_waiting(capsys)


def test_the_wait_for_a_task_sends_none(capsys):
    with connecting(HOSTILE):
        pass
    assert "Connecting to" in shown_while_waiting(capsys)


def test_json_sends_none_and_still_says_them(capsys):
    output.print_json({"name": HOSTILE})
    assert "\\u009b" in harmless(capsys.readouterr().out)


def test_log_lines_keep_their_colours_and_nothing_else():
    terminal = io.StringIO()
    console = Console(file=terminal, force_terminal=True, soft_wrap=True)
    _writer(console, with_task=True)(
        LogLine("worker", 0, 0, None, f"\x1b[31mred\x1b[0m {HOSTILE}".replace("\u202e", ""))
    )
    assert "\x1b[31mred" in terminal.getvalue()
    harmless(terminal.getvalue())


@pytest.mark.parametrize("name", ["../../.ssh", "/etc/cron.d", "..", ".", "", "~/x", "a\\b", ".config", "a/../../b"])
def test_what_is_downloaded_lands_in_a_folder_right_here(name):
    folder = folder_named(name)
    assert not folder.is_absolute()
    assert len(folder.parts) == 1
    assert not folder.name.startswith((".", "~"))


def test_a_plain_name_stays_as_it_is():
    assert folder_named("digits-2 v1.0") == Path("digits-2_v1.0")


def test_a_page_of_yaml_does_not_become_a_billion_values(tmp_path: Path):
    levels = [
        f"{'abcdefghij'[n]}: &{'abcdefghij'[n]} [{','.join(['*' + 'abcdefghij'[n - 1]] * 10)}]" for n in range(1, 10)
    ]
    merged = [f"l{n}: &l{n} {{<<: [{','.join([f'*l{n - 1}'] * 10)}]}}" for n in range(1, 10)]
    for text in (
        "a: &a [x]\n" + "\n".join(levels),
        "l0: &l0 {k: v}\n" + "\n".join(merged),
        "a: &a [*a]\n",
    ):
        file = tmp_path / "job.yaml"
        file.write_text(text)
        with pytest.raises(JobFileError, match="values"):
            read_job_file(file)


def test_aliases_that_save_writing_are_fine(tmp_path: Path):
    file = tmp_path / "job.yaml"
    file.write_text("roles:\n  chief: &one {cpu: 1}\n  worker: *one\n  ps: {<<: *one, memory: 1Gi}\n")
    assert read_job_file(file).spec["roles"]["ps"] == {"cpu": 1, "memory": "1Gi"}
