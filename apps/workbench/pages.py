"""The pages of the workbench: the sessions of a namespace, one session with what it waits for, and the way into it.

For htmx the address of a session answers with its panel alone. Looking at a session starts nothing.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode, urlsplit
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.browsers import BY_LINK
from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.api.paging import page_of
from apps.errors import DomainError, words_of
from apps.hosting.state import Situation, State, situation_of
from apps.jobs.selectors import job_for
from apps.namespaces.context import current_namespace, role_within
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespace_for, role_of
from apps.workbench import services
from apps.workbench.access import (
    left_behind,
    may_start_in,
    origin_missing,
    require_use,
    rights_of,
    session_for,
    session_with_files_for,
    sessions_visible,
    start_refusal,
)
from apps.workbench.addresses import begin_address, enter_address, path_below, version_path
from apps.workbench.boards import selections
from apps.workbench.entrances import ticket_create
from apps.workbench.forms import StartForm
from apps.workbench.homes import KeptFiles, kept_files, kept_files_of
from apps.workbench.models import Kind, WorkbenchSession
from apps.workbench.packages import KEEP
from apps.workbench.services import jobs_of, name_of, names_of
from apps.workbench.sizes import size_words
from apps.workbench.spark import NO_SPARK, before
from yardmaster.errors import YardmasterError
from yardmaster.lifecycle.idleness import LONGEST_WARNING

ROWS = 25
_ENTRY = re.compile(r"[0-9a-f]{64}")
JOBS_SHOWN = 10


@login_required
@require_GET
def workbench_page(request: HttpRequest) -> HttpResponse:
    """The user's Jupyter and the namespace's TensorBoards, and what starts them."""
    user, namespace = user_of(request), current_namespace(request)
    found = sessions_visible(user, namespace=namespace)
    own = Q(kind=Kind.JUPYTER, owner=user) | Q(kind=Kind.TENSORBOARD, subject="namespace")
    special = list(found.filter(own))
    jupyter = next((one for one in special if one.kind == Kind.JUPYTER), None)
    board = next((one for one in special if one.kind == Kind.TENSORBOARD), None)
    others = found.exclude(pk__in=[one.pk for one in (jupyter, board) if one is not None])
    page = page_of(others, request.GET.get("cursor"), ROWS)
    left, role = left_behind(user, namespace)[:ROWS], role_within(request, namespace)
    shown = [*page.rows, *left, *(one for one in (jupyter, board) if one is not None)]
    names, files = names_of(shown), kept_files_of(shown)

    def row(session: WorkbenchSession, *, ask: bool = True) -> dict[str, Any]:
        return _row(user, session, role, names[session.pk], files[session.pk], ask=ask)

    context = {
        "page": page,
        "rows": [row(one, ask=False) for one in page.rows],
        "jupyter": jupyter and row(jupyter),
        "board": board and row(board),
        "selection": selections([board]).get(board.pk) if board else None,
        "left_behind": [{"session": one, "name": names[one.pk], "files": files[one.pk]} for one in left],
        "namespace": namespace,
        "may_start": may_start_in(user, namespace, role),
        "origin_missing": origin_missing(),
        "jupyter_refusal": start_refusal(user, Kind.JUPYTER),
        "board_refusal": start_refusal(user, Kind.TENSORBOARD),
        "jupyter_form": _start_form(user, Kind.JUPYTER, namespace, jupyter),
        "board_form": StartForm(kind=Kind.TENSORBOARD, user=user),
        "moment": timezone.now(),
    }
    return render(request, "workbench/list.html", context)


@login_required
@require_GET
def session_page(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """How a session is. With `?open=1` the page's script opens it as soon as it is ready."""
    return _panel(request, session_for(user_of(request), session_id))


