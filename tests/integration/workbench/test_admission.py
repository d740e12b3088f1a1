"""What the proxy keeps of whom it lets pass."""

from __future__ import annotations

import asyncio
import threading
import uuid
from types import SimpleNamespace

import pytest

from apps.workbench import admission
from apps.workbench.proxy.admission import Admitted
from yardmaster.engines.base import Address


def admitted(session_id: uuid.UUID, user_id: uuid.UUID) -> Admitted:
    caller = {"user": SimpleNamespace(pk=user_id), "session": SimpleNamespace(session_key="none")}
    return Admitted(session_id, user_id, Address("127.0.0.1", 1), "key", caller)


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everyone may pass to every session, without tables; nothing is written down."""
    monkeypatch.setattr(admission, "entrance_of", lambda session_id, cookie, now: session_id)
    monkeypatch.setattr(admission, "_admitted", lambda session_id: admitted(session_id, uuid.UUID(int=1)))
    monkeypatch.setattr(admission, "_note_loss", lambda session_id: None)


class Compared(uuid.UUID):
    """A session's ID. While it is compared, a request for another session is admitted in another thread."""

    def __eq__(self, other: object) -> bool:
        thread = threading.Thread(target=lambda: asyncio.run(admission.admit(uuid.uuid4(), "another")))
        thread.start()
        thread.join()
        return super().__eq__(other)

    __hash__ = uuid.UUID.__hash__


@pytest.mark.usefixtures("sessions")
async def test_a_loss_is_noted_while_others_are_admitted():
    for _ in range(3):
        await admission.admit(uuid.uuid4(), "one")
    admission.Notes().lost(Compared(int=7))
