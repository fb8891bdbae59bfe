"""The launching recipes: the same four variables at the top of each, and what each one starts."""

import re
import subprocess
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from common.backends.frameworks import FRAMEWORKS
from common.chapters.chapters import CHAPTERS
from common.settings.arguments import parser

FOLDER: Final = Path(__file__).parents[2] / "launch"
VARIABLES: Final = ["FRAMEWORK", "CHAPTER", "DEVICES", "FLAGS"]
SHELL: Final = ["by_hand.sh", "slurm.sbatch", "torchrun.sh"]
MANIFEST: Final = "kubernetes.yaml"
STARTED: Final = '-m "frameworks.$FRAMEWORK.$CHAPTER" --devices "$DEVICES" $FLAGS'


def text(name: str) -> str:
    return (FOLDER / name).read_text()


def of_shell(name: str) -> dict[str, str]:
    """The first things that a script does: it gives variables, unless they are given, a value."""
    lines = [line for line in text(name).splitlines() if line and not line.startswith("#")]
    return dict(re.findall(r"^([A-Z]+)=\$\{\1:-(.*?)\} *# ", "\n".join(lines[:4]), re.MULTILINE))


@pytest.mark.parametrize("name", SHELL)
def test_a_script_has_the_variables_and_values_of_all(name: str) -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted([*SHELL, MANIFEST])
    subprocess.run(["bash", "-n", FOLDER / name], check=True)
    assert list(of_shell(name)) == VARIABLES
    assert of_shell(name) == of_shell(SHELL[0])
    assert STARTED in " ".join(text(name).replace("\\\n", " ").split())


def test_the_flags_are_flags_of_every_chapter() -> None:
    flags = of_shell(SHELL[0])
    for name, chapter in product(FRAMEWORKS, CHAPTERS):
        parser(name, chapter).parse_args([f"--devices={flags['DEVICES']}", *flags["FLAGS"].split()])


def test_the_manifest_keeps_to_the_schema_and_its_pods_find_each_other() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed here")
    codecs = pytest.importorskip("lightkube.codecs", reason="lightkube is not installed here")
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(text(MANIFEST)))
    assert [each.to_dict() for each in codecs.load_all_yaml(text(MANIFEST))] == documents
    variables, service, job = documents
    assert variables["data"] == of_shell(SHELL[0])
    name, work = job["metadata"]["name"], job["spec"]
    pod = work["template"]["spec"]
    (container,) = pod["containers"]
    assert container["envFrom"] == [{"configMapRef": {"name": variables["metadata"]["name"]}}]
    assert service["spec"]["selector"] == {"job-name": name}
    assert pod["subdomain"] == service["metadata"]["name"]
    assert work["completions"] == work["parallelism"] > 1
    (script,) = container["args"]
    assert f" --coordinator {name}-0.{pod['subdomain']}:" in script
    assert f' --hosts {work["completions"]} --host-rank "$JOB_COMPLETION_INDEX"' in script
    assert STARTED in " ".join(script.replace("\\\n", " ").split())
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
