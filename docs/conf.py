"""How Sphinx builds the documentation."""

from importlib.metadata import version as installed_version

project = "noeta"
copyright = "the noeta contributors"
version = release = installed_version("noeta")

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nitpicky = True

html_theme = "furo"
html_title = "noeta"
