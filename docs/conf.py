"""How Sphinx builds the site, the chapters with the outputs of their notebooks."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

project = "Training on multiple GPUs"
html_title = "Training on multiple GPUs, in four frameworks"
language = "en"
extensions = [
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx.ext.autodoc",
    "notebooks.web.directives",
]
exclude_patterns = ["**/.*"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
highlight_language = "text"  # of blocks that do not name one
smartquotes_action = "q"  # quotes alone: dashes stay as they are written

default_role = "literal"  # what docstrings have between backticks
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
add_module_names = False
maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["pictures.css", "site.css"]
html_js_files = ["framework.js"]
html_show_search_summary = False  # a page from the disk may not fetch others
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
# Outputs are not copied, and no reader types a file of the repository by hand.
copybutton_selector = "div[class*=highlight-]:not(.output) > .highlight > pre"
