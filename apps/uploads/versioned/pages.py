"""The pages that datasets and code have in common: lists, uploading, renaming, deleting, and the frame of a version.

Each store's `pages` says which store, which words and which addresses. Not here: what only one store shows (previews,
source text).
"""

from __future__ import annotations

import json
import shlex
import uuid
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views import View

from apps.accounts.models import User
from apps.api.paging import page_of
from apps.api.problems import status_of
from apps.errors import DomainError, Invalid
from apps.namespaces.context import current_namespace, own_namespaces
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import may, quota_of
from apps.uploads.announcing import most_files
from apps.uploads.models import Upload
from apps.uploads.selectors import own_uploads, storage_used, upload_to_discard
from apps.uploads.services import upload_abort
from apps.uploads.versioned import selectors, services
from apps.uploads.versioned.models import Collection, Version
from apps.uploads.versioned.selectors import VersionStore
from yardmaster.errors import Problem

ROWS = 50
_UPLOADERS = (Role.MEMBER, Role.MANAGER)
VERSIONS_SHOWN = 20


@dataclass(frozen=True)
class Words:
    """How a store is called, and the names of its pages' addresses."""

    title: str
    noun: str
    icon: str
    command: str
    launch_key: str
    list_page: str
    page: str
    upload_page: str
    edit_page: str
    delete_page: str
    api: str


