"""The data connection of a job, as fields of the launch form: one of its namespace, and a cache of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from django import forms

from apps.accounts.models import User
from apps.connections.models import DataConnection
from apps.jobs.launch.long_select import LongSelect, select
from apps.jobs.launch.parts import SpecForm, Values
from apps.namespaces.selectors import namespaces_visible
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_connection import LONGEST_CACHE

Connections = Mapping[UUID, Sequence[str]]
MOST = 2_000


class ConnectionFields(SpecForm):
    """The fields, for the form that has them beside others."""

    connection = forms.CharField(
        label="Data connection", required=False, widget=LongSelect,
        help_text="A cluster of Apache Ignite that the script reads with data.ignite(…).",
    )  # fmt: skip
    cache = forms.CharField(
        label="Cache", required=False, widget=forms.TextInput(attrs={"maxlength": LONGEST_CACHE}),
        help_text="What it reads where the script names no cache.",
    )  # fmt: skip

    has_connections = False
    """Whether there is any, in any namespace that the form can choose."""
    offers_connections = False
    """Whether the chosen namespace has one, or the job names one."""

    def offer_connections(self, namespace_id: UUID, found: Connections) -> None:
        """The options of the select."""
        names, chosen = list(found.get(namespace_id, ())), self.texts()["connection"]
        options = [(one, one) for one in names]
        if chosen and chosen not in names:
            options.append((chosen, f"{chosen} (not in this namespace)"))
        select(self.fields["connection"], options, "None")
        self.has_connections, self.offers_connections = bool(found), bool(options)


def connection_said(spec: Values) -> Values:
    """The specification with the two fields as one object."""
    cache, name = spec.get("cache", ""), spec.get("connection", "")
    rest = {key: value for key, value in spec.items() if key not in ("cache", "connection")}
    return rest | ({"connection": {"name": name} | ({"cache": cache} if cache else {})} if name else {})


def connection_values(spec: TrainingSpec) -> Values:
    """The fields that say which connection this specification names."""
    found = spec.connection
    return {"connection": "" if found is None else found.name, "cache": "" if found is None else found.cache}


def connection_choices(user: User) -> Connections:
    """The names of connections by namespace, of those that the user sees."""
    rows = DataConnection.objects.filter(namespace__in=namespaces_visible(user)).order_by("name")
    found: dict[UUID, list[str]] = {}
    for namespace, name in rows.values_list("namespace_id", "name")[:MOST]:
        found.setdefault(namespace, []).append(name)
    return found
