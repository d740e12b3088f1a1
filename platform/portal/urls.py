"""Every address of the portal. Each app owns its own; all of the API lies under `/api/v1/`."""

from django.urls import URLPattern, URLResolver, include, path

from portal.readiness import healthz, readyz

API_APPS = ("api", "accounts", "namespaces", "audit", "uploads", "datasets", "code", "jobs", "logs", "registry")

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include([path("", include(f"apps.{name}.urls")) for name in API_APPS])),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("", include("portal.pages")),
]
