"""What the pages of templates and of schedules have in common: who may change, lists of a namespace, and forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.api.paging import page_of
from apps.errors import DomainError
from apps.namespaces.context import current_namespace
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import may
from apps.schedules.template_forms import show_problems
from yardmaster.errors import YardmasterError

AT_ONCE = 50
Made = TypeVar("Made")


def may_change(user: User, namespace: Namespace) -> bool:
    """Members create, change and launch; viewers see."""
    return may(user, namespace, Role.MEMBER)


def list_context(request: HttpRequest, listed: Callable[[User, Namespace], QuerySet[Any]]) -> dict[str, Any]:
    """What the list of the namespace shows that the user works in."""
    user, namespace = user_of(request), current_namespace(request)
    page = page_of(listed(user, namespace), request.GET.get("cursor"), AT_ONCE)
    return {
        "namespace": namespace, "page": page, "rows": page.rows, "may_change": may_change(user, namespace),
        "breadcrumbs": [(reverse("jobs_page"), "Jobs")],
    }  # fmt: skip


def tried(form: forms.Form, act: Callable[[], Made], rows: Any = None) -> Made | None:
    """What `act` gives; None where it is refused: then the form says why, at its fields."""
    try:
        return act()
    except (DomainError, YardmasterError) as problem:
        show_problems(form, problem, rows)
        return None
