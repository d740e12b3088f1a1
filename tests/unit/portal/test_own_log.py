"""What strangers can make the portal write of itself, and the files that its processes print into."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import pytest

from portal.client_errors import ClientErrors, bounded
from portal.own_log import PerMinute, shortened, shown
from portal.up.output import Outputs


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("/a path/é", "/a path/é"),
        ("a\nb\r\x1b[2J\x00\x9b", "a\\nb\\r\\x1b[2J\\x00\\x9b"),
        ("x" * 300, "x" * 199 + "…"),
        ("\u202eoverride", "\\u202eoverride"),
    ],
)
def test_a_text_of_a_client_is_one_short_printable_line(text, seen):
    assert shown(text) == seen


def test_a_traceback_keeps_its_ends():
    short = shortened("begin " + "x" * 100_000 + " end", 1000)
    assert short.startswith("begin ")
    assert short.endswith(" end")
    assert len(short) < 1100
    assert shortened("as it is", 1000) == "as it is"


def test_so_many_pass_in_each_minute_and_the_others_are_counted():
    window = PerMinute(2)
    assert [window.admits(at) for at in (0, 1, 2, 59.9, 60, 61, 62)] == [True, True, False, False, True, True, False]
    assert window.ends_at() == 120
    assert window.take_left_out() == 3
    assert window.take_left_out() == 0


def record(name: str, level: int = logging.WARNING, message: str = "Not Found: %s", **extra: object):
    one = logging.LogRecord(name, level, "file", 1, message, ("/" + "p" * 5000,), sys.exc_info())
    one.__dict__.update(extra)
    return one


@pytest.mark.parametrize(
    ("one", "is_short"),
    [
        (record("django.request", status_code=404), True),
        (record("django.security.DisallowedHost", logging.ERROR), True),
        (record("uvicorn.error", message="Invalid HTTP request received. %s"), True),
        (record("uvicorn.error", logging.ERROR, "opening handshake failed %s"), True),
        (record("django.request", logging.ERROR, status_code=500), False),
        (record("uvicorn.error", logging.ERROR, "Exception in ASGI application %s"), False),
        (record("apps.jobs"), False),
    ],
)
def test_errors_of_clients_are_short_and_info_and_those_of_the_portal_are_whole(one, is_short):
    level = one.levelno
    assert ClientErrors(10, "INFO").filter(one)
    assert (len(one.getMessage()) <= 200) == is_short
    assert one.levelno == (logging.INFO if is_short else level)


def test_whoever_wants_warnings_alone_reads_no_errors_of_clients():
    assert not ClientErrors(10, "WARNING").filter(record("django.request", status_code=404))
    assert ClientErrors(10, "WARNING").filter(record("django.request", status_code=500))


def test_what_was_left_out_is_counted_in_one_line(caplog):
    clients = ClientErrors(1, "INFO")
    assert [clients.filter(record("django.request", status_code=404)) for _ in range(4)] == [True, False, False, False]
    clients._timer.cancel()
    with caplog.at_level(logging.WARNING):
        clients._say_how_many()
        clients._say_how_many()
    assert [one.getMessage()[:28] for one in caplog.records] == ["3 more errors of clients wit"]


def test_no_text_of_an_event_has_a_link_that_lets_one_in():
    event = {
        "event": "Too Many Requests: /unsubscribe/ab:cd/ x",
        "request": "GET /invitation/secret/",
        "path": "/jobs/1/",
    }
    seen = bounded(None, "info", dict(event))
    assert seen == {
        "event": "Too Many Requests: /unsubscribe/…/ x", "request": "GET /invitation/…/", "path": "/jobs/1/",
    }  # fmt: skip


def test_every_text_of_an_event_is_bounded_and_a_traceback_keeps_its_lines():
    event = bounded(None, "", {"event": "e" * 9000, "request_id": "r" * 900, "exception": "a\nb", "code": 4})
    assert {key: len(str(value)) for key, value in event.items()} == {
        "event": 2000, "request_id": 200, "exception": 3, "code": 1,
    }  # fmt: skip
    assert event["exception"] == "a\nb"


# --- files of processes ---------------------------------------------------------------------------------------------


def printed(outputs: Outputs, name: str, *pieces: bytes) -> None:
    """As a process of this name, from its start to its end."""
    writer = outputs.open(name)
    for piece in pieces:
        while piece:
            piece = piece[os.write(writer, piece) :]
    os.close(writer)
    outputs.settle(10)


def test_output_goes_to_two_files_that_together_hold_no_more_than_they_may(tmp_path: Path):
    outputs = Outputs(tmp_path, 1 << 20)
    lines = [b"%06d %s\n" % (number, b"x" * 90) for number in range(20_000)]
    printed(outputs, "web", *lines)
    one, two = (tmp_path / "web.log.1").read_bytes(), (tmp_path / "web.log").read_bytes()
    assert len(one) <= (1 << 20) // 10 >= len(two)
    assert b"".join(lines).endswith(one + two), "nothing is lost or torn at the seam"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["web.log", "web.log.1"]


def test_a_process_that_starts_again_goes_on_in_its_file_and_a_full_one_is_put_aside(tmp_path: Path):
    printed(Outputs(tmp_path, 10_000), "web", b"first\n")
    printed(Outputs(tmp_path, 10_000), "web", b"second\n" + b"z" * 993 + b"\n")
    printed(Outputs(tmp_path, 10_000), "web", b"third\n")
    assert (tmp_path / "web.log.1").read_bytes().startswith(b"first\nsecond\n")
    assert (tmp_path / "web.log").read_bytes().endswith(b"third\n")


def test_a_disk_that_takes_nothing_holds_up_no_process_and_what_is_missing_is_counted(tmp_path: Path, monkeypatch):
    outputs = Outputs(tmp_path, 1 << 20)
    file, real = outputs.file_of("web"), os.write
    full = [True]

    def write(descriptor: int, data: bytes) -> int:
        if full[0] and os.readlink(f"/proc/self/fd/{descriptor}") == str(file):
            raise OSError(28, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    printed(outputs, "web", b"y" * 200_000)
    full[0] = False
    printed(outputs, "web", b"again\n")
    assert file.read_bytes() == b"--- 200000 bytes of output could not be written here ---\nagain\n"
