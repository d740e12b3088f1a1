"""The parts of the launch form: forms for a role, the paths and the success criteria; rows for data and variables.

The fields only parse amounts, durations and lists as people write them. What is valid is decided by
`yardmaster.job.spec_rules`. `Values` are the texts of all fields: what one form hands to the next when a button changes
it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from apps.jobs.launch.long_select import LongSelect
from yardmaster.job.spec import DEFAULT_MEMORY, Paths, Role
from yardmaster.job.spec_limits import DEFAULT_LIMITS, shorten
from yardmaster.job.strategy import RoleRule
from yardmaster.quantity import NotAQuantity, exact_bytes, parse_cpu, parse_memory

Values = dict[str, Any]
ROLE_TITLES = {
    "ps": "Parameter server", "worker": "Worker", "chief": "Chief", "evaluator": "Evaluator",
    "driver": "Driver", "executor": "Executor",
}  # fmt: skip
ROLE_WORDS = {
    "ps": ("Parameter servers", "Hold the variables of the model."),
    "worker": ("Workers", "Read the data and train."),
    "chief": ("Chief", "Coordinates, and saves checkpoints and the model."),
    "evaluator": ("Evaluator", "Evaluates checkpoints during the training."),
    "driver": ("Driver", "Runs the script and Spark's master."),
    "executor": ("Executors", "Run Spark's tasks. Each offers its CPU in whole cores, rounded down."),
}
SERVER_WORDS = {
    "ps": ("Parameter servers", "Hold the variables that you place on them."),
    "worker": ("Workers", "Run the operations that you place on them."),
    "chief": ("Chief", "The server that your program connects to."),
}


class ParsedField(forms.CharField):
    """A text that `parse` reads, or of which it raises `NotAQuantity` with what is wrong; None where it is empty."""

    def __init__(self, parse: Callable[[str], Any], **options: Any) -> None:
        super().__init__(required=False, **options)
        self._parse = parse

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        try:
            return self._parse(text) if text else None
        except NotAQuantity as error:
            raise ValidationError(str(error), code="invalid") from error


class WholeField(forms.IntegerField):
    """Any whole number, in a text field: a browser would drop what is none before the form could show it again."""

    def __init__(self, widget: forms.Widget | None = None, **options: Any) -> None:
        super().__init__(required=False, widget=widget or forms.TextInput(attrs={"inputmode": "numeric"}), **options)
        self.error_messages["invalid"] = "This is not a whole number. Write digits only."


@dataclass(frozen=True)
class Fault:
    """What is wrong with one field, for a list of links."""

    label: str
    id: str
    messages: Sequence[str]


class SpecForm(forms.Form):
    """One part of the specification."""

    title = ""
    """What its fields belong to, for a list of errors."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"auto_id": "f-%s"} | options)
        for field in self.fields.values():
            attrs = field.widget.attrs
            kind = "form-select" if isinstance(field.widget, forms.Select) else "form-control"
            attrs["class"] = f"{kind} {attrs.get('class', '')}".strip()
            attrs |= {"autocomplete": "off", "spellcheck": "false"}

    @property
    def is_filled(self) -> bool:
        """Whether something stands in it: an empty row is passed over."""
        return any(self.texts().values())

    def texts(self) -> Values:
        """What stands in each field, or would at first."""
        found = {name: self[name].value() for name in self.fields}
        shown = {name: self[name].initial if text is None else text for name, text in found.items()}
        return {name: "" if text is None else str(text) for name, text in shown.items()}

    def said(self) -> Values:
        """The part as JSON, as far as it can be read; what cannot stays as it was typed. Fields that were left empty,
        or were not sent, are left out, so that their defaults hold."""
        return {name: value for name, value in self._read().items() if value not in (None, "", [], {})}

    def _read(self) -> Values:
        wrong = self.errors
        sent = {name: text for name in self.fields if (text := self[name].value()) is not None}
        return {name: text if name in wrong else self.cleaned_data.get(name) for name, text in sent.items()}

    @property
    def faults(self) -> list[Fault]:
        """What is wrong with its fields."""
        before = f"{self.title}: " if self.title else ""
        wrong = [self[name] for name in self.fields if name in self.errors]
        return [Fault(f"{before}{one.label}", one.auto_id, [str(error) for error in one.errors]) for one in wrong]


class PathsForm(SpecForm):
    """How the script learns its paths; empty: not at all."""

    data_flag = forms.CharField(label="Argument for the data", required=False)
    log_flag = forms.CharField(label="Argument for logs and checkpoints", required=False)
    model_flag = forms.CharField(label="Argument for the model", required=False)
    data_env = forms.CharField(label="Variable for the data", required=False)
    log_env = forms.CharField(label="Variable for logs and checkpoints", required=False)
    model_env = forms.CharField(label="Variable for the model", required=False)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name, field in self.fields.items():
            field.initial = getattr(Paths(), name)
            field.widget.attrs["placeholder"] = "not set"

    def said(self) -> Values:
        return self._read()  # an empty one is meant: it is not set


