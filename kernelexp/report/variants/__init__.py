"""Pages of single variants: builds, code, emulations, lines, limits, profiles."""
