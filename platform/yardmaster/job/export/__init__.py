"""A job as Kubernetes manifests that need no portal: `kubectl apply` runs it on any cluster.

Pure: a specification and its code's files in, plain objects and the words at the head of the file out. A Job for each
role, one headless Service for their names, the code in a ConfigMap. Not here: YAML, and where the files come from
(`apps.jobs.exporting`); what an engine of the portal makes (`yardmaster.engines.kubernetes.render`).
"""

from yardmaster.job.export.code import Code
from yardmaster.job.export.manifests import Export, Target, export_of

__all__ = ["Code", "Export", "Target", "export_of"]
