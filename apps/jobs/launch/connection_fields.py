"""The data connection of a job, as fields of the launch form: one of its namespace, and a cache of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from django import forms
from django.db.models import Value

from apps.accounts.models import User
from apps.connections.models import DataConnection
from apps.jobs.launch.long_select import LongSelect, select
from apps.jobs.launch.parts import SpecForm, Values
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import namespaces_visible
from apps.secrets.models import Kind
from apps.secrets.selectors import secrets_of
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_connection import LONGEST_CACHE

Connections = Mapping[UUID, Sequence[str]]
MOST = 2_000


class ConnectionFields(SpecForm):
    """The fields, for the form that has them beside others."""

    connection = forms.CharField(
        label="Data connection", required=False, widget=LongSelect,
        help_text="The Apache Ignite cluster that the script reads with data.ignite(…).",
    )  # fmt: skip
    cache = forms.CharField(
        label="Cache", required=False, widget=forms.TextInput(attrs={"maxlength": LONGEST_CACHE}),
        help_text="The cache to read if the script names none.",
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


def names_offered(user: User, namespace: Namespace) -> tuple[list[str], Connections]:
    """With one statement: the names of the secrets of this namespace that tasks may have, and those of connections by
    namespace, of all that the user sees."""
    secrets = secrets_of(namespace).filter(kind=Kind.TEXT).annotate(what=Value("a secret"))
    rows = DataConnection.objects.filter(namespace__in=namespaces_visible(user)).annotate(what=Value("connection"))
    columns = ("what", "namespace_id", "name")
    both = secrets.order_by().values_list(*columns).union(rows.values_list(*columns)).order_by("what", "name")
    names: list[str] = []
    found: dict[UUID, list[str]] = {}
    for what, of, name in both[:MOST]:
        (names if what == "a secret" else found.setdefault(of, [])).append(name)
    return names, found
