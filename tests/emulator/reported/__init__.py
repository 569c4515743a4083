"""Faults of TMA, mbarrier, cluster and tensor core code of public projects, as small kernels."""
