"""Charts as data, made from records and profiles; shown as SVG or as text."""
