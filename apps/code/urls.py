"""Addresses of the API of code."""

from django.urls import URLPattern, URLResolver, path

from apps.code import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("code/", views.CodesView.as_view(), name="codes"),
    path("code/<uuid:collection_id>/", views.CodeView.as_view(), name="code"),
    path("code/<uuid:collection_id>/versions/", views.CodeVersionsView.as_view(), name="code_versions"),
    path("code-versions/<uuid:version_id>/", views.CodeVersionView.as_view(), name="code_version"),
    path("code-versions/<uuid:version_id>/files/", views.CodeFilesView.as_view(), name="code_files"),
    path("code-versions/<uuid:version_id>/files/content/", views.CodeContentView.as_view(), name="code_content"),
    path("code-versions/<uuid:version_id>/archive/", views.CodeArchiveView.as_view(), name="code_archive"),
]
