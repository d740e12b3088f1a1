"""The form that starts a session: its size, for how long it may be unused, and the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings

from apps.accounts.models import User
from apps.jobs.engines.configured import engines_for
from apps.namespaces.models import Namespace
from apps.workbench import spark
from apps.workbench.models import Kind
from apps.workbench.packages import choices
from apps.workbench.sizes import sizes, usual_size
from yardmaster.job.spec_spark import MOST
from yardmaster.quantity import NotAQuantity, exact_bytes, format_duration, parse_memory

IDLE_LIMITS = (900, 3_600, 14_400, 28_800)
"""Those of them that the settings allow are offered, beside the usual one."""


class StartForm(forms.Form):
    """Its fields are called as in the API. What is left empty has its default."""

    size = forms.ChoiceField(label="Size", required=False)
    idle_limit = forms.ChoiceField(label="Stop if unused for", required=False)
    engine = forms.ChoiceField(label="Engine", required=False)
    environment = forms.ChoiceField(label="Packages", required=False)
    spark_executors = forms.ChoiceField(label="Spark", required=False)
    spark_cluster = forms.ChoiceField(label="Spark executors run", required=False)
    spark_cores = forms.IntegerField(label="Cores per executor", required=False, min_value=1, max_value=MOST)
    spark_memory = forms.CharField(label="Memory per executor", required=False, max_length=30)

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        kind: Kind,
        user: User,
        size: str = "",
        namespace: Namespace | None = None,
        requirements: Sequence[str] = (),
        known_spark: spark.Spark = spark.NO_SPARK,
    ) -> None:
        super().__init__(data, auto_id=f"{kind.value}-%s")
        usual, longest = (int(settings.YARDMASTER_WORKBENCH[one].total_seconds()) for one in ("IDLE", "LONGEST_IDLE"))
        limits = sorted({usual, *(one for one in IDLE_LIMITS if one <= longest)})
        engines = engines_for(user)
        default = settings.YARDMASTER_DEFAULT_ENGINE
        self._choose("size", [(one.name, one.words) for one in sizes().values()], size or usual_size(kind))
        self._choose("idle_limit", [(str(one), format_duration(one)) for one in limits], str(usual))
        usual_engine = [("", f"Default ({default})")] if default in engines else []
        self._choose("engine", [*usual_engine, *((one, one) for one in engines)], "")
        if engines in ([], [default]):
            del self.fields["engine"]
        packages = choices(user, namespace, requirements) if kind == Kind.JUPYTER else []
        self._choose("environment", packages, packages[0][0] if packages else "")
        if not packages:
            del self.fields["environment"]
        found = spark.choices(engines, namespace, known_spark) if kind == Kind.JUPYTER else spark.NO_CHOICES
        self.spark_missing = found.missing
        for name, offered, first in (
            ("spark_executors", found.executors, str(known_spark.executors)),
            ("spark_cluster", found.clusters, known_spark.cluster),
        ):
            self._choose(name, list(offered), first)
            if not offered:
                del self.fields[name]
        for name, first in (("spark_cores", str(known_spark.cores)), ("spark_memory", exact_bytes(known_spark.memory))):
            self._take_text(name, first)
            if not found.clusters:
                del self.fields[name]

    def _take_text(self, name: str, first: str) -> None:
        field = self.fields[name]
        field.initial = first
        field.help_text = "On a registered cluster."
        field.widget.attrs |= {"class": "form-control", "autocomplete": "off"}

    def clean_spark_memory(self) -> int | None:
        try:
            return parse_memory(self.cleaned_data["spark_memory"]) if self.cleaned_data["spark_memory"] else None
        except NotAQuantity as error:
            raise forms.ValidationError(str(error).capitalize() + ".", code="invalid") from error

    def _choose(self, name: str, choices: list[tuple[str, str]], first: str) -> None:
        field = self.fields[name]
        field.choices = choices  # type: ignore[attr-defined]
        field.initial = first
        field.widget.attrs |= {"class": "form-select", "autocomplete": "off"}

    @property
    def wanted(self) -> dict[str, Any]:
        """What the valid form says, as `session_start` takes it."""
        said = self.cleaned_data
        limit = timedelta(seconds=int(said["idle_limit"])) if said["idle_limit"] else None
        return {
            "size": said["size"] or None,
            "idle_limit": limit,
            "engine": said.get("engine") or None,
            "environment": said.get("environment") or None,
            "spark_executors": int(said["spark_executors"]) if said.get("spark_executors") else None,
            "spark_cluster": said.get("spark_cluster") if "spark_cluster" in self.data else None,
            # Executors within the session have no size of their own.
            "spark_cores": said.get("spark_cores") if said.get("spark_cluster") else None,
            "spark_memory": said.get("spark_memory") if said.get("spark_cluster") else None,
        }

    @property
    def words(self) -> str:
        """What is wrong with it."""
        return " ".join(str(one) for errors in self.errors.values() for one in errors)
