"""Addresses of the API of datasets."""

from django.urls import URLPattern, URLResolver, path

from apps.datasets import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("datasets/", views.DatasetsView.as_view(), name="datasets"),
    path("datasets/<uuid:collection_id>/", views.DatasetView.as_view(), name="dataset"),
    path("datasets/<uuid:collection_id>/versions/", views.DatasetVersionsView.as_view(), name="dataset_versions"),
    path("dataset-versions/<uuid:version_id>/", views.DatasetVersionView.as_view(), name="dataset_version"),
    path("dataset-versions/<uuid:version_id>/files/", views.DatasetFilesView.as_view(), name="dataset_files"),
    path(
        "dataset-versions/<uuid:version_id>/files/content/", views.DatasetContentView.as_view(), name="dataset_content"
    ),
    path("dataset-versions/<uuid:version_id>/archive/", views.DatasetArchiveView.as_view(), name="dataset_archive"),
    path("dataset-versions/<uuid:version_id>/preview/", views.DatasetPreviewView.as_view(), name="dataset_preview"),
    path("dataset-versions/<uuid:version_id>/check/", views.DatasetCheckView.as_view(), name="dataset_check"),
]
