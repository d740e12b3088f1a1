from django.urls import URLPattern, URLResolver, path

from apps.logs.task_views import TaskEndView, TaskGapView, TaskLinesView
from apps.logs.views import LevelsView, LinesView, RawView, SearchView, StreamsView

urlpatterns: list[URLPattern | URLResolver] = [
    path("task/log/", TaskLinesView.as_view(), name="task-log"),
    path("task/log/gap/", TaskGapView.as_view(), name="task-log-gap"),
    path("task/log/end/", TaskEndView.as_view(), name="task-log-end"),
    path("jobs/<uuid:id>/logs/", StreamsView.as_view(), name="job-logs"),
    path("jobs/<uuid:id>/logs/lines/", LinesView.as_view(), name="job-log-lines"),
    path("jobs/<uuid:id>/logs/search/", SearchView.as_view(), name="job-log-search"),
    path("jobs/<uuid:id>/logs/levels/", LevelsView.as_view(), name="job-log-levels"),
    path("jobs/<uuid:id>/logs/raw/", RawView.as_view(), name="job-log-raw"),
]
