"""The portal's own key for machines, and the keys by which it knows them. The one other module that imports `asyncssh`
is `connection`.

A machine whose key is not in the list, nor accepted by an administrator, is not spoken to; nor one that shows another
key than it did.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import asyncssh

from yardmaster.engines.hosts.inventory import Host
from yardmaster.engines.hosts.wire import cut
from yardmaster.errors import Misconfigured

HOST_KEY_UNKNOWN, HOST_KEY_CHANGED = "host_key_unknown", "host_key_changed"
"""Codes of why a machine is not spoken to."""
_TIME_TO_SHOW = 10.0


class Keys:
    """Under `root`: `id_ed25519` (0600), made when it is first asked for, and `known_hosts`."""

    def __init__(self, root: Path) -> None:
        self._own = root / "id_ed25519"
        self._known = root / "known_hosts"

    def own(self) -> asyncssh.SSHKey:
        """The portal's key: the same for all machines."""
        with contextlib.suppress(FileExistsError):
            if not self._own.exists():
                self._make()
        try:
            return asyncssh.read_private_key(str(self._own))
        except (OSError, asyncssh.KeyImportError) as error:
            raise Misconfigured(
                f"The portal's key for machines, {self._own}, cannot be read: {error}",
                remedy="Restore it from a backup. Or remove it, and add the new key (manage.py machines --key) to the "
                "machines.",
            ) from error

    def public(self) -> str:
        """The line for `~/.ssh/authorized_keys` of each machine's user."""
        return self.own().export_public_key("openssh").decode().strip() + " yardmaster"

    def trusted(self, host: Host) -> list[asyncssh.SSHKey]:
        """By which the machine is known; empty where it is not. Raises `Misconfigured` for a key that is none."""
        lines = [host.host_key] if host.host_key else self._accepted(host)
        try:
            return [asyncssh.import_public_key(line) for line in lines]
        except (asyncssh.KeyImportError, ValueError) as error:
            raise Misconfigured(
                f"The host_key of machine {host.name} is not a public key: {error}",
                remedy="Write what `ssh-keyscan -t ed25519 ADDRESS` prints after the address.",
            ) from error

    def accept(self, host: Host, key: asyncssh.SSHKey) -> None:
        """Know the machine by this key from now on, and by no earlier one."""
        with self._alone():
            self._write(host, key)

    def _write(self, host: Host, key: asyncssh.SSHKey) -> None:
        others = [line for line in self._lines() if line.split(" ", 1)[0] != host.place]
        line = f"{host.place} {key.export_public_key('openssh').decode().strip()}"
        draft = self._known.with_name(f".known_hosts.{os.getpid()}")
        draft.write_text("\n".join([*others, line]) + "\n")
        os.replace(draft, self._known)

    def accept_line(self, host: Host, line: str) -> None:
        """The same, of a key as `public_line` writes it."""
        self.accept(host, asyncssh.import_public_key(line))

    def known(self, host: Host) -> list[str]:
        """The fingerprints of the keys by which it is known; empty also where the list has a key that is none."""
        try:
            return [fingerprint(one) for one in self.trusted(host)]
        except Misconfigured:
            return []

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Of all processes and threads: of two that accept at once, none loses what the other wrote."""
        self._known.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self._known.with_name(".known_hosts.lock"), "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _accepted(self, host: Host) -> list[str]:
        found = [line.split(" ", 1) for line in self._lines()]
        return [line[1] for line in found if len(line) == 2 and line[0] == host.place]

    def _lines(self) -> list[str]:
        try:
            return self._known.read_text().splitlines()
        except FileNotFoundError:
            return []

    def _make(self) -> None:
        """In place in one step, and only where none is: another process may make one at the same time."""
        self._own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._own.with_name(f".id.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(asyncssh.generate_private_key("ssh-ed25519").export_private_key("openssh"))
            os.link(draft, self._own)
        finally:
            draft.unlink()


async def shown_key(host: Host) -> asyncssh.SSHKey | None:
    """The key that the machine shows now, for an administrator to compare. Raises `OSError` where it does not."""
    try:
        async with asyncio.timeout(_TIME_TO_SHOW):
            return await asyncssh.get_server_host_key(host.address, host.port)
    except asyncssh.Error as error:
        raise OSError(str(error)) from error


def shown_keys(hosts: Iterable[Host]) -> dict[str, dict[str, str]]:
    """What each of these shows now, by name of the machine: its key as `shown` (fingerprint) and `shown_key`, or why
    there is none as `unshown`. All are asked at once."""
    asked = list(hosts)

    async def ask() -> list[asyncssh.SSHKey | BaseException | None]:
        return await asyncio.gather(*(shown_key(one) for one in asked), return_exceptions=True)

    found = asyncio.run(ask()) if asked else []
    return {host.name: _facts(one) for host, one in zip(asked, found, strict=True)}


def _facts(shown: asyncssh.SSHKey | BaseException | None) -> dict[str, str]:
    if isinstance(shown, BaseException):
        return {"unshown": f"It does not answer: {cut(str(shown)) or 'it did not answer in time'}."}
    if shown is None:
        return {"unshown": "It shows no host key."}
    return {"shown": fingerprint(shown), "shown_key": public_line(shown)}


def public_line(key: asyncssh.SSHKey) -> str:
    """`ssh-ed25519 AAAA…`, as `ssh-keyscan` prints it."""
    return " ".join(key.export_public_key("openssh").decode().split()[:2])


def fingerprint(key: asyncssh.SSHKey) -> str:
    """`SHA256:…`, as `ssh-keygen -l` prints it."""
    return str(key.get_fingerprint())
