"""Rules on a Ray cluster: rows of datasets, folders of files, cells of studies.

| name | what it is for |
|---|---|
| `Project` | an actor of Ray Data that loads rules once and projects batches |
| `Tasks` | runs `gdpnet.study.project_folder` and `gdpnet.study.train` on a cluster |
"""

from gdpnet.ray.data import Project
from gdpnet.ray.tasks import Tasks

__all__ = ["Project", "Tasks"]
