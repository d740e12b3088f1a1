"""Where the executors of a Spark application run, as fields of the launch form: as tasks of the job, or on a registered
Spark cluster, and how much of that."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms

from apps.jobs.launch.long_select import LongSelect, select
from apps.jobs.launch.parts import ParsedField, SpecForm, Values, WholeField, memory_said
from yardmaster.job.spec import Role, SparkInput, Strategy, TrainingSpec
from yardmaster.quantity import exact_bytes

NAMES = {f"spark_{name}": name for name in ("cluster", "executors", "cores", "memory")}
FIELDS = {f"spark.{name}": field for field, name in NAMES.items()} | {"spark": "spark_cluster"}
"""Fields of the form by those of the specification."""
_FIRST = SparkInput("")


class SparkFields(SpecForm):
    """The fields, for the form that has them beside others."""

    spark_cluster = forms.CharField(
        label="Spark cluster", required=False, widget=LongSelect,
        help_text="Where the executors run: as tasks of this job, or on a cluster that an administrator registered.",
    )  # fmt: skip
    spark_executors = WholeField(label="Executors", initial=_FIRST.executors)
    spark_cores = WholeField(label="Cores per executor", initial=_FIRST.cores)
    spark_memory = ParsedField(
        lambda text: memory_said(text), label="Memory per executor", initial=exact_bytes(_FIRST.memory),
        help_text="The Java heap of each executor (spark.executor.memory), such as 2Gi.",
    )  # fmt: skip

    offers_clusters = False
    """Whether there is any that the chosen namespace may use, or the job names one."""

    @property
    def is_spark(self) -> bool:
        return self.texts().get("strategy") == Strategy.SPARK.value

    @property
    def has_cluster(self) -> bool:
        """Whether a registered cluster is meant."""
        return self.is_spark and bool(self.texts()["spark_cluster"])

    def has_role(self, role: Role) -> bool:
        """Whether the job has tasks of this role, as far as its strategy has them."""
        return role is not Role.EXECUTOR or not self.has_cluster

    def offer_clusters(self, names: Sequence[str]) -> None:
        """The options of the select."""
        chosen = self.texts()["spark_cluster"]
        options = [(one, one) for one in names]
        if chosen and chosen not in names:
            options.append((chosen, f"{chosen} (not available to this namespace)"))
        select(self.fields["spark_cluster"], options, "A separate cluster for this job")
        self.offers_clusters = self.is_spark and bool(options)


def spark_said(spec: Values) -> Values:
    """The specification with these fields as one object. What another strategy does not mean is left out."""
    said = {name: spec[field] for field, name in NAMES.items() if field in spec}
    rest = {key: value for key, value in spec.items() if key not in NAMES}
    meant = spec.get("strategy") == Strategy.SPARK.value and said.get("cluster")
    return rest | ({"spark": said} if meant else {})


def spark_values(spec: TrainingSpec) -> Values:
    """The fields that say what this specification has."""
    found = spec.spark or _FIRST
    counts = {"spark_executors": str(found.executors), "spark_cores": str(found.cores)}
    return {"spark_cluster": found.cluster, **counts, "spark_memory": exact_bytes(found.memory)}
