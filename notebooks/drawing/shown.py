"""A picture as the output of a cell, in every form that may be shown."""

import base64
import re
from html import escape, unescape
from typing import Final

SVG: Final = "image/svg+xml"


def shown(svg: str) -> dict[str, str]:
    """The picture by its kinds: as it is, as an image of a page, and in words.

    Jupyter Lab shows no SVG of a notebook that another user has run, but an image it does.
    """
    found = re.search(r"<title[^>]*>(.*?)</title>", svg, re.DOTALL)
    title = unescape(found[1]) if found else "a picture"
    data = base64.b64encode(svg.encode()).decode()
    image = f'<img alt="{escape(title)}" src="data:{SVG};base64,{data}">'
    return {SVG: svg, "text/html": image, "text/plain": title}
