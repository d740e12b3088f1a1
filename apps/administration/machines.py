"""The machines of the engine `hosts`: listed, added, changed, drained and removed. Every change is audited.

The portal's database has the list where YARDMASTER_HOSTS is `database`; a list in a file is changed there. Not here:
what may be said of a machine (`machine_rules`), and what is shown of it (`machine_table`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.administration.machine_files import KeptFiles, files_by_machine, named
from apps.administration.machine_rules import moved_fields, problems_of, why_not_removed
from apps.audit.changes import changes
from apps.audit.services import record
from apps.errors import Conflict, Invalid, NotFound
from apps.jobs.engines.configured import engine_named
from apps.jobs.engines.machine_list import host_of
from apps.jobs.models import EngineNow, HostMachine
from apps.jobs.state import queue
from yardmaster.engines.hosts.inventory import FUNCTION, MOST_MACHINES, Host
from yardmaster.errors import Problem

if TYPE_CHECKING:
    from yardmaster.engines.hosts import HostsEngine


FORGET = "python manage.py machines --forget {}"


@dataclass(frozen=True)
class Source:
    """Where the list of machines is. `engine` is empty where no engine has one; `file` where the database has it."""

    engine: str = ""
    file: str = ""

    @property
    def is_here(self) -> bool:
        return bool(self.engine) and not self.file

    def made(self) -> HostsEngine:
        """The engine itself. Raises `Misconfigured`."""
        return cast("HostsEngine", engine_named(self.engine))


def source() -> Source:
    for name, config in settings.YARDMASTER_ENGINES.items():
        if isinstance(config, Mapping) and str(config.get("class", "")).endswith(".HostsEngine"):
            machines = str(config.get("options", {}).get("machines", ""))
            return Source(name, "" if machines.startswith(FUNCTION) else machines)
    return Source()


def machine_named(name: str) -> HostMachine:
    """Raises NotFound."""
    found = HostMachine.objects.filter(name=name).first()
    if found is None:
        raise NotFound("There is no machine of this name.", "unknown_machine")
    return found


def tasks_by_machine(engine: HostsEngine) -> Counter[str]:
    """How many tasks of the portal's runs are on each machine, as its placements say."""
    found: Counter[str] = Counter()
    for placement in engine.records.placements():
        for name, share in placement.shares.items() if placement.left is None else ():
            found[name] += len(share.tasks)
    return found


def machine_add(*, entry: Mapping[str, Any], actor: User) -> HostMachine:
    """Add one. It takes tasks once an administrator has accepted its host key. Raises `Invalid` naming the fields."""
    where = editable()
    _check(entry)
    with transaction.atomic():
        if HostMachine.objects.count() >= MOST_MACHINES:
            raise Conflict(
                f"The list can have at most {MOST_MACHINES} machines.", "too_many_machines", remedy="Remove one."
            )
        row = HostMachine(name=str(entry["name"]))
        _save(row, entry, actor)
        record(actor, "machine.create", f"machine:{row.name}", entry=row.entry)
        _have_effect(where)
    return row


def machine_change(
    *, name: str, entry: Mapping[str, Any], actor: User, version: int | None = None
) -> HostMachine:  # fmt: skip
    """Change what is said of one. `version` is the one that the actor had before their eyes: changed since, 409 instead
    of undoing that. Raises `Invalid`, also for what has to stay while tasks are there."""
    where = editable()
    _check(entry)
    with transaction.atomic():
        row = _locked(name)
        if version is not None and version != row.version:
            raise Conflict(
                f"{name} was changed by another administrator while you edited it. Your changes are not saved.",
                "changed_meanwhile", remedy="Review the current values, then save your changes again.",
            )  # fmt: skip
        problems = moved_fields(row.entry, entry, tasks_by_machine(where.made())[name])
        if entry["name"] != name:
            remedy = "Add a machine with the new name, and remove this one."
            problems.append(Problem("name", "fixed", f"The name {name} cannot be changed.", remedy, str(entry["name"])))
        if problems:
            raise Invalid(problems)
        before = dict(row.entry)
        row.version += 1
        _save(row, entry, actor)
        missing = {field: None for field in before if field not in row.entry}
        record(actor, "machine.change", f"machine:{name}", before=before, after={**row.entry, **missing})
        _have_effect(where)
    return row


def machine_drain(*, name: str, is_draining: bool, actor: User) -> HostMachine:
    """It takes no further tasks, and those that run there end by themselves; or it takes tasks again."""
    where = editable()
    with transaction.atomic():
        row = _locked(name)
        if row.is_draining != is_draining:
            row.is_draining, row.changed_at, row.changed_by = is_draining, timezone.now(), actor
            row.save(update_fields=["is_draining", "changed_at", "changed_by"])
            facts = changes({"is_draining": not is_draining}, {"is_draining": is_draining})
            action = "machine.drain" if is_draining else "machine.undrain"
            record(actor, action, f"machine:{name}", **facts)
            _have_effect(where)
    return row


