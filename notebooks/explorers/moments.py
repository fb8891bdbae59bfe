"""A step moment by moment: which device has which part of which tensor, and what it sends."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from common.parallel.ledger import MOVED
from common.parallel.pipelines import Pass, simulate
from common.parallel.plans import Part, Plan
from common.terminal.text import listed

Held = tuple[Part, str]
"""A part of a tensor, and its role.

`kept` from step to step, `gathered` for a moment, `old` until it is replaced, `new` in it; of
gradients, summed over nothing (`own`), the group (`group`) or all devices (`sum`).
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
        return sum(
            part.size(plan.shapes[name])
            for name, devices in self.state[kind].items()
            for part, role in devices[device]
            if role != "new"
        )


class Walk:
    """The moments of a step on so many examples so far."""

    def __init__(self, plan: Plan, examples: int) -> None:
        self.plan, self.made = plan, list[Moment]()
        kept: dict[str, Places] = {
            kind: {name: [[(p, "kept")] if p else [] for p in x] for name, x in layouts.items()}
            for kind, layouts in (("weights", plan.weights), ("momentum", plan.updated))
        }
        empty: Places = {name: [[] for _ in layout] for name, layout in plan.weights.items()}
        self.state = {**kept, "gradients": empty}
        self.inputs = {layer: [0] * plan.devices for layer in plan.layers}
        self.each = "each device" if plan.devices * plan.replicas > 1 else "the device"
        self.role = "sum" if plan.replicas == 1 else "group" if plan.sharded else "own"
        rows = [rows.stop - rows.start for rows in plan.rows_of(examples)]
        parts = [plan.shards_of(here) for here in rows]
        self.count = max(map(len, parts))
        cut = [[x.stop - x.start for x in plan.microbatches_of(here)] for here in rows]
        self.sizes = [sum(x[i] for x in cut if i < len(x)) for i in range(self.count)]

    def note(self, words: str, about: Sequence[str] = (), moved: str = "", **sent: int) -> None:
        """Notes a moment as it is."""
        inputs = {layer: tuple(counts) for layer, counts in self.inputs.items()}
        sent = {kind: size for kind, size in sent.items() if size}
        self.made.append(
            Moment(words, about, sent, moved if sent else "", dict(self.state), inputs)
        )

    def put(
        self,
        kind: str,
        layers: Iterable[str],
        made: Callable[[str, int, Sequence[Held]], Sequence[Held]],
    ) -> None:
        """Puts other parts into the place of some layers."""
        places = dict(self.state[kind])
        for name in (name for layer in layers for name in self.plan.tensors[layer]):
            places[name] = [made(name, i, held) for i, held in enumerate(places[name])]
        self.state[kind] = places

    def wait(self, layers: Iterable[str], change: int, device: int | None = None) -> None:
        for layer in layers:
            for i in range(self.plan.devices) if device is None else [device]:
                self.inputs[layer][i] += change

    def whole(self, name: str) -> Part:
        return Part(0, 0, self.plan.shapes[name][0])

    def own(self, name: str, device: int) -> list[Held]:
        """The gradient that a device updates with."""
        part = self.plan.updated[name][device]
        return [(part, self.role)] if part else []

    def gather(self, layer: str) -> None:
        self.put("weights", [layer], lambda name, _, held: [(self.whole(name), "gathered"), *held])

    def free(self, layer: str) -> None:
        self.put("weights", [layer], lambda _name, _device, held: held[-1:])

    def scatter(self, layers: Sequence[str], words: str) -> None:
        """Notes how whole gradients become slices of their sum, and frees them."""
        self.put("gradients", layers, lambda name, i, held: [*held, *self.own(name, i)])
        self.note(words, layers, "gradients", gradients=self.exchanged(layers))
        self.put("gradients", layers, lambda _name, _device, held: held[1:])

    def exchanged(self, layers: Iterable[str]) -> int:
        """What all groups send to gather, or to scatter, layers once."""
        whole: int = sum(map(self.plan.size, layers))
        return self.plan.replicas * (self.plan.devices - 1) * whole

    def summed(self, i: int, elements: int) -> int:
        """What all-reduces of so many elements for each example of a microbatch send."""
        examples: int = self.sizes[i]
        return 2 * (self.plan.devices - 1) * examples * elements

    def part(self, i: int) -> str:
        return f"Microbatch {i + 1} of {self.count}. " if self.count > 1 else ""

    def forward(self, layer: str, i: int) -> None:
        plan, start = self.plan, f"{self.part(i)}Forward, {layer}: {self.each}"
        self.wait([layer], 1)
        if plan.strategy == "zero3":
            self.gather(layer)
            words = "gathers the slices of its weights from all others, and lets them go as soon as"
            sent = self.exchanged([layer])
            self.note(
                f"{start} {words} it has computed. It keeps the input.",
                [layer],
                "weights",
                weights=sent,
            )
            self.free(layer)
            return
        columns, rows = (list(x) for x in zip(*plan.pairs, strict=True))
        if plan.strategy == "tensor" and layer in rows:
            words = "multiplies the channels that it has by its slice of the weight. The products"
            sent = self.summed(i, plan.output(layer))
            self.note(f"{start} {words} are summed over the devices.", [layer], activations=sent)
            return
        what = "with its own examples and the whole weights"
        if plan.strategy == "tensor":
            some = "some of the channels, all of the same examples"
            what = some if layer in columns else "the whole layer"
        self.note(f"{start} computes {what}. It keeps the input for the backward pass.", [layer])

    def backward(self, layer: str, i: int) -> None:
        plan, start = self.plan, f"{self.part(i)}Backward, {layer}:"
        self.wait([layer], -1)
        if not plan.sharded:
            self.put("gradients", [layer], lambda name, device, _: self.own(name, device))
            columns = [column for column, _ in plan.pairs if column != plan.layers[0]]
            sums = plan.strategy == "tensor" and layer in columns
            sent = self.summed(i, plan.inputs[layer]) if sums else 0
            then = " The gradient of its input is summed over the devices." if sent else ""
            words = f"{start} {self.each} has the gradient of its part of the layer.{then}"
            self.note(words, [layer], gradients=sent)
            return
        # Slices that earlier microbatches have left stay behind the whole gradient.
        self.put(
            "gradients",
            [layer],
            lambda name, _, held: [(self.whole(name), "own"), *(x for x in held if x[1] != "own")],
        )
        again = plan.strategy == "zero3"
        if again:
            self.gather(layer)
        words = f"{'the weights are gathered again; ' * again}{self.each} has the whole gradient"
        sent = self.exchanged([layer]) * again
        self.note(
            f"{start} {words} of the layer, over its own examples.",
            [layer],
            "weights",
            weights=sent,
        )
        if again:
            self.free(layer)
        if plan.strategy != "zero1":
            self.put("gradients", [layer], lambda _name, _device, held: held[:1])
            words = f"{self.part(i)}The gradient of {layer} is scattered: {self.each} adds up its"
            self.scatter(
                [layer], f"{words} slice of all devices’ gradients. Then the whole one is freed."
            )

    def passed(self, one: Pass) -> None:
        """A pass of a pipeline."""
        plan, (at, i, forward), last = self.plan, one, self.plan.devices - 1
        names = plan.stages[at]
        self.wait(names, 1 if forward else -1, at)
        if forward:
            size = 0 if at == last else self.sizes[i] * plan.inputs[plan.stages[at + 1][0]]
            keeps = "the inputs" if len(names) > 1 else "the input"
            said = f"Forward on device {at}: {listed(names)}. It keeps {keeps}."
            said += f" It sends the output to device {at + 1}." if size else ""
            self.note(self.part(i) + said, names, activations=size)
            return
        self.put("gradients", names, lambda name, device, _: self.own(name, device))
        size = self.sizes[i] * plan.inputs[names[0]] if at else 0
        said = f"Backward on device {at}: it has the gradients of {listed(names)}."
        said += f" It sends the gradient of its input to device {at - 1}." if size else ""
        self.note(self.part(i) + said, names, gradients=size)

    def update(self) -> None:
        """Sums over groups, updates, and gathers new weights."""
        plan, layers = self.plan, self.plan.layers
        if plan.replicas > 1:
            self.put(
                "gradients", layers, lambda _name, _device, held: [(x, "sum") for x, _ in held]
            )
            words = (
                "The gradients of all devices are summed on device 0, and the sum is sent back to "
                "all."
                if plan.strategy == "data"
                else "Devices with the same part, one in each group, sum up their gradients."
            )
            updates = sum(map(plan.elements_updated, range(plan.devices)))
            self.note(words, layers, "gradients", gradients=2 * (plan.replicas - 1) * updates)
        gathers = plan.strategy in ("zero1", "zero2")
        if gathers:
            self.put(
                "weights",
                layers,
                lambda name, device, held: [
                    (held[0][0], "old"),
                    *((part, "new") for part, _ in self.own(name, device)),
                ],
            )
        self.note(
            f"Update: {self.each} has new momentum and new weights of its slice; the rest of its "
            "weights is still old."
            if gathers
            else f"Update: {self.each} updates its weights, by momentum and gradient. Nothing is "
            "sent.",
            layers,
        )
        self.put("gradients", layers, lambda *_: [])
        if gathers:
            self.put("weights", layers, lambda _name, _device, held: [(held[0][0], "kept")])
            words = f"The new weights are gathered: {self.each} gets all other slices."
            self.note(words, layers, "weights", weights=self.exchanged(layers))


def moments(plan: Plan, examples: int = 256) -> list[Moment]:
    """The moments of a step of momentum SGD."""
    walk, layers = Walk(plan, examples), plan.layers
    walk.note(f"Before the step: {BEFORE[plan.strategy]}. There are no gradients yet.")
    if plan.strategy == "pipeline":
        for event in simulate(plan.order(walk.count)):
            walk.passed(event.done)
    else:
        for i in range(walk.count):
            for layer in layers:
                walk.forward(layer, i)
            for layer in reversed(layers):
                walk.backward(layer, i)
    if plan.strategy == "zero1":
        words = f"All gradients are scattered: {walk.each} adds up its slices of all devices’"
        walk.scatter(layers, f"{words} gradients. Then the whole ones go.")
    walk.update()
    walk.note("After the step: the gradients are gone, and all is as before, with new values.")
    return walk.made


def sent(moment: Moment) -> int:
    """The elements that all devices send."""
    return sum(moment.sent.get(kind, 0) for kind in MOVED)
