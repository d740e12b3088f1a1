"""The API of jobs that come from Kubeflow, and of jobs that leave the portal as manifests."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.api.serializers import StrictSerializer
from apps.jobs.api.serializers import JobRequestSerializer
from apps.jobs.launch.job_file import LONGEST_FILE
from yardmaster.job.tfjob import Kind


class ImportSerializer(StrictSerializer):
    """A YAML text with one object of `kind: TFJob` and `apiVersion: kubeflow.org/v1`."""

    text = serializers.CharField(max_length=LONGEST_FILE, trim_whitespace=False)
    namespace = serializers.CharField(
        required=False, max_length=63, help_text="Where code and datasets are looked up. Default: one's own."
    )


class NoteSerializer(serializers.Serializer[Any]):
    """What became of a part of the TFJob."""

    kind = serializers.ChoiceField(choices=[one.value for one in Kind])
    field = serializers.CharField(help_text="Where it is in the TFJob; may be empty.")
    message = serializers.CharField()
    remedy = serializers.CharField(help_text="What to do about it; may be empty.")
    upload = serializers.CharField(help_text="What it names: code:NAME or dataset:NAME; may be empty.")


class ImportedSerializer(serializers.Serializer[Any]):
    """The job, by names of code and datasets as a job file has them."""

    job_file = serializers.CharField(help_text="YAML, for `yardmaster jobs launch`.")
    spec = serializers.DictField(help_text="The same as data, with names in the place of version ids.")
    notes = NoteSerializer(many=True)
    is_ready = serializers.BooleanField(help_text="Whether no note says what has to be done before the launch.")


class ExportQuerySerializer(StrictSerializer):
    """For which cluster."""

    image = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=500, help_text="Of the tasks. Default: the engine's."
    )
    claim = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=253,
        help_text="A PersistentVolumeClaim of that cluster, for data, logs and models. Default: none is used.",
    )  # fmt: skip


class ExportRequestSerializer(JobRequestSerializer):
    """A job to export, and for which cluster."""

    image = serializers.CharField(required=False, default="", allow_blank=True, max_length=500)
    claim = serializers.CharField(required=False, default="", allow_blank=True, max_length=253)


class ExportedSerializer(serializers.Serializer[Any]):
    manifests = serializers.CharField(help_text="YAML, for `kubectl apply`.")
