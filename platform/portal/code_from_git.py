"""From which Git hosts code may be fetched, and how much."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from portal import env
from yardmaster.git.hosts import GitHost, git_hosts
from yardmaster.git.limits import Limits

OFF = "off"
PUBLIC = "github.com,gitlab.com,bitbucket.org,codeberg.org"


def hosts() -> list[GitHost]:
    """The hosts that may be asked: those of `YARDMASTER_GIT_HOSTS`, none where it is `off`. Raises
    `ImproperlyConfigured`."""
    words = env.words("YARDMASTER_GIT_HOSTS", PUBLIC)
    if [word.lower() for word in words] == [OFF]:
        return []
    try:
        return git_hosts(words)
    except ValueError as error:
        raise ImproperlyConfigured(f"YARDMASTER_GIT_HOSTS: {error}.") from error


def limits() -> Limits:
    """The most bytes and seconds of one fetch."""
    return Limits(
        most_bytes=env.size("YARDMASTER_GIT_LIMIT", "256Mi", least=1 << 20),
        seconds=env.number("YARDMASTER_GIT_TIME", 300, least=5),
    )
