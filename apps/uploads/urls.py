"""Addresses of the API of uploads."""

from django.urls import URLPattern, URLResolver, path

from apps.uploads import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("uploads/", views.UploadsView.as_view(), name="uploads"),
    path("uploads/<uuid:upload_id>/", views.UploadView.as_view(), name="upload"),
    path("uploads/<uuid:upload_id>/parts/", views.UploadPartsView.as_view(), name="upload_parts"),
    path("uploads/<uuid:upload_id>/complete/", views.UploadCompleteView.as_view(), name="upload_complete"),
]
