"""Pages of runs, sweeps and searches, and of the checks of CI."""
