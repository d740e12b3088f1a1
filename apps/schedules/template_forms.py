"""The forms of templates: what is saved, with a row for each parameter; and the small one that launches.

Not here: what is valid, which the core says (`yardmaster.job.template_parameters`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import forms

from apps.errors import DomainError, words_of
from apps.jobs.launch.argument_lines import arguments_of, as_argument_line
from apps.jobs.launch.parts import as_line, from_line
from apps.schedules.saving import LONGEST_DESCRIPTION, LONGEST_NAME
from yardmaster.errors import Problem, SpecRejected, YardmasterError
from yardmaster.job.template_parameters import BOOLEAN, CHOICE, INTEGER, KINDS, MOST, NUMBER, Parameter, written
from yardmaster.quantity import NotAQuantity

BEFORE = "p-"
"""The names of a parameter's field begin so."""
_SPACED = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_MONO = {"class": "font-monospace", "rows": 4, "spellcheck": "false"}


class TemplateForm(forms.Form):
    """What a template is called, and what of its job is changed most. `choices` of `latest`: pairs of key and words."""

    name = forms.CharField(label="Name", max_length=LONGEST_NAME)
    description = forms.CharField(label="Description", required=False, max_length=LONGEST_DESCRIPTION)
    arguments = forms.CharField(label="Arguments", required=False, widget=forms.Textarea(attrs=_MONO))
    environment = forms.CharField(label="Variables", required=False, widget=forms.Textarea(attrs=_MONO))
    latest = forms.MultipleChoiceField(label="Latest versions", required=False)
    replaces = forms.ChoiceField(label="Save as", required=False)

    def __init__(
        self, *args: Any, references: Sequence[tuple[str, str]] = (), others: Sequence[tuple[str, str]] = (),
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(*args, **options)
        for name, choices in (("latest", references), ("replaces", [("", "A new template"), *others])):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = choices

    def clean_arguments(self) -> list[str]:
        try:
            return arguments_of(_SPACED.sub(r"{{\1}}", self.cleaned_data["arguments"]))
        except NotAQuantity as error:
            raise forms.ValidationError(str(error)) from error

    def clean_environment(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in self.cleaned_data["environment"].splitlines():
            name, equals, value = line.strip().partition("=")
            if name and not equals:
                raise forms.ValidationError(f"{name[:60]} has no value. Write {name[:60]}=value.")
            if name in found:
                raise forms.ValidationError(f"{name[:60]} is there twice. Remove one of them.")
            if name:
                found[name.strip()] = from_line(value)
        return found

    def changed(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The specification with the arguments and variables of the form."""
        said = {"arguments": self.cleaned_data["arguments"], "environment": self.cleaned_data["environment"]}
        return {**spec, **said}


class ParameterForm(forms.Form):
    """A row. One without a name is passed over."""

    name = forms.CharField(label="Name", required=False, max_length=100)
    kind = forms.ChoiceField(label="Kind", choices=list(KINDS.items()), required=False)
    default = forms.CharField(label="Default", required=False, max_length=1_000, strip=False)
    minimum = forms.CharField(label="Smallest", required=False, max_length=40)
    maximum = forms.CharField(label="Largest", required=False, max_length=40)
    choices = forms.CharField(label="Choices", required=False, max_length=5_000)
    help = forms.CharField(label="Help", required=False, max_length=200)

    def said(self) -> dict[str, Any]:
        """The parameter as JSON."""
        data = {name: self.cleaned_data.get(name) or None for name in ("default", "minimum", "maximum")}
        choices = [one.strip() for one in self.cleaned_data.get("choices", "").split(",") if one.strip()]
        rest = {"choices": choices, "help": self.cleaned_data.get("help", "")}
        return {"name": self.cleaned_data["name"], "kind": self.cleaned_data["kind"] or "text", **data, **rest}


ParameterRows = forms.formset_factory(ParameterForm, extra=0, max_num=MOST, validate_max=True, absolute_max=MOST)


def rows_at_first(parameters: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of these parameters, and one or two empty ones."""
    more = 1 if parameters else 2
    rows = [
        {**one, "default": "" if one["default"] is None else written(one["default"]),
         "choices": ", ".join(one["choices"])}
        for one in parameters
    ]  # fmt: skip
    return [*rows, *({} for _ in range(min(more, MOST - len(rows))))]


def arguments_text(arguments: Iterable[str]) -> str:
    return "\n".join(map(as_argument_line, arguments))


def environment_text(environment: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={as_line(text)}" for name, text in environment.items())


def parameter_fields(parameters: Sequence[Parameter]) -> dict[str, forms.Field]:
    """A field for each, under its name after `BEFORE`."""
    return {f"{BEFORE}{one.name}": _field_of(one) for one in parameters}


def given_values(parameters: Sequence[Parameter], cleaned: Mapping[str, Any]) -> dict[str, Any]:
    """What the form's fields say, by name. Left empty: its default, or for a text without one the empty text."""
    given: dict[str, Any] = {}
    for one in parameters:
        value = cleaned.get(f"{BEFORE}{one.name}")
        if value not in (None, ""):
            given[one.name] = value
        elif one.kind == "text" and value == "":
            given[one.name] = ""
    return given


class TemplateLaunchForm(forms.Form):
    """The name of the job and a value for each parameter."""

    name = forms.CharField(label="Name of the job", required=False, max_length=200)

    def __init__(self, *args: Any, parameters: Sequence[Parameter] = (), usual_name: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.parameters = parameters
        self.fields.update(parameter_fields(parameters))
        self.fields["name"].widget.attrs["placeholder"] = usual_name

    @property
    def rows(self) -> list[forms.BoundField]:
        return [self[f"{BEFORE}{one.name}"] for one in self.parameters]

    def values(self) -> dict[str, Any]:
        return given_values(self.parameters, self.cleaned_data)


def show_problems(form: forms.Form, error: DomainError | YardmasterError, rows: Any = None) -> None:
    """Put each problem at its field: that of a parameter by its name, that of a row by its number, the rest above
    all."""
    problems: Sequence[Problem] = error.problems if isinstance(error, SpecRejected) else getattr(error, "errors", ())
    if not problems:
        form.add_error(None, words_of(error))
    for one in problems:
        message = f"{one.message} {one.remedy}".strip()
        head, _, rest = one.field.partition(".")
        index, _, key = rest.partition(".")
        if rows is not None and head == "parameters" and index.isdecimal() and int(index) < len(rows.meant):
            row = rows.meant[int(index)]
            row.add_error(key if key in row.fields else "name", message)
        elif f"{BEFORE}{rest}" in form.fields and head == "parameters":
            form.add_error(f"{BEFORE}{rest}", message)
        elif head in form.fields:
            form.add_error(head, message)
        else:
            form.add_error(None, f"{one.field}: {message}" if one.field else message)


def _field_of(one: Parameter) -> forms.Field:
    label = one.name
    options: dict[str, Any] = {"label": label, "required": one.default is None and one.kind != "text",
                               "initial": None if one.default is None else written(one.default)}  # fmt: skip
    help_text = one.help if not one.help or one.help.endswith((".", "!", "?")) else f"{one.help}."
    options["help_text"] = " ".join(filter(None, [help_text, _bounds(one)]))
    if one.kind == CHOICE:
        first = [] if one.default is not None else [("", "Choose …")]
        return forms.ChoiceField(choices=[*first, *((text, text) for text in one.choices)], **options)
    if one.kind == BOOLEAN:
        first = [] if one.default is not None else [("", "Choose …")]
        return forms.ChoiceField(choices=[*first, ("true", "Yes"), ("false", "No")], **options)
    attrs = {"autocomplete": "off", "spellcheck": "false"}
    if one.kind in (INTEGER, NUMBER):
        attrs["inputmode"] = "numeric" if one.kind == INTEGER else "decimal"
    return forms.CharField(max_length=1_000, strip=one.kind != "text", widget=forms.TextInput(attrs=attrs), **options)


def _bounds(one: Parameter) -> str:
    if one.minimum is None and one.maximum is None:
        return ""
    what = " characters" if one.kind == "text" else ""
    if one.minimum is None:
        return f"At most {one.maximum}{what}."
    return f"At least {one.minimum}{what}." if one.maximum is None else f"{one.minimum} to {one.maximum}{what}."
