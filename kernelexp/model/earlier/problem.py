"""`kernelexp.problem`, as kept sources import it."""

from kernelexp.model.problem import *  # noqa: F403
