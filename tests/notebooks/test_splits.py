"""Steps that cells take: what they moved and kept, in a table beside what the plan says."""

from dataclasses import replace

import numpy as np

from common.chapters.strategies import StrategiesOptions
from common.parallel.ledger import Event
from notebooks.classroom.splits import Steps, passes, side_by_side


def test_predicted_and_counted_stand_side_by_side() -> None:
    options = StrategiesOptions("pipeline", microbatches=2)
    usage = options.usage(2, 10, 4)
    found = Steps(options.plan(2), [2.0, 1.0], {"w": np.array([1.0, 2.0])}, usage, usage, [])
    messages = replace(found.counted, messages=[2, 7])
    lines = side_by_side(replace(found, counted=messages)).splitlines()
    cells = {line[:18].strip(): line[18:].replace("|", "").split() for line in lines}
    assert cells["bytes"] == ["predicted", "counted"]
    assert cells[""] == ["device", "0", "device", "1"] * 2
    assert cells["messages"] == ["2", "2", "2", "7"]
    cut = f"{10 * 3380 * 4:,}"
    assert cells["sends activations"] == [cut, "0"] * 2
    assert cells["keeps weights"] == ["800", "515,472"] * 2
    assert "sends weights" not in cells  # nothing of it is sent
    assert len({line.index("|") for line in lines}) == 1
    assert found.apart(replace(found, weights={"w": np.array([1.5, 1.75])})) == 0.5


def test_passes_are_in_the_order_in_which_a_device_did_them() -> None:
    events = [Event(0, "forward", 0, 0, 1), Event(1, "forward", 0, 1, 2)]
    events += [Event(0, "forward", 1, 1, 2), Event(0, "backward", 0, 3, 4)]
    assert passes(events, 0) == "F0 F1 B0"
