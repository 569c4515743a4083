"""`kernelexp.launch`, as kept sources import it."""

from warpsim.launch import *  # noqa: F403
