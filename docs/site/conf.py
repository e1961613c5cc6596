"""Settings of Sphinx for the site (build.py starts it)."""

from __future__ import annotations

from omb_py import __version__
from omb_py.distribution import version_line

project = "omb-py"
author = "the authors of omb-py"
version = release = __version__
html_title = version_line()  # in the header of every page: the version, and the commit in a checkout
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["recipes/*.yml", "recipes/*.yaml"]
suppress_warnings = ["misc.highlighting_failure"]  # text of a terminal is no language
myst_heading_anchors = 4
html_theme = "furo"
html_copy_source = html_show_copyright = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
napoleon_numpy_docstring = False
