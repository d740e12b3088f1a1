"""Users and their personal tokens. Who may do what in a namespace is `apps.namespaces`' matter."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models
from yardmaster.ids import new_id


class User(AbstractUser):
    """A person. `is_staff` makes an administrator of the portal."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
