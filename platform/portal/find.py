"""Finding anything by a part of its name: jobs, datasets, code, pages. The command palette and the page show the same.

At most eight statements. Not here: filters of one list, which each list has itself.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.accounts.models import User
from apps.code.selectors import CODE
from apps.datasets.selectors import DATASETS
from apps.jobs.job_list import JobFilters, job_list
from apps.jobs.models import Job
from apps.namespaces.models import is_uuid
from apps.uploads.versioned.models import Collection
from apps.uploads.versioned.selectors import VersionStore, collections_visible

LONGEST = 200
EACH = 5


@dataclass(frozen=True)
class Found:
    """One thing to go to. `hint` tells it from others of the same name."""

    name: str
    url: str
    icon: str
    hint: str = ""
    phase: str = ""


@dataclass(frozen=True)
class Section:
    title: str
    found: list[Found] = field(default_factory=list)


@dataclass(frozen=True)
class PageEntry:
    """A page that can be found, also by words that are not in its name."""

    name: str
    url_name: str
    icon: str
    words: str = ""


PAGES = (
    PageEntry("Home", "home", icon="home", words="start overview quota"),
    PageEntry("Jobs", "jobs_page", icon="list-details", words="list runs training"),
    PageEntry("Launch a job", "launch_page", icon="rocket", words="new start run train submit"),
    PageEntry("Datasets", "datasets_page", icon="database", words="data"),
    PageEntry("Upload a dataset", "dataset_upload_page", icon="upload", words="new data add"),
    PageEntry("Code", "code_list_page", icon="code", words="scripts"),
    PageEntry("Upload code", "code_upload_page", icon="upload", words="new script add"),
    PageEntry("Models", "models_page", icon="box", words="results artifacts download"),
    PageEntry("Workbench", "workbench_page", icon="flask", words="jupyter notebook tensorboard sessions"),
    PageEntry("Namespaces", "namespaces_page", icon="users", words="teams members quota"),
    PageEntry("Account", "account_page", icon="user", words="profile settings name"),
    PageEntry("Tokens", "tokens_page", icon="key", words="api command line sdk access secret"),
    PageEntry("Command line", "client_page", icon="terminal-2", words="install pip wheel sdk python client cli"),
    PageEntry("Sign in a program", "device_page", icon="terminal-2", words="device code login confirm"),
    PageEntry("Sessions", "sessions_page", icon="devices", words="browsers signed in"),
    PageEntry("Notifications", "notifications_page", icon="bell", words="mail e-mail"),
    PageEntry("Sign out", "account_logout", icon="logout", words="log out leave"),
)


@login_required
@require_safe
@never_cache
def find(request: HttpRequest) -> HttpResponse:
    """The page; for htmx only the list."""
    assert isinstance(request.user, User)
    asked = request.GET.get("q", "").strip()[:LONGEST]
    context = {"q": asked, "sections": sections_of(request.user, asked)}
    is_part = "HX-Request" in request.headers
    response = render(request, "find/list.html" if is_part else "find/find.html", context)
    patch_vary_headers(response, ["HX-Request"])
    return response


def sections_of(user: User, asked: str) -> list[Section]:
    """What there is by these words, kind by kind, without empty kinds. No words: the newest jobs, and all pages."""
    sections = [Section("Jobs", _jobs(user, asked)), Section("Pages", _pages(asked))]
    if asked:
        sections[1:1] = [
            Section("Datasets", _collections(DATASETS, user, asked, "dataset_page", "database")),
            Section("Code", _collections(CODE, user, asked, "code_page", "code")),
        ]
    return [one for one in sections if one.found]


def _jobs(user: User, asked: str) -> list[Found]:
    found = job_list(user, JobFilters(search=None if is_uuid(asked) else asked or None))
    if is_uuid(asked):
        found = replace(found, jobs=found.jobs.filter(pk=uuid.UUID(asked)))
    return [_job(job) for job in found.page(None, EACH)]


def _job(job: Job) -> Found:
    hint = f"{job.owner.username} in {job.namespace.slug}"
    return Found(job.name, reverse("job_page", args=[job.pk]), icon="list-details", hint=hint, phase=job.phase)


def _collections(store: VersionStore[Any, Any], user: User, asked: str, page: str, icon: str) -> list[Found]:
    rows = collections_visible(store, user)
    match: dict[str, object] = {"pk": uuid.UUID(asked)} if is_uuid(asked) else {"name__icontains": asked}
    found: list[Collection] = list(rows.filter(**match).order_by("-pk")[:EACH])
    return [Found(one.name, reverse(page, args=[one.pk]), icon, hint=one.namespace.slug) for one in found]


def _pages(asked: str) -> list[Found]:
    """Those whose name or words hold every word that was asked for."""
    wanted = asked.casefold().split()
    return [
        Found(page.name, reverse(page.url_name), page.icon)
        for page in PAGES
        if all(word in f"{page.name} {page.words}".casefold() for word in wanted)
    ]
