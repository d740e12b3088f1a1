"""The page of an engine's queue: who waits for what, and what an administrator can do about it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.administrators import administrators_only
from apps.accounts.selectors import user_of
from apps.administration import queue_table
from apps.administration.queue_actions import OF_JOBS, WORDS, Action, queue_act
from apps.api.offsets import Numbered, numbered
from apps.errors import DomainError, words_of
from apps.jobs.explanations.wait_estimates import right_of
from apps.jobs.models import Job
from apps.jobs.state.holds import LONGEST_REASON
from apps.namespaces.models import is_uuid

AT_ONCE = 50
_LONGEST_SEARCH = 100


class ActionForm(forms.Form):
    """What is done with the selected jobs, or with the engine."""

    action = forms.ChoiceField(choices=[(one.value, words) for one, words in WORDS.items()])
    engine = forms.CharField(max_length=63, required=False)
    priority = forms.IntegerField(required=False)
    reason = forms.CharField(max_length=LONGEST_REASON, required=False)


@administrators_only
@require_safe
def queue(request: HttpRequest) -> HttpResponse:
    engines = queue_table.engine_queues()
    names = [one.name for one in engines]
    engine = request.GET.get("engine", "")
    chosen = engines[names.index(engine)] if engine in names else engines[0] if engines else None
    search = request.GET.get("search", "").strip()[:_LONGEST_SEARCH]
    context: dict[str, Any] = {"engines": engines, "chosen": chosen, "search": search, "actions": _ACTIONS}
    if chosen is not None:
        page: Numbered[Job] = numbered(
            queue_table.jobs_waiting(chosen.name, search), request.GET.get("page", ""), AT_ONCE
        )
        context |= {
            "page": page,
            "rows": queue_table.shown(page.rows),
            "stuck": queue_table.summary(chosen.name),
            "right": right_of(chosen.name),
            "before": page.before and _url(chosen.name, search, page.before),
            "after": page.after and _url(chosen.name, search, page.after),
        }
    return render(request, "administration/queue.html", context)


_ACTIONS = [(one.value, WORDS[one]) for one in OF_JOBS]


@administrators_only
@require_POST
def queue_action(request: HttpRequest) -> HttpResponse:
    form = ActionForm(request.POST)
    back = _url(request.POST.get("engine", "")[:63], request.POST.get("search", "")[:_LONGEST_SEARCH])
    if not form.is_valid():
        messages.error(request, " ".join(str(one) for errors in form.errors.values() for one in errors))
        return redirect(back)
    data = form.cleaned_data
    jobs = [UUID(one) for one in dict.fromkeys(request.POST.getlist("job")) if is_uuid(one)]
    action = Action(data["action"])
    try:
        count = queue_act(
            action=action, actor=user_of(request), jobs=jobs, engine=data["engine"], reason=data["reason"],
            priority=data["priority"],
        )  # fmt: skip
    except DomainError as problem:
        messages.error(request, _words(problem))
    else:
        messages.success(request, f"{WORDS[action]}: done." if count else f"{WORDS[action]}: nothing to change.")
    return redirect(back)


def _words(problem: DomainError) -> str:
    said = [f"{one.message} {one.remedy}" for one in problem.errors]
    return " ".join(said) or words_of(problem)


def _url(engine: str, search: str, page: int | None = None) -> str:
    values = {"engine": engine, "search": search, "page": page}
    return f"{reverse('admin_queue_page')}?{urlencode({name: value for name, value in values.items() if value})}"


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/queue/", queue, name="admin_queue_page"),
    path("admin/queue/act/", queue_action, name="admin_queue_act"),
]
