"""The page of removals, for administrators: what is under way, what is left and why; and the form that begins one."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_http_methods

from apps.accounts.models import User
from apps.api.form_problems import show_in_form
from apps.api.paging import page_of
from apps.api.problems import ApiProblem, Forbidden
from apps.namespaces.selectors import namespace_for
from apps.removals.models import Data, Removal
from apps.removals.selectors import removals
from apps.removals.services import namespace_remove, user_remove

AT_ONCE = 50


class RemovalForm(forms.Form):
    """The name is typed, not chosen: a deed that cannot be taken back is not one slip of the hand."""

    slug = forms.CharField(
        label="Namespace", max_length=63, help_text="Its short name. A person's own: the person goes with it."
    )
    delete = forms.BooleanField(label="Also delete its jobs, logs, models, datasets and code, for good", required=False)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def removals_page(request: HttpRequest) -> HttpResponse:
    user = request.user
    assert isinstance(user, User), "login_required has seen to it"
    if not user.is_staff:
        raise Forbidden("Only administrators of the portal may do this.", "Ask an administrator.")
    form = RemovalForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        begun = _begin(form, user)
        if begun is not None:
            messages.success(request, f"{begun.slug} is being removed. What it waits for stands below.")
            return redirect("removals_page")
    page = page_of(removals(), request.GET.get("cursor"), AT_ONCE)
    return render(request, "removals/removals.html", {"page": page, "form": form})


def _begin(form: RemovalForm, actor: User) -> Removal | None:
    """None: what speaks against it is in the form."""
    data = Data.DELETE if form.cleaned_data["delete"] else Data.KEEP
    try:
        namespace = namespace_for(actor, form.cleaned_data["slug"])
        if namespace.owner is not None:
            return user_remove(user=namespace.owner, data=data, actor=actor)
        return namespace_remove(namespace=namespace, data=data, actor=actor)
    except ApiProblem as problem:
        show_in_form(form, problem, otherwise="slug")
        return None


pages_urlpatterns: list[URLPattern | URLResolver] = [path("removals/", removals_page, name="removals_page")]
