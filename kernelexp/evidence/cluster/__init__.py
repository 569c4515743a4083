"""The workers of a Dask scheduler as the place where work is done.

`client` sends tasks and takes results home, `worker` runs them, `messages` are what both speak,
`sources` are the project's files on their way.
"""

from kernelexp.evidence.cluster.client import Cluster, connect

__all__ = ["Cluster", "connect"]
