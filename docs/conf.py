# Sphinx configuration. docs/build builds.
import importlib.util
import re
import sys
from pathlib import Path

docs = Path(__file__).resolve().parent
sys.path.insert(0, str(docs))

project = "solenoid"
author = "the solenoid authors"
release = version = re.search(r"project\(solenoid VERSION (\S+)", (docs.parent / "CMakeLists.txt").read_text())[1]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_gallery.gen_gallery", "mathml"]
exclude_patterns = ["requirements.txt", "gallery", "results"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
default_role = "code"
maximum_signature_line_length = 80

html_theme = "furo"
html_title = f"solenoid {release}"
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["solenoid.css"]
html_copy_source = False
html_show_copyright = False

# The gallery is run where it can be: with the Python package, or without what needs it. Without the package its interface
# is read from the sources, with the compiled module left out.
with_package = importlib.util.find_spec("solenoid") is not None
if not with_package:
    sys.path.insert(0, str(docs.parent / "python"))
    autodoc_mock_imports = ["solenoid._core"]
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"/plot_" if with_package else r"/plot_patch_solver",
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,
    "show_memory": False,
    "remove_config_comments": True,
    "download_all_examples": False,
}


def for_html(app, page, source):
    """Pages read well on code-hosting sites too: what only HTML pages have, directives of Sphinx, stands in comments
    `<!-- html ... -->`, what they do not have between `<!-- elsewhere -->` and `<!-- end of elsewhere -->`, and the gallery
    is linked by its scripts."""
    text = re.sub(r"<!-- elsewhere -->\n.*?\n<!-- end of elsewhere -->\n", "", source[0], flags=re.DOTALL)
    text = re.sub(r"<!-- html\n(.*?)\n-->", r"\1", text, flags=re.DOTALL)
    text = re.sub(r"\]\(((?:\.\./)?)gallery/\)", r"](\1auto_gallery/index.rst)", text)
    source[0] = re.sub(r"\]\(((?:\.\./)?)gallery/(\w+)\.py\)", r"](\1auto_gallery/\2.rst)", text)


def escape_bars(app, what, name, obj, options, lines):
    """|u| in a docstring is a norm, not a substitution."""
    lines[:] = [line.replace("|", "\\|") for line in lines]


def setup(app):
    app.connect("source-read", for_html)
    app.connect("autodoc-process-docstring", escape_bars)
