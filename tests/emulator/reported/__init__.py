"""Faults of TMA, mbarrier, cluster and tensor core code that public projects had, in small kernels of our own."""
