"""What the command line says of an error: each problem once, with its value and what to do."""

from __future__ import annotations

import pytest

from yardmaster_client.cli.output import fail
from yardmaster_client.errors import FieldError, PortalError

CONNECTION = FieldError("connection.name", "unknown", "There is no such connection.", "Use one of: ignite.", "ignitee")
MEMORY = FieldError("roles.worker.memory", "too_small", "It is too small.")
WHOLE = FieldError("", "invalid", "The request is empty.", "Send one.")


def said(capsys: pytest.CaptureFixture[str], error: Exception) -> list[str]:
    fail(error)
    return capsys.readouterr().err.splitlines()


def test_one_wrong_field_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    error = PortalError(400, "invalid", "connection.name: There is no such connection.", errors=[CONNECTION])
    expected = "connection.name: There is no such connection. (here: ignitee)"
    assert said(capsys, error) == [f"error: {expected}", "  Use one of: ignite."]
    assert said(capsys, error.at("job.yaml")) == [f"error: job.yaml: {expected}", "  Use one of: ignite."]


def test_a_problem_of_no_field_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    error = PortalError(400, "invalid", "The request is empty.", errors=[WHOLE])
    assert said(capsys, error) == ["error: The request is empty.", "  Send one."]


def test_several_wrong_fields_are_counted_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    detail = "connection.name: There is no such connection.; roles.worker.memory: It is too small."
    assert said(capsys, PortalError(400, "invalid", detail, errors=[CONNECTION, MEMORY])) == [
        "error: 2 problems:",
        "  connection.name: There is no such connection. (here: ignitee)",
        "    Use one of: ignite.",
        "  roles.worker.memory: It is too small.",
    ]


def test_a_sentence_of_its_own_stays(capsys: pytest.CaptureFixture[str]) -> None:
    error = PortalError(400, "invalid", "The job is not valid.", "Correct it.", errors=[MEMORY])
    assert said(capsys, error) == [
        "error: The job is not valid.",
        "  roles.worker.memory: It is too small.",
        "  Correct it.",
    ]
