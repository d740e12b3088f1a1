"""A refused form, shown with what a service said against it. For pages; the API answers with the problem itself."""

from __future__ import annotations

from django.forms import BaseForm

from apps.errors import DomainError


def show_in_form(form: BaseForm, problem: DomainError, *, otherwise: str | None = None) -> None:
    """Add the problem to the form: each error at its field; what belongs to none at `otherwise` (None: above all)."""
    for error in problem.errors:
        field = error.field if error.field in form.fields else otherwise
        form.add_error(field, f"{error.message} {error.remedy}".strip())
    if not problem.errors:
        form.add_error(otherwise, f"{problem.detail} {problem.remedy}".strip())
