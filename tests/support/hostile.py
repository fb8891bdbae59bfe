"""Records that say what a page must not show as it is."""

import json
from pathlib import Path
from typing import Any

from agreement import edit

TEXTS = {
    "script": "<script>document.title = 'broken'; alert(1)</script>",
    "attribute": "\"'><img src=x onerror=alert(1)><a href=javascript:alert(1) title='",
    "ends": "</code></pre></td></table></details></style></title></body>-->]]>{{ 7 * 7 }}{% raw %}",
    "long": "a" * 100_000,
    "controls": "\x00\x07\x1b[31m\x1b]0;title\x07\r\n\x7f\x9b",
    "directions": "\u202egnp.exe\u202c \u2066\u200f\u061c \u05d0\u05d1\u05d2 \u0645\u0631\u062d",
    "accents": "Z" + "\u0300\u0489\u20dd" * 300,
    "formats": "%s %n {0} {record} $x^2$ \\u0041 &amp; &#60;script&#62; 'quoted' `ticked` | cell |",
}


def spoil(text: str) -> dict[str, Any]:
    """Every field of a record that holds a text which nothing else checks."""
    return {
        "command": [text, text],
        "started": text,
        "machine": {text: text, "cores": 10**300},
        "versions": {text: text},
        "devices": [text],
        "failure": {"message": text, "tensor": text, "traceback": text},
        "initial_weights_sha256": text,
        "data": {"name": text, "sha256": text, "train_examples": 40, "test_examples": 10},
    }


def spoil_all(results: Path, text: str, **changes: Any) -> None:
    """All records on one device, alike, so that they are compared; the others are taken away."""
    for path in (results / "float64").glob("*-[23]dev.*"):
        path.unlink()
    for path in (results / "float64").glob("*.json"):
        config = json.loads(path.read_text())["config"]
        config |= {"preset": text, "init_weights": text}
        edit(path, **{**spoil(text), "config": config, **changes})
