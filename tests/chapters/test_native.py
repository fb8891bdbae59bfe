"""Every way to split that a framework has of its own, against NumPy on one device."""

from pathlib import Path

import pytest
from native_steps import CASES, Trained, cases, require_right
from safetensors.numpy import load_file

from common.backends.devices import DeviceRequest
from common.backends.frameworks import NO_NATIVE
from common.backends.loading import backend
from common.base.errors import RequestError
from common.chapters.strategies import SCHEDULES, STRATEGIES, StrategiesOptions

LIMIT = 1e-12


@pytest.mark.parametrize("devices", [1, 3, 4])
def test_it_does_what_one_device_does_and_resumes_to_the_same_bits(
    framework: str, devices: int, tmp_path: Path
) -> None:
    chapter = backend(framework, "strategies")
    request = DeviceRequest(devices, "cpu", 1)
    chapter.launch(Trained(framework, devices, tmp_path), request, CASES["data"])
    for name, options in cases(framework, devices).items():
        require_right(load_file(tmp_path / f"{name}.safetensors"), options, LIMIT)


def test_what_a_framework_lacks_is_refused_in_a_line(framework: str) -> None:
    chapter = backend(framework, "strategies")
    for lacking, why in NO_NATIVE[framework].items():
        order = lacking if lacking in SCHEDULES else "gpipe"
        strategy = lacking if lacking in STRATEGIES else "pipeline"
        options = StrategiesOptions(strategy, native=True, schedule=order)
        with pytest.raises(RequestError, match=f"^--native --strategy {options.strategy}: {why}$"):
            chapter.launch(print, DeviceRequest(2, "cpu", 1), options)
