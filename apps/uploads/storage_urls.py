"""Addresses of a store that the portal serves itself; they are signed, and only made by the store."""

from django.urls import URLPattern, URLResolver, path

from apps.uploads import delivery

urlpatterns: list[URLPattern | URLResolver] = [
    path("objects/<path:key>", delivery.object_read, name="storage_object"),
    path("parts/<str:upload_id>/<int:part>", delivery.part_write, name="storage_part"),
]
