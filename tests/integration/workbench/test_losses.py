"""What shows that a session is lost, which all of its users notice, and what concerns one request alone."""

from __future__ import annotations

import asyncio
import errno
import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from apps.hosting.state import lost
from apps.workbench import admission
from apps.workbench.proxy import gate_connection
from apps.workbench.proxy.contract import Admitted, Refusal, Unknown
from apps.workbench.proxy.origins import Origins, prefix_of
from tests.integration.workbench.conftest import changed, over, ready
from tests.integration.workbench.test_entrances import exchange, opened, ticket_in
from tests.integration.workbench.test_streams import asked
from tests.real.workbench import COOKIE, Sessions, gate, workbench

Place = tuple[Origins, Sessions, uuid.UUID, list[uuid.UUID]]


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    """A session whose program closes each connection when something has come."""

    async def closes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    sessions, noted = Sessions(), []
    async with gate(closes) as (_, address), workbench(sessions, lost=noted.append) as places:
        yield places, sessions, sessions.put(address), noted


async def code_of_page(places: Origins, session_id: uuid.UUID, status: int = 502) -> str:
    answer = await asked(places, session_id)
    assert answer.startswith(b"HTTP/1.1 %d" % status)
    return str(json.loads(answer.partition(b"\r\n\r\n")[2])["code"])


async def code_of_socket(places: Origins, session_id: uuid.UUID, status: int = 502) -> str:
    address = f"ws://{places.host_of(session_id)}{prefix_of(session_id)}x"
    headers = {"Cookie": f"yardmaster_workbench={COOKIE}"}
    with pytest.raises(InvalidStatus) as refused:
        await connect(
            address, host="127.0.0.1", port=places.port, origin=places.of(session_id), additional_headers=headers,
            proxy=None,
        )  # fmt: skip
    assert refused.value.response.status_code == status
    return str(json.loads(refused.value.response.body)["code"])


@pytest.mark.parametrize("code_of", [code_of_page, code_of_socket])
async def test_a_program_that_closes_one_connection_is_not_lost(place: Place, code_of):
    places, _, session_id, noted = place
    assert await code_of(places, session_id) == "answer_missing"
    assert noted == []


@pytest.mark.parametrize("code_of", [code_of_page, code_of_socket])
async def test_a_portal_that_can_open_no_more_connections_has_lost_no_session(place: Place, monkeypatch, code_of):
    async def connected(address: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    places, _, session_id, noted = place
    monkeypatch.setattr(gate_connection, "_connected", connected)
    assert await code_of(places, session_id, 503) == "portal_busy"
    assert noted == []


@pytest.mark.parametrize("code_of", [code_of_page, code_of_socket])
async def test_a_gate_that_does_not_prove_itself_is_lost(place: Place, code_of):
    places, sessions, session_id, noted = place
    found = sessions.of[session_id]
    assert isinstance(found, Admitted)
    sessions.of[session_id] = replace(found, key="another")
    assert await code_of(places, session_id) == "session_unreachable"
    assert noted == [session_id]


def test_what_is_under_way_stays_while_a_session_counts_as_lost(me, jupyter):
    cookie = exchange(jupyter.pk, ticket_in(opened(me, ready(jupyter))))
    assert cookie
    assert admission._allowed(jupyter.pk, cookie).session == jupyter
    lost(changed(jupyter))
    with pytest.raises(Unknown) as refused:
        admission._allowed(jupyter.pk, cookie)
    assert (refused.value.status, refused.value.code) == (503, "session_loading")
    over(jupyter)
    with pytest.raises(Refusal) as ended:
        admission._allowed(jupyter.pk, cookie)
    assert ended.value.code == "session_stopped"
    assert not isinstance(ended.value, Unknown)
