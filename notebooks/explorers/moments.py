"""A step moment by moment: which device has which part of which tensor, and what it sends."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from common.parallel.pipelines import Pass, simulate
from common.parallel.plans import Part, Plan
from common.terminal.text import listed

Held = tuple[Part, str]
"""A part of a tensor, and its role.

`kept` from step to step, `gathered` for a moment, `old` until it is replaced, `new` in it; of
gradients, a device's `own`, or the `sum` over devices.
"""

Places = Mapping[str, Sequence[Sequence[Held]]]
"""By tensor and device of a group: what it holds. All groups hold the same."""

STATE: Final = ("weights", "gradients", "momentum")

BEFORE: Final = {
    "data": "each device has all weights and their momentum",
    "pipeline": "a device has some layers, with their momentum",
    "tensor": "a device has a slice of almost every layer, with its momentum",
    "zero1": "each device has all weights, and the momentum of a slice",
    "zero2": "each device has all weights, and the momentum of a slice",
    "zero3": "each device has a slice of the weights, and its momentum",
}


@dataclass(frozen=True)
class Moment:
    """What happens in words, the layers that it is about, what is held, and what is sent.

    `sent` are elements of all devices by kind, `moved` is the kind of the state that has just
    come. `inputs` counts, by layer and device, those kept for the backward pass.
    """

    words: str
    about: Sequence[str]
    sent: Mapping[str, int]
    moved: str
    state: Mapping[str, Places]
    inputs: Mapping[str, Sequence[int]]

    def held(self, plan: Plan, kind: str, device: int) -> int:
        """The elements that a device holds of a kind."""
        every = ((name, devices[device]) for name, devices in self.state[kind].items())
        parts = ((name, part) for name, held in every for part, role in held if role != "new")
        return sum(part.size(plan.shapes[name]) for name, part in parts)


class Walk:
    """The moments of a step so far, of one replica or by data parallelism."""

    def __init__(self, plan: Plan, examples: int) -> None:
        self.plan, self.made = plan, list[Moment]()
        kept: dict[str, Places] = {
            kind: {name: [[(p, "kept")] if p else [] for p in x] for name, x in layouts.items()}
            for kind, layouts in (("weights", plan.weights), ("momentum", plan.updated))
        }
        self.state = {**kept, "gradients": {name: [[]] * plan.devices for name in plan.shapes}}
        self.inputs = {layer: [0] * plan.devices for layer in plan.layers}
        here = plan.rows_of(examples)[0].stop
        self.count = len(plan.shards_of(here))
        self.sizes = [rows.stop - rows.start for rows in plan.microbatches_of(here)]
        self.tensor = plan.strategy == "tensor"
        self.others = plan.devices - 1

    def note(self, words: str, about: Sequence[str] = (), moved: str = "", **sent: int) -> None:
        """Notes a moment as it is."""
        inputs = {layer: tuple(counts) for layer, counts in self.inputs.items()}
        sent = {kind: size for kind, size in sent.items() if size}
        state, moved = dict(self.state), moved if sent else ""
        self.made.append(Moment(words, about, sent, moved, state, inputs))

    def put(
        self, kind: str, layers: Iterable[str], made: Callable[[str, int], Sequence[Held]]
    ) -> None:
        """Puts other parts into the place of some layers, for each tensor and device."""
        names = [name for layer in layers for name in self.plan.tensors[layer]]
        new = {name: [made(name, i) for i in range(self.plan.devices)] for name in names}
        self.state[kind] = {**self.state[kind], **new}

    def wait(self, layers: Iterable[str], change: int, devices: Iterable[int]) -> None:
        for layer in layers:
            for device in devices:
                self.inputs[layer][device] += change

    def whole(self, name: str, role: str) -> Held:
        return Part(0, 0, self.plan.shapes[name][0]), role

    def own(self, name: str, device: int, role: str = "sum") -> list[Held]:
        """The part that a device updates."""
        part = self.plan.updated[name][device]
        return [(part, role)] if part else []

    def size(self, layers: Iterable[str]) -> int:
        """What all devices send to gather, or to scatter, layers once."""
        return self.others * sum(map(self.plan.size, layers))

    def gathered(self, layer: str, words: str) -> None:
        """Notes how ZeRO-3 gathers weights, and frees them."""
        before = self.state["weights"]
        self.put("weights", [layer], lambda x, i: [self.whole(x, "gathered"), *before[x][i]])
        self.note(words, [layer], "weights", weights=self.size([layer]))
        self.state["weights"] = before

    def scattered(self, layers: Sequence[str], words: str) -> None:
        """Notes how whole gradients become slices of their sum, and frees them."""
        self.put("gradients", layers, lambda x, i: [self.whole(x, "own"), *self.own(x, i)])
        self.note(words, layers, "gradients", gradients=self.size(layers))
        self.put("gradients", layers, self.own)

    def forward(self, layer: str, part: str, size: int) -> None:
        """A layer's forward pass of a microbatch of this size."""
        start = f"{part}Forward, {layer}: each device"
        self.wait([layer], 1, range(self.plan.devices))
        columns, rows = (list(x) for x in zip(*self.plan.pairs, strict=True))
        if self.plan.strategy == "zero3":
            self.gathered(layer, f"{start} gathers the weights, computes, and lets them go.")
        elif self.tensor and layer in rows:
            words = f"{start} multiplies the channels that it has. Sums go over all devices."
            sums = 2 * self.others * size * self.plan.output(layer)
            self.note(words, [layer], activations=sums)
        elif self.tensor:
            what = "some of the channels" if layer in columns else "the whole layer"
            self.note(f"{start} computes {what}, of the same examples.", [layer])
        else:
            self.note(f"{start} computes with its own examples and the whole weights.", [layer])

    def backward(self, layer: str, part: str, size: int) -> None:
        plan, start = self.plan, f"{part}Backward, {layer}: each device has"
        self.wait([layer], -1, range(plan.devices))
        if not plan.sharded:
            role = "own" if plan.replicas > 1 else "sum"
            self.put("gradients", [layer], lambda x, i: self.own(x, i, role))
            columns = [column for column, _ in plan.pairs if column != plan.layers[0]]
            sums = 2 * self.others * size * plan.inputs[layer]
            sums *= self.tensor and layer in columns
            then = " That of its input is summed over the devices." * bool(sums)
            words = f"{start} the gradient of its part.{then}"
            self.note(words, [layer], gradients=sums)
            return
        # Slices that earlier microbatches have left stay beside the whole gradient.
        before = self.state["gradients"]
        self.put(
            "gradients",
            [layer],
            lambda x, i: [self.whole(x, "own"), *(h for h in before[x][i] if h[1] == "sum")],
        )
        words = f"{start} the whole gradient, over its own examples."
        if plan.strategy == "zero3":
            self.gathered(layer, f"{words} The weights are gathered again.")
        else:
            self.note(words, [layer])
        if plan.strategy != "zero1":
            what = f"{part}The gradient of {layer} is scattered"
            self.scattered([layer], f"{what}: each device sums its slice. The rest is freed.")

    def passed(self, one: Pass) -> None:
        """A pass of a pipeline."""
        plan, (at, i, forward) = self.plan, one
        names, to = plan.stages[at], at + 1 if forward else at - 1
        part = f"Microbatch {i + 1} of {self.count}. " * (self.count > 1)
        start = f"{part}{'Forward' if forward else 'Backward'} on device {at}: {listed(names)}."
        self.wait(names, 1 if forward else -1, [at])
        if not forward:
            self.put("gradients", names, self.own)
        ends = 0 <= to < plan.devices
        size = self.sizes[i] * plan.inputs[plan.stages[max(at, to)][0]] if ends else 0
        what = "It keeps the inputs" if forward else "It has their gradients"
        sends = f", and sends its {'output' if forward else 'input’s'} to device {to}" * ends
        activations, gradients = (size, 0) if forward else (0, size)
        words = f"{start} {what}{sends}."
        self.note(words, names, activations=activations, gradients=gradients)

    def update(self) -> None:
        """Sums over replicas, updates, and gathers new weights."""
        plan, layers = self.plan, self.plan.layers
        if plan.replicas > 1:
            self.put("gradients", layers, self.own)
            sums = 2 * (plan.replicas - 1) * plan.elements_updated(0)
            words = "Device 0 sums the gradients of all devices, and sends the sum to all."
            self.note(words, layers, "gradients", gradients=sums)
        if plan.strategy not in ("zero1", "zero2"):
            self.note("Update: each device updates its weights. Nothing is sent.", layers)
            self.put("gradients", layers, lambda *_: [])
            return
        before = self.state["weights"]
        self.put("weights", layers, lambda x, i: [self.whole(x, "old"), *self.own(x, i, "new")])
        words = "Update: each device has new weights of its slice; the rest is still old."
        self.note(words, layers)
        self.put("gradients", layers, lambda *_: [])
        self.state["weights"] = before
        words = "The new weights are gathered: each device gets all other slices."
        self.note(words, layers, "weights", weights=self.size(layers))


def moments(plan: Plan, examples: int = 256) -> list[Moment]:
    """The moments of a step of momentum SGD; replicas only by data parallelism."""
    walk, layers = Walk(plan, examples), plan.layers
    walk.note(f"Before the step: {BEFORE[plan.strategy]}. There are no gradients yet.")
    if plan.strategy == "pipeline":
        for event in simulate(plan.order(walk.count)):
            walk.passed(event.done)
    else:
        for i, size in enumerate(walk.sizes[: walk.count]):
            part = f"Microbatch {i + 1} of {walk.count}. " * (walk.count > 1)
            for layer in layers:
                walk.forward(layer, part, size)
            for layer in reversed(layers):
                walk.backward(layer, part, size)
    if plan.strategy == "zero1":
        words = "All gradients are scattered: each device sums its slices. The rest is freed."
        walk.scattered(layers, words)
    walk.update()
    walk.note("After the step: the gradients are gone, and all is as before, with new values.")
    return walk.made
