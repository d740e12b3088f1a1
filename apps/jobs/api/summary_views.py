"""The API of what scripts wrote with `tf.summary` beside scalars: images, histograms, texts and hyperparameters."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.urls import URLPattern, URLResolver, path, reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.jobs.api.detail_serializers import AttemptChoiceSerializer
from apps.jobs.api.job_views import JobAddress
from apps.jobs.state.summaries import image_response, summaries_of
from yardmaster.formats.summaries import LARGEST_IMAGE


class ImageQuerySerializer(AttemptChoiceSerializer):
    path = serializers.CharField(max_length=600, trim_whitespace=False, help_text="As the summaries name it.")


class ImageStepSerializer(serializers.Serializer[Any]):
    step = serializers.IntegerField()
    time = serializers.FloatField(help_text="Unix time.")
    width = serializers.IntegerField()
    height = serializers.IntegerField()
    path = serializers.CharField()
    url = serializers.CharField(help_text=f"A PNG or JPEG file of at most {LARGEST_IMAGE >> 10} KiB; needs your token.")


class ImagesSerializer(serializers.Serializer[Any]):
    """The newest images of a tag, the newest last."""

    run = serializers.CharField()
    tag = serializers.CharField()
    steps = ImageStepSerializer(many=True)


class HistogramStepSerializer(serializers.Serializer[Any]):
    step = serializers.IntegerField()
    time = serializers.FloatField(help_text="Unix time.")
    left = serializers.FloatField()
    right = serializers.FloatField()
    counts = serializers.ListField(
        child=serializers.FloatField(), help_text="Of parts of the same width between left and right."
    )


class HistogramsSerializer(serializers.Serializer[Any]):
    run = serializers.CharField()
    tag = serializers.CharField()
    steps = HistogramStepSerializer(many=True)


class TextStepSerializer(serializers.Serializer[Any]):
    step = serializers.IntegerField()
    time = serializers.FloatField(help_text="Unix time.")
    text = serializers.CharField()


class TextsSerializer(serializers.Serializer[Any]):
    run = serializers.CharField()
    tag = serializers.CharField()
    steps = TextStepSerializer(many=True)


class ParametersSerializer(serializers.Serializer[Any]):
    run = serializers.CharField()
    time = serializers.FloatField(help_text="Unix time.")
    values = serializers.DictField(help_text="A number, a text or a truth value each.")


class SummariesSerializer(serializers.Serializer[Any]):
    """Bounded: the newest of the first tags, as docs/protocols.md says."""

    attempt = serializers.IntegerField()
    images = ImagesSerializer(many=True)
    histograms = HistogramsSerializer(many=True)
    texts = TextsSerializer(many=True)
    hparams = ParametersSerializer(many=True)
    left_out = serializers.IntegerField(help_text="How many tags were more than are kept.")


class JobSummariesView(JobAddress):
    """Images, histograms, texts and hyperparameters that the job's scripts wrote with `tf.summary`."""

    pagination_class = None

    @extend_schema(parameters=[AttemptChoiceSerializer], responses=SummariesSerializer)
    def get(self, request: Request, job_id: UUID) -> Response:
        job = self.job(job_id)
        attempt = self.read_query(AttemptChoiceSerializer).get("attempt", job.attempt)
        found = summaries_of(job.pk, attempt)
        images = [
            {
                "run": one.run,
                "tag": one.tag,
                "steps": [vars(step) | _image_place(job.pk, attempt, one.folder + step.file) for step in one.steps],
            }
            for one in found.images
        ]
        rest = {name: getattr(found, name) for name in ("histograms", "texts", "hparams", "left_out")}
        return Response(SummariesSerializer({"attempt": attempt, "images": images, **rest}).data)


def _image_place(job_id: UUID, attempt: int, name: str) -> dict[str, str]:
    query = {"attempt": str(attempt), "path": name}
    return {"path": name, "url": reverse("job_summary_image", args=[job_id], query=query)}


class JobSummaryImageView(JobAddress):
    """One of the images, a PNG or JPEG file."""

    @extend_schema(
        parameters=[ImageQuerySerializer],
        responses={(200, "image/png"): OpenApiTypes.BINARY, (200, "image/jpeg"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, job_id: UUID) -> HttpResponse:
        job, wanted = self.job(job_id), self.read_query(ImageQuerySerializer)
        return image_response(job.pk, wanted.get("attempt", job.attempt), wanted["path"])


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/<uuid:job_id>/summaries/", JobSummariesView.as_view(), name="job_summaries"),
    path("jobs/<uuid:job_id>/summaries/image/", JobSummaryImageView.as_view(), name="job_summary_image"),
]
