"""A page as data, and the pieces that pages share; rendered for terminals and as markdown."""
