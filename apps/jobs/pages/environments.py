"""The page of a namespace's environments: packages that were installed for jobs, and that other jobs use. What they
are and how long they stay: `apps.environments`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Case, IntegerField, Q, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.selectors import user_of
from apps.api.paging import page_of
from apps.environments.models import Environment
from apps.environments.selectors import environment_of, environments_visible_to
from apps.environments.services import environment_delete
from apps.jobs.models import JobPackages
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import may, namespace_for, require_role

AT_ONCE = 10
JOBS_LOOKED_AT = 200
"""The newest that have any of the environments of a page."""
JOBS_SHOWN = 3


@dataclass(frozen=True)
class Row:
    """An environment, and the newest jobs with exactly its packages: some of them, and how many more."""

    environment: Environment
    jobs: Sequence[tuple[UUID, str]]
    more: int

    @property
    def name(self) -> str:
        """What was asked for."""
        return ", ".join(self.environment.requirements) or "no packages"


@login_required
@require_safe
def environments(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    user = user_of(request)
    namespace = namespace_for(user, namespace_id)
    page = page_of(environments_visible_to(user).filter(namespace=namespace), request.GET.get("cursor"), AT_ONCE)
    used = _jobs_with(namespace, page.rows)
    context = {
        "namespace": namespace,
        "page": page,
        "rows": [
            Row(one, used.get(one.pk, [])[:JOBS_SHOWN], max(0, len(used.get(one.pk, [])) - JOBS_SHOWN))
            for one in page.rows
        ],
        "may_change": may(user, namespace, Role.MEMBER),
        "breadcrumbs": [
            (reverse("namespaces_page"), "Namespaces"),
            (reverse("namespace_page", args=[namespace.pk]), namespace.slug),
        ],
    }
    return render(request, "namespaces/environments.html", context)


@login_required
@require_POST
def environment_remove(request: HttpRequest, environment_id: UUID) -> HttpResponse:
    user = user_of(request)
    found = environment_of(user, environment_id)
    require_role(user, found.namespace, Role.MEMBER)
    environment_delete(found, user)
    messages.success(request, "The environment was removed. The next job that needs it installs its packages again.")
    return redirect("environments_page", found.namespace_id)


def _jobs_with(namespace: Namespace, rows: Sequence[Environment]) -> Mapping[UUID, list[tuple[UUID, str]]]:
    """The newest jobs with exactly these packages, each once, by environment. One query."""
    locks = [one for one in rows if one.lock]
    if not locks:
        return {}
    which = Case(*(When(lock=one.lock, then=Value(n)) for n, one in enumerate(locks)), output_field=IntegerField())
    any_of = Q(*(Q(lock=one.lock) for one in locks), _connector=Q.OR)
    installed = JobPackages.objects.filter(any_of, job__namespace=namespace, job__deleted_at=None)
    found: defaultdict[UUID, dict[UUID, str]] = defaultdict(dict)
    newest = installed.annotate(which=which).order_by("-job_id").values_list("which", "job_id", "job__name")
    for number, job_id, name in newest[:JOBS_LOOKED_AT]:
        found[locks[number].pk][job_id] = name
    return {one: list(jobs.items()) for one, jobs in found.items()}


urlpatterns: list[URLPattern | URLResolver] = [
    path("namespaces/<uuid:namespace_id>/environments/", environments, name="environments_page"),
    path("environments/<uuid:environment_id>/remove/", environment_remove, name="environment_remove"),
]
