// Plans and what they cost: shards.py, nets.py, plans.py and ledger.py of
// common/parallel in JavaScript. A test walks both over many settings and compares every number.
globalThis.plans = (() => {
  "use strict";

  const { range } = pipelines;
  const sum = (values) => values.reduce((total, each) => total + each, 0);
  const product = (values) => values.reduce((total, each) => total * each, 1);
  const layerOf = (tensor) => tensor.slice(0, tensor.lastIndexOf("."));
  const kindOf = (tensor) => tensor.slice(tensor.lastIndexOf(".") + 1);
  const mapped = (object, change) => Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, change(value, name)]));

  function* accumulated(values) {
    let total = 0;
    for (const each of values) yield (total += each);
  }

  // --- shards.py

  function shardSizes(examples, shards) {
    const larger = examples % shards, size = (examples - larger) / shards;
    return range(shards).map((shard) => size + (shard < larger ? 1 : 0));
  }

  function shardBounds(examples, shards) {
    let stop = 0;
    return shardSizes(examples, shards).map((size) => [stop, (stop += size)]);
  }

  // --- plans.py: a layout has a part for each device, or null.

  const part = (axis, start, stop) => ({ axis, start, stop });

  function sizeOf({ axis, start, stop }, shape) {
    return axis === null ? stop - start : (product(shape) / shape[axis]) * (stop - start);
  }

  const replicated = (shape, devices) => Array(devices).fill(part(0, 0, shape[0]));

  const sharded = (shape, axis, devices) =>
    shardBounds(shape[axis], devices).map((bounds) => part(axis, ...bounds));

  const flat = (shape, devices) =>
    shardBounds(product(shape), devices).map((bounds) => part(null, ...bounds));

  const onStage = (shape, stage, devices) =>
    range(devices).map((device) => device === stage ? part(0, 0, shape[0]) : null);

  // --- common/models/nets.py

  const conv = (name, channels, out, size) =>
    ({ [`${name}.weight`]: [out, channels, size, size], [`${name}.bias`]: [out] });

  const fullyConnected = (name, into, out) =>
    ({ [`${name}.weight`]: [into, out], [`${name}.bias`]: [out] });

  const norm = (name, channels) =>
    ({ [`${name}.weight`]: [channels], [`${name}.bias`]: [channels] });

  function lenetShapes(depth) {
    const hidden = range(depth).map((i) => fullyConnected(`hidden${i + 1}`, 128, 128));
    return Object.assign({}, conv("conv1", 1, 20, 3), conv("conv2", 20, 50, 5),
      fullyConnected("fc1", 800, 128), ...hidden, fullyConnected("fc2", 128, 10));
  }

  // Without the statistics of batch normalization, of which plans know nothing.
  function resnet18Shapes(width) {
    const shapes = { ...conv("conv1", 1, width, 3), ...norm("bn1", width) };
    let channels = width;
    for (const stage of [1, 2, 3, 4]) {
      const out = width * 2 ** (stage - 1);
      for (const block of [1, 2]) {
        const name = `stage${stage}.block${block}`;
        Object.assign(shapes, conv(`${name}.conv1`, channels, out, 3), norm(`${name}.bn1`, out),
          conv(`${name}.conv2`, out, out, 3), norm(`${name}.bn2`, out));
        if (channels !== out) Object.assign(shapes, conv(`${name}.conv3`, channels, out, 1));
        channels = out;
      }
    }
    return Object.assign(shapes, fullyConnected("fc", channels, 10));
  }

  // What a layer of ResNet-18 makes of one image: each stage but the first halves it.
  function madeBy(layer, width) {
    if (layer === "fc") return [10];
    const stage = layer.startsWith("stage") ? Number(layer["stage".length]) : 1;
    const size = Math.ceil(28 / 2 ** (stage - 1));
    return [width * 2 ** (stage - 1), size, size];
  }

  // --- nets.py

  const byName = (names, value) =>
    Object.fromEntries(names.map((name, i) => [name, value(name, i)]));

  function chain(shapes, positions, inputs) {
    const layers = Object.keys(positions), half = Math.floor(layers.length / 2);
    const pairs = range(half).map((i) => [layers[2 * i], layers[2 * i + 1]]);
    return { shapes, positions, inputs, pairs, units: layers.map((layer) => [layer]) };
  }

  function lenet(depth) {
    const shapes = lenetShapes(depth), given = [28 * 28, 20 * 13 * 13, 50 * 4 * 4];
    const layers = Object.keys(shapes).filter((name) => kindOf(name) === "weight").map(layerOf);
    const places = { conv1: 26 * 26, conv2: 9 * 9 };
    return chain(shapes, byName(layers, (name) => places[name] ?? 1),
      byName(layers, (_, i) => given[i] ?? 128));
  }

  const halfUp = (number) => Math.max(1, Math.floor(number + 0.5));

  function transformer({ parameters, layers, sequence, recompute }) {
    const hidden = 2 * halfUp(Math.sqrt(parameters / layers / 12) / 2);
    const heads = 8 * halfUp(hidden / 1024);
    const sizes = { qkv: [1, 3], proj: [1, 1], mlp1: [1, 4], mlp2: [4, 1] };
    const units = range(layers).map((i) =>
      Object.keys(sizes).map((name) => `block${i + 1}.${name}`));
    const shapes = Object.assign({}, ...units.flatMap((unit) =>
      Object.values(sizes).map(([ins, outs], i) =>
        fullyConnected(unit[i], ins * hidden, outs * hidden))));
    const inputs = byName(units.flat(), (name) => shapes[`${name}.weight`][0]);
    const pairs = units.flatMap((unit) => [unit.slice(0, 2), unit.slice(2)]);
    return { shapes, positions: mapped(inputs, () => 1), inputs, pairs, units,
      blocks: { count: layers, hidden, heads, sequence, recompute } };
  }

  // Numbers of 16 bits for a token, on each of the devices that split blocks: those kept in
  // flight, and those recomputed for a microbatch.
  function blocksKept({ hidden, heads, sequence, recompute }, blocks, shards) {
    const scores = Math.ceil(5 * heads * sequence / (2 * shards));
    const block = 5 * hidden + Math.ceil(12 * hidden / shards);
    if (recompute === "full") return [blocks * hidden, block + scores];
    if (recompute === "selective") return [blocks * block, scores];
    return [blocks * (block + scores), 0];
  }

  function resnet18(width) {
    const shapes = {};
    for (const [name, shape] of Object.entries(resnet18Shapes(width))) {
      const layer = layerOf(name), block = layerOf(layer.includes(".") ? layer : `.${layer}`);
      const of = kindOf(layer);
      const number = of.startsWith("bn") ? of.at(-1) : of === "conv3" ? "2" : "";
      const home = number ? [block, `conv${number}`].filter(Boolean).join(".") : layer;
      shapes[home === layer ? name : `${home}.${of}_${kindOf(name)}`] = shape;
    }
    const layers = [...new Set(Object.keys(shapes).map(layerOf))];
    const made = byName(layers, (name) => madeBy(name, width));
    const inputs = byName(layers, (_, i) => i ? product(made[layers[i - 1]]) : 28 * 28);
    inputs.fc = made[layers.at(-2)][0]; // pooled: a number for each channel
    const pairs = range((layers.length - 2) / 2).map((i) => layers.slice(2 * i + 1, 2 * i + 3));
    return { shapes, positions: mapped(made, (shape) => product(shape.slice(1))), inputs, pairs,
      units: [layers.slice(0, 1), ...pairs, layers.slice(-1)] };
  }

  // --- plans.py

  class Plan {
    constructor(strategy, net, devices, replicas, microbatches, schedule) {
      Object.assign(this, net, { strategy, devices, replicas, microbatches, schedule });
      this.layers = Object.keys(this.positions);
      const tensors = byName(this.layers, () => []);
      for (const name of Object.keys(this.shapes)) tensors[layerOf(name)].push(name);
      this.tensors = (layer) => tensors[layer];
      this.sizes = mapped(this.shapes, product);
      this.layerSizes = byName(this.layers, (layer) =>
        sum(tensors[layer].map((name) => this.sizes[name])));
      this.stages = strategy === "pipeline" ? this.cut() : [];
      this.weights = this.layouts();
      this.updated = strategy.startsWith("zero")
        ? mapped(this.shapes, (shape) => flat(shape, devices)) : this.weights;
    }

    size(layer) {
      return this.layerSizes[layer];
    }

    output(layer) {
      return this.positions[layer] * this.shapes[`${layer}.bias`][0];
    }

    work(layer) {
      const matrices = this.tensors(layer).filter((name) => this.shapes[name].length > 1);
      return this.positions[layer] * sum(matrices.map((name) => this.sizes[name]));
    }

    // The layers of each stage of a pipeline, with work that is as equal as can be.
    cut() {
      const work = this.units.map((unit) => sum(unit.map((layer) => this.work(layer))));
      let begin = 0;
      return pipelines.balanced(work, this.devices).map((count) =>
        this.units.slice(begin, (begin += count)).flat());
    }

    // All-reduces of tensor parallelism: the kind, and the numbers for each example.
    allreduces() {
      const sums = this.pairs.map(([, row]) => ["activations", this.output(row)]);
      const columns = this.pairs.map(([column]) => column)
        .filter((column) => this.blocks || column !== this.layers[0]);
      return [...sums, ...(this.blocks?.recompute === "full" ? sums : []),
        ...columns.map((column) => ["gradients", this.inputs[column]])];
    }

    rowsOf(examples) {
      return shardBounds(examples, this.replicas);
    }

    microbatchesOf(examples) {
      return shardBounds(examples, Math.max(1, Math.min(this.microbatches, examples)));
    }

    // For each microbatch, the examples of each device, where devices share them.
    shardsOf(examples) {
      const bounds = shardBounds(examples, this.devices);
      const count = Math.max(1, Math.min(this.microbatches, bounds[0][1]));
      const cut = bounds.map(([start, stop]) =>
        shardBounds(stop - start, count).map(([a, b]) => [start + a, start + b]));
      return range(count).map((i) => cut.map((each) => each[i]));
    }

    order(microbatches) {
      return pipelines.orders[this.schedule](this.devices, microbatches);
    }

    // Which device has which part of which weight.
    layouts() {
      const k = this.devices;
      switch (this.strategy) {
        case "pipeline": {
          const stageOf = Object.assign({},
            ...this.stages.map((names, i) => byName(names, () => i)));
          return mapped(this.shapes, (shape, name) => onStage(shape, stageOf[layerOf(name)], k));
        }
        case "tensor":
          return mapped(this.shapes, (shape, name) => this.sliced(name, shape));
        case "zero3":
          return mapped(this.shapes, (shape) => flat(shape, k));
      }
      return mapped(this.shapes, (shape) => replicated(shape, k));
    }

    sliced(name, shape) {
      const layer = layerOf(name), isWeight = kindOf(name) === "weight";
      const [column, row] = [0, 1].map((i) => this.pairs.some((pair) => pair[i] === layer));
      const [out, into] = shape.length === 4 ? [0, 1] : [1, 0];
      if (column) return sharded(shape, isWeight ? out : 0, this.devices);
      return row && isWeight ? sharded(shape, into, this.devices)
        : replicated(shape, this.devices);
    }
  }

  // --- Plan.usage. Collectives are counted at once and not message by message: it is quicker.

  const MOVED = ["activations", "gradients", "weights"];
  const KEPT = ["weights", "gradients", "momentum", "activations"];

  function predicted(plan, examples, itemsize, state) {
    const count = plan.replicas * plan.devices, moved = new Moved(count);
    const kept = byName(KEPT, () => Array(count).fill(0)), live = Array(count).fill(0);
    const [moves, activations] = WAYS[plan.strategy];
    const updates = range(plan.devices).map((device) => parts(plan, device));
    const weights = range(plan.devices).map((device) => weightsKept(plan, device));
    plan.rowsOf(examples).forEach(([start, stop], replica) => {
      const numbers = range(plan.devices).map((device) => replica * plan.devices + device);
      const here = stop - start;
      moves(plan, here, numbers, moved);
      const found = activations(plan, here), several = plan.shardsOf(here).length > 1;
      numbers.forEach((number, device) => {
        [kept.activations[number], live[number]] = found[device];
        kept.weights[number] = weights[device];
        kept.gradients[number] = gradientsKept(plan, updates[device], several);
        kept.momentum[number] = sum(Object.values(updates[device]));
      });
    });
    updates.forEach((own, device) => { // and each column of the mesh adds up its gradients
      const column = range(plan.replicas).map((replica) => replica * plan.devices + device);
      for (const size of Object.values(own)) moved.allreduce(column, size, "gradients");
    });
    const bytes = (each) => each.map((size) => itemsize * size);
    return {
      examples, sent: mapped(moved.sent, bytes), received: mapped(moved.received, bytes),
      messages: moved.messages, live,
      peak: { ...mapped(kept, bytes), momentum: kept.momentum.map((size) => state * size) },
    };
  }

  class Moved {
    constructor(count) {
      this.sent = byName(MOVED, () => Array(count).fill(0));
      this.received = byName(MOVED, () => Array(count).fill(0));
      this.messages = Array(count).fill(0);
    }

    message(source, target, size, kind) {
      this.sent[kind][source] += size;
      this.received[kind][target] += size;
      this.messages[source] += 1;
    }

    allreduce([first, ...others], size, kind) {
      for (const other of others) {
        this.message(other, first, size, kind);
        this.message(first, other, size, kind);
      }
    }

    // Each device adds up its slice of all others' tensors, or gives its slice to all; so often.
    exchange(devices, size, kind, times, gathers) {
      shardSizes(size, devices.length).forEach((own, i) => {
        const slices = times * own * (devices.length - 1), rest = times * (size - own);
        this.sent[kind][devices[i]] += gathers ? slices : rest;
        this.received[kind][devices[i]] += gathers ? rest : slices;
        this.messages[devices[i]] += times * (devices.length - 1);
      });
    }
  }

  function pipelineMoves(plan, examples, numbers, moved) {
    const stages = plan.stages.slice(1);
    for (const [start, stop] of plan.microbatchesOf(examples))
      stages.forEach((names, stage) => {
        const size = (stop - start) * plan.inputs[names[0]];
        moved.message(numbers[stage], numbers[stage + 1], size, "activations");
        moved.message(numbers[stage + 1], numbers[stage], size, "gradients");
      });
  }

  function tensorMoves(plan, examples, numbers, moved) {
    for (const [start, stop] of plan.microbatchesOf(examples))
      for (const [kind, size] of plan.allreduces())
        moved.allreduce(numbers, (stop - start) * size, kind);
  }

  function zeroMoves(plan, examples, numbers, moved) {
    const rounds = plan.shardsOf(examples).length;
    const scatters = plan.strategy === "zero1" ? 1 : rounds;
    const gathers = plan.strategy === "zero3" ? 2 * rounds : 1;
    for (const size of Object.values(plan.sizes)) {
      moved.exchange(numbers, size, "gradients", scatters, false);
      moved.exchange(numbers, size, "weights", gathers, true);
    }
  }

  // For each device of a replica: the most numbers it keeps of activations, and live microbatches.

  const lengths = (bounds) => bounds.map(([start, stop]) => stop - start);
  const largestOf = (plan, examples) => Math.max(...lengths(plan.microbatchesOf(examples)));
  const allInputs = (plan, layers) => plan.blocks ? blocksKept(plan.blocks, layers.length / 4, 1)
    : [sum(layers.map((layer) => plan.inputs[layer])), 0];

  const dataActivations = (plan, examples) =>
    [[largestOf(plan, examples) * sum(allInputs(plan, plan.layers)), 1]];

  function pipelineActivations(plan, examples) {
    const sizes = lengths(plan.microbatchesOf(examples)), order = plan.order(sizes.length);
    return plan.stages.map((names, stage) => {
      const signs = order[stage].map((one) => one.forward ? 1 : -1);
      const batches = accumulated(order[stage].map((one, i) => signs[i] * sizes[one.microbatch]));
      const [kept, again] = allInputs(plan, names), here = Math.max(...batches);
      const size = kept * here + again * Math.max(...sizes);
      return [size, Math.max(...accumulated(signs))];
    });
  }

  function tensorActivations(plan, examples) {
    const largest = largestOf(plan, examples);
    if (plan.blocks) {
      const kept = sum(blocksKept(plan.blocks, plan.units.length, plan.devices));
      return range(plan.devices).map(() => [largest * kept, 1]);
    }
    const alone = plan.layers.filter((layer) => !plan.pairs.flat().includes(layer));
    const whole = sum(allInputs(plan, alone)) +
      sum(plan.pairs.map(([column, row]) => plan.inputs[column] + plan.output(row)));
    const slices = plan.pairs.map(([column, row]) => {
      const channels = plan.shapes[`${column}.bias`][0];
      return shardSizes(channels, plan.devices).map((own) => plan.inputs[row] / channels * own);
    });
    return range(plan.devices).map((device) =>
      [largest * (whole + sum(slices.map((each) => each[device]))), 1]);
  }

  function zeroActivations(plan, examples) {
    const each = sum(allInputs(plan, plan.layers)), shards = plan.shardsOf(examples).map(lengths);
    return range(plan.devices).map((device) =>
      [each * Math.max(...shards.map((sizes) => sizes[device])), 1]);
  }

  // How many numbers of each weight a device updates; it has no others.
  function parts(plan, device) {
    const held = Object.entries(plan.updated).filter(([, layout]) => layout[device]);
    return Object.fromEntries(held.map(([name, layout]) =>
      [name, sizeOf(layout[device], plan.shapes[name])]));
  }

  function weightsKept(plan, device) {
    const own = sum(Object.entries(plan.weights).map(([name, layout]) =>
      layout[device] ? sizeOf(layout[device], plan.shapes[name]) : 0));
    return own + (plan.strategy === "zero3" ? Math.max(...Object.values(plan.layerSizes)) : 0);
  }

  function gradientsKept(plan, own, several) {
    if (!plan.strategy.startsWith("zero")) return sum(Object.values(own));
    if (plan.strategy === "zero1") return sum(Object.values(plan.sizes)) + sum(Object.values(own));
    const layers = [...plan.layers].reverse();
    const slices = [...accumulated(layers.map((layer) =>
      sum(plan.tensors(layer).map((name) => own[name]))))];
    return Math.max(...layers.map((layer, i) =>
      (several ? slices.at(-1) : slices[i]) + plan.size(layer)));
  }

  const WAYS = {
    data: [() => {}, dataActivations], // nothing moves within a replica
    pipeline: [pipelineMoves, pipelineActivations],
    tensor: [tensorMoves, tensorActivations],
    zero1: [zeroMoves, zeroActivations],
    zero2: [zeroMoves, zeroActivations],
    zero3: [zeroMoves, zeroActivations],
  };

  // --- common/plan.py

  const PRECISIONS = { float32: [4, 4, 0], float64: [8, 8, 0], mixed: [2, 4, 4] };
  const OPTIMIZERS = { sgd: 0, momentum: 1, adam: 2 };

  const network = (scenario) => scenario.net === "lenet" ? lenet(scenario.depth)
    : scenario.net === "resnet18" ? resnet18(scenario.width) : transformer(scenario);

  function planOf(scenario) {
    const replicas = scenario.strategy === "data" ? scenario.devices : scenario.replicas;
    return new Plan(scenario.strategy, network(scenario), Math.floor(scenario.devices / replicas),
      replicas, scenario.microbatches, scenario.schedule);
  }

  function refusal(scenario) {
    const { strategy, devices, replicas } = scenario, group = Math.floor(devices / replicas);
    if (strategy !== "data" && devices % replicas)
      return `${replicas} groups of one size take a multiple of ${replicas} devices, not ` +
        String(devices);
    const net = network(scenario);
    if (strategy === "pipeline" && group > net.units.length)
      return `a pipeline of ${group} devices needs as many stages, and the net can be cut into ` +
        String(net.units.length);
    if (strategy === "tensor" && net.blocks && net.blocks.heads % group)
      return `the ${net.blocks.heads} heads of a block do not divide over ${group} devices`;
    const cut = net.pairs.map(([column]) => net.shapes[`${column}.bias`][0]);
    const narrowest = cut.length ? Math.min(...cut) : 0;
    if (strategy === "tensor" && group > Math.max(1, narrowest))
      return `${group} devices cannot share the ${narrowest} channels of the narrowest layer`;
    return "";
  }

  function usage(scenario, plan = planOf(scenario)) {
    const [item, state, copy] = PRECISIONS[scenario.precision];
    return predicted(plan, scenario.examples, item, copy + OPTIMIZERS[scenario.optimizer] * state);
  }

  // --- common/scaling/steps.py

  const PARTS = ["compute", "bubble", "tensor", "pipeline", "data"];

  function operations(plan) {
    const work = sum(plan.layers.map((layer) => plan.work(layer)));
    if (!plan.blocks) return [6 * work - 2 * plan.work(plan.layers[0]), 0];
    const { count, hidden, sequence, recompute } = plan.blocks;
    const scores = 2 * count * hidden * sequence;
    return [6 * (work + scores),
      2 * { none: 0, selective: scores, full: work + scores }[recompute]];
  }

  // Those that tensor parallelism repeats on each device.
  function replicatedOperations(plan) {
    const paired = plan.pairs.flat(), [first] = plan.layers;
    const sliced = sum(paired.map((layer) =>
      plan.positions[layer] * plan.sizes[`${layer}.weight`]));
    const work = sum(plan.layers.map((layer) => plan.work(layer))) - sliced;
    return 6 * work - (paired.includes(first) ? 0 : 2 * plan.work(first));
  }

  // All-reduces of so many bytes together, by a ring of every `stride`-th device.
  function ring({ inside, between, node }, devices, stride, size, times) {
    const members = Math.max(1, Math.min(devices, Math.floor(node / stride)));
    const nodes = Math.ceil(devices / members), shared = nodes > 1 ? between[1] / members : 0;
    const latency = (devices - nodes) * inside[0] + (nodes - 1) * between[0];
    return 2 * (times * latency +
      size * Math.max(inside[1], shared) * (devices - 1) / devices);
  }

  // The share of the work in the stage that has most.
  function slowest(plan) {
    if (!plan.stages.length) return 1;
    const work = (layers) => sum(layers.map((layer) => plan.work(layer)));
    return Math.max(...plan.stages.map(work)) / work(plan.layers);
  }

  function clusterOf({ cards, links }, { gpu, precision, percent, link, between, node }) {
    const peak = cards[gpu][precision];
    return { speed: peak * percent / 100, peak, inside: links[link], between: links[between], node };
  }

  // A step on a cluster: `speed` and `peak` in operations a second of a device, links as pairs of
  // seconds of a message and of a byte. Seconds of its parts, and of messages that overlap.
  function predict(scenario, cluster, plan = planOf(scenario)) {
    const [itemsize] = PRECISIONS[scenario.precision], { strategy, microbatches: many } = plan;
    const zero = strategy.startsWith("zero") ? Number(strategy.at(-1)) : 0;
    const [t, p, shards] = ["tensor", "pipeline", `zero${zero}`].map((name) =>
      name === strategy ? plan.devices : 1);
    const group = Math.ceil(scenario.examples / shards / plan.replicas), share = slowest(plan);
    const [model, again] = operations(plan), sums = plan.allreduces();
    const whole = t > 1 ? replicatedOperations(plan) : 0;
    const compute = group * (whole + (model + again - whole) / t) * share / cluster.speed;
    const tensor = ring(cluster, t, 1,
      group * itemsize * sum(sums.map(([, size]) => size)) * share, many * sums.length * share);

    const waits = (p - 1) * (plan.schedule === "naive" ? many : 1);
    const bubble = waits * (compute + tensor) / many;
    const [latency, perByte] = t * p > cluster.node ? cluster.between : cluster.inside;
    const firsts = [plan.units.at(-1), ...plan.units.slice(1)].map((unit) => plan.inputs[unit[0]]);
    const message = latency + group * itemsize * Math.max(...firsts) / many / t * perByte;
    const sent = p > 1 ? 2 * many * message : 0;
    const pipeline = Math.max(2 * waits * message, sent - compute);

    const backward = compute * (1 - model / 3 / (model + again));
    const size = sum(plan.layers.map((layer) => plan.size(layer))) * itemsize / (t * p);
    const units = plan.units.length / p, half = ring(cluster, shards, t * p, size, units) / 2;
    const last = ring(cluster, plan.replicas, t * p * shards, size / shards, units);
    const [halves, first, window] = [[0, 0, backward / many], [1, half, backward / many],
      [many, half, backward], [3 * many, half / units, compute]][zero];
    const messages = halves * half + last;
    const exposed = Math.max((half + last) / units, messages - window);
    const parts = [compute, bubble, tensor, pipeline, first + exposed], step = sum(parts);
    return { step, parts: byName(PARTS, (_, i) => parts[i]),
      hidden: Math.max(0, sent - pipeline) + messages - exposed,
      used: scenario.examples * model / (scenario.devices * cluster.peak * step) };
  }

  return { STRATEGIES: Object.keys(WAYS), MOVED, KEPT, range, sum, shardSizes, sizeOf, planOf,
    refusal, usage, clusterOf, predict };
})();
