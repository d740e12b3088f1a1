"""The portal's own key for machines, and the keys by which it knows them. The one other module that imports `asyncssh`
is `connection`.

A machine whose key is not in the list, nor accepted by an administrator, is not spoken to; nor one that shows another
key than it did.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import asyncssh

from yardmaster.engines.hosts.inventory import Host
from yardmaster.errors import Misconfigured

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
                remedy="Restore it from a backup, or remove it and let the machines have the new one.",
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
                f"The host_key of machine {host.name} is no public key: {error}",
                remedy="Write what `ssh-keyscan -t ed25519 ADDRESS` prints after the address.",
            ) from error

    def accept(self, host: Host, key: asyncssh.SSHKey) -> None:
        """Know the machine by this key from now on, and by no earlier one."""
        self._known.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        others = [line for line in self._lines() if line.split(" ", 1)[0] != place_of(host)]
        line = f"{place_of(host)} {key.export_public_key('openssh').decode().strip()}"
        draft = self._known.with_name(f".known_hosts.{os.getpid()}")
        draft.write_text("\n".join([*others, line]) + "\n")
        os.replace(draft, self._known)

    def _accepted(self, host: Host) -> list[str]:
        found = [line.split(" ", 1) for line in self._lines()]
        return [line[1] for line in found if len(line) == 2 and line[0] == place_of(host)]

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


def place_of(host: Host) -> str:
    """How `known_hosts` names it."""
    return f"[{host.address}]:{host.port}"


async def shown_key(host: Host) -> asyncssh.SSHKey | None:
    """The key that the machine shows now, for an administrator to compare. Raises `OSError` where it does not."""
    try:
        async with asyncio.timeout(_TIME_TO_SHOW):
            return await asyncssh.get_server_host_key(host.address, host.port)
    except asyncssh.Error as error:
        raise OSError(str(error)) from error


def fingerprint(key: asyncssh.SSHKey) -> str:
    """`SHA256:…`, as `ssh-keygen -l` prints it."""
    return str(key.get_fingerprint())
