"""The API of images: which ones a user may name, and the catalogue for administrators."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.api.permissions import IsAdministrator, ScopedAndSignedIn
from apps.api.serializers import StrictSerializer
from apps.images import services
from apps.images.models import Image
from apps.images.selectors import image_named, images_for, images_visible_to
from apps.namespaces.named import MOST_NAMESPACES, namespaces_taken
from apps.namespaces.selectors import namespace_for, namespaces_visible


class ImageSerializer(serializers.ModelSerializer[Image]):
    """An image that jobs may name. `packages` are the modules or distributions that it has; null: not known."""

    digest = serializers.CharField(source="pinned.digest", help_text="`sha256:…`")
    strategies = serializers.ListField(child=serializers.CharField(), help_text="None: all of them.")
    packages = serializers.ListField(child=serializers.CharField(), allow_null=True)
    pull_secret = serializers.SerializerMethodField(
        help_text="The name of the secret with which it is pulled. Empty: none, or you are no administrator."
    )
    namespaces = serializers.SerializerMethodField(help_text="Of those that you see. None where `everyone` may use it.")

    class Meta:
        model = Image
        fields = [
            "id", "name", "reference", "digest", "python", "tensorflow", "strategies", "gpus", "description",
            "pull_secret", "everyone", "namespaces", "enabled", "packages", "created_at", "changed_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_pull_secret(self, image: Image) -> str:
        return image.pull_secret if self.context["is_administrator"] else ""

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_namespaces(self, image: Image) -> list[str]:
        seen = self.context["seen"]
        return sorted(one.slug for one in image.namespaces.all() if seen is None or one.pk in seen)


class _Texts(serializers.ListField):
    def __init__(self, *, longest: int, most: int, **given: Any) -> None:
        super().__init__(child=serializers.CharField(max_length=longest), max_length=most, **given)


class ImageFactsSerializer(StrictSerializer):
    """What administrators say of an image. Left out: as it was, or the default."""

    reference = serializers.CharField(required=False, help_text="`registry/repository[:tag]@sha256:…`")
    python = serializers.CharField(required=False, allow_blank=True, max_length=16)
    tensorflow = serializers.CharField(required=False, allow_blank=True, max_length=32)
    strategies = _Texts(required=False, longest=40, most=20, help_text="None: all of them.")
    gpus = serializers.BooleanField(required=False, help_text="Whether scripts can use GPUs in it.")
    description = serializers.CharField(required=False, allow_blank=True)
    pull_secret = serializers.CharField(
        required=False, allow_blank=True, max_length=128, help_text="The name of the secret with which it is pulled."
    )
    everyone = serializers.BooleanField(required=False, help_text="Whether all namespaces may use it.")
    namespaces = _Texts(
        required=False, longest=63, most=MOST_NAMESPACES,
        help_text="Who may use it where not `everyone` may: IDs or slugs.",
    )  # fmt: skip
    enabled = serializers.BooleanField(required=False, help_text="Whether new jobs may name it.")
    packages = _Texts(
        required=False, allow_null=True, longest=128, most=services.MOST_PACKAGES,
        help_text="The modules or distributions that it has. Null: not known.",
    )  # fmt: skip


class NewImageSerializer(ImageFactsSerializer):
    """An image for the catalogue."""

    name = serializers.CharField(max_length=63)
    reference = serializers.CharField(help_text="`registry/repository[:tag]@sha256:…`")


class _ImageAddress(ApiView):
    scope = "admin"

    def get_permissions(self) -> list[ScopedAndSignedIn]:
        return [ScopedAndSignedIn() if self.request.method in ("GET", "HEAD", "OPTIONS") else IsAdministrator()]

    def get_serializer_context(self) -> dict[str, Any]:
        seen = None if self.user.is_staff else set(namespaces_visible(self.user).values_list("pk", flat=True))
        return {**super().get_serializer_context(), "seen": seen, "is_administrator": self.user.is_staff}

    def answer(self, image: Image, status: int = 200) -> Response:
        return Response(ImageSerializer(image, context=self.get_serializer_context()).data, status=status)


class ImagesView(_ImageAddress):
    """The images that jobs may name, the newest first. Administrators see all of the catalogue."""

    @extend_schema(
        parameters=[OpenApiParameter("namespace", str, description="Only what this namespace may use: ID or slug.")],
        responses=ImageSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        found = images_visible_to(self.user)
        if ref := request.query_params.get("namespace"):
            found = found.filter(pk__in=images_for(namespace_for(self.user, ref)).order_by().values("pk"))
        return self.page(found, ImageSerializer)

    @extend_schema(request=NewImageSerializer, responses={201: ImageSerializer})
    def post(self, request: Request) -> Response:
        """Add an image to the catalogue (administrators)."""
        data: dict[str, Any] = dict(self.read(NewImageSerializer).validated_data)
        namespaces = namespaces_taken(self.user, data) or []
        made = services.image_create(name=data.pop("name"), facts=data, namespaces=namespaces, actor=self.user)
        return self.answer(made, 201)


class ImageView(_ImageAddress):
    """One image, by its name."""

    pagination_class = None

    @extend_schema(responses=ImageSerializer)
    def get(self, request: Request, name: str) -> Response:
        return self.answer(image_named(self.user, name))

    @extend_schema(request=ImageFactsSerializer, responses=ImageSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change what is said of it (administrators). Jobs that are queued or running keep what they have."""
        image = image_named(self.user, name)
        data: dict[str, Any] = dict(self.read(ImageFactsSerializer).validated_data)
        namespaces = namespaces_taken(self.user, data)
        return self.answer(services.image_change(image=image, facts=data, namespaces=namespaces, actor=self.user))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Remove it from the catalogue (administrators). Jobs that name it keep the image that they have."""
        services.image_delete(image=image_named(self.user, name), actor=self.user)
        return Response(status=204)


urlpatterns: list[URLPattern | URLResolver] = [
    path("images/", ImagesView.as_view(), name="images"),
    path("images/<str:name>/", ImageView.as_view(), name="image"),
]
