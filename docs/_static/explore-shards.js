// Which device has which part of which weight, gradient and momentum, moment by moment of a step.
// A moment has what happens in words, the layers that it is about, what is held, what is sent, and
// the inputs of layers that are kept for the backward pass.
globalThis.moments = (() => {
  "use strict";

  const { range, sum, sizeOf } = plans;
  const EXAMPLES = 256;

  const whole = (shape) => ({ axis: 0, start: 0, stop: shape[0] });
  const listed = (names) =>
    names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];

  // What one group of devices holds; all groups hold the same. A place has parts of a tensor, each
  // with a role: `kept` from step to step, `gathered` for a moment, `old` until it is replaced, or,
  // of gradients, summed over nothing (`own`), over this group (`group`) or over all (`sum`).
  class Held {
    constructor(plan) {
      const layout = (layouts, role) => (name, device) => {
        const part = layouts[name][device];
        return part ? [{ part, role }] : [];
      };
      this.plan = plan;
      this.state = {
        weights: this.filled(layout(plan.weights, "kept")),
        gradients: this.filled(() => []),
        momentum: this.filled(layout(plan.updated, "kept")),
      };
    }

    filled(made) {
      return Object.fromEntries(Object.keys(this.plan.shapes).map((name) =>
        [name, range(this.plan.devices).map((device) => made(name, device))]));
    }

    // Puts other parts into the place of some layers; what others hold stays as it is.
    put(kind, layers, made) {
      const places = { ...this.state[kind] };
      for (const name of layers.flatMap(this.plan.tensors))
        places[name] = places[name].map((parts, device) => made(name, device, parts));
      this.state = { ...this.state, [kind]: places };
    }

    // How many numbers a device holds of a kind.
    size(kind, device) {
      return sum(Object.entries(this.state[kind]).flatMap(([name, devices]) => devices[device]
        .map(({ part, within }) => within ? 0 : sizeOf(part, this.plan.shapes[name]))));
    }
  }

  function moments(plan) {
    const k = plan.devices, zero = plan.strategy.startsWith("zero"), { layers } = plan;
    const groups = plan.replicas > 1, made = [], held = new Held(plan), every = range(k);
    const each = k * plan.replicas > 1 ? "each device" : "the device";
    const role = !groups ? "sum" : zero ? "group" : "own"; // of the gradients that a device updates
    const inputs = Object.fromEntries(layers.map((layer) => [layer, Array(k).fill(0)]));
    const rows = plan.rowsOf(EXAMPLES).map(([start, stop]) => stop - start);
    const count = Math.max(...rows.map((here) =>
      zero ? plan.shardsOf(here).length : plan.microbatchesOf(here).length));
    const sizes = range(count).map((i) => sum(rows.map((here) => {
      const [start, stop] = plan.microbatchesOf(here)[i] ?? [0, 0];
      return stop - start;
    })));

    // Notes a moment: `sent` are numbers that all devices send; `moved`, kinds that arrive.
    function note(phase, words, about = [], { sent = {}, moved = "" } = {}) {
      const used = Object.fromEntries(Object.entries(sent).filter(([, size]) => size));
      made.push({ phase, words, about, sent: used, moved: Object.keys(used).length ? moved : "",
        state: held.state, inputs: Object.fromEntries(
          layers.map((layer) => [layer, [...inputs[layer]]])),
        held: range(k).map((device) => Object.fromEntries(
          Object.keys(held.state).map((kind) => [kind, held.size(kind, device)]))) });
    }

    // What all groups send to gather, or to scatter, layers once.
    const exchanged = (names) =>
      plan.replicas * (k - 1) * sum(names.map((layer) => plan.size(layer)));
    const wait = (layer, devices, change) =>
      devices.forEach((i) => { inputs[layer][i] += change; });
    const part = (i) => count > 1 ? `Microbatch ${i + 1} of ${count}. ` : "";

    const gather = (layer) => held.put("weights", [layer], (name, _, parts) =>
      [{ part: whole(plan.shapes[name]), role: "gathered" }, ...parts]);
    const letGo = (layer) => held.put("weights", [layer], (_, device, parts) => parts.slice(-1));
    const add = (names) => held.put("gradients", names, (name, device) => {
      const own = plan.updated[name][device];
      return own ? [{ part: own, role }] : [];
    });
    const addWhole = (layer) => held.put("gradients", [layer], (name, _, parts) =>
      [{ part: whole(plan.shapes[name]), role: "own" }, ...parts.filter((x) => x.role !== "own")]);
    const addSlices = (names) => held.put("gradients", names, (name, device, parts) =>
      [...parts.filter((each) => each.role === "own"), { part: plan.updated[name][device], role }]);
    const leaveSlices = (names) => held.put("gradients", names, (_, device, parts) =>
      parts.filter((each) => each.role !== "own"));

    const pairOf = (layer, place) => plan.pairs.find((pair) => pair[place] === layer);

    function forward(layer, i) {
      wait(layer, every, 1);
      if (plan.strategy === "zero3") {
        gather(layer);
        note("forward", `${part(i)}Forward, ${layer}: ${each} gathers the slices of its weights ` +
          "from all others, and lets them go as soon as it has computed. It keeps the input.",
        [layer], { sent: { weights: exchanged([layer]) }, moved: "weights" });
        return letGo(layer);
      }
      if (plan.strategy === "tensor" && pairOf(layer, 1)) {
        const size = 2 * (k - 1) * sizes[i] * plan.output(layer);
        return note("forward", `${part(i)}Forward, ${layer}: ${each} multiplies the channels ` +
          "that it has by its slice of the weight. The products are summed over the devices.",
        [layer], { sent: { activations: size } });
      }
      const what = plan.strategy !== "tensor" ? "with its own examples and the whole weights"
        : pairOf(layer, 0) ? "some of the channels, all of the same examples" : "the whole layer";
      return note("forward", `${part(i)}Forward, ${layer}: ${each} computes ${what}. ` +
        "It keeps the input for the backward pass.", [layer]);
    }

    function backward(layer, i) {
      wait(layer, every, -1);
      if (!zero) {
        add([layer]);
        const first = plan.strategy === "tensor" && pairOf(layer, 0) && layer !== layers[0];
        const size = first ? 2 * (k - 1) * sizes[i] * plan.inputs[layer] : 0;
        const then = size ? " The gradient of its input is summed over the devices." : "";
        return note("backward", `${part(i)}Backward, ${layer}: ${each} has the gradient of its ` +
          `part of the layer.${then}`, [layer], { sent: { gradients: size } });
      }
      addWhole(layer);
      const again = plan.strategy === "zero3";
      if (again) gather(layer);
      const first = again ? "the weights are gathered again; " : "";
      note("backward", `${part(i)}Backward, ${layer}: ${first}${each} has ` +
        "the whole gradient of the layer, over its own examples.", [layer],
      again ? { sent: { weights: exchanged([layer]) }, moved: "weights" } : {});
      if (again) letGo(layer);
      if (plan.strategy === "zero1") return undefined;
      addSlices([layer]);
      note("backward", `${part(i)}The gradient of ${layer} is scattered: ${each} adds up its ` +
        "slice of all devices’ gradients. Then the whole gradient is freed.", [layer],
      { sent: { gradients: exchanged([layer]) }, moved: "gradients" });
      return leaveSlices([layer]);
    }

    function pass({ stage: at, microbatch: i, forward: ahead }) {
      const names = plan.stages[at], last = at === k - 1;
      for (const layer of names) wait(layer, [at], ahead ? 1 : -1);
      if (!ahead) add(names);
      const size = ahead ? last ? 0 : sizes[i] * plan.inputs[plan.stages[at + 1][0]]
        : at ? sizes[i] * plan.inputs[names[0]] : 0;
      const kind = ahead ? "activations" : "gradients";
      const next = size ? ` It sends the output to device ${ahead ? at + 1 : at - 1}.` : "";
      const keeps = names.length > 1 ? "the inputs" : "the input";
      note(ahead ? "forward" : "backward", ahead
        ? `${part(i)}Forward on device ${at}: ${listed(names)}. It keeps ${keeps}.${next}`
        : `${part(i)}Backward on device ${at}: it has the gradients of ${listed(names)}.` +
          (size ? ` It sends the gradient of its input to device ${at - 1}.` : ""), names,
      { sent: { [kind]: size } });
    }

    note("before", "Before the step: " + {
      data: "each device has all weights and their momentum.",
      pipeline: "a device has some layers, with their momentum.",
      tensor: "a device has a slice of almost every layer, with its momentum.",
      zero1: "each device has all weights, and the momentum of a slice.",
      zero2: "each device has all weights, and the momentum of a slice.",
      zero3: "each device has a slice of the weights, and its momentum.",
    }[plan.strategy] + " There are no gradients yet.");

    if (plan.strategy === "pipeline")
      pipelines.simulate(plan.order(count), () => 1).forEach(pass);
    else for (const i of range(count)) {
      for (const layer of layers) forward(layer, i);
      for (const layer of [...layers].reverse()) backward(layer, i);
    }
    if (plan.strategy === "zero1") {
      addSlices(layers);
      note("backward", `All gradients are scattered: ${each} adds up its slices of all ` +
        "devices’ gradients. Then the whole ones go.", layers,
      { sent: { gradients: exchanged(layers) }, moved: "gradients" });
      leaveSlices(layers);
    }
    if (groups) {
      held.put("gradients", layers, (_, device, parts) =>
        parts.map((each) => ({ ...each, role: "sum" })));
      const updates = sum(every.map((device) => held.size("gradients", device)));
      note("sum", plan.strategy === "data"
        ? "The gradients of all devices are summed on device 0, and the sum is sent back to all."
        : "Devices with the same part, one in each group, sum up their gradients.", layers,
      { sent: { gradients: 2 * (plan.replicas - 1) * updates }, moved: "gradients" });
    }
    const gathers = ["zero1", "zero2"].includes(plan.strategy);
    if (gathers) held.put("weights", layers, (name, device, [{ part }]) => [
      { part, role: "old" }, { part: plan.updated[name][device], role: "kept", within: true }]);
    note("update", gathers ? "Update: each device has new momentum and new weights of its slice; " +
      "the rest of its weights is still old." : `Update: ${each} updates its weights, ` +
      "by momentum and gradient. Nothing is sent.", layers);
    held.put("gradients", layers, () => []);
    if (gathers) {
      held.put("weights", layers, (name, _, [{ part }]) => [{ part, role: "kept" }]);
      note("gather", `The new weights are gathered: ${each} gets all other slices.`, layers,
        { sent: { weights: exchanged(layers) }, moved: "weights" });
    }
    note("after", "After the step: the gradients are gone, and all is as before, with new values.");
    return made;
  }

  return moments;
})();