class SuccessForm(SpecForm):
    RULES = (("workers", "The workers, and the chief where there is one"), ("chief", "The chief alone, or worker 0"))
    rule = forms.CharField(label="Decided by", required=False, initial="workers", widget=forms.Select(choices=RULES))
    percent = WholeField(
        label="Percent of the workers", initial=100, help_text="That must succeed, where the workers decide."
    )

    def said(self) -> Values:
        found = super().said()
        # The chief's rule has no percentage: one that is left in the field is not meant.
        return {"rule": "chief"} if found.get("rule") == "chief" else found


class RoleForm(SpecForm):
    """One role: how many tasks, and the resources of each. `rule` None: the strategy has no such role."""

    replicas = WholeField(label="number of tasks", widget=forms.NumberInput(attrs={"min": 1, "max": 1000}))
    cpu = ParsedField(lambda text: _number(parse_cpu(text)), label="CPU", help_text="cores, or 500m")
    memory = ParsedField(lambda text: memory_said(text), label="Memory", help_text="such as 1.5Gi")
    gpus = WholeField(label="GPUs")
    extended = ParsedField(
        lambda text: _pairs(text), label="Other devices", help_text="by name, where the engine has them: amd.com/gpu=1"
    )
    image = forms.CharField(label="Image", required=False, widget=LongSelect)

    def __init__(self, role: Role, rule: RoleRule | None, *args: Any, **options: Any) -> None:
        super().__init__(*args, prefix=f"roles-{role.value}", **options)
        self.role, self.title = role.value, ROLE_TITLES[role.value]
        self.words = ROLE_WORDS[role.value]
        self.is_optional = rule is not None and rule.least == 0
        self.is_single = rule is not None and rule.most == 1
        self.fields["replicas"].required = rule is not None and rule.least > 0
        self.fields["replicas"].widget.attrs["data-role"] = role.value
        for name, text in {"cpu": "1", "memory": exact_bytes(DEFAULT_MEMORY), "gpus": "0", "extended": "none"}.items():
            self.fields[name].widget.attrs["placeholder"] = text

    @property
    def count(self) -> int:
        """How many tasks it asks for, as far as that can be read."""
        text = self.texts()["replicas"].strip()
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0

    @property
    def is_meant(self) -> bool:
        return not self.is_optional or self.texts()["replicas"].strip() not in ("", "0")


MODES = (("", "Copied before the start"), ("stream", "Streamed during the training"))
"""The first is the default, so that a job file does not repeat it."""
SHARES = (("", "Each task reads all of it"), ("shards", "Tasks divide the shards"))
SOURCES = (("", "From the object store"), ("volume", "In place, from the data volume"))
CHECKPOINT_STORES = (("", "With the portal's other data"), ("ignite", "Apache Ignite"))
LOG_DIRS = (("", "On the disk of each task"), ("volume", "On the log volume, shared by all tasks"))
MODEL = "model:"
"""Before the id of a version of a model, which is chosen where datasets are."""


class InputForm(SpecForm):
    dataset_version = forms.CharField(label="Dataset", required=False, widget=LongSelect)
    name = forms.CharField(
        label="Folder", required=False, widget=forms.TextInput(attrs={"placeholder": "such as train"})
    )
    mode = forms.CharField(label="How it is read", required=False, widget=forms.Select(choices=MODES))
    share = forms.CharField(label="Shards", required=False, widget=forms.Select(choices=SHARES))
    source = forms.CharField(label="Where it is read", required=False, widget=forms.Select(choices=SOURCES))
    stands_for = forms.CharField(
        label="S3 path in the script that it stands for (optional)",
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "s3://bucket/folder"}),
    )

    @property
    def is_filled(self) -> bool:
        texts = self.texts()
        return bool(texts["dataset_version"] or texts["name"])

    def said(self) -> Values:
        found = {"dataset_version": ""} | super().said()
        if not found["dataset_version"].startswith(MODEL):
            return found
        return {"model_version": found.pop("dataset_version").removeprefix(MODEL)} | found

    def clean(self) -> Values:
        if self.cleaned_data.get("name") and not self.cleaned_data.get("dataset_version"):
            self.add_error("dataset_version", "Choose a dataset, or clear its folder.")
        return self.cleaned_data


