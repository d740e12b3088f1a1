"""One reader of a live log: sends what it lacks, in order, and waits when it has everything.

It knows only its next line of each stream. So nothing is queued for it: a slow reader makes its own sending wait, and
then continues where it was. Not here: sockets and who may follow (`consumers`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from apps.logs.frames import Frames
from apps.logs.tails import OpenLine, Tail
from yardmaster.job.spec import Role
from yardmaster.logs.keys import StreamKey

PING_EVERY = 25.0

Send = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class Wanted:
    """One task's stream, or every task's (`role` None), and the line to begin with."""

    role: Role | None = None
    index: int = 0
    first: int = 0
    """Of each stream that `lines` does not name."""
    lines: Mapping[str, int] = field(default_factory=dict)

    def includes(self, stream: StreamKey) -> bool:
        return self.role is None or (stream.role, stream.index) == (self.role, self.index)


class Follower:
    """Sends frames until the attempt is over and everything was sent."""

    def __init__(self, tail: Tail, frames: Frames, wanted: Wanted, send: Send) -> None:
        self._tail, self._frames, self._wanted, self._send = tail, frames, wanted, send
        self._next_line: dict[StreamKey, int] = {}
        self._ended: set[StreamKey] = set()
        self._shown: dict[StreamKey, OpenLine] = {}
        self._spoke = 0.0

    async def run(self) -> None:
        """Returns when there will never be more. Raises `Unavailable` when the log cannot be read."""
        await self._say({"type": "ping"})  # the client knows that it is heard, also before the first line
        while True:
            changed, is_over = self._tail.changed, self._tail.is_over
            while await self._send_a_round():
                pass
            await self._show_open()
            if is_over and not changed.is_set():
                await self._say_ends()
                return
            await self._wait(changed)

    async def _send_a_round(self) -> bool:
        """At most one frame of each stream, so that none holds up the others. False when nothing was there to send."""
        sent = False
        for stream, head in list(self._tail.heads.items()):
            if not self._wanted.includes(stream):
                continue
            at = self._next_line.setdefault(stream, self._wanted.lines.get(stream.name, self._wanted.first))
            if at < head.next_line and (frame := await self._frames.at(stream, at)):
                await self._speak(frame.text)
                self._next_line[stream] = frame.next_line
                self._ended.discard(stream)
                sent = True
            elif head.ended and stream not in self._ended and at >= head.next_line:
                await self._say_end(stream)
        return sent

    async def _show_open(self) -> None:
        """Pictures of lines that are not finished, as far as they follow what was sent."""
        for stream, line in list(self._tail.open.items()):
            is_news = self._wanted.includes(stream) and self._shown.get(stream) != line
            if is_news and line.line >= self._next_line.get(stream, 0):
                self._shown[stream] = line
                task = {"role": stream.role.value, "index": stream.index}
                await self._say({"type": "open", **task, "line": line.line, "text": line.text})

    async def _say_ends(self) -> None:
        """The attempt is over: so are all its streams, also one that never had a line."""
        streams = [stream for stream in self._tail.heads if self._wanted.includes(stream)]
        if self._wanted.role is not None:
            streams = [StreamKey(self._tail.job_id, self._tail.attempt, self._wanted.role, self._wanted.index)]
        for stream in streams:
            if stream not in self._ended:
                await self._say_end(stream)
        await self._say({"type": "end"})

    async def _say_end(self, stream: StreamKey) -> None:
        self._ended.add(stream)
        await self._say({"type": "end", "role": stream.role.value, "index": stream.index})

    async def _wait(self, changed: asyncio.Event) -> None:
        """Until something has changed; pings while nothing does."""
        while True:
            idle = asyncio.get_running_loop().time() - self._spoke
            try:
                async with asyncio.timeout(max(0.0, PING_EVERY - idle)):
                    await changed.wait()
                    return
            except TimeoutError:
                await self._say({"type": "ping"})

    async def _say(self, message: Mapping[str, object]) -> None:
        await self._speak(json.dumps(message))

    async def _speak(self, text: str) -> None:
        await self._send(text)
        self._spoke = asyncio.get_running_loop().time()