(() => {
  "use strict";

  const { svg, text, rect, entry, bytes, steps, start } = explorer;
  const HEAD = 34, HIGH = 30, NAMES = 88, ABOVE = 17, WAITING = 7, ITEM = 5;
  const NARROW = 560; // a narrower picture has the names of layers above their rows
  const LEAST = 18; // what a weight and its bias take: in less room stands the weight alone

  // The colour of each kind and how much of it, of each role, too.
  const KINDS = {
    weights: { part: "cell", most: 0.9, share: { kept: 0.9, gathered: 0.3, old: 0.3 } },
    gradients: { part: "sent-cell", most: 0.8, share: { own: 0.25, group: 0.5, sum: 0.8 } },
    momentum: { part: "cell", most: 0.45, share: { kept: 0.45 } },
  };

  const LEGEND = {
    weights: "Weights: pale ones are gathered for a moment, or wait for new values.",
    gradients: "Gradients: the darker, the more devices’ examples are in the sum.",
  };

  // A part of a tensor in the outline of the whole, as in notebooks/drawing/pictures.py: the first
  // axis runs down, the second one to the right; a slice of the flat tensor, from the top down.
  function filled({ axis, start: from, stop }, shape, [x, y, wide], part, share) {
    const length = axis === null ? shape.reduce((a, b) => a * b, 1) : shape[axis];
    const [a, b] = [from / length, stop / length];
    return axis === 1 ? rect(x + wide * a, y, wide * (b - a), HIGH, part, share)
      : rect(x, y + HIGH * a, wide, HIGH * (b - a), part, share);
  }

  // What a device has of a kind of one layer: the weight, and the bias in a narrow box beside it.
  function layerBox(plan, layer, kind, held, place, moved) {
    const [x, y, wide] = place, bias = Math.min(12, wide * 0.15);
    const boxes = wide < LEAST ? [["weight", x, wide]]
      : [["weight", x, wide - bias - 2], ["bias", x + wide - bias, bias]];
    return boxes.flatMap(([end, left, width]) => {
      const name = `${layer}.${end}`, { part, share } = KINDS[kind];
      const here = held(name).filter((each) => each.part.stop > each.part.start);
      const outline = rect(left, y, width, HIGH, moved && here.length ? "got" : "ghost");
      return [...here.map((each) => filled(each.part, plan.shapes[name], [left, y, width], part,
        share[each.role])), outline];
    });
  }

  function drawing(plan, moment, kinds, width) {
    const count = plan.devices * plan.replicas, narrow = width < NARROW;
    const left = narrow ? 0 : NAMES, pitch = Math.min(190, (width - left) / count);
    const gap = pitch > 60 ? 8 : 4, row = HIGH + 8 + (narrow ? ABOVE : 0), drawn = [];
    const height = HEAD + plan.layers.length * row;
    const box = (pitch - gap - WAITING) / kinds.length;
    for (let number = 0; number < count; number += 1) {
      const x = left + number * pitch, name = pitch > 66 ? `device ${number}` : String(number);
      drawn.push(text(x + WAITING + (pitch - gap - WAITING) / 2, 13, name, "muted"));
      if (number && number % plan.devices === 0 && plan.devices > 1) // another group
        drawn.push(svg("path", { d: `M${x - gap / 2} 2V${height}`, class: "pic-rule" }));
      kinds.forEach((kind, i) => drawn.push(text(x + WAITING + (i + 0.5) * box - 1, 27,
        box > 62 ? kind : kind[0], "muted")));
      plan.layers.forEach((layer, place) => {
        const y = HEAD + place * row + (narrow ? ABOVE : 0), device = number % plan.devices;
        if (!number) {
          const label = narrow ? text(0, y - 4, layer, "ink", "start")
            : text(0, y + HIGH / 2 + 4, layer, "ink", "start");
          if (moment.about.includes(layer)) label.classList.add("pic-bold");
          drawn.push(label);
        }
        for (let i = 0; i < moment.inputs[layer][device]; i += 1)
          drawn.push(rect(x, y + HIGH - 7 - 7.5 * i, ITEM, 7, "data-cell", 0.9));
        kinds.forEach((kind, i) => drawn.push(...layerBox(plan, layer, kind,
          (name) => moment.state[kind][name][device],
          [x + WAITING + i * box, y, box - (box > 20 ? 4 : 1.5)],
          moment.moved === kind && moment.about.includes(layer))));
      });
    }
    const size = left + count * pitch;
    return svg("svg", { width: size, height, viewBox: `0 0 ${size} ${height}`, role: "img",
      "aria-label": moment.words, "font-size": 12 }, ...drawn);
  }

  start("shards", ({ root, find, named, show }) => {
    const slider = named("moment"), { shown, walk } = steps(root, slider);
    let plan, all;

    function choose({ moment, what, ...settings }) {
      const scenario = { net: "lenet", ...settings }, refusal = plans.refusal(scenario);
      plan = refusal ? null : plans.planOf(scenario);
      all = refusal ? [{ words: `There is no such plan: ${refusal}.` }] : moments(plan);
      walk(JSON.stringify(settings), all.length - 1, moment);
    }

    return (values) => {
      choose(values);
      show("replicas", values.strategy !== "data");
      show("schedule", values.strategy === "pipeline");
      const number = Number(slider.value), moment = all[number], last = all.length - 1;
      shown();
      find("words").textContent = moment.words;
      for (const name of ["sent", "stage", "legend", "key"]) find(name).hidden = !plan;
      if (!plan) return;
      const sent = all.map((each) => 4 * plans.sum(Object.values(each.sent)));
      const upTo = (end) => bytes(plans.sum(sent.slice(0, end)));
      find("sent").textContent = `Sent by all devices: ${bytes(sent[number])} now, ` +
        `${upTo(number + 1)} so far, ${upTo(last + 1)} in the whole step.`;
      const kinds = values.what === "all" ? Object.keys(KINDS) : [values.what];
      find("stage").replaceChildren(drawing(plan, moment, kinds, find("stage").clientWidth));
      find("legend").replaceChildren("On device 0 now:",
        ...Object.entries(KINDS).map(([kind, { part, most }]) =>
          entry(part, most, `${kind} ${bytes(4 * moment.held[0][kind])}`)),
        entry("data-cell", 0.9, "the input of a layer, for each microbatch"));
      find("key").textContent = `${kinds.map((kind) => LEGEND[kind] ?? "").join(" ")} ` +
        "A thick outline: it has just come from other devices.";
    };
  });
})();
