"""The model of time: what executed warps did, replayed against the units of an SM.

Owns the recording (what each warp executed, what its accesses touched, which warp waited for
which), the parameters of chips with their sources, and the replay, whose loop is
compiled/replay.cpp. It reads front/ and machine/, which know nothing of it. It gives modelled
times, never measured ones.
"""
