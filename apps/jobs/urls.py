"""Addresses of the API of jobs and engines, and of the one that tasks speak to."""

from django.urls import URLPattern, URLResolver, path

from apps.jobs.api import detail_views as details
from apps.jobs.api import engine_views as engines
from apps.jobs.api import job_views as jobs
from apps.jobs.task_api import views as task

urlpatterns: list[URLPattern | URLResolver] = [
    path("engines/", engines.EnginesView.as_view(), name="engines"),
    path("jobs/", jobs.JobsView.as_view(), name="jobs"),
    path("jobs/check/", jobs.JobCheckView.as_view(), name="job_check"),
    path("jobs/manifests/", jobs.ManifestsPreviewView.as_view(), name="manifests_preview"),
    path("jobs/<uuid:job_id>/", jobs.JobView.as_view(), name="job"),
    path("jobs/<uuid:job_id>/stop/", jobs.JobStopView.as_view(), name="job_stop"),
    path("jobs/<uuid:job_id>/retry/", jobs.JobRetryView.as_view(), name="job_retry"),
    path("jobs/<uuid:job_id>/why/", details.JobWhyView.as_view(), name="job_why"),
    path("jobs/<uuid:job_id>/attempts/", details.JobAttemptsView.as_view(), name="job_attempts"),
    path("jobs/<uuid:job_id>/events/", details.JobEventsView.as_view(), name="job_events"),
    path("jobs/<uuid:job_id>/tasks/", details.JobTasksView.as_view(), name="job_tasks"),
    path("jobs/<uuid:job_id>/scalars/", details.JobScalarsView.as_view(), name="job_scalars"),
    path("jobs/<uuid:job_id>/checkpoints/", details.JobCheckpointsView.as_view(), name="job_checkpoints"),
    path("jobs/<uuid:job_id>/model/", details.JobModelView.as_view(), name="job_model"),
    path("jobs/<uuid:job_id>/manifests/", details.JobManifestsView.as_view(), name="job_manifests"),
    path("jobs/<uuid:job_id>/manifests.yaml", details.JobManifestsFileView.as_view(), name="job_manifests_file"),
    path("jobs/<uuid:job_id>/notebook/", details.JobNotebookView.as_view(), name="job_notebook"),
    path("task/order/", task.TaskOrderView.as_view(), name="task_order"),
    path("task/report/", task.TaskReportView.as_view(), name="task_report"),
    path("task/checkpoints/", task.TaskCheckpointsView.as_view(), name="task_checkpoints"),
    path("task/model/", task.TaskModelView.as_view(), name="task_model"),
    path("task/uploads/<uuid:upload_id>/", task.TaskUploadView.as_view(), name="task_upload"),
    path("task/uploads/<uuid:upload_id>/parts/", task.TaskUploadPartsView.as_view(), name="task_upload_parts"),
    path("task/uploads/<uuid:upload_id>/complete/", task.TaskUploadCompleteView.as_view(), name="task_upload_complete"),
]
