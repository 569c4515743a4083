"""The checks of CI: builds against a baseline, emulations, conditions on figures, times."""
