"""The site: `make docs` builds it offline into `out/site`; warnings are errors."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

import decidewise

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

#: Only the text is wanted: the gallery does not run, and nothing is asked of the network.
TEXT_ONLY = "SITE_WITHOUT_FIGURES" in os.environ
#: `make docs` does not install these, which take gigabytes with their accelerator packages: the reference describes our
#: frontends all the same, and their script of the gallery is shown without output.
MISSING = [name for name in ("torch", "jax") if find_spec(name) is None]

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
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "generated_pages",
    "notebook_page",
    "mathml",
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

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
# Pages link to files of the project, which are not part of the site.
myst_url_schemes = {"http": None, "https": None, "mailto": None}

html_math_renderer = "mathml"

autosummary_generate = True
autodoc_mock_imports = MISSING
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
viewcode_line_numbers = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def reachable(projects: dict[str, str]) -> dict[str, tuple[str, None]]:
    """Return the projects whose list of names can be fetched: without a network, their names are not links."""
    found = {}
    for name, address in projects.items():
        try:
            urlopen(f"{address}/objects.inv", timeout=3).close()
        except OSError:
            continue
        found[name] = (address, None)
    return found


intersphinx_mapping = reachable(
    {}
    if TEXT_ONLY
    else {
        "python": "https://docs.python.org/3",
        "numpy": "https://numpy.org/doc/stable",
        "scipy": "https://docs.scipy.org/doc/scipy",
        "sklearn": "https://scikit-learn.org/stable",
        "pandas": "https://pandas.pydata.org/docs",
    }
)

# For `make linkcheck`: the project itself is not published yet.
linkcheck_ignore = [r"https://github\.com/decidewise/.*"]
linkcheck_timeout = 20

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": rf"/\d\d_(?!{'|'.join(MISSING)})" if MISSING else r"/\d\d_",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("decidewise",),
    "prefer_full_module": {r"decidewise\."},
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib", "gallery_figures.prepare"),
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "show_memory": False,
    "show_signature": False,
    "matplotlib_animations": False,
    "plot_gallery": not TEXT_ONLY,
    "log_level": {"backreference_missing": "debug"},
}
