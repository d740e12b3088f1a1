"""Which images there are, and who may use them."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q, QuerySet

from apps.accounts.models import User
from apps.errors import NotFound
from apps.images.models import Image
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import namespaces_visible


def images_visible_to(user: User) -> QuerySet[Image]:
    """Those that some namespace of the user may use, the newest first; administrators see all of them, also those that
    are turned off."""
    rows = Image.objects.prefetch_related("namespaces").order_by("-pk")
    if user.is_staff:
        return rows
    allowed = Image.namespaces.through.objects.filter(namespace__in=namespaces_visible(user)).values("image_id")
    return rows.filter(Q(everyone=True) | Q(pk__in=allowed), enabled=True)


def images_for(namespace: Namespace) -> QuerySet[Image]:
    """Those that jobs of this namespace may use, by name."""
    allowed = Image.namespaces.through.objects.filter(namespace=namespace).values("image_id")
    return Image.objects.filter(Q(everyone=True) | Q(pk__in=allowed), enabled=True).order_by("name")


def images_named(names: Collection[str]) -> dict[str, Image]:
    """The images that are called so, whether they may be used or not."""
    return {one.name: one for one in Image.objects.filter(name__in=names).prefetch_related("namespaces")}


def image_named(user: User, name: str) -> Image:
    """Raises `NotFound`, also for one that the user may not use."""
    found = images_visible_to(user).filter(name=name).first()
    if found is None:
        raise NotFound("There is no such image, or you may not use it.", "unknown_image")
    return found


def may_use(image: Image, namespace: Namespace) -> bool:
    """Whether jobs of the namespace may run in it, as far as its administrators allow it."""
    return image.everyone or namespace in image.namespaces.all()
