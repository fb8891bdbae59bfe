"""The explorer of pipeline: `docs/_static/explore-pipeline.js` draws it."""

from notebooks.drawing.explorers import figure


def fragment(assets: str = "_static") -> str:
    """The figure as HTML; `assets` is the address of the folder that has its scripts."""
    return figure(
        "pipeline",
        "A pipeline, pass by pass",
        still="",
        controls=[],
        body="",
        data={},
        assets=assets,
    )
