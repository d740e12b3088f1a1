"""The schema of the API: its title, and names of enumerations, which drf-spectacular would else derive from fields."""

from __future__ import annotations

SPECTACULAR_SETTINGS = {
    "TITLE": "Yardmaster",
    "DESCRIPTION": "Training as a service for TensorFlow.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "MemberRole": "apps.namespaces.models.Role",
        "ModelStage": "apps.registry.models.Stage",
        "TaskRole": "apps.jobs.api.serializers.ROLES",
        "RetentionKind": "apps.jobs.models.retention.KINDS",
        "SecretKind": "apps.secrets.models.Kind",
        "SweepState": "apps.sweeps.serializers.STATES",
        "TrialState": "apps.sweeps.serializers.TRIAL_STATES",
        "WebhookFormat": "apps.webhooks.models.Format",
        "VolumeKind": "apps.jobs.models.volume.Volume.Kind",
        "NoticeKind": "apps.notifications.models.Broadcast.Kind",
        "ConnectionState": "apps.connections.models.State",
        "ConnectionCopyState": "apps.datasets.models.ConnectionCopy.State",
        "UploadKind": "apps.uploads.models.Kind",
        "UploadState": "apps.uploads.models.State",
        "SessionKind": "apps.workbench.models.Kind",
        "HostedState": "apps.hosting.state.STATES",
        "InvitationState": "apps.namespaces.invitations.STATES",
        "InstalledOnMachine": "apps.administration.machine_table.INSTALLED",
    },
}
