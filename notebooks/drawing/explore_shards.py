"""The explorer of shards: `docs/_static/explore-shards.js` draws it."""

from notebooks.drawing.explorers import figure


def fragment(assets: str = "_static") -> str:
    """The figure as HTML; `assets` is the address of the folder that has its scripts."""
    return figure(
        "shards",
        "Which device has what",
        still="",
        controls=[],
        body="",
        data={},
        assets=assets,
    )