def machine_remove(*, name: str, actor: User, force: bool = False) -> None:
    """Take it off the list. Refused while tasks are there, or may start there meanwhile; and, without `force`, while
    files of Jupyters are there, which are named."""
    where = editable()
    with transaction.atomic():
        row, engine = _locked(name), where.made()
        has_answered = "total" in engine.records.machine(name)
        tasks = tasks_by_machine(engine)[name]
        why = why_not_removed(name, tasks, is_draining=row.is_draining, has_answered=has_answered)
        if why:
            raise Conflict(why, "machine_in_use")
        files = files_by_machine(engine).get(name, ())
        if files and not force:
            raise _has_files(name, files)
        row.delete()
        record(actor, "machine.remove", f"machine:{name}", entry=row.entry, files=[str(one) for one in files])
        _have_effect(where)


def _has_files(name: str, files: tuple[KeptFiles, ...]) -> Conflict:
    found = Conflict(
        f"{name} has the files of Jupyter sessions: {named(files)}. Without the machine these sessions do not start.",
        "machine_has_files",
        remedy="Have their owners copy what they need and choose Delete files, or remove the machine all the same: "
        f"on its page, or with ?force=1. Then list it again, or give the files up with: {FORGET.format(name)}",
    )  # fmt: skip
    found.facts = {"files": [{"owner": one.owner, "namespace": one.namespace} for one in files]}
    return found


def key_accept(*, name: str, shown: str, actor: User) -> None:
    """Know the machine by the host key of this fingerprint from now on, which it showed when it was asked last."""
    where = source()
    host, engine = host_listed(where, name), where.made()
    details = details_of(where.engine).get(name, {})
    if details.get("place") != host.place or not details.get("shown"):
        raise Conflict(
            f"{name} shows no host key that is still to be accepted.", "no_key_shown",
            remedy="A worker requests the key every half minute. Reload the page.",
        )  # fmt: skip
    if shown != details["shown"]:
        raise Conflict(
            f"{name} now shows a different host key: {details['shown']}, not {shown[:100]}.", "key_changed_meanwhile",
            remedy="Compare it with the key that the machine itself prints, then accept it.",
        )  # fmt: skip
    with transaction.atomic():
        before = engine.keys.known(host)
        facts = changes({"keys": before}, {"keys": [shown]})
        record(actor, "machine.accept_key", f"machine:{name}", place=host.place, **facts)
        engine.keys.accept_line(host, details["shown_key"])
        _have_effect(where)


def host_listed(where: Source, name: str) -> Host:
    """As the engine has it. Raises NotFound."""
    if where.is_here:
        row = machine_named(name)
        return host_of(row.name, row.entry, row.is_draining)
    host = where.made().inventory.hosts().get(name) if where.engine else None
    if host is None:
        raise NotFound("There is no machine of this name.", "unknown_machine")
    return host


def details_of(engine: str) -> dict[str, dict[str, Any]]:
    """What `yardmaster.engines.hosts.describing` said of each machine when a worker asked last, by name."""
    row = EngineNow.objects.filter(engine=engine).only("machines").first()
    return {one["name"]: one.get("details", {}) for one in (row.machines if row else [])}


def editable() -> Source:
    """The list that administrators change here. Raises `Conflict` where there is none."""
    found = source()
    if not found.engine:
        raise Conflict(
            "This portal has no engine for machines.", "no_machines",
            remedy="Set YARDMASTER_HOSTS=database and restart the portal (docs/hosts.md).",
        )  # fmt: skip
    if found.file:
        raise Conflict(
            f"The machines are listed in the file {found.file}.", "machines_in_file",
            remedy="Edit that file, or set YARDMASTER_HOSTS=database to list them here.",
        )  # fmt: skip
    return found


def _check(entry: Mapping[str, Any]) -> None:
    problems = problems_of(entry)
    if problems:
        raise Invalid(problems)


def _locked(name: str) -> HostMachine:
    row = HostMachine.objects.select_for_update().filter(name=name).first()
    if row is None:
        raise NotFound("There is no machine of this name.", "unknown_machine")
    return row


def _save(row: HostMachine, entry: Mapping[str, Any], actor: User) -> None:
    row.entry = dict(entry)
    row.address, row.port = str(entry["address"]).strip(), int(entry.get("port", 22))
    row.changed_at, row.changed_by = timezone.now(), actor
    others = HostMachine.objects.exclude(pk=row.pk)
    problems = []
    if others.filter(name=row.name).exists():
        remedy = "Choose another name, or change that machine."
        problems.append(Problem("name", "taken", f"A machine {row.name} already exists.", remedy, row.name))
    same = others.filter(address=row.address, port=row.port).first()
    if same is not None:
        # Two names for one machine: what is free there would count twice.
        message, remedy = (
            f"{same.name} already has this address and port.",
            "Enter another address, or change that machine.",
        )
        problems.append(Problem("address", "taken", message, remedy, row.address))
    if problems:
        raise Invalid(problems)
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        raise Conflict(
            "Another administrator has just added a machine with this name or address.", "taken",
            remedy="Open the list and check whether your machine is still missing.",
        ) from error  # fmt: skip


def _have_effect(where: Source) -> None:
    """Have a worker look at the machines at its next turn, and at the jobs that wait."""
    EngineNow.objects.filter(engine=where.engine).update(next_at=timezone.now())
    queue.ask(where.engine)
