"""A TFJob of Kubeflow's training operator, read as a job file: what was taken, what was changed, what is left out.

Pure: a mapping in, a specification as people write it and notes out. Not here: parsing YAML (`apps.jobs.launch`), and
whether the code and the datasets that the job file names exist.
"""

from yardmaster.job.tfjob.documents import find_tfjob
from yardmaster.job.tfjob.importing import Imported, import_tfjob
from yardmaster.job.tfjob.parts import Kind, Note

__all__ = ["Imported", "Kind", "Note", "find_tfjob", "import_tfjob"]
