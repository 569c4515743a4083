"""The documentation's site: sphinx-build -n -W docs build/docs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "kernelexp"
copyright = "the kernelexp authors"
extensions = ["myst_parser", "kxdocs"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["kxdocs"]

# GitHub's anchors, so that a link to a heading works in both places.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "deflist"]

smartquotes = False  # options begin with two dashes

html_theme = "furo"
html_title = "kernelexp"
html_copy_source = False
html_theme_options = {"light_css_variables": {"code-font-size": "72%"}}  # 100 columns
html_show_sphinx = False
