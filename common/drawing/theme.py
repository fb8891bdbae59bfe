"""The colours of pictures, light or dark: the reader's system chooses, or a page."""

from typing import Final

COLOURS: Final = {
    "card": ("#ffffff", "#1c2128"),
    "ink": ("#1b1f24", "#e8eaed"),
    "muted": ("#57606a", "#a9b1bc"),
    "line": ("#8c959f", "#6e7883"),
    "edge": ("#d0d7de", "#3b434d"),
    "sum": ("#0b62a8", "#6cb4ee"),
    "on-sum": ("#ffffff", "#10151b"),
    "sent": ("#b84a00", "#ff9d5c"),
    "data": ("#00795a", "#4cc9a0"),
}
"""By part: the colour on light pages and on dark ones. Blue, orange and green stay apart
for colour-blind readers (Okabe and Ito's hues); shape or text differs, too."""

RULES: Final = {
    "card": "fill:{card};stroke:{edge}",
    "frame": "fill:none;stroke:{line}",
    "ghost": "fill:none;stroke:{line};stroke-dasharray:3 3",
    "rule": "fill:none;stroke:{edge}",
    "cell": "fill:{sum};stroke:{line}",
    "given": "fill:none;stroke:{sent};stroke-width:1",
    "got": "fill:none;stroke:{sent};stroke-width:2.2",
    "data": "fill:{data};stroke:none",
    "data-cell": "fill:{data};stroke:{line}",
    "sent-cell": "fill:{sent};stroke:{line}",
    "bar": "fill:{card};stroke:{sent};stroke-width:1.6",
    "flow": "fill:none;stroke:{muted};stroke-width:1.5",
    "flow-head": "fill:{muted};stroke:none",
    "adds": "fill:none;stroke:{sent};stroke-width:1.6",
    "copies": "fill:none;stroke:{sent};stroke-width:1.6;stroke-dasharray:4 2.5",
    "head": "fill:{sent};stroke:none",
    "ink": "fill:{ink}",
    "muted": "fill:{muted}",
    "on-sum": "fill:{on-sum}",
    "sent": "fill:{sent}",
    "bold": "font-weight:600",
}
"""By class, without its prefix: how it is drawn."""

FONT: Final = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif'


def style() -> str:
    """The style sheet of pictures; every rule names the class `picture`."""
    light, dark = (
        ";".join(f"--pic-{name}:{pair[i]}" for name, pair in COLOURS.items()) for i in (0, 1)
    )
    return "\n".join(
        [
            f".picture{{{light}}}",
            f"@media (prefers-color-scheme:dark){{.picture{{{dark}}}}}",
            f".picture text{{font-family:{FONT};{_rule(RULES['ink'])}}}",
            *(f".picture .pic-{name}{{{_rule(rule)}}}" for name, rule in RULES.items()),
        ]
    )


def _rule(template: str) -> str:
    """A rule, first in light colours, for viewers without custom properties."""
    plain = template.format_map({name: light for name, (light, _) in COLOURS.items()})
    themed = template.format_map({name: f"var(--pic-{name})" for name in COLOURS})
    pairs = zip(plain.split(";"), themed.split(";"), strict=True)
    return ";".join([plain, *(new for old, new in pairs if old != new)])