class VariableForm(SpecForm):
    title = "Environment variable"
    name = forms.CharField(label="Name", required=False, widget=forms.TextInput(attrs={"placeholder": "NAME"}))
    value = ParsedField(lambda text: from_line(text), label="Value")

    def clean(self) -> Values:
        if self.data.get(self.add_prefix("value")) and not self.cleaned_data.get("name"):
            self.add_error("name", "Name the variable, or clear its value.")
        return self.cleaned_data


class SecretForm(SpecForm):
    title = "Secret"
    name = forms.CharField(
        label="Secret",
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "SECRET", "list": "launch-secrets"}),
    )
    env = forms.CharField(
        label="Variable", required=False, widget=forms.TextInput(attrs={"placeholder": "variable, such as TOKEN"})
    )
    file = forms.CharField(
        label="File", required=False, widget=forms.TextInput(attrs={"placeholder": "or file, such as .netrc"})
    )

    def clean(self) -> Values:
        given = self.cleaned_data
        if (given.get("env") or given.get("file")) and not given.get("name"):
            self.add_error("name", "Choose a secret, or clear its variable and file.")
        return given


class Rows(forms.BaseFormSet):  # type: ignore[type-arg]  # not generic at run time
    """Rows of which empty ones are passed over."""

    title = ""
    default_error_messages = {
        **forms.BaseFormSet.default_error_messages,
        "too_many_forms": "There are at most %(num)d rows. Remove some.",
    }

    def filled(self) -> list[Any]:
        return [form for form in self.forms if form.is_filled]

    @property
    def faults(self) -> list[Fault]:
        own = [str(error) for error in self.non_form_errors()]
        before = [Fault(self.title, f"f-{self.prefix}", own)] if own else []
        return [*before, *(fault for form in self.forms for fault in form.faults)]


class Variables(Rows):
    def clean(self) -> None:
        seen: set[str] = set()
        for form in self.filled():
            name = form.cleaned_data.get("name")
            if name and name in seen:
                form.add_error("name", f"{shorten(name)} is set twice. Remove one of them.")
            seen.add(name)


def _rows(form: type[SpecForm], formset: type[Rows], most: int) -> type[Rows]:
    """A formset of at most so many rows: of more that are sent, one is read, so that the answer can refuse them all."""
    return forms.formset_factory(  # type: ignore[return-value]  # made from `formset`
        form, formset, extra=1, max_num=most, absolute_max=most + 1, validate_max=True
    )


InputRows = _rows(InputForm, Rows, DEFAULT_LIMITS.inputs)
SecretRows = _rows(SecretForm, Rows, DEFAULT_LIMITS.secrets)
VariableRows = _rows(VariableForm, Variables, DEFAULT_LIMITS.variables)


def as_line(text: str) -> str:
    """A text on a line of its own; in JSON's quotes where it would not survive as it is."""
    quoted = text.startswith('"') or text != text.strip() or not text or any(sign in text for sign in "\r\n")
    return json.dumps(text, ensure_ascii=False) if quoted else text


NO_PACKAGES = "none"
"""In the field of packages: not even those that the code names."""


def requirement_lines(text: str) -> list[str]:
    """The lines without comments, as pip reads them."""
    found = [re.sub(r"(^|\s+)#.*", "", line).strip() for line in text.splitlines()]
    return [] if text.strip().lower() == NO_PACKAGES else [line for line in found if line]


def requirements_text(requirements: Sequence[str] | None) -> str:
    """The field that says these."""
    return "" if requirements is None else "\n".join(requirements) or NO_PACKAGES


def from_line(line: str) -> str:
    line = line.strip()
    if len(line) > 1 and line.startswith('"') and line.endswith('"'):
        try:
            text = json.loads(line)
        except ValueError:
            return line
        return text if isinstance(text, str) else line
    return line


def _number(amount: float) -> float:
    return int(amount) if amount == int(amount) else amount


def memory_said(text: str) -> int | str:
    """As it was typed: `1.5Gi` says more in a job file than bytes. Raises `NotAQuantity` where it is no amount."""
    amount = parse_memory(text)
    return amount if text.isdecimal() else text


def _pairs(text: str) -> dict[str, int | str]:
    """`rdma/hca=1, amd.com/gpu=2`. Raises `NotAQuantity` where an amount is missing, or a name is there twice."""
    found: dict[str, int | str] = {}
    for piece in filter(None, map(str.strip, text.split(","))):
        name, equals, amount = (one.strip() for one in piece.partition("="))
        if not equals:
            raise NotAQuantity(f"{shorten(name)} has no amount. Write {shorten(name)}=1.")
        if name in found:
            raise NotAQuantity(f"{shorten(name)} is listed twice. Remove one of them.")
        found[name] = int(amount) if amount.isascii() and amount.isdigit() and len(amount) < 19 else amount
    return found
