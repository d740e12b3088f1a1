"""What the proxy keeps of whom it lets pass."""

from __future__ import annotations

import threading
import uuid
from types import SimpleNamespace
from typing import Any

import pytest

from apps.accounts.open_sockets import sign_ins_ended
from apps.workbench import admission
from apps.workbench.proxy.admission import Admitted
from yardmaster.engines.base import Address

USER = uuid.UUID(int=1)
WHERE = Address("127.0.0.1", 1)


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """All cookies are one user's, and good; nothing is written down."""

    def allowed(session_id: uuid.UUID, cookie: str) -> Any:
        session: Any = SimpleNamespace(pk=session_id)
        job: Any = SimpleNamespace(engine="local")
        return admission._Allowed(session, job, WHERE, lambda where: Admitted(session_id, USER, where, "", {}))

    monkeypatch.setattr(admission, "_allowed", allowed)
    monkeypatch.setattr(admission, "_note_loss", lambda session_id: None)


class Compared(uuid.UUID):
    """A session's ID. While it is compared, its user signs out in another thread."""

    def __eq__(self, other: object) -> bool:
        thread = threading.Thread(target=lambda: sign_ins_ended.send(None, user_id=USER))
        thread.start()
        thread.join()
        return super().__eq__(other)

    __hash__ = uuid.UUID.__hash__


async def test_a_loss_is_noted_while_others_sign_out():
    for _ in range(3):
        await admission.admit(uuid.uuid4(), "good")
    admission.Notes().lost(Compared(int=7))
