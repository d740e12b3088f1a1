"""`yardmaster jobs show` of servers: where to connect, and nothing of it for every other job."""

from __future__ import annotations

from typing import Any

import pytest

from yardmaster_client.cli.job_views import print_job
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
