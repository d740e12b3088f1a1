"""The launch form: a job specification as a Django form with the forms and rows of its parts. The prefixes are those of
the specification (`roles-worker-cpu`, `inputs-0-name`), so that a problem of the core finds its field by its own name.

Not here: which code and data there is to choose (`choices`), what is shown beside the fields (`preview`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from django import forms

from apps.jobs.launch.argument_lines import arguments_of
from apps.jobs.launch.connection_fields import ConnectionFields, connection_said
from apps.jobs.launch.entry_fields import EntryFields
from apps.jobs.launch.image_choices import NO_IMAGES, ImageChoices
from apps.jobs.launch.long_select import LongSelect, select
from apps.jobs.launch.parts import (
    CHECKPOINT_STORES,
    LOG_DIRS,
    MODEL,
    SERVER_WORDS,
    Fault,
    InputRows,
    ParsedField,
    PathsForm,
    RoleForm,
    Rows,
    SecretRows,
    SpecForm,
    SuccessForm,
    Values,
    VariableRows,
    WholeField,
    requirement_lines,
)
from apps.jobs.launch.spark_fields import FIELDS, SparkFields, spark_said
from apps.jobs.launch.spec_values import DURATIONS
from apps.jobs.launch.tensorflow_on_spark import OnSparkFields, with_arguments
from yardmaster.errors import Problem
from yardmaster.job.spec import (
    DEFAULT_MEMORY,
    Resources,
    Role,
    Strategy,
)
from yardmaster.job.spec_limits import DEFAULT_LIMITS, shorten
from yardmaster.job.strategy import PUBLISHING, ROLES, RoleRule, is_service, only_serves
from yardmaster.quantity import exact_bytes, format_cpu, parse_duration

STRATEGIES = [one.value for one in Strategy if not is_service(one)]
"""A service is started where what it serves is shown."""
SERVERS_ONLY = [one for one in STRATEGIES if only_serves(Strategy(one))]
WITHOUT_SHARDS = (Strategy.PARAMETER_SERVER.value, Strategy.SPARK.value)
_ORDER = (Role.PS, Role.WORKER, Role.CHIEF, Role.EVALUATOR, Role.EXECUTOR, Role.DRIVER)
_LIMITS = ("retries", *DURATIONS, "priority_class", "priority")
_BESIDE_SPEC = ("namespace", "engine")
_OF_SCRIPT = (
    "code", "entry_point", "arguments", "requirements", "secrets", "success", "model", "log_dir",
    "checkpoint_store", "command", "parameters", "tf1", "connection",
)  # fmt: skip
_SHAPES: Mapping[Strategy, Mapping[Role, int]] = {
    Strategy.SINGLE: {Role.WORKER: 1},
    Strategy.BETWEEN_GRAPH: {Role.WORKER: 2, Role.PS: 1},
    Strategy.PARAMETER_SERVER: {Role.CHIEF: 1, Role.WORKER: 2, Role.PS: 1},
    Strategy.MULTI_WORKER_MIRRORED: {Role.WORKER: 2},
    Strategy.IN_GRAPH: {Role.WORKER: 2, Role.PS: 1},
    Strategy.BATCH: {Role.WORKER: 2},
    Strategy.SPARK: {Role.EXECUTOR: 2, Role.DRIVER: 1},
}
"""What each strategy begins with. Together 2 cores at most, so that a first job fits a small machine."""


class LaunchForm(EntryFields, ConnectionFields, SparkFields, OnSparkFields):
    """The whole form, with its parts. Bound, it says a job; unbound it is filled from `Values`."""

    strategy = forms.CharField(label="Training strategy", required=False)
    name = forms.CharField(label="Name", error_messages={"required": "Enter a name for the job."})
    code = forms.CharField(label="Code", widget=LongSelect, error_messages={"required": "Choose a code version."})
    arguments = ParsedField(
        arguments_of, label="Arguments", widget=forms.Textarea(attrs={"rows": 5, "class": "font-monospace"})
    )
    requirements = ParsedField(
        requirement_lines, label="Packages", widget=forms.Textarea(attrs={"rows": 3, "class": "font-monospace"})
    )
    retries = WholeField(
        label="Restarts", initial=3,
        help_text="Restarts of all tasks of an attempt together. A failure that would repeat is not restarted.",
    )  # fmt: skip
    max_runtime = ParsedField(
        parse_duration, label="Time limit", help_text="90s, 30m, 2h or 1d. Then the job is stopped."
    )
    grace_period = ParsedField(
        parse_duration,
        label="Grace period",
        initial="30s",
        help_text="From the request to stop until tasks are killed.",
    )
    reclaim_delay = ParsedField(
        parse_duration, label="Parameter server shutdown delay", initial="30s",
        help_text="From the end of the training until the parameter servers are stopped.",
    )  # fmt: skip
    hold_failed = ParsedField(
        parse_duration, label="Hold time of failed tasks", initial="0s",
        help_text="If a script fails, its task stays up so long, and you can open a terminal in it. It keeps quota.",
    )  # fmt: skip
    priority_class = forms.CharField(
        label="Priority class", required=False, widget=LongSelect,
        help_text="A class counts among the jobs of all namespaces, and instead of the number.",
    )  # fmt: skip
    priority = WholeField(
        label="Priority", initial=0,
        help_text="-1000 to 1000. Higher starts sooner in this namespace, and up to its ceiling among all jobs.",
    )  # fmt: skip
    model = forms.CharField(
        label="Model name", required=False,
        help_text="The model of which the job's export becomes a version.",
    )  # fmt: skip
    publishes = forms.CharField(
        label="Publish as dataset", required=False,
        help_text="What the tasks write into OUTPUT_DIR becomes a version of this dataset when the job has succeeded.",
    )  # fmt: skip
    publishes_note = forms.CharField(label="Note of that version", required=False)
    log_dir = forms.CharField(label="Log directory", required=False, widget=forms.Select(choices=LOG_DIRS))
    checkpoint_store = forms.CharField(
        label="Checkpoints and outputs", required=False, widget=forms.Select(choices=CHECKPOINT_STORES)
    )
    image = forms.CharField(
        label="Image", required=False, widget=LongSelect,
        help_text="What the tasks have beside the code: Python, TensorFlow and packages.",
    )  # fmt: skip
    namespace = forms.CharField(label="Namespace", required=False)
    engine = forms.CharField(label="Engine", required=False)

    def __init__(self, data: Mapping[str, str] | None = None, *, values: Values | None = None, add: str = "") -> None:
        """`add`: the rows of which there is one more empty one."""
        at_first = values or {}
        super().__init__(data, initial=at_first)
        for name, text in {"name": "digits", "max_runtime": "no limit"}.items():
            self.fields[name].widget.attrs["placeholder"] = text
        self.fields["model"].widget.attrs["placeholder"] = "the job's name"
        self.fields["publishes"].widget.attrs["placeholder"] = "nothing"
        for name in ("name", "model", "publishes"):
            self.fields[name].widget.attrs["maxlength"] = DEFAULT_LIMITS.name
        self.runs_script = self.texts()["strategy"] not in SERVERS_ONLY
        self.can_publish = self.texts()["strategy"] in PUBLISHING
        self.reads_shards = self.runs_script and self.texts()["strategy"] not in WITHOUT_SHARDS
        if not self.runs_script:
            self.fields["code"].required = False
        self.prepare_entry(runs_script=self.runs_script)
        self.paths = PathsForm(data, prefix="paths", initial=at_first.get("paths"))
        self.success = SuccessForm(data, prefix="success", initial=at_first.get("success"))
        rules, of_roles = rules_of(self.texts()["strategy"]), at_first.get("roles", {})
        self.all_roles = [RoleForm(one, rules.get(one), data, initial=of_roles.get(one.value)) for one in _ORDER]
        self.roles = [one for one in self.all_roles if Role(one.role) in rules and self.has_role(Role(one.role))]
        """Those of the job."""
        for form in self.roles if not self.runs_script else ():
            form.words = SERVER_WORDS[form.role]
        self.inputs = self._rows(InputRows, "inputs", "Data", data, at_first, add)
        self.environment = self._rows(VariableRows, "environment", "Environment variables", data, at_first, add)
        self.secrets = self._rows(SecretRows, "secrets", "Secrets", data, at_first, add)
        for number, form in enumerate(self.inputs.forms, 1):
            form.title = f"Dataset {number}"

    @staticmethod
    def _rows(kind: type[Rows], prefix: str, title: str, data: Any, at_first: Values, add: str) -> Rows:
        if prefix == "secrets" and data is not None and f"{prefix}-TOTAL_FORMS" not in data:  # an older page
            data = {
                **data,
                f"{prefix}-TOTAL_FORMS": "0",
                f"{prefix}-INITIAL_FORMS": "0",
            }
        rows = kind(data, prefix=prefix, initial=at_first.get(prefix), auto_id="f-%s")
        rows.title, rows.extra = title, 2 if add == prefix else 1
        return rows

    has_volumes = False
    """Whether it offers them."""
    has_ignite = False
    """The same of the store in Apache Ignite."""

    has_images = False
    """The same of images."""
    has_classes = False
    """The same of priority classes."""
    images = NO_IMAGES

    def offer(
        self, *, codes: list[Any], datasets: list[Any], models: list[Any], images: ImageChoices = NO_IMAGES,
        has_volumes: bool = False, has_ignite: bool = False, classes: Sequence[tuple[str, str]] = (),
    ) -> None:  # fmt: skip
        """The options of its selects, in groups. Which of them are allowed is decided at the launch."""
        self.has_volumes, self.images, self.has_classes = has_volumes, images, bool(classes)
        self.has_ignite = has_ignite
        select(self.fields["priority_class"], classes, "No class: the number below")
        of_roles = [images.offer(form, "That of the job") for form in self.all_roles]
        self.has_images = images.offer(self, "The engine's own image") or any(of_roles)
        select(self.fields["code"], codes, "" if self.texts()["code"] else "Choose a code version")
        for form in self.inputs.forms:
            inputs = [*datasets, *_named_as_models(models)]
            select(form.fields["dataset_version"], inputs, "No dataset" if inputs else "There is no dataset yet")

    @property
    def parts(self) -> list[SpecForm | Rows]:
        """The forms within this one that are meant."""
        of_script: list[SpecForm | Rows] = [self.secrets, self.paths, self.success] if self.runs_script else []
        return [*self.roles, self.inputs, self.environment, *of_script]

    def is_valid(self) -> bool:
        """Whether every field could be read. The rules of the core come after that (`add_problems`)."""
        return all([super().is_valid(), *(part.is_valid() for part in self.parts)])

    def values(self) -> Values:
        """What stands in every field."""
        return {
            **self.texts(),
            "paths": self.paths.texts(),
            "success": self.success.texts(),
            "roles": {form.role: form.texts() for form in self.all_roles},
            "inputs": [form.texts() for form in self.inputs.filled()],
            "environment": [form.texts() for form in self.environment.filled()],
            "secrets": [form.texts() for form in self.secrets.filled()],
        }

    @cached_property
    def spec(self) -> Values:
        """The specification as JSON, as far as the bound form can be read. Read before problems are added."""
        variables = [form.said() for form in self.environment.filled()]
        spec = {
            **dict.fromkeys(("name", "strategy", "code", "entry_point"), ""),
            **{name: value for name, value in self.said().items() if name not in _BESIDE_SPEC},
            "roles": {
                role.value: form.said() for role in Role for form in self.roles if form.role == role and form.is_meant
            },
            "environment": {one["name"]: one.get("value", "") for one in variables if "name" in one},
            "inputs": [form.said() for form in self.inputs.filled()],
            "secrets": [form.said() for form in self.secrets.filled()],
            "paths": self.paths.said(),
            "success": self.success.said(),
        }
        if "model" in spec:
            spec["model"] = {"name": spec["model"]}
        note = spec.pop("publishes_note", "")
        if "publishes" in spec:
            spec["publishes"] = {"dataset": spec["publishes"], "note": note}
        spec = with_arguments(spark_said(connection_said(self.entry_said(spec))))
        # What only a script needs stays in the form, should another strategy be chosen, and is not meant meanwhile.
        unmeant = (() if self.runs_script else _OF_SCRIPT) + (() if self.can_publish else ("publishes",))
        meant = {name: value for name, value in spec.items() if value not in ({}, []) and name not in unmeant}
        has_none = self.runs_script and self.cleaned_data.get("requirements") == []
        return {**meant, "requirements": []} if has_none else meant

    def add_problems(self, problems: Iterable[Problem]) -> None:
        """Put each problem at the field that it names, at the nearest one that contains it, or above all. A field that
        could not be read has its own error: what the core says of it is left out."""
        known = [(form, name) for form in self._all() for name in form.errors]
        for problem in problems:
            form, name = self._place(problem)
            if (form, name) in known:
                continue
            message = f"{problem.message} {problem.remedy}".strip()
            if isinstance(form, Rows):
                form.non_form_errors().append(message)
            else:
                form.add_error(name, message)

    def _all(self) -> list[SpecForm]:
        return [self, *(form for part in self.parts for form in (part if isinstance(part, Rows) else [part]))]

    def _place(self, problem: Problem) -> tuple[SpecForm | Rows, str | None]:
        """The form and the field that a problem is about."""
        head, _, rest = problem.field.partition(".")
        head = "command" if head == "entry_point" and self.has_command else head
        key, _, name = rest.partition(".")
        if head in self.fields:
            return self, {"publishes.note": "publishes_note", "connection.cache": "cache"}.get(problem.field, head)
        if head == "spark":
            return self, FIELDS.get(problem.field, "spark_cluster")
        if head == "roles" and (role := next((one for one in self.roles if one.role == key), None)):
            field = name.partition(".")[0]
            return role, field if field in role.fields else "replicas"
        if head in ("paths", "success") and rest in (part := getattr(self, head)).fields:
            return part, rest
        if head == "secrets":
            row = self.secrets.filled()[int(key) : int(key) + 1] if key.isdecimal() else []
            return (row[0], name if name in row[0].fields else "name") if row else (self.secrets, None)
        if head == "inputs":
            row = self.inputs.filled()[int(key) : int(key) + 1] if key.isdecimal() else []
            return (row[0], name if name in row[0].fields else "dataset_version") if row else (self.inputs, None)
        if head == "environment":
            rows = [one for one in self.environment.filled() if shorten(one.texts()["name"]) == rest]
            return (rows[0], "value" if problem.code == "too_long" else "name") if rows else (self.environment, None)
        return self, None

    @property
    def faults(self) -> list[Fault]:
        return [*super().faults, *(fault for part in self.parts for fault in part.faults)]

    @property
    def limits(self) -> list[forms.BoundField]:
        return [self[name] for name in _LIMITS if name != "priority_class" or self.has_classes]

    @property
    def open_sections(self) -> set[str]:
        """The folded sections in which something is wrong."""
        wrong = set(self.errors)
        found = {
            "resources": any(set(form.errors) - {"replicas"} for form in self.roles),
            "script": wrong & {"arguments", "requirements", "parameters"} or self.environment.faults,
            "secrets": self.secrets.faults,
            "limits": wrong & set(_LIMITS),
            "success": self.success.errors,
            "paths": self.paths.errors
            or wrong & {"model", "publishes", "publishes_note", "log_dir", "checkpoint_store"},
            "place": wrong & set(_BESIDE_SPEC),
        }
        return {name for name, is_wrong in found.items() if is_wrong}

    @property
    def percent_matters(self) -> bool:
        """Whether a share of the workers can decide: not where they never end."""
        worker = rules_of(self.texts()["strategy"]).get(Role.WORKER)
        return worker is None or not worker.never_ends


def rules_of(strategy: str) -> Mapping[Role, RoleRule]:
    """The roles of a strategy; none where there is no such strategy."""
    return ROLES[Strategy(strategy)] if strategy in STRATEGIES else {}


_FIRST_CPU = ("1", "0.5")
"""Of a single task, and of one of several."""


def new_values(strategy: str) -> Values:
    """The form as it is at first."""
    return with_strategy(LaunchForm().values(), strategy)


def with_sizes(values: Values, sizes: Mapping[str, Resources]) -> Values:
    """The same form with these sizes by role, where a role still has those that every new form has."""
    roles = {role: dict(texts) for role, texts in values["roles"].items()}
    for role, size in sizes.items():
        texts = roles.get(role, {})
        if texts.get("memory") == exact_bytes(DEFAULT_MEMORY):
            texts["memory"] = exact_bytes(size.memory)
        if size.cpu and texts.get("cpu") in _FIRST_CPU:
            texts["cpu"] = format_cpu(size.cpu)
    return values | {"roles": roles}


def with_strategy(values: Values, strategy: str) -> Values:
    """The same form for another strategy: what both have stays as it was typed, what is new gets the preset's."""
    roles = {role: dict(texts) for role, texts in values.get("roles", {}).items()}
    if not any(text for role, texts in roles.items() if role != Role.WORKER.value for text in texts.values()):
        roles.get("worker", {}).pop("replicas", None)  # of a single task: no one chose that there is one
    for role, rule in ROLES[Strategy(strategy)].items():
        texts = roles.setdefault(role.value, {})
        typed, preset = texts.get("replicas", ""), str(_SHAPES[Strategy(strategy)].get(role, 0))
        if not typed or (typed == "0" and rule.least) or rule.most == 1:
            texts["replicas"] = preset if rule.least else typed or "0"
        texts["cpu"] = texts.get("cpu") or _FIRST_CPU[strategy != Strategy.SINGLE.value]
        texts["memory"] = texts.get("memory") or exact_bytes(DEFAULT_MEMORY)
    return values | {"strategy": strategy, "roles": roles}


def with_shape(values: Values, shape: Mapping[str, int]) -> Values:
    """The same form with other counts."""
    roles = dict(values.get("roles", {}))
    for role, count in shape.items():
        if role in roles:
            roles[role] = roles[role] | {"replicas": str(count)}
    return values | {"roles": roles}


def as_data(values: Values) -> dict[str, str]:
    """What a browser would send of the form with these values."""
    data: dict[str, str] = {}

    def add(prefix: str, one: Any) -> None:
        if isinstance(one, list):
            data.update({f"{prefix}-TOTAL_FORMS": str(len(one)), f"{prefix}-INITIAL_FORMS": "0"})
            one = {str(number): row for number, row in enumerate(one)}
        if isinstance(one, dict):
            for key, part in one.items():
                add(f"{prefix}-{key}" if prefix else key, part)
        else:
            data[prefix] = str(one)

    add("", {"inputs": [], "environment": [], "secrets": []} | values)
    return data


def _named_as_models(groups: list[Any]) -> list[Any]:
    return [(f"Model {name}", [(MODEL + key, title) for key, title in options]) for name, options in groups]
