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


def documents(manifest: str = "") -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed here")
    return list(yaml.safe_load_all(manifest or text(MANIFEST)))


def test_every_recipe_is_known() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted([*SHELL, MANIFEST])


@pytest.mark.parametrize("name", SHELL)
def test_a_script_is_right_and_short(name: str) -> None:
    subprocess.run(["bash", "-n", FOLDER / name], check=True)
    assert text(name).startswith("#!/bin/bash\n# Trains over ")
    assert len(text(name).splitlines()) <= 30
    assert bool((FOLDER / name).stat().st_mode & 0o100) == name.endswith(".sh")


@pytest.mark.parametrize("name", SHELL)
def test_scripts_have_the_same_variables_and_values(name: str) -> None:
    assert list(of_shell(name)) == VARIABLES
    assert of_shell(name) == of_shell(SHELL[0])


def test_the_manifest_has_the_variables_of_the_scripts() -> None:
    assert list(documents()[0]["data"]) == VARIABLES
    assert documents()[0]["data"] == of_shell(SHELL[0])
    variables = "|".join(VARIABLES)
    assert re.findall(f"^  ({variables}): .* # ", text(MANIFEST), re.MULTILINE) == VARIABLES


@pytest.mark.parametrize("name", [*SHELL, MANIFEST])
def test_every_recipe_starts_the_chapter_with_all_that_is_given(name: str) -> None:
    """So that a change of a variable reaches the run, whichever framework and chapter it names."""
    joined = " ".join(text(name).replace("\\\n", " ").split())
    assert '-m "frameworks.$FRAMEWORK.$CHAPTER" --devices "$DEVICES" $FLAGS' in joined


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.parametrize("chapter", ["scratch", "concise"])
def test_the_flags_are_flags_of_every_chapter(name: str, chapter: str) -> None:
    flags = of_shell(SHELL[0])
    given = [f"--devices={flags['DEVICES']}", *flags["FLAGS"].split()]
    parser(name, chapter).parse_args(given)


def known_to_kubernetes(manifest: str) -> list[dict[str, Any]]:
    """What the schema of Kubernetes knows of a manifest; ValueError if it does not allow it."""
    codecs = pytest.importorskip("lightkube.codecs", reason="lightkube is not installed here")
    return [each.to_dict() for each in codecs.load_all_yaml(manifest)]


def test_the_manifest_keeps_to_the_schema_of_kubernetes() -> None:
    assert known_to_kubernetes(text(MANIFEST)) == documents()
    misspelled = text(MANIFEST).replace("subdomain:", "subDomain:")
    assert known_to_kubernetes(misspelled) != documents(misspelled)
    for right, wrong in (("parallelism: 2", "parallelism: two"), ("template:", "templates:")):
        with pytest.raises(ValueError, match=r"Expected `int|missing required field `template`"):
            known_to_kubernetes(text(MANIFEST).replace(right, wrong))


def test_the_pods_of_the_manifest_find_each_other() -> None:
    variables, service, job = documents()
    name, work = job["metadata"]["name"], job["spec"]
    pod = work["template"]["spec"]
    (container,) = pod["containers"]
    assert [each["kind"] for each in documents()] == ["ConfigMap", "Service", "Job"]
    assert container["envFrom"] == [{"configMapRef": {"name": variables["metadata"]["name"]}}]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": name}
    assert pod["subdomain"] == service["metadata"]["name"]
    assert work["completionMode"] == "Indexed"
    assert work["completions"] == work["parallelism"] > 1
    assert pod["restartPolicy"] == "Never"
    first = f"{name}-0.{service['metadata']['name']}"
    assert container["command"] == ["sh", "-c"]
    assert re.search(f" --coordinator {first}:[0-9]+ ", container["args"][0])
    assert f" --hosts {work['completions']} " in container["args"][0]
    assert container["args"][0].endswith(' --host-rank "$JOB_COMPLETION_INDEX"')
    subprocess.run(["sh", "-n"], input=container["args"][0], text=True, check=True)