@login_required
@require_GET
def session_open(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Into the session with a ticket, if it is ready; else to its page, which opens it. This address stays the same, to
    be shared with members of the namespace. `?next=` is a path below the session's own."""
    user = user_of(request)
    session = session_for(user, session_id)
    require_use(user, session)
    entry = request.GET.get("entry", "")
    is_begun = _ENTRY.fullmatch(entry) is not None
    if (not is_begun and _after_a_form(request)) or situation_of(session, timezone.now()).state is not State.READY:
        return redirect(_page_that_opens(session, request.GET.get("next")))
    place = path_below(session.pk, request.GET.get("next"))
    if is_begun:
        ticket = ticket_create(
            user, session, str(request.session.session_key), entry, is_by_link=BY_LINK in request.session
        )
        response = HttpResponseRedirect(enter_address(session.pk, ticket, place))
    else:
        response = HttpResponseRedirect(begin_address(session.pk, place))
    response["Referrer-Policy"] = "no-referrer"
    response["Cache-Control"] = "no-store"
    return response


@login_required
@require_POST
def workbench_start(request: HttpRequest) -> HttpResponse:
    """Start what the form says, `kind`, `job` (several) or `namespace`, and wait for it on its page; one that runs is
    opened. A Jupyter opens the `version` that the form names."""
    user = user_of(request)
    said = request.POST.get("kind")
    kind = Kind(said) if said in Kind.values else Kind.TENSORBOARD
    back = request.POST.get("back", "")
    back = back if url_has_allowed_host_and_scheme(back, allowed_hosts=None) else reverse("workbench_page")
    try:
        jobs = request.POST.getlist("job")
        namespace = job_for(user, jobs[0]).namespace if jobs else _namespace(request)
        form = StartForm(request.POST, kind=kind, user=user, namespace=namespace, requirements=[KEEP])
        if not form.is_valid():
            messages.error(request, form.words)
            return redirect(back)
        if kind == Kind.JUPYTER:
            session, _ = services.jupyter_start(user=user, namespace=namespace, **form.wanted)
        elif kind == Kind.SPARK_HISTORY:
            session, _ = services.spark_history_start(user=user, namespace=namespace, job_ids=jobs, **form.wanted)
        else:
            session, _ = services.tensorboard_start(user=user, namespace=namespace, job_ids=jobs, **form.wanted)
    except (DomainError, YardmasterError) as error:
        messages.error(request, words_of(error))
        return redirect(back)
    return redirect(_page_that_opens(session, request.POST.get("next") or version_path(session.pk, request.POST)))


@login_required
@require_POST
def session_change(request: HttpRequest, session_id: UUID, change: str) -> HttpResponse:
    """Start, stop, restart, extend or take over one session."""
    user = user_of(request)
    session = session_for(user, session_id)
    form = _start_form(user, Kind(session.kind), session.namespace, session, request.POST)
    if not form.is_valid():
        return _panel(request, session, error=form.words)
    try:
        if change == "start":
            services.session_start(user=user, session=session, **form.wanted)
        elif change == "stop":
            services.session_stop(user=user, session=session)
        elif change == "restart":
            said = request.POST.get("starts", "")
            starts = int(said) if said.isascii() and said.isdigit() and len(said) < 10 else None
            if starts not in (None, session.starts):
                messages.info(request, "It was started again since this page was loaded, and was left as it is.")
            services.session_restart(user=user, session=session, size=form.wanted["size"], starts=starts)
        elif change == "extend":
            services.session_extend(user=user, session=session)
        else:
            services.session_take_over(user=user, session=session)
    except (DomainError, YardmasterError) as error:
        return _panel(request, session, error=words_of(error))
    return redirect(
        _page_that_opens(session, None) if change == "start" else reverse("session_page", args=[session.pk])
    )


@login_required
@require_POST
def session_files_delete(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Delete what a stopped Jupyter keeps."""
    user = user_of(request)
    session = session_with_files_for(user, session_id)
    try:
        services.files_delete(user=user, session=session)
    except DomainError as error:
        messages.error(request, words_of(error))
    else:
        messages.success(request, f"The files of the {name_of(session)} are being deleted.")
    is_seen = sessions_visible(user).filter(pk=session.pk).exists()
    return redirect("session_page", session.pk) if is_seen else redirect("workbench_page")


def _page_that_opens(session: WorkbenchSession, path: str | None) -> str:
    query = {"open": "1"} | ({"next": path[:2000]} if path else {})
    return f"{reverse('session_page', args=[session.pk])}?{urlencode(query)}"


def _after_a_form(request: HttpRequest) -> bool:
    """Whether a form of the portal, such as that of the sign-in, may have led here: browsers hold its answer to the
    policy of its page, which lets forms lead to no other origin. Links to sessions are on pages without such forms."""
    came_from = urlsplit(request.headers.get("Referer", ""))
    return came_from.netloc == request.get_host() and not came_from.path.startswith("/sessions/")


def _namespace(request: HttpRequest) -> Namespace:
    named = request.POST.get("namespace")
    return namespace_for(user_of(request), named, at_least=Role.MEMBER) if named else current_namespace(request)


def _panel(request: HttpRequest, session: WorkbenchSession, *, error: str = "") -> HttpResponse:
    user = user_of(request)
    opened = reverse("session_open", args=[session.pk])
    shown, row = (
        jobs_of(session),
        _row(user, session, role_of(user, session.namespace), name_of(session), kept_files(session)),
    )
    context = {
        "row": row,
        "look_every": _look_every(row["now"]),
        "selection": selections([session]).get(session.pk),
        "jobs": shown[:JOBS_SHOWN],
        "more_jobs": max(0, len(shown) - JOBS_SHOWN),
        "error": error,
        "refusal": start_refusal(user, Kind(session.kind)),
        "opens": request.GET.get("open") == "1" and not error,
        "address": request.get_full_path() if request.method == "GET" else reverse("session_page", args=[session.pk]),
        "open_address": opened + _below(request.GET.get("next")),
        "share_address": request.build_absolute_uri(opened),
        "form": _start_form(user, Kind(session.kind), session.namespace, session),
        "moment": timezone.now(),
        "breadcrumbs": [(reverse("workbench_page"), "Workbench")],
    }
    is_part = "HX-Request" in request.headers
    response = render(request, "workbench/panel.html" if is_part else "workbench/session.html", context)
    patch_vary_headers(response, ["HX-Request"])
    return response


def _start_form(
    user: User, kind: Kind, namespace: Namespace, session: WorkbenchSession | None, data: Any = None
) -> StartForm:
    known = {} if session is None else {"size": session.size, "requirements": session.requirements}
    spark = NO_SPARK if session is None else before(session)
    return StartForm(data, kind=kind, user=user, namespace=namespace, known_spark=spark, **known)


def _look_every(now: Situation) -> int:
    """Seconds between two looks of its page: few before the warning of an idle stop, which comes two minutes before."""
    return 10 if now.stops_at is not None and now.stops_at - timezone.now() < 2 * LONGEST_WARNING else 60


def _below(path: str | None) -> str:
    return "?" + urlencode({"next": path}) if path else ""


def _row(
    user: User, session: WorkbenchSession, role: Role | None, name: str, files: KeptFiles | None, *, ask: bool = True
) -> dict[str, Any]:
    """What a template shows of a session, to a reader with this role in its namespace."""
    now: Situation = situation_of(session, timezone.now(), ask=ask)
    return {
        "session": session,
        "name": name,
        "now": now,
        "size_words": size_words(session.size),
        "is_own": session.owner_id == user.pk,
        "may": rights_of(user, session, role, runs=now.runs),
        "origin_missing": origin_missing(Kind(session.kind)),
        "files": files,
    }


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("workbench/", workbench_page, name="workbench_page"),
    path("workbench/start/", workbench_start, name="workbench_start"),
    path("sessions/<uuid:session_id>/", session_page, name="session_page"),
    path("sessions/<uuid:session_id>/open/", session_open, name="session_open"),
    path("sessions/<uuid:session_id>/delete-files/", session_files_delete, name="session_files_delete"),
    *[
        path(f"sessions/<uuid:session_id>/{one}/", session_change, {"change": one}, name=f"session_{one}_form")
        for one in ("start", "stop", "restart", "extend", "take-over")
    ],
]
