"""What the proxy keeps of whom it lets pass."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from apps.accounts.open_sockets import sign_ins_ended
from apps.api.allowances import forget_all
from apps.workbench import admission
from apps.workbench.proxy.contract import Admitted, Refusal
from apps.workbench.strangers import ASKED_AT_ONCE
from yardmaster.engines.base import Address

USER = uuid.UUID(int=1)
WHERE = Address("127.0.0.1", 1)


class Tables:
    """Cookies that begin with `good` are one user's; each question is counted, and waits while `is_open` is not set."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.under_way = self.most_under_way = 0
        self.is_open = threading.Event()
        self.is_open.set()

    def allowed(self, session_id: uuid.UUID, cookie: str) -> Any:
        self.asked.append(cookie)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        self.is_open.wait(20)
        self.under_way -= 1
        if not cookie.startswith("good"):
            raise Refusal(401, "not_signed_in", "Sign in", "No.")
        session: Any = SimpleNamespace(pk=session_id)
        job: Any = SimpleNamespace(engine="local")
        return admission._Allowed(session, job, WHERE, lambda where: Admitted(session_id, USER, where, "", {}))


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tables]:
    """Instead of the real ones; nothing is written down."""
    found = Tables()
    monkeypatch.setattr(admission, "_allowed", found.allowed)
    monkeypatch.setattr(admission, "_note_loss", lambda session_id: None)
    forget_all()
    yield found
    found.is_open.set()


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


async def refused(cookie: str, session_id: uuid.UUID, address: str = "") -> int:
    with pytest.raises(Refusal) as found:
        await admission.admit(session_id, cookie, lambda: address)
    return found.value.status


async def test_what_is_asked_at_the_same_time_is_asked_once(tables: Tables, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(admission, "LASTS", admission.LASTS * 60)
    session_id = uuid.uuid4()
    tables.is_open.clear()
    asking = [asyncio.create_task(admission.admit(session_id, "good")) for _ in range(24)]
    strange = [asyncio.create_task(refused("bad", session_id)) for _ in range(24)]
    asking[0].cancel()
    while len(tables.asked) < 2:
        await asyncio.sleep(0.01)
    tables.is_open.set()
    assert {one.user_id for one in await asyncio.gather(*asking[1:])} == {USER}
    assert set(await asyncio.gather(*strange)) == {401}
    assert sorted(tables.asked) == ["bad", "good"]


async def test_an_answer_is_not_much_older_than_the_request(tables: Tables, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(admission, "LASTS", 0.05)
    session_id = uuid.uuid4()
    tables.is_open.clear()
    first = asyncio.create_task(admission.admit(session_id, "good"))
    while not tables.asked:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    second = asyncio.create_task(admission.admit(session_id, "good"))
    await asyncio.sleep(0.05)
    assert tables.asked == ["good"], "one at a time"
    tables.is_open.set()
    await asyncio.gather(first, second)
    assert tables.asked == ["good", "good"]


async def test_a_sign_out_also_ends_an_answer_that_was_under_way(tables: Tables):
    session_id = uuid.uuid4()
    tables.is_open.clear()
    asking = asyncio.create_task(admission.admit(session_id, "good"))
    while not tables.asked:
        await asyncio.sleep(0.01)
    sign_ins_ended.send(None, user_id=USER)
    tables.is_open.set()
    await asking
    assert tables.asked == ["good", "good"]


async def test_a_refusal_counts_for_a_second(tables: Tables, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(admission, "LASTS", admission.LASTS * 60)
    session_id = uuid.uuid4()
    assert {await refused("bad", session_id) for _ in range(10)} == {401}
    assert tables.asked == ["bad"]
    admission.Notes().lost(session_id)
    assert await refused("bad", session_id) == 401
    assert tables.asked == ["bad", "bad"], "a session that was lost is looked at again"
    monkeypatch.setattr(admission, "LASTS", 0.0)
    await refused("worse", session_id)
    await refused("worse", session_id)
    assert tables.asked == ["bad", "bad", "worse", "worse"]


async def test_an_address_that_sends_many_bad_cookies_is_refused_and_good_ones_are_not(tables: Tables, settings: Any):
    settings.YARDMASTER_RATES = {**settings.YARDMASTER_RATES, "STRANGER": 5}
    session_id = uuid.uuid4()
    found = [await refused(f"bad {number}", session_id, "10.0.0.1") for number in range(8)]
    assert found == [401] * 5 + [429] * 3
    assert (await admission.admit(session_id, "good", lambda: "10.0.0.1")).user_id == USER
    assert await refused("bad", session_id, "10.0.0.2") == 401


async def test_an_address_has_a_few_cookies_looked_up_at_a_time_and_known_ones_do_not_wait(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(admission, "LASTS", 0.0)
    session_id = uuid.uuid4()
    await admission.admit(session_id, "good", lambda: "10.0.0.3")
    tables.is_open.clear()
    strange = [asyncio.create_task(refused(f"bad {number}", session_id, "10.0.0.3")) for number in range(20)]
    while tables.under_way < ASKED_AT_ONCE:
        await asyncio.sleep(0.01)
    known = asyncio.create_task(admission.admit(session_id, "good", lambda: "10.0.0.3"))
    other = asyncio.create_task(admission.admit(session_id, "good too", lambda: "10.0.0.4"))
    while tables.under_way < ASKED_AT_ONCE + 2:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert tables.under_way == ASKED_AT_ONCE + 2
    tables.is_open.set()
    await asyncio.gather(known, other, *strange)
    assert len(tables.asked) == 23
