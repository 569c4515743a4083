"""What an access or a copy costs in wavefronts and sectors, and the counters of a launch.

Imports core.
"""
