"""The model of time: what executed warps did, replayed against the units of an SM.

Owns recording (what each warp executed, what its accesses touched, who waited for whom), the
parameters of chips with their sources, and the replay, whose loop is compiled/replay.cpp. It reads
front/ and machine/, and nothing of either knows of it. What it gives is a modelled time, which is
never a measured one.
"""
