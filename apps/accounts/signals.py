"""What other apps do when something happens to a user. Receivers run in the transaction in which it happens; where one
raises, nothing has happened. That a user was made is Django's `post_save`.
"""

from __future__ import annotations

from django.dispatch import Signal

user_activated = Signal()
"""`user` may sign in again."""
user_leaving = Signal()
"""`user` is about to be locked out for good, or deleted. A receiver that must not let that happen raises `Conflict`."""
user_deleting = Signal()
"""`user` is about to be deleted: receivers delete what is theirs. Raises `ProtectedError` where that is in use."""
