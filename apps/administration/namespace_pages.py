"""The pages of namespaces: which there are, who belongs to one, what it may hold, and who holds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.administrators import require_administrator
from apps.accounts.selectors import user_by_id, user_by_name, user_of
from apps.administration.namespace_forms import ROLE_WORDS, MemberForm, QuotaForm, RoleForm, TeamForm, TitleForm
from apps.administration.quota_outlook import quota_outlook
from apps.administration.services import quota_set
from apps.administration.usage import quota_rows, usage_of
from apps.api.paging import page_of
from apps.api.problems import show_in_form
from apps.errors import Conflict, DomainError, Forbidden, words_of
from apps.jobs.models import Cause
from apps.jobs.state.holds import holds_of
from apps.namespaces import selectors, services
from apps.namespaces.context import own_namespaces
from apps.namespaces.models import Namespace, Role

AT_ONCE = 50
Made = TypeVar("Made")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def namespaces(request: HttpRequest) -> HttpResponse:
    """Those one may see; administrators make those of teams here."""
    user = user_of(request)
    form = TeamForm(request.POST if request.method == "POST" else None)
    if form.is_bound:
        require_administrator(user)
        made = _action(form, lambda data: services.team_create(
            slug=data["slug"], title=data["title"], actor=user,
            manager=user_by_name(data["manager"]) if data["manager"] else user,
        ))  # fmt: skip
        if made is not None:
            messages.success(request, f"Team {made.slug} created. Now add members.")
            return redirect("namespace_page", made.pk)
    page = page_of(selectors.namespaces_with_role(user), request.GET.get("cursor"), AT_ONCE)
    return render(request, "namespaces/namespaces.html", {"page": page, "form": form})


@login_required
@require_http_methods(["GET", "HEAD"])
def namespace(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    # Every page reads one's own namespaces: only an administrator who looks at another user's asks for more.
    own = next((one for one in own_namespaces(request) if one.pk == namespace_id), None)
    return _page(request, own or selectors.namespace_for(user_of(request), namespace_id))


def _page(
    request: HttpRequest,
    shown: Namespace,
    *,
    member_form: MemberForm | None = None,
    quota_form: QuotaForm | None = None,
) -> HttpResponse:
    user = user_of(request)
    role = Role.MANAGER if user.is_staff else getattr(shown, "my_role", None) or selectors.role_of(user, shown)
    holds = holds_of(shown)
    context = {
        "namespace": shown,
        "breadcrumbs": [(reverse("namespaces_page"), "Namespaces")],
        "is_manager": role == Role.MANAGER,
        "is_team": shown.owner_id is None,
        "roles": [(one, ROLE_WORDS[one]) for one in Role],
        "page": page_of(selectors.members_of(shown), request.GET.get("cursor"), AT_ONCE),
        "quota_rows": quota_rows(usage_of(shown)),
        "quota_outlook": quota_outlook(shown, selectors.quota_shown(shown)),
        "holds": holds,
        "administrator_holds": any(one.cause == Cause.ADMINISTRATOR for one in holds),
        "member_form": member_form or MemberForm(),
        "quota_form": quota_form,
    }
    if user.is_staff and quota_form is None:
        context["quota_form"] = QuotaForm(initial=QuotaForm.values_of(selectors.quota_shown(shown)))
    return render(request, "namespaces/namespace.html", context)


@login_required
@require_POST
def title(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    user = user_of(request)
    shown = selectors.namespace_for(user, namespace_id, at_least=Role.MANAGER)
    form = TitleForm(request.POST)
    if form.is_valid():
        services.title_change(namespace=shown, title=form.cleaned_data["title"], actor=user)
        messages.success(request, "Saved.")
    else:
        messages.error(request, "A title has 100 characters at most.")
    return redirect("namespace_page", shown.pk)


@login_required
@require_POST
def member_add(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    user = user_of(request)
    shown = selectors.namespace_for(user, namespace_id, at_least=Role.MANAGER)
    form = MemberForm(request.POST)
    made = _action(form, lambda data: services.member_add(
        namespace=shown, user=user_by_name(data["username"]), role=Role(data["role"]), actor=user
    ))  # fmt: skip
    if made is None:
        return _page(request, shown, member_form=form)
    messages.success(request, f"{made.user.username} is now a {made.role}.")
    return redirect("namespace_page", shown.pk)


@login_required
@require_POST
def member_change(request: HttpRequest, namespace_id: UUID, user_id: UUID) -> HttpResponse:
    user = user_of(request)
    shown = selectors.namespace_for(user, namespace_id, at_least=Role.MANAGER)
    form = RoleForm(request.POST)
    changed = _action(form, lambda data: services.member_change(
        namespace=shown, user=user_by_id(user_id), role=Role(data["role"]), actor=user
    ))  # fmt: skip
    if changed is None:
        messages.error(request, " ".join(str(error) for errors in form.errors.values() for error in errors))
    else:
        messages.success(request, f"{changed.user.username} is now a {changed.role}.")
    return redirect("namespace_page", shown.pk)


@login_required
@require_POST
def member_remove(request: HttpRequest, namespace_id: UUID, user_id: UUID) -> HttpResponse:
    """Managers remove; everybody may leave."""
    user = user_of(request)
    leaves = user_id == user.pk
    shown = selectors.namespace_for(user, namespace_id, at_least=Role.VIEWER if leaves else Role.MANAGER)
    gone = user_by_id(user_id)
    try:
        services.member_remove(namespace=shown, user=gone, actor=user)
    except DomainError as problem:
        messages.error(request, words_of(problem))
        return redirect("namespace_page", shown.pk)
    messages.success(request, f"You left {shown.slug}." if leaves else f"{gone.username} was removed.")
    return redirect("namespaces_page") if leaves and not user.is_staff else redirect("namespace_page", shown.pk)


@login_required
@require_POST
def quota(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    user = user_of(request)
    shown = selectors.namespace_for(user, namespace_id)
    require_administrator(user)
    form = QuotaForm(request.POST)
    if not form.is_valid():
        return _page(request, shown, quota_form=form)
    try:
        reason = form.cleaned_data["reason"]
        quota_set(namespace=shown, limits=form.limits(), actor=user, seen=form.limits_seen(), reason=reason)
    except Conflict as problem:
        now = QuotaForm.values_of(selectors.quota_of(shown))
        form = QuotaForm(form.over(now))
        show_in_form(form, problem)
        return _page(request, shown, quota_form=form)
    messages.success(request, "The quota was saved. Running jobs continue.")
    return redirect("namespace_page", shown.pk)


def _action(form: MemberForm | RoleForm | TeamForm, do: Callable[[dict[str, str]], Made]) -> Made | None:
    """Do it with what was typed; what is wrong with that, or speaks against it, is shown in the form, and None."""
    if not form.is_valid():
        return None
    try:
        return do(form.cleaned_data)
    except Forbidden:
        raise
    except DomainError as problem:
        show_in_form(form, problem, otherwise=next(iter(form.fields)))
        return None


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("namespaces/", namespaces, name="namespaces_page"),
    path("namespaces/<uuid:namespace_id>/", namespace, name="namespace_page"),
    path("namespaces/<uuid:namespace_id>/title/", title, name="namespace_title"),
    path("namespaces/<uuid:namespace_id>/quota/", quota, name="namespace_quota"),
    path("namespaces/<uuid:namespace_id>/members/add/", member_add, name="member_add"),
    path("namespaces/<uuid:namespace_id>/members/<uuid:user_id>/", member_change, name="member_change"),
    path("namespaces/<uuid:namespace_id>/members/<uuid:user_id>/remove/", member_remove, name="member_remove"),
]