class VersionStorePage(LoginRequiredMixin, View):
    """Any page of a store."""

    store: ClassVar[VersionStore[Any, Any]]
    words: ClassVar[Words]

    @property
    def user(self) -> User:
        return cast(User, self.request.user)

    def collection(self, collection_id: uuid.UUID, at_least: Role = Role.VIEWER) -> Collection:
        found: Collection = selectors.collection_for(self.store, self.user, collection_id, at_least=at_least)
        return found

    def version(self, version_id: uuid.UUID) -> Version:
        found: Version = selectors.version_for(self.store, self.user, version_id)
        return found

    def show(self, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
        return render(self.request, template, {"words": self.words} | context, status=status)

    def way_to(self, item: Collection | None = None) -> list[tuple[str, str]]:
        """The breadcrumbs above a page below the list, or below one thing."""
        way = [(reverse(self.words.list_page), self.words.title)]
        return [*way, (reverse(self.words.page, args=[item.pk]), item.name)] if item else way

    def pair(self, item: Collection, after: str, before: str) -> tuple[Version | None, Version | None]:
        """Two versions to compare, the older first, named by these parameters: without them the newest and the one
        before it. None: there is no such version."""
        newer = selectors.version_numbered(self.store, item, number_in(self.request, after))
        if newer is None:
            return None, None
        since = number_in(self.request, before)
        if since is None:
            return selectors.version_before(self.store, newer), newer
        return selectors.version_numbered(self.store, item, since), newer

    def address_of(self, item: Collection, **query: Any) -> str:
        address = reverse(self.words.page, args=[item.pk])
        return f"{address}?{urlencode(query)}" if query else address


class ListPage(VersionStorePage):
    """What there is in the namespace, newest first; `?search=` in names."""

    def get(self, request: HttpRequest) -> HttpResponse:
        search = request.GET.get("search", "").strip()[: services.MAX_NAME + 1]
        namespace = current_namespace(request)
        rows = selectors.collections_visible(self.store, self.user).filter(namespace=namespace)
        if search:
            rows = rows.filter(name__icontains=search)
        page = page_of(selectors.with_newest(self.store, rows), request.GET.get("cursor"), ROWS)
        context = {"page": page, "search": search, "upload_url": reverse(self.words.upload_page)}
        return self.show("versioned/list.html", context)


class CollectionPage(VersionStorePage):
    """One thing at one of its versions: `?version=` its number, the newest without."""

    template: ClassVar[str]

    def get(self, request: HttpRequest, collection_id: uuid.UUID) -> HttpResponse:
        item = self.collection(collection_id)
        version = selectors.version_numbered(self.store, item, number_in(request, "version"))
        return self.show(self.template, self.frame(item, version) | self.content(item, version))

    def content(self, item: Collection, version: Version | None) -> dict[str, Any]:
        """What this store shows of a version (None: all were deleted)."""
        raise NotImplementedError  # a hook: every store has its own

    def frame(self, item: Collection, version: Version | None) -> dict[str, Any]:
        """What pages of all stores show: the thing, its versions, and what may be done."""
        before = number_in(self.request, "before")
        rows = selectors.versions_of(self.store, item).order_by("-number")
        versions = list((rows.filter(number__lt=before) if before else rows)[: VERSIONS_SHOWN + 1])
        return {
            "item": item,
            "version": version,
            "versions": versions[:VERSIONS_SHOWN],
            "older_versions": versions[VERSIONS_SHOWN - 1].number if len(versions) > VERSIONS_SHOWN else None,
            "is_newest": version is not None and version.number == item.latest_number,
            "may_change": may(self.user, item.namespace, Role.MEMBER),
            "breadcrumbs": self.way_to(),
            **(_lines_to_copy(self.words, _name_of(item, version)) if version else {}),
        }


class VersionAddress(VersionStorePage):
    """Where a version is shown, for those who know only its id."""

    def get(self, request: HttpRequest, version_id: uuid.UUID) -> HttpResponse:
        version = self.version(version_id)
        return redirect(self.address_of(selectors.parent_of(version), version=version.number))


class CollectionForm(forms.Form):
    """What of a thing may change."""

    name = forms.CharField(max_length=services.MAX_NAME)
    description = forms.CharField(max_length=10_000, required=False, widget=forms.Textarea(attrs={"rows": 5}))


class EditPage(VersionStorePage):
    """Renaming and describing."""

    def get(self, request: HttpRequest, collection_id: uuid.UUID) -> HttpResponse:
        item = self.collection(collection_id, Role.MEMBER)
        return self._form(item, CollectionForm({"name": item.name, "description": item.description}))

    def post(self, request: HttpRequest, collection_id: uuid.UUID) -> HttpResponse:
        item = self.collection(collection_id, Role.MEMBER)
        form = CollectionForm(request.POST)
        if form.is_valid():
            try:
                services.collection_change(self.store, item, actor=self.user, **form.cleaned_data)
            except DomainError as problem:
                form.add_error("name", sentence_of(problem))
            else:
                messages.success(request, f"{item.name} has been changed.")
                return redirect(self.address_of(item))
        return self._form(self.collection(collection_id, Role.MEMBER), form, status=422)

    def _form(self, item: Collection, form: CollectionForm, status: int = 200) -> HttpResponse:
        context = {"item": item, "form": form, "breadcrumbs": self.way_to(item)}
        return self.show("versioned/edit.html", context, status)


class DeletePage(VersionStorePage):
    """Deleting a thing, or with `?version=` one of its versions: asks for its name first."""

    def get(self, request: HttpRequest, collection_id: uuid.UUID) -> HttpResponse:
        item = self.collection(collection_id, Role.MEMBER)
        return self._form(item, self._version(item))

    def post(self, request: HttpRequest, collection_id: uuid.UUID) -> HttpResponse:
        item = self.collection(collection_id, Role.MEMBER)
        version = self._version(item)
        if request.POST.get("name", "").strip() != _name_of(item, version):
            return self._form(item, version, "The name does not match. Nothing was deleted.", 422)
        try:
            if version is None:
                services.collection_delete(self.store, item, actor=self.user)
            else:
                services.version_delete(self.store, item, version, actor=self.user)
        except DomainError as problem:
            return self._form(item, version, sentence_of(problem), status_of(problem))
        messages.success(request, f"{_name_of(item, version)} has been deleted.")
        return redirect(self.words.list_page if version is None else self.address_of(item))

    def _version(self, item: Collection) -> Version | None:
        number = number_in(self.request, "version")
        return None if number is None else selectors.version_numbered(self.store, item, number)

    def _form(self, item: Collection, version: Version | None, fault: str = "", status: int = 200) -> HttpResponse:
        context = {
            "item": item,
            "version": version,
            "name": _name_of(item, version),
            "count": selectors.versions_of(self.store, item).count(),
            "fault": fault,
            "typed": self.request.POST.get("name", ""),
            "breadcrumbs": self.way_to(item),
        }
        return self.show("versioned/delete.html", context, status)


class UploadPage(VersionStorePage):
    """Uploading something new, or the next version of what is there. The bytes are sent by a script, over the API."""

    def get(self, request: HttpRequest, collection_id: uuid.UUID | None = None) -> HttpResponse:
        item = self.collection(collection_id, Role.MEMBER) if collection_id else None
        namespaces = [one for one in own_namespaces(request) if getattr(one, "my_role", None) in _UPLOADERS]
        namespace = item.namespace if item else current_namespace(request)
        if item is None and namespace not in namespaces and may(self.user, namespace, Role.MEMBER):
            namespaces.append(namespace)  # an administrator works in a team's that is not his
        context = {
            "item": item,
            "namespace": namespace,
            "choices": namespaces,
            "may_upload": may(self.user, namespace, Role.MEMBER),
            "storage": storage_row(namespace),
            "open_uploads": own_uploads(self.user, self.store.kind),
            "max_files": most_files(self.store.kind),
            "portal": settings.PUBLIC_URL,
            "command": self._command(item),
            "breadcrumbs": self.way_to(item),
        }
        return self.show("versioned/upload.html", context)

    def _command(self, item: Collection | None) -> str:
        name = item.name if item else f"my-{self.words.noun}"
        return f"{self.words.command} upload ./folder --name {shlex.quote(name)}"

    def post(self, request: HttpRequest, collection_id: uuid.UUID | None = None) -> HttpResponse:
        """Discard an upload that was left open."""
        upload: Upload = upload_to_discard(self.user, uuid_in(request, "discard"))
        upload_abort(upload)
        messages.success(request, "Upload discarded. Its reserved storage was released.")
        return redirect(request.path)


def storage_row(namespace: Namespace) -> dict[str, Any]:
    """The namespace's storage as a row of `parts/quota_bars.html`."""
    use = storage_used(namespace)
    hard = quota_of(namespace).storage
    return {"name": "Storage", "used": use.used, "reserved": use.reserved, "hard": hard, "unit": "bytes"}


def here(address: str) -> str:
    """A signed address of the portal's own store as seen from this page, whatever name the portal was reached by."""
    return address.removeprefix(settings.PUBLIC_URL)


def number_in(request: HttpRequest, name: str) -> int | None:
    """A whole number of the query; None where there is none. Raises `Invalid`."""
    text = request.GET.get(name, "")
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return int(text)
    raise Invalid(
        [Problem(name, "invalid", "This is not a number.", "Give a whole number, or leave it out.", text[:100])]
    )


def uuid_in(request: HttpRequest, name: str) -> uuid.UUID:
    """An id that a form sent. Raises `Invalid`."""
    text = request.POST.get(name, "")
    try:
        return uuid.UUID(text)
    except ValueError:
        raise Invalid([Problem(name, "invalid", "This is not a valid ID.", "Reload the page.", text[:100])]) from None


def sentence_of(problem: DomainError) -> str:
    """What is wrong and what to do, for people."""
    first = problem.errors[0] if problem.errors else None
    detail, remedy = (first.message, first.remedy) if first else (problem.detail, problem.remedy)
    return f"{detail} {remedy}".strip()


def _lines_to_copy(words: Words, reference: str) -> dict[str, str]:
    """What names the version in a job file and in a shell, quoted as each needs it."""
    named = json.dumps(reference, ensure_ascii=False)  # every JSON text is YAML
    in_job = f"inputs: [{{dataset: {named}}}]" if words.noun == "dataset" else f"code: {named}"
    return {"in_job_file": in_job, "in_shell": f"{words.command} download {shlex.quote(reference)}"}


def _name_of(item: Collection, version: Version | None) -> str:
    return f"{item.name}@{version.number}" if version else item.name


def number_of(request: HttpRequest, name: str) -> int:
    """A count that an address carries on; 0 for anything else. For showing only."""
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0
