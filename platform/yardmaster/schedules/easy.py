"""Easy choices of the page (hourly, daily, weekly, monthly) as cron expressions, and back. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

HOURLY, DAILY, WEEKLY, MONTHLY, CUSTOM = "hourly", "daily", "weekly", "monthly", "custom"
CHOICES = {HOURLY: "Every hour", DAILY: "Every day", WEEKLY: "Every week", MONTHLY: "Every month", CUSTOM: "Cron"}
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_FORM = re.compile(r"(\d{1,2}) (\*|\d{1,2}) (\*|\d{1,2}) \* (\*|[0-6])")


@dataclass(frozen=True)
class Easy:
    """What the page asks. `at`: the time of day as `HH:MM`, of which hourly takes the minutes."""

    every: str
    at: str = "02:00"
    weekday: int = 1
    day: int = 1


def cron_of(easy: Easy) -> str:
    """The expression. What is no time of the day gives one that is refused."""
    match = re.fullmatch(r"(\d{1,2}):(\d{2})(?::\d{2})?", easy.at)
    hour, minute = (int(match[1]), int(match[2])) if match else (99, 99)
    return {
        HOURLY: f"{minute} * * * *",
        DAILY: f"{minute} {hour} * * *",
        WEEKLY: f"{minute} {hour} * * {easy.weekday}",
        MONTHLY: f"{minute} {hour} {easy.day} * *",
    }[easy.every]


def easy_of(cron: str) -> Easy:
    """The choice that this expression is; custom where it is none of the easy ones."""
    match = _FORM.fullmatch(cron)
    if match is None:
        return Easy(CUSTOM)
    minute, hour, day, weekday = match.groups()
    if hour == "*":
        return Easy(HOURLY, f"00:{int(minute):02}") if (day, weekday) == ("*", "*") else Easy(CUSTOM)
    at = f"{int(hour):02}:{int(minute):02}"
    if weekday != "*":
        return Easy(WEEKLY, at, weekday=int(weekday)) if day == "*" else Easy(CUSTOM)
    return Easy(DAILY, at) if day == "*" else Easy(MONTHLY, at, day=int(day))


def words_of(cron: str) -> str:
    """The times in words, without their zone."""
    easy = easy_of(cron)
    return {
        HOURLY: f"Every hour at minute {easy.at[3:].lstrip('0') or '0'}",
        DAILY: f"Every day at {easy.at}",
        WEEKLY: f"Every {DAYS[easy.weekday]} at {easy.at}",
        MONTHLY: f"Every month on day {easy.day} at {easy.at}",
        CUSTOM: cron,
    }[easy.every]
