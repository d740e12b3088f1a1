"""The pages of the machines of the engine `hosts`: all of them, adding one, and each with its changes."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.administrators import administrators_only
from apps.accounts.selectors import user_of
from apps.administration import machines
from apps.administration.machine_rules import FIELDS, entry_of, texts_of
from apps.administration.machine_table import WORDS, MachineShown, machines_shown
from apps.api.offsets import numbered
from apps.api.problems import show_in_form
from apps.errors import Conflict, DomainError, words_of
from yardmaster.errors import YardmasterError

AT_ONCE = 50
_LONGEST = 1000


def _field(label: str, example: str = "", hint: str = "", *, required: bool = False, most: int = _LONGEST) -> Any:
    attrs = {"class": "form-control", "autocomplete": "off", "spellcheck": "false", "placeholder": example}
    return forms.CharField(
        label=label, required=required, max_length=most, help_text=hint, widget=forms.TextInput(attrs=attrs)
    )


class MachineForm(forms.Form):
    """A machine as it is listed. What its fields mean is decided by `machine_rules`."""

    name = _field("Name", "gpu-1", "Used in jobs and on pages. It cannot be changed later.", required=True)
    address = _field("Address", "10.0.0.11", "Its private IPv4 address, at which the portal and the other machines "
                     "reach it.", required=True)  # fmt: skip
    port = _field("SSH port", "22", "Default: 22.")
    user = _field(
        "User", "train", "The account with which the portal logs in. All tasks run as this user.", required=True
    )
    cores = _field("CPU cores", "16", "The cores that jobs may use. If empty: measured.")
    memory = _field("Memory", "64Gi", "If empty: measured.")
    gpus = _field("GPUs", "2", "A number, or CUDA names, separated by commas. If empty: counted.")
    ports = _field("Ports of tasks", "20000-29999", "First and last. If empty: below the kernel's ephemeral ports.")
    folder = _field("Folder", "~/.yardmaster", "For all files of the portal, on a local disk.")
    python = _field("Python", "python3", "Python 3.11 or newer.")
    task_python = _field("Python of tasks", "", "A Python with TensorFlow. If empty: the one that the portal installs.")
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def entry(self) -> dict[str, Any]:
        return entry_of({name: self.cleaned_data.get(name, "") for name in FIELDS})


@administrators_only
@require_safe
def machines_page(request: HttpRequest) -> HttpResponse:
    """All machines, with what is known of them."""
    where = machines.source()
    context: dict[str, Any] = {"where": where, "words": WORDS}
    if where.engine:
        shown, context["problem"] = _shown_or_why(where)
        page = numbered(shown, request.GET.get("page", ""), AT_ONCE)
        context |= {"page": page, "rows": [_row(one) for one in page.rows], "key": _public_key(where)}
    return render(request, "administration/machines.html", context)


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def machine_new(request: HttpRequest) -> HttpResponse:
    form = MachineForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            row = machines.machine_add(entry=form.entry(), actor=user_of(request))
        except DomainError as problem:
            show_in_form(form, problem)
        else:
            messages.success(
                request,
                f"Added the machine {row.name}. Add the portal's key to its authorized_keys, then accept its host key.",
            )
            return redirect("admin_machine_page", row.name)
    where = machines.source()
    context = {"form": form, "where": where, "key": _public_key(where) if where.engine else "", "breadcrumbs": _above()}
    return render(request, "administration/machine_new.html", context, status=400 if form.errors else 200)


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def machine_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """One machine: its state, and a form that changes it where the list is not in a file."""
    where = machines.source()
    form = None
    if where.is_here:
        row = machines.machine_named(machine_name)
        posted = request.POST if request.method == "POST" else None
        form = MachineForm(posted, initial={**texts_of(row.entry), "version": row.version})
        if form.is_bound and form.is_valid():
            try:
                version = form.cleaned_data["version"]
                machines.machine_change(
                    name=machine_name, entry=form.entry(), actor=user_of(request), version=version or 0
                )
            except DomainError as problem:
                show_in_form(form, problem)
            else:
                messages.success(request, f"Saved the machine {machine_name}.")
                return redirect("admin_machine_page", machine_name)
    elif request.method == "POST":
        try:
            machines.editable()
        except Conflict as problem:
            return _refused(request, machine_name, problem)
    machines.host_listed(where, machine_name)
    shown, why = _shown_or_why(where)
    found = next((one for one in shown if one.name == machine_name), None)
    context = {
        "name": machine_name, "one": _row(found) if found else None, "problem": why, "form": form, "where": where,
        "breadcrumbs": _above(),
    }  # fmt: skip
    return render(request, "administration/machine.html", context, status=400 if form and form.errors else 200)


@administrators_only
@require_POST
def machine_drain(request: HttpRequest, machine_name: str) -> HttpResponse:
    is_draining = request.POST.get("action") != "undrain"
    try:
        machines.machine_drain(name=machine_name, is_draining=is_draining, actor=user_of(request))
    except Conflict as problem:
        return _refused(request, machine_name, problem)
    said = "takes no further tasks. Running tasks continue until they end" if is_draining else "takes tasks again"
    messages.success(request, f"{machine_name} {said}.")
    return redirect("admin_machine_page", machine_name)


@administrators_only
@require_POST
def machine_remove(request: HttpRequest, machine_name: str) -> HttpResponse:
    try:
        machines.machine_remove(name=machine_name, actor=user_of(request), force=request.POST.get("force") == "on")
    except Conflict as problem:
        return _refused(request, machine_name, problem)
    messages.success(request, f"Removed the machine {machine_name}. The portal's folder is still on it.")
    return redirect("admin_machines_page")


@administrators_only
@require_POST
def machine_accept_key(request: HttpRequest, machine_name: str) -> HttpResponse:
    try:
        machines.key_accept(name=machine_name, shown=request.POST.get("shown", ""), actor=user_of(request))
    except Conflict as problem:
        return _refused(request, machine_name, problem)
    messages.success(request, f"Accepted the host key of {machine_name}. A worker checks it within half a minute.")
    return redirect("admin_machine_page", machine_name)


def _shown_or_why(where: machines.Source) -> tuple[list[MachineShown], str]:
    """The machines, or what is wrong with their list."""
    try:
        return machines_shown(where), ""
    except YardmasterError as error:
        return [], words_of(error)


def _row(one: MachineShown) -> dict[str, Any]:
    return {"shown": one, "words": WORDS[one.state]}


def _public_key(where: machines.Source) -> str:
    """The line for authorized_keys; empty where there is none, which the engine's page explains."""
    try:
        return where.made().keys.public()
    except (YardmasterError, OSError):
        return ""


def _refused(request: HttpRequest, machine_name: str, problem: DomainError) -> HttpResponse:
    messages.error(request, words_of(problem))
    return redirect("admin_machine_page", machine_name)


def _above() -> list[tuple[str, str]]:
    return [(reverse("admin_machines_page"), "Machines")]


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/machines/", machines_page, name="admin_machines_page"),
    path("admin/machines/new/", machine_new, name="admin_machine_new_page"),
    path("admin/machines/<str:machine_name>/", machine_page, name="admin_machine_page"),
    path("admin/machines/<str:machine_name>/drain/", machine_drain, name="admin_machine_drain"),
    path("admin/machines/<str:machine_name>/remove/", machine_remove, name="admin_machine_remove"),
    path("admin/machines/<str:machine_name>/accept-key/", machine_accept_key, name="admin_machine_accept_key"),
]
