"""The explorer of memory: `docs/_static/explore-memory.js` draws it."""

from notebooks.drawing.explorers import figure


def fragment(assets: str = "_static") -> str:
    """The figure as HTML; `assets` is the address of the folder that has its scripts."""
    return figure(
        "memory",
        "What each device keeps and sends",
        still="",
        controls=[],
        body="",
        data={},
        assets=assets,
    )
