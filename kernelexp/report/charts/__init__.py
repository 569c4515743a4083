"""Charts as data, made from records and profiles; drawn by matplotlib, as SVG, or as text."""
