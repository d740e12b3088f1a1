from django.urls import URLPattern, URLResolver

pages_urlpatterns: list[URLPattern | URLResolver] = []
