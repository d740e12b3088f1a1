"""Cookies that open nothing: how many one address may send, and how many of its cookies are looked up at a time.

A cookie that was good a moment ago waits for no others, whatever comes from its address. Not here: what a cookie is
worth (`admission`), and how many requests to the portal strangers have (`portal.rate_limit`).
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import TypeVar
from weakref import WeakValueDictionary

from django.conf import settings

from apps.api.allowances import take_here
from apps.workbench.kept import Kept
from apps.workbench.proxy.contract import Refusal
from yardmaster.allowances import Allowance, Taking

T = TypeVar("T")
BELIEVED = 30.0
ASKED_AT_ONCE = 4
MOST = 10_000
MINUTE = 60

_known: Kept[tuple[uuid.UUID, str], bool] = Kept(MOST)
_asking: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()


async def looked_up(key: tuple[uuid.UUID, str], address: str, look: Callable[[], Awaitable[T]]) -> T:
    """What `look` finds out about a session and a cookie from this address. Raises what it raises; `Refusal` (429)
    instead of 401 where too many such cookies came from there."""
    try:
        if _known.get(key):
            found = await look()
        else:
            async with _asking.setdefault(address, asyncio.Semaphore(ASKED_AT_ONCE)):
                found = await look()
    except Refusal as refusal:
        if refusal.status == 401:
            _count(address)
        raise
    _known.put(key, True, time.monotonic() + BELIEVED)
    return found


def _count(address: str) -> None:
    most: int = settings.YARDMASTER_RATES["STRANGER"]
    taking = Taking(Allowance("workbench", most, MINUTE), f"stranger {address}")
    if take_here([taking]).over is not None:
        raise Refusal(
            429, "rate_limited", "Too many requests",
            f"More than {most} requests in a minute came from your address with cookies that open no session.",
            "Wait a minute, and open the session from its page on the portal.",
        )  # fmt: skip
