// What each device keeps and sends in a step, for a card of some size, and by every strategy.
(() => {
  "use strict";

  const { svg, text, rect, table, bytes, exact, entry, start } = explorer;
  const { STRATEGIES, MOVED, KEPT, sum } = plans;
  const LANE = 20, HEAD = 20, DIGIT = 7, TOTAL = 64;

  // As in common/drawing/plans.py: the colour of each kind, and how much of it.
  const KINDS = {
    weights: ["cell", 0.9, "weights"],
    gradients: ["sent-cell", 0.75, "gradients"],
    momentum: ["cell", 0.3, "optimizer"],
    activations: ["data-cell", 0.6, "activations"],
  };

  const FIELDS = { depth: "lenet", width: "resnet18", millions: "transformer",
    layers: "transformer", sequence: "transformer", recompute: "transformer" };

  // Devices in words: several by the first and the last one.
  function named(devices) {
    const [first, last] = [devices[0], devices.at(-1)], all = last - first < devices.length;
    return first === last ? `device ${first}` : `devices ${first}${all ? "–" : ", … "}${last}`;
  }

  const totals = ({ peak }) => peak.weights.map((_, i) => sum(KEPT.map((kind) => peak[kind][i])));

  const fullest = (usage) => {
    const kept = totals(usage), most = Math.max(...kept);
    return { device: kept.indexOf(most), most };
  };

  function found(settings, cluster) {
    const refusal = plans.refusal(settings);
    if (refusal) return { settings, refusal };
    const plan = plans.planOf(settings), time = plans.predict(settings, cluster, plan);
    return { settings, usage: plans.usage(settings, plan), time };
  }

  function seconds(time) {
    const [unit, scale] = time >= 1 ? ["s", 1] : time >= 1e-3 ? ["ms", 1e3] : ["µs", 1e6];
    return `${(time * scale).toPrecision(3)}\u00a0${unit}`;
  }

  // How long a step takes, the longest part first, and what bounds it.
  function timed({ step, parts, hidden, used }, examples) {
    const longest = Object.entries(parts).sort(([, a], [, b]) => b - a).filter(([, time]) => time);
    return `A step takes ${seconds(step)}: ` +
      longest.map(([name, time]) => `${name} ${seconds(time)}`).join(", ") +
      `; messages of ${seconds(hidden)} overlap. ${exact(Math.round(examples / step))} examples ` +
      `a second use ${(100 * used).toFixed(1)}\u00a0% of the peak.`;
  }

  // Devices that keep the same, as far as it is shown.
  function groups(usage, card) {
    const byKey = new Map(), kept = totals(usage);
    kept.forEach((total, device) => {
      const key = [total > card, total, ...KEPT.map((kind) => usage.peak[kind][device])]
        .map((each) => typeof each === "number" ? bytes(each) : each).join();
      byKey.set(key, [...(byKey.get(key) ?? []), device]);
    });
    return [...byKey.values()];
  }

  function bars(usage, card, size, width) {
    const lanes = groups(usage, card), kept = totals(usage), most = Math.max(...kept);
    const labels = lanes.map(named), left = DIGIT * Math.max(...labels.map((x) => x.length)) + 6;
    const scale = card <= 3 * most ? Math.max(most, card) : most;
    const unit = Math.max(60, width - left - TOTAL) / scale, drawn = [];
    lanes.forEach(([device], lane) => {
      const y = HEAD + lane * LANE;
      let x = left;
      drawn.push(text(0, y + 13, labels[lane], "muted", "start"));
      for (const kind of KEPT) {
        const [part, share, name] = KINDS[kind], length = usage.peak[kind][device];
        const bar = rect(x, y, length * unit, LANE - 3, part, share);
        bar.setAttribute("rx", 0);
        bar.append(svg("title", {}, `${name}: ${bytes(length)}`));
        drawn.push(bar);
        x += length * unit;
      }
      drawn.push(text(x + 6, y + 13, bytes(kept[device]), kept[device] > card ? "sent" : "ink",
        "start"));
    });
    const end = HEAD + lanes.length * LANE, line = left + card * unit;
    if (card <= scale) {
      drawn.push(svg("path", { d: `M${line} 4V${end}`, class: "pic-copies explorer-card" }));
      const [away, anchor] = line < (left + width) / 2 ? [5, "start"] : [-5, "end"];
      drawn.push(text(line + away, 13, `card: ${size}`, "sent", anchor));
    } else drawn.push(text(width - 2, 13, `card: ${size} →`, "sent", "end"));
    return svg("svg", { width, height: end + 2, viewBox: `0 0 ${width} ${end + 2}`, role: "img",
      "aria-label": "What each device keeps, by kind", "font-size": 12 }, ...drawn);
  }

  function legend(usage) {
    const { device } = fullest(usage);
    return KEPT.map((kind) => {
      const [part, share, name] = KINDS[kind];
      return entry(part, share, `${name} ${bytes(usage.peak[kind][device])}`);
    });
  }

  function fits(usage, card, size) {
    const kept = totals(usage), { device, most } = fullest(usage);
    const large = kept.filter((each) => each > card).length;
    return large
      ? `${large} of ${kept.length} devices do not fit a card of ${size}: device ${device} keeps ` +
        `${bytes(most)}.`
      : `Every device fits a card of ${size}: device ${device}, the fullest, fills ` +
        `${Math.ceil((100 * most) / card)}\u00a0% of it.`;
  }

  // What takes most on the fullest device.
  function bottleneck(usage) {
    const { device, most } = fullest(usage);
    const kind = KEPT.reduce((a, b) => usage.peak[b][device] > usage.peak[a][device] ? b : a);
    return `The next bottleneck: ${KINDS[kind][2]}, ${bytes(usage.peak[kind][device])} of ` +
      `${bytes(most)} there.`;
  }

  function traffic({ sent, messages }) {
    const each = messages.map((_, i) => sum(MOVED.map((kind) => sent[kind][i])));
    const busiest = each.indexOf(Math.max(...each));
    const row = (name, values, shown) => [name, shown(sum(values)), shown(values[busiest])];
    return table(["", "all devices", `the busiest: ${busiest}`], [
      ...MOVED.map((kind) => row(kind, sent[kind], bytes)),
      row("together", each, bytes),
      row("messages", messages, exact),
    ], "Sent in a step");
  }

  function comparison(every, strategy, card) {
    const rows = every.map(({ settings, refusal, usage, time }) => {
      if (refusal) return [settings.strategy, `no: ${refusal}`];
      const { most } = fullest(usage), sent = sum(MOVED.map((kind) => sum(usage.sent[kind])));
      return [settings.strategy, bytes(most), bytes(sent), exact(sum(usage.messages)),
        seconds(time.step), most > card ? "no" : "yes"];
    });
    const made = table(["strategy", "most kept", "sent by all", "messages", "a step", "fits"], rows,
      "Every strategy on these devices");
    const row = made.querySelectorAll("tbody tr")[STRATEGIES.indexOf(strategy)];
    row.setAttribute("aria-current", true);
    return made;
  }

  // Every number of a step, to the byte.
  function everything(usage) {
    const columns = [
      ...KEPT.map((kind) => [KINDS[kind][2], usage.peak[kind]]),
      ...MOVED.map((kind) => [`sent ${kind}`, usage.sent[kind]]),
      ...MOVED.map((kind) => [`received ${kind}`, usage.received[kind]]),
      ["messages", usage.messages], ["in flight", usage.live],
    ];
    return table(["device", ...columns.map(([name]) => name)], usage.live.map((_, device) =>
      [String(device), ...columns.map(([, values]) => exact(values[device]))]));
  }

  start("memory", ({ data, find, show }) => {
    return (values) => {
      for (const [name, net] of Object.entries(FIELDS)) show(name, values.net === net);
      show("gigabytes", values.card === "other");
      const gigabytes = values.card === "other" ? values.gigabytes : Number(values.card);
      const card = 1e9 * gigabytes, size = `${gigabytes}\u00a0GB`;
      const settings = { ...values, parameters: 1e6 * values.millions };
      const every = STRATEGIES.map((strategy) => found({ ...settings, strategy },
        plans.clusterOf(data, values)));
      const { refusal, usage, time } = every[STRATEGIES.indexOf(values.strategy)];
      for (const name of ["stage", "legend", "traffic", "exact"]) find(name).hidden = !usage;
      find("words").textContent = refusal ? `There is no such plan: ${refusal}.`
        : `${fits(usage, card, size)} ${bottleneck(usage)} ${timed(time, values.examples)}`;
      find("comparison").replaceChildren(comparison(every, values.strategy, card));
      if (!usage) return;
      find("stage").replaceChildren(bars(usage, card, size, find("stage").clientWidth));
      find("legend").replaceChildren(`On device ${fullest(usage).device}:`, ...legend(usage));
      find("traffic").replaceChildren(traffic(usage));
      find("numbers").replaceChildren(everything(usage));
    };
  });
})();
