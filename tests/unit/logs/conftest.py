from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from yardmaster.job.spec import Role
from yardmaster.logs.keys import StreamKey
from yardmaster.logs.store import LogStore

JOB = uuid.UUID("01890000-0000-7000-8000-000000000001")


def stream(role: Role = Role.WORKER, index: int = 0, attempt: int = 1) -> StreamKey:
    return StreamKey(JOB, attempt, role, index)


def numbered(first: int, count: int, word: str = "line") -> bytes:
    return b"".join(b"%s %d\n" % (word.encode(), number) for number in range(first, first + count))


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return LogStore(tmp_path / "logs")
