"""The list of machines of the engine `hosts`, where the database has it: the engine asks for it by this function's
path, which the settings give it."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import DatabaseError, close_old_connections

from apps.jobs.models import HostMachine
from yardmaster.engines.hosts.inventory import Host, read_entry
from yardmaster.errors import Misconfigured, Unavailable


def hosts_listed() -> Mapping[str, Host]:
    """Every machine, by name. One statement. For any thread, also those that live for long. Raises `Misconfigured` for
    an entry that a newer release wrote, and `Unavailable` while the database does not answer."""
    close_old_connections()
    try:
        rows = list(HostMachine.objects.order_by("name").values_list("name", "entry", "is_draining"))
    except DatabaseError as error:
        raise Unavailable(
            f"The list of machines cannot be read: {error}", remedy="See whether the portal's database answers."
        ) from error
    return {name: host_of(name, entry, is_draining) for name, entry, is_draining in rows}


def host_of(name: str, entry: Mapping[str, object], is_draining: bool) -> Host:
    """The machine of one row. Pure. Raises `Misconfigured`."""
    values, wrong = read_entry(entry)
    if wrong:
        raise Misconfigured(
            f"The machine {name} has an entry that cannot be read: {next(iter(wrong.values()))}.",
            remedy="Change it on the page Machines.",
        )
    return Host(**{**values, "name": name, "is_cordoned": is_draining})
