"""The counters of allowances, shared by all processes through the message server, in one round trip.

Where that is away each process counts in its own memory, in tables of the same kind: no request is refused because of
it, and signing in works. Not here: what is counted, and how much of it is allowed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.conf import settings
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.exceptions import RedisError

from yardmaster.allowances import Outcome, Table, Taking, cells_of, stretch_of

log = logging.getLogger(__name__)

PATIENCE = 0.5
"""Seconds that a count may take."""
REST = 5.0
"""Seconds in which a server that did not answer is not asked again."""
_SCRIPT = """
local over, used = 0, {}
for i = 1, #KEYS / 2 do
  local a = (i - 1) * 7
  local least = {}
  for which = 0, 1 do
    local cells = redis.call('BITFIELD', KEYS[2 * i - 1 + which], 'GET', 'u16', '#' .. ARGV[a + 5],
      'GET', 'u16', '#' .. ARGV[a + 6], 'GET', 'u16', '#' .. ARGV[a + 7])
    least[which] = math.min(cells[1], cells[2], cells[3])
  end
  local count, cost = least[0] + least[1] * tonumber(ARGV[a + 3]), tonumber(ARGV[a + 2])
  used[i] = math.ceil(count)
  if over == 0 and cost > 0 and count + cost > tonumber(ARGV[a + 1]) then over = i end
end
for i = 1, #KEYS / 2 do
  local a = (i - 1) * 7
  if over == 0 and ARGV[a + 2] ~= '0' then
    redis.call('BITFIELD', KEYS[2 * i - 1], 'OVERFLOW', 'SAT', 'INCRBY', 'u16', '#' .. ARGV[a + 5], ARGV[a + 2],
      'INCRBY', 'u16', '#' .. ARGV[a + 6], ARGV[a + 2], 'INCRBY', 'u16', '#' .. ARGV[a + 7], ARGV[a + 2])
    redis.call('EXPIRE', KEYS[2 * i - 1], ARGV[a + 4])
  end
end
return {over, unpack(used)}
"""


def take(takings: Sequence[Taking]) -> Outcome:
    """Take from all of these allowances, or from none where one would be exceeded. Without any, no server is asked."""
    if not takings:
        return Outcome(None, ())
    now = time.time()
    if not _STATE.is_resting():
        try:
            keys, arguments = _words(takings, now)
            return _read(_script()(keys=keys, args=arguments), takings)
        except (RedisError, OSError) as error:
            _STATE.rest(error)
    return _table().take(takings, now)


async def take_async(takings: Sequence[Taking]) -> Outcome:
    """The same, for the event loop."""
    now = time.time()
    if not _STATE.is_resting():
        try:
            keys, arguments = _words(takings, now)
            return _read(await _STATE.async_script()(keys=keys, args=arguments), takings)
        except (RedisError, OSError, TimeoutError) as error:
            _STATE.rest(error)
    return _table().take(takings, now)


def take_here(takings: Sequence[Taking]) -> Outcome:
    """The same, counted in this process alone."""
    return _table().take(takings, time.time())


def forget_all() -> None:
    """Forget what this process has counted (for tests)."""
    _table.cache_clear()


class _State:
    """Whether the server answers, and this loop's connections to it."""

    def __init__(self) -> None:
        self._rests_until = 0.0
        self._is_away = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asks: Any = None

    def is_resting(self) -> bool:
        return time.monotonic() < self._rests_until

    def rest(self, error: Exception) -> None:
        if not self._is_away:
            log.warning("Limits are counted in this process alone: the message server does not answer (%s)", error)
        self._is_away = True
        self._rests_until = time.monotonic() + REST

    def answered(self) -> None:
        if self._is_away:
            log.info("Limits are counted in the message server again")
        self._is_away = False

    def async_script(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            client: AsyncRedis = AsyncRedis.from_url(
                settings.REDIS_URL, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE
            )
            self._asks, self._loop = client.register_script(_SCRIPT), loop
        return self._asks


_STATE = _State()


@lru_cache(maxsize=1)
def _script() -> Any:
    client = Redis.from_url(settings.REDIS_URL, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)
    return client.register_script(_SCRIPT)


@lru_cache(maxsize=1)
def _table() -> Table:
    return Table(_secret())


def _secret() -> bytes:
    return str(settings.SECRET_KEY).encode()


def _words(takings: Sequence[Taking], now: float) -> tuple[list[str], list[str | int | float]]:
    keys: list[str] = []
    arguments: list[str | int | float] = []
    for taking in takings:
        allowance = taking.allowance
        number, share = stretch_of(allowance, now)
        name = f"yardmaster:allowance:{allowance.name}:{allowance.seconds}"
        keys += [f"{name}:{number}", f"{name}:{number - 1}"]
        arguments += [allowance.amount, taking.cost, share, 2 * allowance.seconds, *cells_of(taking, _secret())]
    return keys, arguments


def _read(answer: list[int], takings: Sequence[Taking]) -> Outcome:
    _STATE.answered()
    over, *used = answer
    return Outcome(takings[over - 1] if over else None, tuple(int(one) for one in used))
