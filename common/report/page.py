"""The verdict as a page: one file that runs nothing and fetches nothing."""

from collections.abc import Sequence
from pathlib import Path

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import printable
from common.chapters.spec import CHAPTERS, spec
from common.compare.findings import Verdict
from common.diagnose.suspects import Suspect
from common.report.text import columns, conclusion, describe, not_run, rows, subtitle


def page(verdict: Verdict, accused: Sequence[Suspect]) -> str:
    """The page as HTML; whatever comes from a file is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else printable(str(value)),
    )
    words = (columns, conclusion, describe, not_run, rows, subtitle)
    environment.globals |= {function.__name__: function for function in words}
    innocent = {x.framework for x in verdict.checks} - {x.framework for x in accused}
    return environment.get_template("parity.html").render(
        verdict=verdict,
        suspects=accused,
        innocent=[name for name in FRAMEWORKS if name in innocent],
        nets={name: spec(name).heading for name in CHAPTERS},
    )
