"""Which classes of priority someone may use in a namespace.

Not here: changing them (`apps.administration.priorities`).
"""

from __future__ import annotations

from django.db.models import Q

from apps.accounts.models import User
from apps.namespaces.models import Namespace, PriorityClass
from apps.namespaces.share_models import Users


def classes_for(user: User, namespace: Namespace) -> list[PriorityClass]:
    """Those that jobs of this user in this namespace may have, the highest first."""
    allowed = Q(users=Users.EVERYONE) | Q(users=Users.NAMESPACES, namespaces=namespace)
    if user.is_staff:
        allowed |= Q(users=Users.ADMINISTRATORS)
    return list(PriorityClass.objects.filter(allowed).distinct().order_by("-value", "name"))
