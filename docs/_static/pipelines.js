// The orders of a pipeline, and when their passes begin and end: common/parallel/pipelines.py in
// JavaScript. A test walks both over many settings and compares every pass.
globalThis.pipelines = (() => {
  "use strict";

  const range = (count) => [...Array(count).keys()];
  const pass = (stage, microbatch, forward) => ({ stage, microbatch, forward });
  const key = ({ stage, microbatch, forward }) => `${stage} ${microbatch} ${forward}`;

  // For each device, its passes one after the other.
  const orders = {
    naive: (devices, microbatches) => range(devices).map((stage) =>
      range(microbatches).flatMap((i) => [pass(stage, i, true), pass(stage, i, false)])),

    gpipe: (devices, microbatches) => range(devices).map((stage) =>
      [true, false].flatMap((forward) => range(microbatches).map((i) => pass(stage, i, forward)))),

    "1f1b": (devices, microbatches) => range(devices).map((stage) => {
      const ahead = devices - stage, passes = [];
      for (const i of range(microbatches + ahead - 1)) {
        if (i < microbatches) passes.push(pass(stage, i, true));
        const back = i - ahead + 1;
        if (back >= 0 && back < microbatches) passes.push(pass(stage, back, false));
      }
      return passes;
    }),
  };

  // The passes whose results a pass needs.
  function needed(one, stages) {
    if (one.forward) return one.stage ? [{ ...one, stage: one.stage - 1 }] : [];
    const after = one.stage + 1 < stages ? [{ ...one, stage: one.stage + 1 }] : [];
    return [{ ...one, forward: true }, ...after];
  }

  const earlier = (a, b) => a.begin - b.begin || a.one.stage - b.one.stage ||
    a.one.microbatch - b.one.microbatch || a.one.forward - b.one.forward;

  // When each pass begins and ends, the earliest first; `device` is the one that does it. The order
  // has to be possible.
  function simulate(order, seconds) {
    const stages = 1 + Math.max(...order.flat().map((one) => one.stage));
    const ends = new Map(), free = order.map(() => 0), done = order.map(() => 0), events = [];
    const ready = order.map(() => null); // of each device, what it does next, once it can
    for (let left = order.flat().length; left; left -= 1) {
      order.forEach((passes, device) => {
        const one = ready[device] ? null : passes[done[device]];
        const before = one ? needed(one, stages).map((each) => ends.get(key(each))) : [undefined];
        if (before.every((end) => end !== undefined))
          ready[device] = { begin: Math.max(free[device], ...before), one, device };
      });
      const next = ready.reduce((a, b) => (!a || (b && earlier(b, a) < 0) ? b : a), null);
      const end = next.begin + seconds(next.one);
      ends.set(key(next.one), end);
      free[next.device] = end;
      done[next.device] += 1;
      ready[next.device] = null;
      events.push({ ...next.one, device: next.device, begin: next.begin, end });
    }
    return events;
  }

  const endOf = (events) => Math.max(...events.map((event) => event.end));

  // The part of all devices' time in which they wait, between 0 and 1.
  function bubble(events, devices) {
    const busy = events.reduce((sum, event) => sum + event.end - event.begin, 0);
    return 1 - busy / (devices * endOf(events));
  }

  // The most microbatches that a device has passed forward, and not yet back.
  function mostLive(passes) {
    let live = 0, most = 0;
    for (const one of passes) most = Math.max(most, (live += one.forward ? 1 : -1));
    return most;
  }

  // How many consecutive units each stage has, such that the most work of a stage is least; of
  // equals, the first stages have the fewest.
  function balanced(work, stages) {
    const before = [0];
    for (const each of work) before.push(before.at(-1) + each);
    const count = work.length, known = new Map();
    function slowest(begin, left) {
      if (left === 1) return before[count] - before[begin];
      const at = begin * (stages + 1) + left;
      if (!known.has(at)) {
        let least = Infinity;
        for (let end = begin + 1; end <= count - left + 1; end += 1)
          least = Math.min(least, Math.max(before[end] - before[begin], slowest(end, left - 1)));
        known.set(at, least);
      }
      return known.get(at);
    }
    const cuts = [0], limit = slowest(0, stages);
    for (let left = stages - 1; left > 0; left -= 1) {
      let end = cuts.at(-1) + 1;
      while (slowest(end, left) > limit) end += 1;
      cuts.push(end);
    }
    return [...cuts, count].slice(1).map((end, i) => end - cuts[i]);
  }

  return { range, orders, needed, simulate, endOf, bubble, mostLive, balanced, key };
})();
