"""What `yardmaster jobs show` and `jobs why` print: addresses of servers, reasons, and who holds what."""

from __future__ import annotations

from typing import Any

import pytest

from yardmaster_client.cli.job_views import print_job, print_why, verdict_of
from yardmaster_client.models import Job


def shown(capsys: pytest.CaptureFixture[str], **fields: Any) -> str:
    print_job(Job("0193", "servers", "RUNNING", strategy="in_graph", **fields), [])
    return capsys.readouterr().out


def test_while_its_servers_are_up_their_address_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    serving = {"target": "grpc://127.0.0.1:2222", "reach": "Only from this machine.", "data_dir": "", "servers": []}
    said = shown(capsys, serving=serving)
    assert "grpc://127.0.0.1:2222" in said
    assert "Only from this machine." in said


def test_else_there_is_no_word_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert "connect to" not in shown(capsys)


@pytest.mark.parametrize(
    ("phase", "reason", "message", "remedy", "expected"),
    [
        ("SUCCEEDED", "Succeeded", "Worker 0 completed successfully.", "", "Worker 0 completed successfully."),
        ("FAILED", "BadData", "x.csv, row 2.", "Correct it.", "BadData: x.csv, row 2. Correct it."),
        ("FAILED", "BadData", "", "", "BadData"),
        ("STOPPED", "Stopped", "", "", ""),
    ],
)
def test_the_reason_is_a_code_before_what_it_means_and_repeats_no_phase(
    phase: str, reason: str, message: str, remedy: str, expected: str
) -> None:
    job = Job("0193", "reads", phase, reason=reason, message=message, remedy=remedy)
    assert verdict_of(job).plain == f"{phase} reads" + (f": {expected}" if expected else "")


def test_why_says_the_memory_of_others_in_gib(capsys: pytest.CaptureFixture[str]) -> None:
    holder = {"name": "digits", "resources": {"cpu": 0.5, "memory": 1073741824.0, "nvidia.com/gpu": 2.0, "storage": 0}}
    print_why({"phase": "QUEUED", "reason": "", "message": "Waits.", "remedy": "", "holders": [holder]})
    assert "digits holds cpu 0.5, memory 1.0 GiB, nvidia.com/gpu 2\n" in capsys.readouterr().out
