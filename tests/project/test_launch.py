"""The launching recipes, and the command that each starts."""

import re
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from common.backends.frameworks import FRAMEWORKS
from common.chapters.chapters import CHAPTERS
from common.settings.arguments import parser

FOLDER = Path(__file__).parents[2] / "launch"
SHELL = ["by_hand.sh", "slurm.sbatch", "torchrun.sh"]
MANIFEST = "kubernetes.yaml"
STARTED = '-m "frameworks.$FRAMEWORK.$CHAPTER" --devices "$DEVICES" $FLAGS'


def variables(name: str) -> dict[str, str]:
    """The variables at the top of a script, with their defaults."""
    lines = (FOLDER / name).read_text().splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    return dict(re.findall(r"^([A-Z]+)=\$\{\1:-(.*?)\} *# ", "\n".join(lines[:4]), re.MULTILINE))


@pytest.mark.parametrize("name", SHELL)
def test_a_script_has_the_variables_of_all_and_starts_a_chapter(name: str) -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*SHELL, MANIFEST}
    subprocess.run(["bash", "-n", FOLDER / name], check=True)
    defaults = variables(name)
    assert list(defaults) == ["FRAMEWORK", "CHAPTER", "DEVICES", "FLAGS"]
    assert defaults == variables(SHELL[0])
    assert STARTED in " ".join((FOLDER / name).read_text().replace("\\\n", " ").split())
    for framework, chapter in product(FRAMEWORKS, CHAPTERS):
        flags = [f"--devices={defaults['DEVICES']}", *defaults["FLAGS"].split()]
        parser(framework, chapter).parse_args(flags)


def test_the_manifest_keeps_to_the_schema_and_its_pods_find_each_other() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed here")
    codecs = pytest.importorskip("lightkube.codecs", reason="lightkube is not installed here")
    text = (FOLDER / MANIFEST).read_text()
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(text))
    assert [resource.to_dict() for resource in codecs.load_all_yaml(text)] == documents
    settings, service, job = documents
    assert settings["data"] == variables(SHELL[0])
    name, work = job["metadata"]["name"], job["spec"]
    pod = work["template"]["spec"]
    (container,) = pod["containers"]
    assert container["envFrom"] == [{"configMapRef": {"name": settings["metadata"]["name"]}}]
    assert service["spec"]["selector"] == {"job-name": name}
    assert pod["subdomain"] == service["metadata"]["name"]
    assert work["completions"] == work["parallelism"] > 1
    (script,) = container["args"]
    assert f" --coordinator {name}-0.{pod['subdomain']}:" in script
    assert f' --hosts {work["completions"]} --host-rank "$JOB_COMPLETION_INDEX"' in script
    assert STARTED in " ".join(script.replace("\\\n", " ").split())
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
