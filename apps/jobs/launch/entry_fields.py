"""What a job runs, as fields of the launch form: a script, a module, a notebook or a command, and what belongs to each.

Which of them is meant is one choice (`runs`); what the others need stays in the form and is not meant meanwhile. Not
here: what is valid (`yardmaster.job.spec_entry`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms

from apps.jobs.launch.parts import ParsedField, SpecForm, Values
from yardmaster.job.spec import Option, TrainingSpec
from yardmaster.job.spec_limits import DEFAULT_LIMITS, shorten
from yardmaster.quantity import NotAQuantity
from yardmaster_runner.entry_point import is_notebook, module_of

FILE, MODULE, NOTEBOOK, COMMAND = "file", "module", "notebook", "command"
ON = "true"
"""What `tf1` is where the mode is on."""


@dataclass(frozen=True)
class Kind:
    """One of the choices. `label` is that of the field of the entry point, `example` what may stand in it."""

    value: str
    title: str
    label: str
    example: str


KINDS = (
    Kind(FILE, "File", "Script", "train.py"),
    Kind(MODULE, "Module", "Module", "-m package.train"),
    Kind(NOTEBOOK, "Notebook", "Notebook", "train.ipynb"),
    Kind(COMMAND, "Command", "Command", "python train.py --epochs 3"),
)


class EntryFields(SpecForm):
    """The fields, for the form that has them beside others."""

    runs = forms.CharField(label="What to run", required=False)
    entry_point = forms.CharField(
        label="Script", error_messages={"required": "Choose the script that starts the training."}
    )
    command = forms.CharField(
        label="Command",
        widget=forms.Textarea(attrs={"rows": 3, "class": "font-monospace"}),
        error_messages={"required": "Write the command that starts the training."},
        help_text="For the shell, in the folder of the code. The folders of data, logs and model are in variables.",
    )
    parameters = ParsedField(
        lambda text: _parameters(text),
        label="Parameters",
        widget=forms.Textarea(attrs={"rows": 3, "class": "font-monospace"}),
        help_text="name = value, one per line: text, a number, true or false. A cell of the notebook sets them.",
    )
    tf1 = ParsedField(lambda text: text == ON, label="TensorFlow 1 mode")

    kinds = KINDS

    def prepare_entry(self, *, runs_script: bool) -> None:
        """To be called once, when the form has its data."""
        entry, kind = self.fields["entry_point"], self.kind
        self["entry_point"].label = kind.label
        entry.widget.attrs |= {"placeholder": kind.example, "list": "launch-scripts"}
        self.fields["command"].widget.attrs |= {"placeholder": kind.example, "maxlength": DEFAULT_LIMITS.command}
        entry.required = runs_script and not self.has_command
        self.fields["command"].required = runs_script and self.has_command

    @property
    def kind(self) -> Kind:
        """The choice; where none was made, what the other fields say."""
        texts = self.texts()
        asked = texts["runs"] or (COMMAND if texts["command"] else kind_of(texts["entry_point"]))
        return next((one for one in KINDS if one.value == asked), KINDS[0])

    @property
    def has_command(self) -> bool:
        return self.kind.value == COMMAND

    @property
    def is_tf1(self) -> bool:
        return bool(self.texts()["tf1"] == ON)

    def entry_said(self, spec: Values) -> Values:
        """The specification without what is not meant of these fields."""
        unmeant = {"runs", "entry_point", "arguments"} if self.has_command else {"runs", "command"}
        if self.kind.value != NOTEBOOK:
            unmeant.add("parameters")
        said = {name: value for name, value in spec.items() if name not in unmeant}
        if self.kind.value == MODULE and said["entry_point"] and not said["entry_point"].startswith("-"):
            said["entry_point"] = f"-m {said['entry_point']}"
        if "command" in said:
            said["command"] = said["command"].replace("\r\n", "\n")
        return said


def kind_of(entry_point: str) -> str:
    """The choice that an entry point is, as it is written."""
    if is_notebook(entry_point):
        return NOTEBOOK
    return MODULE if entry_point.startswith("-m") else FILE


def entry_values(spec: TrainingSpec) -> Values:
    """The fields that say what this specification runs."""
    return {
        "runs": COMMAND if spec.command else kind_of(spec.entry_point),
        "entry_point": spec.entry_point,
        "command": spec.command,
        "parameters": "\n".join(f"{name} = {_written(value)}" for name, value in spec.parameters.items()),
        "tf1": ON if spec.tf1 else "",
    }


def switched(values: Values, entries: Sequence[str]) -> Values:
    """The fields after another choice was made: an entry point of another kind makes way. `entries` are those of the
    code that may be chosen."""
    kind, entry = values["runs"], values["entry_point"]
    if kind == COMMAND and not values["command"] and kind_of(entry) != NOTEBOOK and entry:
        return values | {"command": f"python {entry}"}
    if kind == COMMAND or kind_of(entry) == kind:
        return values
    module = "-m " + entry.removesuffix(".py").replace("/", ".")
    if kind == MODULE and entry.endswith(".py") and module_of(module) and "/" in entry:
        return values | {"entry_point": module}
    return values | {"entry_point": entries[0] if entries and kind != FILE else ""}


def of_kind(paths: Sequence[str], kind: str) -> list[str]:
    """The entry points of this kind among the files of a version, the likeliest first."""
    if kind == NOTEBOOK:
        return [one for one in paths if is_notebook(one)]
    scripts = [one for one in paths if one.endswith(".py")]
    if kind != MODULE:
        return scripts
    names = [one.removesuffix(".py").removesuffix("/__main__") for one in scripts if not one.endswith("__init__.py")]
    modules = [f"-m {one.replace('/', '.')}" for one in sorted(names, key=lambda one: "/" not in one)]
    return [one for one in modules if module_of(one)]


def _written(value: Option) -> str:
    """A text as it is, unless it would be read as something else."""
    if not isinstance(value, str):
        return json.dumps(value)
    plain = value == value.strip() and value.isprintable() and _value(value) == value
    return value if value and plain else json.dumps(value)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _parameters(text: str) -> Mapping[str, Option]:
    """`rate = 0.1`, line by line. Raises `NotAQuantity` where a line says no value, or a name is there twice."""
    found: dict[str, Option] = {}
    for line in filter(None, map(str.strip, text.replace("\r\n", "\n").split("\n"))):
        name, equals, written = (one.strip() for one in line.partition("="))
        value = _value(written)
        if not equals or not isinstance(value, (str, int, float)):
            raise NotAQuantity(
                f"{shorten(line)} says no value. Write {shorten(name)} = 3, with a text, a number, true or false."
            )
        if name in found:
            raise NotAQuantity(f"{shorten(name)} is listed twice. Remove one of them.")
        found[name] = value
    return found
