"""Work on other machines, by the workers of a Dask scheduler.

`client` sends tasks and fetches results, `worker` runs them, `messages` are the types that the two
exchange, and `sources` transfers the project's files.
"""

from kernelexp.evidence.cluster.client import Cluster, connect

__all__ = ["Cluster", "connect"]
