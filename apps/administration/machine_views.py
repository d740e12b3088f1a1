"""The API of the machines of the engine `hosts`, for administrators."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.administration import machines
from apps.administration.machine_rules import FIELDS
from apps.administration.machine_table import INSTALLED, WORDS, machine_shown, machines_shown
from apps.api.offsets import ByOffset
from apps.api.permissions import IsAdministrator
from apps.api.serializers import StrictSerializer

_ENTRY = f"As a file lists it (docs/hosts.md), some of {', '.join(FIELDS)}."


_FORCE = OpenApiParameter(
    "force", OpenApiTypes.BOOL, description="Also where the files of Jupyters are there, which then do not start."
)


class FilesThereSerializer(serializers.Serializer[Any]):
    """The files of one user's Jupyters in one namespace."""

    owner = serializers.CharField()
    namespace = serializers.CharField()


class HostMachineSerializer(serializers.Serializer[Any]):
    """A machine, and what a worker heard of it when it was asked last."""

    name = serializers.CharField()
    address = serializers.CharField(source="host.address")
    port = serializers.IntegerField(source="host.port")
    user = serializers.CharField(source="host.user")
    version = serializers.IntegerField(help_text="The version of its entry, to send with a change. 0: a file lists it.")
    is_draining = serializers.BooleanField(source="host.is_cordoned")
    state = serializers.ChoiceField(choices=list(WORDS))
    message = serializers.CharField(help_text="Why it takes no tasks, and what to do.")
    away_since = serializers.DateTimeField(allow_null=True, help_text="Since when it has not been reachable.")
    clock = serializers.FloatField(allow_null=True, help_text="Seconds that its clock is ahead of the portal's.")
    has_environment = serializers.BooleanField(allow_null=True, help_text="Whether the task environment is installed.")
    environment = serializers.ChoiceField(
        choices=INSTALLED, allow_null=True,
        help_text="The task environment: `outdated`: another release of the portal installed it, or it is for another "
        "Python; `own`: the list names a Python of yours. Null: not known.",
    )  # fmt: skip
    workbench = serializers.ChoiceField(choices=INSTALLED, allow_null=True, help_text="JupyterLab, in the same words.")
    has_spark = serializers.BooleanField(allow_null=True, help_text="Whether Spark is installed. Null: not known.")
    total = serializers.DictField(child=serializers.FloatField(), help_text="What it has for jobs, by resource.")
    free = serializers.DictField(child=serializers.FloatField(), help_text="What is left.")
    tasks = serializers.IntegerField(help_text="The portal's tasks that are there.")
    files = FilesThereSerializer(many=True, help_text="Of Jupyters that have their home directory there.")
    known_keys = serializers.ListField(
        child=serializers.CharField(), help_text="Fingerprints of the host keys by which it is known."
    )
    shown_key = serializers.CharField(help_text="The fingerprint of a host key that is to be accepted; empty: none.")


class NewMachineSerializer(StrictSerializer):
    """A machine to add."""

    entry = serializers.DictField(help_text=_ENTRY)


class MachineChangeSerializer(StrictSerializer):
    """What is said of a machine from now on."""

    entry = serializers.DictField(help_text=f"{_ENTRY} Fields that are left out have their defaults.")
    version = serializers.IntegerField(
        required=False, help_text="The version that was read. 409 if the entry has changed since."
    )


class DrainSerializer(StrictSerializer):
    draining = serializers.BooleanField(help_text="False: it takes tasks again.")


class HostKeySerializer(StrictSerializer):
    shown = serializers.CharField(max_length=200, help_text="The fingerprint that was compared, as `shown_key` has it.")


class _MachineAddress(ApiView):
    scope = "admin"
    permission_classes = [IsAdministrator]

    def answer(self, machine_name: str, status: int = 200) -> Response:
        where = machines.source()
        machines.host_listed(where, machine_name)
        return Response(HostMachineSerializer(machine_shown(where, machine_name)).data, status=status)


class HostMachinesView(_MachineAddress):
    """The machines of the engine `hosts`, by name."""

    pagination_class = ByOffset

    @extend_schema(responses=HostMachineSerializer(many=True))
    def get(self, request: Request) -> Response:
        where = machines.source()
        return self.page(machines_shown(where) if where.engine else [], HostMachineSerializer)

    @extend_schema(request=NewMachineSerializer, responses={201: HostMachineSerializer})
    def post(self, request: Request) -> Response:
        """Add one. Refused (`machines_in_file`) where a file lists them."""
        row = machines.machine_add(entry=self.read(NewMachineSerializer).validated_data["entry"], actor=self.user)
        return self.answer(row.name, 201)


class HostMachineView(_MachineAddress):
    """One machine of the engine `hosts`."""

    @extend_schema(responses=HostMachineSerializer)
    def get(self, request: Request, machine_name: str) -> Response:
        return self.answer(machine_name)

    @extend_schema(request=MachineChangeSerializer, responses=HostMachineSerializer)
    def put(self, request: Request, machine_name: str) -> Response:
        """Change it. What tells where its tasks are stays while tasks are there."""
        given = self.read(MachineChangeSerializer).validated_data
        machines.machine_change(
            name=machine_name, entry=given["entry"], actor=self.user, version=given.get("version")
        )  # fmt: skip
        return self.answer(machine_name)

    @extend_schema(parameters=[_FORCE], responses={204: None})
    def delete(self, request: Request, machine_name: str) -> Response:
        """Take it off the list. Refused (`machine_in_use`) while tasks are there, or may start there, and
        (`machine_has_files`) while files of Jupyters are there."""
        force = request.query_params.get("force", "").lower() in ("1", "true")
        machines.machine_remove(name=machine_name, actor=self.user, force=force)
        return Response(status=204)


class DrainMachineView(_MachineAddress):
    """Draining of a machine."""

    @extend_schema(request=DrainSerializer, responses=HostMachineSerializer)
    def post(self, request: Request, machine_name: str) -> Response:
        """Let it take no further tasks; those that run there end by themselves. Or let it take tasks again."""
        is_draining = self.read(DrainSerializer).validated_data["draining"]
        machines.machine_drain(name=machine_name, is_draining=is_draining, actor=self.user)
        return self.answer(machine_name)


class HostKeyView(_MachineAddress):
    """The host key of a machine."""

    @extend_schema(request=HostKeySerializer, responses=HostMachineSerializer)
    def post(self, request: Request, machine_name: str) -> Response:
        """Know the machine by the key that it shows, and by no earlier one. Refused (`key_changed_meanwhile`) where
        that is another one than was compared."""
        shown = self.read(HostKeySerializer).validated_data["shown"]
        machines.key_accept(name=machine_name, shown=shown, actor=self.user)
        return self.answer(machine_name)


urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/machines/", HostMachinesView.as_view(), name="admin-machines"),
    path("admin/machines/<str:machine_name>/", HostMachineView.as_view(), name="admin-machine"),
    path("admin/machines/<str:machine_name>/drain/", DrainMachineView.as_view(), name="admin-machine-drain"),
    path("admin/machines/<str:machine_name>/host-key/", HostKeyView.as_view(), name="admin-machine-host-key"),
]
