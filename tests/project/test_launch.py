"""The launching recipes."""

import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "launch"


def test_a_recipe_is_short_and_has_no_error_of_syntax() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {
        *("torchrun.sh", "slurm.sbatch", "kubernetes.yaml")
    }
    for path in FOLDER.iterdir():
        assert len(path.read_text().splitlines()) <= 15, path
        if path.suffix != ".yaml":
            subprocess.run(["bash", "-n", path], check=True)


def test_the_manifest_starts_torchrun_in_pods_that_find_each_other() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed here")
    codecs = pytest.importorskip("lightkube.codecs", reason="lightkube is not installed here")
    text = (FOLDER / "kubernetes.yaml").read_text()
    service, job = yaml.safe_load_all(text)
    assert [resource.to_dict() for resource in codecs.load_all_yaml(text)] == [service, job]
    name, work = job["metadata"]["name"], job["spec"]
    pod = work["template"]["spec"]
    assert service["spec"]["selector"] == {"job-name": name}
    assert pod["subdomain"] == service["metadata"]["name"]
    assert work["completions"] == work["parallelism"] == 2
    command = pod["containers"][0]["command"]
    assert command[:3] == ["launch/torchrun.sh", f"{name}-0.{pod['subdomain']}:29400", "2"]
