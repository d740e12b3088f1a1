"""From what people type to ids: a name, `name@version`, an id, or as much of an id as is unique."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from yardmaster_client.errors import PortalError
from yardmaster_client.git import is_git, wanted_of
from yardmaster_client.models import Job, ModelVersion, Namespace

if TYPE_CHECKING:
    from yardmaster_client.portal import Yardmaster
    from yardmaster_client.sessions import Session
    from yardmaster_client.stores import Item, Store, Version
    from yardmaster_client.sweeps import Sweep

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PART_OF_ID = re.compile(r"[0-9a-f-]{4,35}")
_LOOKED_AT = 2_000
"""How many of the newest are looked at for a part of an id."""
_COMPARED, _NAMED = 200, 10
"""How many of the newest are compared with a name that does not exist, and how many of them are named at most."""


class NotFound(Exception):
    """Nothing is called so, or more than one thing. The message says which, `remedy` what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class _Named(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...


Thing = TypeVar("Thing", bound=_Named)


def find_job(portal: Yardmaster, reference: str) -> Job:
    """The job with this id, the newest of this name, or the one whose id begins so."""
    if _ID.fullmatch(reference):
        return portal.jobs.get(reference)
    named = (job for job in portal.jobs.list(search=reference) if job.name == reference)
    return next(named, None) or _by_part("job", reference, portal.jobs.list(page_size=200))


def find_sweep(portal: Yardmaster, reference: str) -> Sweep:
    """The sweep with this id, the newest of this name, or the one whose id begins so."""
    if _ID.fullmatch(reference):
        return portal.sweeps.get(reference)
    named = (one for one in portal.sweeps.list() if one.name == reference)
    found = next(named, None) or _by_part("sweep", reference, portal.sweeps.list())
    return portal.sweeps.get(found.id)


def find_in(things: Callable[..., Iterator[_Named]], reference: str, kind: str, namespace: str | None = None) -> str:
    """The id of the template or schedule with this id or name. Several may have a name, in different namespaces: then
    the namespace must be given."""
    if _ID.fullmatch(reference):
        return reference
    named = list(things(namespace=namespace, name=reference))
    if len(named) == 1:
        return named[0].id
    if named:
        raise NotFound(f"{len(named)} namespaces have a {kind} {reference!r}. Name one with --namespace.")
    raise NotFound(f"There is no {kind} {reference!r}. `yardmaster {kind}s list` shows those that there are.")


def find_session(portal: Yardmaster, reference: str, *, prefers_running: bool = True) -> Session:
    """The session of the workbench with this id or name, or the one whose id begins so. Several may have a name: then
    it is the only one that runs, if `prefers_running`; else the id must be given."""
    if _ID.fullmatch(reference):
        return portal.sessions.get(reference)
    named = [one for one in portal.sessions.list() if one.name == reference]
    running = [one for one in named if one.runs or one.restarts] if prefers_running else []
    for found in (running, named):
        if len(found) == 1:
            return found[0]
    if named:
        some = ", ".join(f"{one.id} ({one.state})" for one in (running or named)[:5])
        raise NotFound(f"{len(running or named)} sessions are called {reference!r}: {some}. Give the id.")
    return _by_part("session", reference, portal.sessions.list())


def session_id_of(portal: Yardmaster, reference: str) -> str:
    """Its ID, or that which this is: of another user's Jupyter that cannot be seen, too. No other session has its
    name."""
    return reference if _ID.fullmatch(reference) else find_session(portal, reference, prefers_running=False).id


def find_model_version(portal: Yardmaster, reference: str, namespace: str | None = None) -> ModelVersion:
    """The version of a model, named as in `find_version`; a job's name or id stands for what it exported last."""
    try:
        return portal.models.version(find_version(portal.models, reference, namespace).id)
    except (NotFound, PortalError) as error:
        if isinstance(error, PortalError) and error.status != 404:
            raise
        try:
            exported = portal.jobs.model(find_job(portal, reference).id)
        except (NotFound, PortalError):
            raise error from None
    return portal.models.version(exported["id"])


def find_namespace(portal: Yardmaster, reference: str) -> Namespace:
    """By slug or id."""
    slugs = []
    for namespace in portal.namespaces():
        if reference in (namespace.slug, namespace.id):
            return namespace
        slugs.append(namespace.slug)
    message = f"There is no namespace {reference!r}, or it is not visible to you."
    raise NotFound(message, _remedy("namespace", reference, slugs))


def find_item(store: Store[Item, Version], reference: str, namespace: str | None = None) -> Item:
    """The dataset or code with this id or name. A name is looked for in `namespace` first, then everywhere; there it
    must be the only one."""
    if _ID.fullmatch(reference):
        return store.get(reference)
    if namespace and (found := store.find(reference, namespace=namespace)):
        return found
    named = [item for item in store.list(search=reference) if item.name == reference]
    if len({item.namespace for item in named}) > 1:
        namespaces = ", ".join(sorted({item.namespace_slug or item.namespace for item in named}))
        raise NotFound(f"{reference!r} exists in several namespaces ({namespaces}): name one, or give the id.")
    return named[0] if named else _by_part(store.kind, reference, store.list(page_size=200))


def find_version(store: Store[Item, Version], reference: str, namespace: str | None = None) -> Version:
    """The newest version of `name`, version N of `name@N`, the model's version in a stage of `name@production`, or what
    an id says: a version's, or a thing's newest."""
    if _ID.fullmatch(reference):
        try:
            return store.version(reference)
        except PortalError as error:
            if error.status != 404:
                raise
    name, at, number = reference.rpartition("@")
    if not at:
        name, number = reference, ""
    item: Any = find_item(store, name, namespace)
    if not number or number == "latest":
        if item.latest is None:
            raise NotFound(f"{item.name} has no version.")
        return item.latest  # type: ignore[no-any-return]
    for version in store.versions(item.id):
        if number in (str(version.number), getattr(version, "stage", "")):
            return version
    raise NotFound(f"{item.name} has no version {number}.")


def resolve_spec(portal: Yardmaster, spec: Mapping[str, Any], namespace: str | None = None) -> dict[str, Any]:
    """The specification with names of code, datasets and models replaced by version ids; code from Git is fetched
    first. What is neither is left to the portal, which says what is wrong with it."""
    resolved = dict(spec)
    code = resolved.get("code")
    if code is not None and is_git(code):
        resolved["code"] = portal.code.fetch(**wanted_of(code), namespace=namespace).code_version
    elif isinstance(code, str) and code and not _ID.fullmatch(code):
        resolved["code"] = find_version(portal.code, code, namespace).id
    if isinstance(resolved.get("inputs"), list):
        resolved["inputs"] = [_input(portal, one, namespace) for one in resolved["inputs"]]
    return resolved


def _input(portal: Yardmaster, one: Any, namespace: str | None) -> Any:
    if isinstance(one, str):
        one = {"dataset": one}
    if isinstance(one, dict) and isinstance(one.get("dataset"), str):
        rest = {key: value for key, value in one.items() if key != "dataset"}
        return rest | {"dataset_version": find_version(portal.datasets, one["dataset"], namespace).id}
    if isinstance(one, dict) and isinstance(one.get("model"), str):
        rest = {key: value for key, value in one.items() if key != "model"}
        return rest | {"model_version": find_model_version(portal, one["model"], namespace).id}
    return one


def _by_part(kind: str, reference: str, things: Iterable[Thing] | Iterator[Thing]) -> Thing:
    if not _PART_OF_ID.fullmatch(reference):
        names = [thing.name for thing in islice(things, _COMPARED)]
        message = f"There is no {kind} {reference!r}, or it is not visible to you."
        raise NotFound(message, _remedy(kind, reference, names))
    seen = list(islice(things, _LOOKED_AT))
    found = [thing for thing in seen if thing.id.startswith(reference)]
    if not found:
        message = f"There is no {kind} whose name is or whose id begins with {reference!r}."
        raise NotFound(message, _remedy(kind, reference, [thing.name for thing in seen[:_COMPARED]]))
    if len(found) > 1:
        some = ", ".join(f"{thing.name} ({thing.id})" for thing in found[:5])
        raise NotFound(f"{len(found)} {kind}s have an id that begins with {reference!r}: {some}. Give more of it.")
    return found[0]


def _remedy(kind: str, reference: str, names: Iterable[str]) -> str:
    """What to write in place of a name that does not exist: those like it, or else the first. `names`: as the portal
    lists them to who asks."""
    command = f"`yardmaster {kind if kind == 'code' else f'{kind}s'} list`"
    known = {name.casefold(): name for name in reversed(list(names))}
    near = get_close_matches(reference.casefold(), known, n=_NAMED)
    some = [known[one] for one in near] or list(reversed(known.values()))[:_NAMED]
    return f"Use one of: {', '.join(some)}. {command} shows all." if some else f"{command} shows those that there are."
