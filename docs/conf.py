"""Sphinx: builds the site from these pages, the docstrings and the gallery, without internet."""

import inspect
import tomllib
import warnings
from importlib.resources import files
from pathlib import Path

from gedi_sklearn import __version__

project = "gedi-sklearn"
author = "gedi_sklearn developers"
copyright = author
release = __version__
with (Path(__file__).parents[1] / "pyproject.toml").open("rb") as file:
    repository = tomllib.load(file)["tool"]["gedi-sklearn"]["repository"]

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",  # the way from a name to its code
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery", "auto_gallery/*.ipynb"]
templates_path = ["_templates"]

# Pages in Markdown; links to headings as on GitHub.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "substitution"]
myst_substitutions = {"version": release, "source": repository or "the repository"}
myst_heading_anchors = 4

# The reference: what api.rst lists, each name on a page of its own.
autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False

# The gallery: every script runs, and an error ends the build.
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"[\\/]plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "plot_gallery": "True",
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}
# What the library says to users belongs in the pages; what drawing without a window says does not.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"gedi-sklearn {release}"
html_static_path = ["_static", str(files("mathjax") / "static/mathjax/es5/tex-svg.js")]
html_css_files = ["site.css"]
mathjax_path = "tex-svg.js"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "header_links_before_dropdown": 5,
}


def skip_foreign_member(app, what, name, member, skip, options):
    """Leave out what classes inherit from other libraries, whose pages are theirs."""
    module = getattr(member, "__module__", None) or getattr(
        getattr(member, "fget", None), "__module__", ""
    )
    return True if not str(module).startswith("gedi_sklearn") else None


def sign_class(app, what, name, object_, options, signature, returned):
    """Show the parameters of a class, not those of the method that checks them first."""
    if what != "class" or not signature:
        return None
    declared = inspect.signature(object_)
    bare = [one.replace(annotation=one.empty) for one in declared.parameters.values()]
    return str(declared.replace(parameters=bare, return_annotation=declared.empty)), None


def strip_last_lines(app, name, source):
    """Take out the empty line that ends a doctest before the end of its block."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def setup(app):
    """Register what this file adds."""
    app.connect("autodoc-skip-member", skip_foreign_member)
    app.connect("autodoc-process-signature", sign_class)
    app.connect("source-read", strip_last_lines)
