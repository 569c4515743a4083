"""Experiments run, swept and tuned: arms prepared, timed, judged, recorded."""
