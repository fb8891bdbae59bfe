"""A picture as an output: for those who show SVG, for those who show images, and in words."""

import base64
import re

from notebooks.drawing import pictures
from notebooks.drawing.shown import shown


def test_every_form_is_the_same_picture() -> None:
    svg = pictures.three_splits()
    forms = shown(svg)
    assert forms["image/svg+xml"] == svg
    (data,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', forms["text/html"])
    assert base64.b64decode(data).decode() == svg
    assert forms["text/plain"] == "Three ways to split training over devices"
    assert f'alt="{forms["text/plain"]}"' in forms["text/html"]


def test_a_title_is_text_and_no_markup() -> None:
    forms = shown('<svg><title>a &lt; b &amp; "c"</title></svg>')
    assert forms["text/plain"] == 'a < b & "c"'
    assert 'alt="a &lt; b &amp; &quot;c&quot;"' in forms["text/html"]
    assert shown("<svg/>")["text/plain"] == "a picture"
