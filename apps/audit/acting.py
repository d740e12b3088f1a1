"""Which task of a worker runs in this thread, for the audit. Pure: workers import it before there are any apps.

Not here: what the audit says of it (`whence`).
"""

from __future__ import annotations

from contextvars import ContextVar

_task: ContextVar[str] = ContextVar("audited_task", default="")


def task_note(name: str) -> None:
    """What is recorded in this thread from now on is done by this task; empty: by none. Workers call it."""
    _task.set(name.removeprefix("yardmaster."))


def task_now() -> str:
    """Its name; empty where none runs."""
    return _task.get()
