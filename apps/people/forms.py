"""What administrators type into the pages of users, teams and invitations."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django import forms

from apps.accounts.user_list import LONGEST_SEARCH, STATES
from apps.namespaces.invitations import DEFAULT_LASTS, LONGEST_LASTS, MOST_USES, Wish
from apps.namespaces.many_invitations import MOST_AT_ONCE
from apps.namespaces.models import Namespace, Role
from apps.removals.models import Data

STATE_WORDS = {"all": "All", "active": "Active", "locked": "Locked", "administrators": "Administrators"}
_ADDRESS = re.compile(r"^[^<>]*<([^<>]+)>$")
_LONGEST_NAMES = 40_000
"""Characters of a list of names: 200 of the longest."""


def names_in(text: str) -> list[str]:
    """The names in a text, one a line or separated by commas or semicolons, each once and in the order in which they
    stand. Pure."""
    names = filter(None, (name.strip() for name in re.split(r"[\n\r,;]+", text)))
    return list({name.lower(): name for name in names}.values())


def addresses_in(text: str) -> list[tuple[int, str]]:
    """The addresses in a text, one a line or separated by commas or semicolons, each with the number of its line: also
    those that come twice, or are none. Of `Ada <ada@example.org>` the address. Pure."""
    lines = enumerate(text.replace("\r\n", "\n").split("\n"), start=1)
    parts = ((number, one.strip()) for number, line in lines for one in re.split(r"[,;]", line))
    return [(number, _ADDRESS.sub(r"\1", one)) for number, one in parts if one]


class UserFilterForm(forms.Form):
    """What stands in the address of the list; anything else in it is as if it were not there."""

    search = forms.CharField(max_length=LONGEST_SEARCH, required=False)
    state = forms.ChoiceField(choices=[(one, STATE_WORDS[one]) for one in STATES], required=False)


class NewUserForm(forms.Form):
    username = forms.CharField(label="User name", max_length=150, help_text="Used to sign in. Cannot be changed.")
    email = forms.EmailField(label="E-mail address", max_length=254, required=False)
    is_staff = forms.BooleanField(label="Administrator of the portal", required=False)
    sends_mail = forms.BooleanField(label="Send an e-mail to set a password", required=False)

    def clean(self) -> dict[str, Any]:
        if self.cleaned_data.get("sends_mail") and not self.cleaned_data.get("email"):
            self.add_error("email", "Enter the address to which the e-mail is sent.")
        return self.cleaned_data


class EmailForm(forms.Form):
    email = forms.EmailField(label="E-mail address", max_length=254, required=False)


class NamesField(forms.CharField):
    """Names of users, as a list."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=_LONGEST_NAMES, widget=forms.Textarea(attrs={"rows": 3}), **options)

    def clean(self, value: Any) -> Any:
        return names_in(super().clean(value))


class NewTeamForm(forms.Form):
    slug = forms.CharField(label="Short name", max_length=63, help_text="Used in URLs. Cannot be changed.")
    title = forms.CharField(label="Title", max_length=100, required=False)
    manager = forms.CharField(label="Manager", max_length=150, required=False, help_text="Defaults to you.")
    members = NamesField(label="Members", required=False, help_text="User names, one per line or separated by commas.")
    role = forms.ChoiceField(label="Role of the members", choices=Role.choices, initial=Role.MEMBER, required=False)


class MembersForm(forms.Form):
    members = NamesField(label="User names", help_text="One per line or separated by commas.")
    role = forms.ChoiceField(label="Role", choices=Role.choices, initial=Role.MEMBER)


class RemovalForm(forms.Form):
    """The name is typed: an action that cannot be undone must not be one slip of the hand."""

    data = forms.ChoiceField(  # type: ignore[assignment]  # a field like the others; forms keep them elsewhere
        choices=Data.choices, initial=Data.KEEP
    )
    name = forms.CharField(max_length=150)

    def __init__(self, expected: str, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.expected = expected
        self.fields["name"].label = f"Type {expected} to confirm"

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name != self.expected:
            raise forms.ValidationError("This is not the name. Type it exactly as it is shown.")
        return name


class InvitationForm(forms.Form):
    """`namespace`: the short name of a team, or empty for an account alone."""

    emails = forms.CharField(
        label="E-mail addresses",
        max_length=_LONGEST_NAMES,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=f"One per line, at most {MOST_AT_ONCE}: each gets a link of its own. If any is wrong, no invitation "
        "is created. Empty: one link for anyone who has it.",
    )
    namespace = forms.CharField(
        label="Team", max_length=63, required=False, help_text="Its short name. Empty: only an account, without a team."
    )
    role = forms.ChoiceField(label="Role in the team", choices=Role.choices, initial=Role.MEMBER, required=False)
    days = forms.IntegerField(
        label="Valid for (days)", min_value=1, max_value=LONGEST_LASTS.days, initial=DEFAULT_LASTS.days
    )
    uses = forms.IntegerField(label="Number of uses", min_value=1, max_value=MOST_USES, initial=1)

    @property
    def addresses(self) -> list[tuple[int, str]]:
        """Those that were given, each with its line."""
        return addresses_in(self.cleaned_data["emails"])

    def clean(self) -> dict[str, Any]:
        if self.cleaned_data.get("emails") and self.cleaned_data.get("uses", 1) != 1:
            self.add_error("uses", "A link to an address has one use. Set 1, or leave the addresses empty.")
        return self.cleaned_data

    def wish(self, namespace: Namespace | None) -> Wish:
        data = self.cleaned_data
        return Wish(
            namespace=namespace,
            role=Role(data["role"] or Role.MEMBER),
            lasts=timedelta(days=data["days"]),
            uses=data["uses"],
        )


class AcceptForm(forms.Form):
    """A new account by an invitation. Password rules are the service's."""

    username = forms.CharField(
        label="User name", max_length=150, widget=forms.TextInput(attrs={"autocomplete": "username"})
    )
    email = forms.EmailField(
        label="E-mail address", max_length=254, required=False, widget=forms.EmailInput(attrs={"autocomplete": "email"})
    )
    password = forms.CharField(
        label="Password",
        max_length=500,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    again = forms.CharField(
        label="Password again",
        max_length=500,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        if data.get("password") and data.get("again") is not None and data["password"] != data["again"]:
            self.add_error("again", "The two passwords are not the same.")
        return data
