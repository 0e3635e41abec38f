"""The site: `make docs` builds it offline into `out/site`; warnings are errors."""

import os
import sys
from pathlib import Path

import decidewise

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "decidewise"
author = "the authors of decidewise"
project_copyright = author
version = release = decidewise.__version__
html_title = "decidewise"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "generated_pages",
]
exclude_patterns = [
    "_ext",
    "_templates",
    "figures",
    "gallery",
    "sg_execution_times.rst",
    "generated/gallery/sg_execution_times.rst",
]
default_role = "code"  # single backticks of docstrings
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
# Pages link to files of the project, which are not part of the site.
myst_url_schemes = {"http": None, "https": None, "mailto": None}

autosummary_generate = True
autodoc_typehints = "none"  # types are in the numpydoc sections
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
templates_path = ["_templates"]
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True}
html_copy_source = False
html_show_sourcelink = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# For `make linkcheck`: the project itself is not published yet.
linkcheck_ignore = [r"https://github\.com/decidewise/.*"]
linkcheck_timeout = 20

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib", "gallery_figures.neutral"),
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "show_memory": False,
    "show_signature": False,
    "matplotlib_animations": False,
    "plot_gallery": "SITE_WITHOUT_FIGURES" not in os.environ,
    "log_level": {"backreference_missing": "debug"},
}
