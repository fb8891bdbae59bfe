// Runs of pipelines, to be drawn beside a plan: those that the page has, and a reader's own record.
// Times are in milliseconds. Nothing that a file says is trusted, nor shown as it is.
globalThis.runs = (() => {
  "use strict";

  const { needed, key } = globalThis.pipelines;

  const LARGEST = { bytes: 20e6, events: 100_000, devices: 16, microbatches: 64, seconds: 1e6 };
  const SHORTEST = 1e-6; // milliseconds
  const SCHEDULES = ["naive", "gpipe", "1f1b"]; // those of runs
  const FRAMEWORKS = { pytorch: "PyTorch", tensorflow: "TensorFlow", jax: "JAX", mxnet: "MXNet" };
  const QUEUED = ["jax", "mxnet"]; // where CPUs, too, queue what they are told

  const number = (value) => String(Number(value.toFixed(2)));
  const way = (one) => (one.forward ? "forward" : "backward");

  // Of each device, its passes in the order of time.
  const ordered = (events, devices) =>
    [...Array(devices).keys()].map((device) => events.filter((event) => event.device === device));

  // A record of this project as a run to draw. Throws an Error that says why it is none.
  function runOf(content) {
    let record;
    try { record = JSON.parse(content); } catch { throw Error("This file is not JSON."); }
    const { chapter, config, split, framework } = record ?? {};
    const { strategy, schedule, microbatches, replicas } = config?.options ?? {};
    const stages = config?.devices, found = split?.events;
    const whole = (value, most) => Number.isInteger(value) && value >= 0 && value <= most;
    if (chapter !== "strategies" || strategy === undefined)
      throw Error("This file is no record of a run that splits LeNet.");
    if (strategy !== "pipeline")
      throw Error("This run is no pipeline: it splits LeNet another way.");
    if (replicas !== 1) throw Error("This run has several pipelines: only one can be drawn.");
    if (!SCHEDULES.includes(schedule) || !whole(stages, LARGEST.devices) || !stages ||
        !whole(microbatches, LARGEST.microbatches) || !microbatches)
      throw Error("Its devices, microbatches or schedule are none that can be drawn here.");
    if (!Array.isArray(found)) throw Error("This record does not tell when each pass began.");
    if (found.length > LARGEST.events) throw Error("This record has too many passes to draw.");
    const time = (value) => typeof value === "number" && value >= 0 && value < LARGEST.seconds;
    const events = found.map((event) => {
      const { device, what, microbatch, begin, end } = event ?? {};
      if (!whole(device, stages - 1) || !whole(microbatch, microbatches - 1) || !time(begin) ||
          !time(end) || end < begin || !["forward", "backward"].includes(what))
        throw Error("This record has a pass that cannot be: its device, its name or its times.");
      return { device, stage: device, microbatch, forward: what === "forward",
        begin: 1000 * begin, end: 1000 * end };
    }).sort((a, b) => a.begin - b.begin);
    const done = new Set(), free = Array(stages).fill(0);
    let count = 0, end = 0; // of few examples, there are fewer microbatches
    for (const event of events) {
      if (!needed(event, stages).every((each) => done.has(key(each))) ||
          event.begin < free[event.device])
        throw Error("In this record, a pass comes before one that it has to wait for.");
      done.add(key(event));
      free[event.device] = event.end;
      count = Math.max(count, event.microbatch + 1);
      end = Math.max(end, event.end);
    }
    if (end < SHORTEST) throw Error("In this record, no pass takes time.");
    if (done.size !== 2 * stages * count || events.length !== done.size)
      throw Error("In this record, passes are missing, or are there twice.");
    const known = Object.hasOwn(FRAMEWORKS, framework) ? FRAMEWORKS[framework] : "";
    const gpu = config.device_kind !== "cpu", name = `your run${known && ` in ${known}`}`;
    const queued = gpu || QUEUED.includes(framework);
    return { name, stages, microbatches: count, schedule, gpu, queued, events };
  }

  // The run of a framework among those that the page has.
  function kept(runs, framework, schedule) {
    const run = runs.find((each) => each.framework === framework && each.schedule === schedule);
    return run && { ...run, name: FRAMEWORKS[framework], queued: QUEUED.includes(framework),
      events: run.events.map(([device, forward, microbatch, begin, end]) =>
        ({ device, stage: device, microbatch, forward: forward === 1, begin, end })) };
  }

  // How a run differs from the plan, in sentences.
  function differences(plan, { events, stages, gpu, queued }) {
    const orderOf = (all) => ordered(all, stages).map((each) => each.map(key).join());
    const [planned, real] = [orderOf(plan), orderOf(events)];
    const others = real.flatMap((each, device) => (each === planned[device] ? [] : [device]));
    const longest = events.reduce((a, b) => (b.end - b.begin > a.end - a.begin ? b : a));
    const apart = events.every((event, i) => !i || event.begin >= events[i - 1].end);
    const order = others.length ?
      `The order of passes is not the plan’s on device ${others.join(", ")}.` :
      "Each device’s order of passes is exactly the plan’s.";
    const most = `The longest pass takes ${number(longest.end - longest.begin)} ms: microbatch ` +
      `${longest.microbatch} ${way(longest)} on device ${longest.device}.`;
    const one = "As measured, no two passes overlap: one process does them, or tells devices to, " +
      "one after the other.";
    const cores = gpu ? "" : " Virtual devices share the same cores: the order is what is the " +
      "same, and no time is saved.";
    const box = queued ? "These devices queue what they are told: a box is the time in which one " +
      "was told, not that of its work." : "A box is the time that a pass itself takes.";
    return [order, most, ...(apart && stages > 1 ? [one + cores] : []), box];
  }

  return { LARGEST, kept, runOf, differences, ordered, number, way };
})();
