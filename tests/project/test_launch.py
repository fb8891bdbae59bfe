"""The launching recipes: the same four variables at the top of each, and what each one starts."""

import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from common.backends.frameworks import FRAMEWORKS
from common.settings.arguments import parser

FOLDER: Final = Path(__file__).parents[2] / "launch"
VARIABLES: Final = ["FRAMEWORK", "CHAPTER", "DEVICES", "FLAGS"]
SHELL: Final = ["by_hand.sh", "slurm.sbatch", "torchrun.sh"]
MANIFEST: Final = "kubernetes.yaml"


def text(name: str) -> str:
    return (FOLDER / name).read_text()


def of_shell(name: str) -> dict[str, str]:
    """The first things that a script does: it gives variables, unless they are given, a value."""
    lines = [line for line in text(name).splitlines() if line and not line.startswith("#")]
    found = [re.fullmatch(r"([A-Z]+)=\$\{\1:-(.*?)\} *# .*", line) for line in lines[:4]]
    return {each[1]: each[2] for each in found if each}


@pytest.mark.parametrize("name", SHELL)
def test_a_script_has_the_variables_and_values_of_all(name: str) -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted([*SHELL, MANIFEST])
    subprocess.run(["bash", "-n", FOLDER / name], check=True)
    assert list(of_shell(name)) == VARIABLES
    assert of_shell(name) == of_shell(SHELL[0])
    assert bool((FOLDER / name).stat().st_mode & 0o100) == name.endswith(".sh")


@pytest.mark.parametrize("name", [*SHELL, MANIFEST])
def test_every_recipe_starts_the_chapter_with_all_that_is_given(name: str) -> None:
    """So that a change of a variable reaches the run, whichever framework and chapter it names."""
    joined = " ".join(text(name).replace("\\\n", " ").split())
    assert '-m "frameworks.$FRAMEWORK.$CHAPTER" --devices "$DEVICES" $FLAGS' in joined


def test_the_flags_are_flags_of_every_chapter() -> None:
    flags = of_shell(SHELL[0])
    given = [f"--devices={flags['DEVICES']}", *flags["FLAGS"].split()]
    for name in FRAMEWORKS:
        for chapter in ("scratch", "concise"):
            parser(name, chapter).parse_args(given)


def test_the_manifest_keeps_to_the_schema_of_kubernetes_and_its_pods_find_each_other() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed here")
    codecs = pytest.importorskip("lightkube.codecs", reason="lightkube is not installed here")
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(text(MANIFEST)))
    assert [each.to_dict() for each in codecs.load_all_yaml(text(MANIFEST))] == documents
    variables, service, job = documents
    assert list(variables["data"]) == VARIABLES
    assert variables["data"] == of_shell(SHELL[0])
    name, work = job["metadata"]["name"], job["spec"]
    pod = work["template"]["spec"]
    (container,) = pod["containers"]
    assert [each["kind"] for each in documents] == ["ConfigMap", "Service", "Job"]
    assert container["envFrom"] == [{"configMapRef": {"name": variables["metadata"]["name"]}}]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": name}
    assert pod["subdomain"] == service["metadata"]["name"]
    assert work["completionMode"] == "Indexed"
    assert work["completions"] == work["parallelism"] > 1
    assert pod["restartPolicy"] == "Never"
    first = f"{name}-0.{service['metadata']['name']}"
    assert container["command"] == ["sh", "-c"]
    (script,) = container["args"]
    assert re.search(f" --coordinator {first}:[0-9]+ ", script)
    assert f" --hosts {work['completions']} " in script
    assert script.endswith(' --host-rank "$JOB_COMPLETION_INDEX"')
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
