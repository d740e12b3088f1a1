"""The addresses of the pages of namespaces and of the audit."""

from __future__ import annotations

from apps.administration import audit_pages, namespace_pages

pages_urlpatterns = [*namespace_pages.pages_urlpatterns, *audit_pages.pages_urlpatterns]
