// Runs of pipelines, to be drawn beside a plan: those that the page has, and a reader's own record.
// Times are in milliseconds.
globalThis.runs = (() => {
  "use strict";

  const { range, orders, key } = globalThis.pipelines;

  const FRAMEWORKS = { pytorch: "PyTorch", tensorflow: "TensorFlow", jax: "JAX", mxnet: "MXNet" };
  const QUEUED = ["jax", "mxnet"]; // which queue their work also on CPUs

  const number = (value) => String(Number(value.toFixed(2)));
  const way = (one) => (one.forward ? "forward" : "backward");

  // Of each device, its passes in the order of time.
  const ordered = (events, devices) =>
    range(devices).map((device) => events.filter((event) => event.device === device));

  // A record of this project as a run to draw. Throws an Error if it is not of one pipeline, whole.
  function runOf(content) {
    const { config, split, framework } = JSON.parse(content), stages = config.devices;
    const { strategy, schedule, replicas } = config.options;
    const events = split.events.map(({ device, what, microbatch, begin, end }) =>
      ({ device, stage: device, microbatch, forward: what === "forward", begin: 1000 * begin,
        end: 1000 * end })).sort((a, b) => a.begin - b.begin);
    const count = 1 + Math.max(...events.map((event) => event.microbatch));
    const small = stages <= 16 && count <= 64; // as the controls have it
    const planned = strategy === "pipeline" && replicas === 1 && small
      ? orders[schedule](stages, count).flat() : [];
    const names = (passes) => passes.map(key).sort().join();
    if (!planned.length || names(events) !== names(planned)) throw Error("not a whole pipeline");
    if (!events.every(({ begin, end }) => begin >= 0 && begin <= end)) throw Error("no times");
    const queued = config.device_kind !== "cpu" || QUEUED.includes(framework);
    const name = framework in FRAMEWORKS ? `your run in ${FRAMEWORKS[framework]}` : "your run";
    return { name, stages, microbatches: count, schedule, queued, events };
  }

  // The run of a framework among those that the page has.
  function kept(runs, framework, schedule) {
    const run = runs.find((each) => each.framework === framework && each.schedule === schedule);
    return run && { ...run, name: FRAMEWORKS[framework], queued: QUEUED.includes(framework),
      events: run.events.map(([device, forward, microbatch, begin, end]) =>
        ({ device, stage: device, microbatch, forward: forward === 1, begin, end })) };
  }

  // How a run differs from the plan, in sentences.
  function differences(plan, { events, stages, queued }) {
    const orderOf = (all) => ordered(all, stages).map((each) => each.map(key).join());
    const [planned, real] = [orderOf(plan), orderOf(events)];
    const others = real.flatMap((each, device) => (each === planned[device] ? [] : [device]));
    const apart = events.every((event, i) => !i || event.begin >= events[i - 1].end);
    const order = others.length ?
      `The order of passes is not the plan’s on device ${others.join(", ")}.` :
      "Each device’s order of passes is exactly the plan’s.";
    const overlap = "As measured, no two passes overlap: one process does or queues them, " +
      "one after the other.";
    const box = queued ? "These devices queue their work: a box is the time of the call, " +
      "not of the work." : "A box is the time of a pass.";
    return [order, ...(apart && stages > 1 ? [overlap] : []), box];
  }

  return { kept, runOf, differences, ordered, number, way };
})();
