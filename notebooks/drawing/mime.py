"""A picture as the output of a cell, in every MIME type that a viewer may take."""

import base64
import re
from html import escape, unescape
from typing import Final

SVG: Final = "image/svg+xml"


def mime_bundle(svg: str) -> dict[str, str]:
    """The picture by MIME type: as SVG, as an `img` in HTML, and its title as text.

    Jupyter Lab shows the image, but no SVG, of a notebook that another user has run.
    """
    match = re.search(r"<title[^>]*>(.*?)</title>", svg, re.DOTALL)
    title = unescape(match[1]) if match else "a picture"
    data = base64.b64encode(svg.encode()).decode()
    image = f'<img alt="{escape(title)}" src="data:{SVG};base64,{data}">'
    return {SVG: svg, "text/html": image, "text/plain": title}
