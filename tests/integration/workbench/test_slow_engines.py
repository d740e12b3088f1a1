"""An engine or a database that hangs holds up no more than its own sessions, and these for a bounded time."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from apps.workbench import admission
from apps.workbench.proxy.contract import Admitted, Refusal, Unknown
from yardmaster.engines.base import Address
from yardmaster.errors import Unavailable

WHERE = Address("127.0.0.1", 1)


@pytest.fixture
def hangs(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Engines and tables whose names begin with `slow` answer once this is set."""
    end = threading.Event()
    monkeypatch.setattr(admission, "PATIENCE_WITH_ENGINE", 20)
    monkeypatch.setattr(admission, "address_of", lambda job: answered(job.engine))
    monkeypatch.setattr(admission, "_allowed", lambda session_id, cookie: allowed(session_id, cookie))

    def answered(name: str) -> Address:
        if name.startswith("slow"):
            end.wait(30)
        if name == "away":
            raise Unavailable("It is away.")
        return WHERE

    def allowed(session_id: uuid.UUID, cookie: str) -> Any:
        answered(cookie)
        session: Any = SimpleNamespace(pk=session_id)
        job: Any = SimpleNamespace(engine=cookie.removeprefix("of "))
        return admission._Allowed(session, job, None, lambda where: Admitted(session_id, session_id, where, "", {}))

    monkeypatch.setattr(admission, "_not_there", lambda *given: Refusal(503, "session_loading", "", ""))
    yield end
    end.set()


def ask_for_many(name: str) -> list[asyncio.Task[Admitted]]:
    """More sessions of one engine than there are threads for it."""
    return [asyncio.create_task(admission.admit(uuid.uuid4(), name)) for _ in range(40)]


async def test_an_engine_that_hangs_holds_up_its_own_sessions_alone(hangs: threading.Event):
    waiting = ask_for_many("of slow")
    await asyncio.sleep(0.1)
    assert (await admission.admit(uuid.uuid4(), "of quick")).address == WHERE
    assert not any(one.done() for one in waiting)
    hangs.set()
    assert {found.address for found in await asyncio.gather(*waiting)} == {WHERE}


async def test_sessions_of_an_engine_that_hangs_are_refused_in_time(
    hangs: threading.Event, monkeypatch: pytest.MonkeyPatch
):
    usual = admission.PATIENCE_WITH_ENGINE
    monkeypatch.setattr(admission, "PATIENCE_WITH_ENGINE", 0.5)
    begun = time.monotonic()
    for refused in await asyncio.gather(*ask_for_many("of slow"), return_exceptions=True):
        assert isinstance(refused, Unknown)
        assert (refused.status, refused.code) == (503, "engine_does_not_answer")
        assert "The engine slow did not say within 0.5 s" in refused.message
    assert time.monotonic() - begun < 20
    monkeypatch.setattr(admission, "PATIENCE_WITH_ENGINE", usual)
    hangs.set()
    assert (await admission.admit(uuid.uuid4(), "of slow")).address == WHERE, "it is asked again"


async def test_tables_that_hang_are_not_waited_for(hangs: threading.Event, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(admission, "PATIENCE_WITH_TABLES", 0.5)
    with pytest.raises(Unknown, match=r"within 0\.5 s") as refused:
        await admission.admit(uuid.uuid4(), "slow")
    assert (refused.value.status, refused.value.code) == (503, "portal_busy")


async def test_an_engine_that_is_away_says_that_the_session_is_not_there_yet(hangs: threading.Event):
    with pytest.raises(Refusal) as refused:
        await admission.admit(uuid.uuid4(), "of away")
    assert refused.value.code == "session_loading"
    assert not isinstance(refused.value, Unknown)
