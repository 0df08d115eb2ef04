"""A Sphinx extension: formulas as MathML, which browsers render themselves. To read them needs no script and no network."""

import re

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.util.logging import getLogger

logger = getLogger(__name__)


def mathml(node, display):
    result = convert(node.astext(), display=display)
    unknown = re.search(r"<m\w>(&|\\\w+)</m\w>", result)
    if unknown:
        logger.warning("the formula has %s, which latex2mathml does not know: %s", unknown[1], node.astext(), location=node)
    return result


def inline(writer, node):
    writer.body.append(mathml(node, "inline"))
    raise SkipNode


def display(writer, node):
    writer.body.append(writer.starttag(node, "div", CLASS="math") + mathml(node, "block") + "</div>\n")
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
