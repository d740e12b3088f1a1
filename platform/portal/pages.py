"""The addresses of all pages. Each app owns its own (`apps.<app>.pages`); here are those that belong to none."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from apps.accounts import pages as accounts
from apps.administration import pages as administration
from apps.code import pages as code
from apps.datasets import pages as datasets
from apps.jobs import pages as jobs
from apps.logs import pages as logs
from apps.notifications import pages as notifications
from apps.registry import pages as registry
from apps.removals import pages as removals
from portal import find, home

APPS = (accounts, administration, notifications, jobs, logs, datasets, code, registry, removals)

urlpatterns: list[URLPattern | URLResolver] = [
    path("", home.home, name="home"),
    path("find/", find.find, name="find"),
    *[pattern for app in APPS for pattern in app.pages_urlpatterns],
    path("accounts/", include("allauth.urls")),
]
