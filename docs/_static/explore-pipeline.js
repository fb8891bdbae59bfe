// The pipeline, pass by pass: the plan's timeline, and that of a real run below it. What is drawn
// comes from pipelines.js and runs.js; notebooks/drawing/templates/ has the controls.
(() => {
  "use strict";

  const { svg, text, rect, table, steps, start } = globalThis.explorer;
  const { range, orders, needed, simulate, endOf, bubble, mostLive, key } = globalThis.pipelines;
  const { kept, runOf, differences, ordered, number, way } = globalThis.runs;

  const LANE = 28, BOX = 19, LOW = 6, FOOT = 18; // a backward pass stands lower than a forward one
  const DIGIT = 0.72 * 11; // the widest that a digit is on average, in any font
  const NAMES = { naive: "naive", gpipe: "GPipe", "1f1b": "1F1B" };

  const percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;
  const devicesOf = (count) => `${count} device${count === 1 ? "" : "s"}`;
  const microbatchesOf = (count) => `${count} microbatch${count === 1 ? "" : "es"}`;

  // The share of time that devices wait, which does not depend on how long passes take.
  const FILLING = [(p, m) => (p - 1) / (m + p - 1), "(p − 1) / (m + p − 1)"];
  const THEORY = {
    naive: [(p) => (p - 1) / p, "(p − 1) / p, as one device works at a time"],
    gpipe: FILLING,
    "1f1b": FILLING,
  };

  // Lanes, a box for each pass, and `mark`, which shows how far the steps have come.
  function timeline(events, devices, { width, measure, label }) {
    const left = width > 480 ? 62 : 26, prefix = width > 480 ? "device " : "d";
    const end = endOf(events), lengths = events.map((event) => event.end - event.begin);
    const unit = (width - left - 2) / end, height = devices * LANE + FOOT;
    const x = (time) => left + time * unit;
    const top = ({ device, forward }) => device * LANE + (forward ? 1 : 1 + LOW);
    const boxes = events.map((event, i) => {
      const wide = Math.max(0.5, lengths[i] * unit - (lengths[i] * unit > 4 ? 1 : 0));
      const part = event.forward ? "cell" : "sent-cell";
      const box = svg("g", { class: wide > 5 ? "pic-pass" : "pic-pass tiny", "data-pass": i },
        rect(x(event.begin), top(event), wide, BOX, part, 0.25));
      if (wide >= DIGIT * String(event.microbatch).length)
        box.append(text(x(event.begin) + wide / 2, top(event) + 14, String(event.microbatch)));
      return box;
    });
    const lanes = range(devices).flatMap((device) => [
      text(0, device * LANE + 18, prefix + device, "muted", "start"),
      rect(left, device * LANE, end * unit, LANE - 2, "rule")]);
    const marks = svg("g", { class: "pic-marks" });
    const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
      "aria-label": label, "font-size": 11 }, ...lanes,
      text(left, height - 3, "0", "muted", "start"),
      text(width - 2, height - 3, `${number(end)} ${measure}`, "muted", "end"), ...boxes, marks);
    const places = new Map(events.map((event, i) => [key(event), i]));

    function mark(done, now) {
      for (const [name, i] of places) boxes[i].classList.toggle("later", !done.has(name));
      marks.replaceChildren();
      if (!now) return;
      const at = events[places.get(key(now))];
      const outline = (event, part) =>
        rect(x(event.begin), top(event), Math.max(2, (event.end - event.begin) * unit), BOX, part);
      for (const each of needed(now, 1 + Math.max(...events.map((event) => event.stage)))) {
        const before = events[places.get(key(each))];
        const [from, to] = [top(before) + BOX / 2, top(at) + BOX / 2];
        const line = `M${x(before.end)} ${from}L${x(at.begin)} ${to}`;
        marks.append(outline(before, "given"), svg("path", { d: line, class: "pic-adds" }));
      }
      marks.append(outline(at, "got"));
    }
    return { drawn, mark, events, devices, measure };
  }

  // What a pass is, and what it waits for.
  function told({ events, devices, measure }, i) {
    const at = events[i], stages = 1 + Math.max(...events.map((event) => event.stage));
    const through = stages > devices ? ` through stage ${at.stage}` : "";
    const needs = needed(at, stages).map((each) => {
      const before = events.find((event) => key(event) === key(each));
      return `microbatch ${each.microbatch} ${way(each)} on device ${before.device}` +
        `${through && `, stage ${each.stage}`}, done at ${number(before.end)}`;
    });
    const free = Math.max(0, ...events.slice(0, i)
      .filter((event) => event.device === at.device).map((event) => event.end));
    const waited = at.begin > free ? `, so it has waited ${number(at.begin - free)}` : "";
    return `Device ${at.device} passes microbatch ${at.microbatch} ${way(at)}${through}, ` +
      `from ${number(at.begin)} to ${number(at.end)}${measure === "ms" ? " ms" : ""}. It needs: ` +
      [...needs, `its device is free at ${number(free)}${waited}`].join("; ") + ".";
  }

  start("pipeline", ({ root, data, find, named, show }) => {
    const [stage, real] = root.querySelectorAll(".explorer-stage");
    const slider = named("step"), { jump, shown } = steps(root, slider);
    const said = (name, words) => { find(name).textContent = words; };
    let own = null, seen = "", events = [], views = [], live = [];

    const hint = () => said("told", events.length ?
      "Point at a box to see what it waits for. Tap it to go to its step." : "");

    const chosen = (beside, schedule) => beside === "own" ? own :
      kept(data.runs, beside, schedule) ?? kept(data.runs, beside, "1f1b");

    // The run to draw below, or why there is none.
    function besides({ beside, schedule, stages, microbatches }) {
      if (beside === "nothing") return [null, ""];
      const run = chosen(beside, schedule);
      if (!run) return [null, "Choose a record of your own below."];
      const fits = run.schedule === schedule && run.stages === stages &&
        run.microbatches === microbatches;
      return fits ? [run, ""] : [null, `That run has ${devicesOf(run.stages)} and ` +
        `${microbatchesOf(run.microbatches)}, in the order ${NAMES[run.schedule]}: choose these.`];
    }

    function drawRun(run, { times }, place) {
      const lengths = new Map(run.events.map((event) => [key(event), event.end - event.begin]));
      const shown = times === "alone"
        ? simulate(ordered(run.events, run.stages), (one) => lengths.get(key(one))) : run.events;
      const view = timeline(shown, run.stages,
        { ...place, measure: "ms", label: `What the devices of ${run.name} did.` });
      real.replaceChildren(view.drawn);
      views.push(view);
      find("differences").replaceChildren(...differences(events, run).map((words) =>
        Object.assign(document.createElement("li"), { textContent: words })));
      return [`${number(endOf(shown))} ms`, percent(bubble(shown, run.stages)), "–"];
    }

    // Everything but the step.
    function drawPlan(values) {
      const { stages, microbatches, schedule, forward, backward } = values;
      const atEnd = slider.value === slider.max;
      events = simulate(orders[schedule](stages, microbatches),
        (one) => (one.forward ? forward : backward));
      views = [];
      slider.max = slider.defaultValue = String(events.length);
      if (atEnd) slider.value = slider.max;
      const [run, refused] = besides(values);
      find("run").hidden = !run;
      show("times", values.beside !== "nothing");
      said("refused", refused);
      const place = { width: Math.max(240, stage.clientWidth) };
      const label = `${NAMES[schedule]}, ${devicesOf(stages)}, ${microbatchesOf(microbatches)}.`;
      const view = timeline(events, stages,
        { ...place, measure: "units", label: `The plan: ${label}` });
      stage.replaceChildren(view.drawn);
      views.push(view);
      const [share, formula] = THEORY[schedule];
      const plan = [`${number(endOf(events))} units`, percent(bubble(events, stages)),
        percent(share(stages, microbatches))];
      const beside = run ? drawRun(run, values, place) : [];
      find("sums").replaceChildren(table(["", "plan", ...(run ? [run.name] : [])],
        ["whole time", "bubble", "bubble in theory"].map((each, i) =>
          [each, plan[i], ...(run ? [beside[i]] : [])])));
      said("theory", `In theory, the bubble is ${formula} with p = ${stages} devices and ` +
        `m = ${microbatchesOf(microbatches)}, however long a pass takes.`);
      if (run) said("about", `Below: ${run.name}${run.about ?? ""}.`);
      live = ordered(events, stages).map((each) => [mostLive(each), microbatches]);
    }

    function drawStep() {
      const step = Math.min(Number(slider.value), events.length), now = events[step - 1];
      const done = events.slice(0, step), names = new Set(done.map(key));
      for (const { mark } of views) mark(names, now);
      const counts = live.map((_, device) => done.reduce((sum, event) =>
        sum + (event.device === device ? (event.forward ? 1 : -1) : 0), 0));
      const heads = ["", "in flight now", "at most", "of the minibatch"];
      find("devices").replaceChildren(table(heads, live.map(([most, all], device) =>
        [`device ${device}`, String(counts[device]), String(most), percent(most / all)])));
      said("words", now ? `Step ${step} of ${events.length}: ${told(views[0], step - 1)} ` +
        `Then it has ${microbatchesOf(counts[now.device])} in flight.` :
        "Start: no microbatch has been passed yet.");
      shown();
      hint();
    }

    function draw(values) {
      const { step, ...others } = values;
      const wanted = JSON.stringify([others, root.clientWidth, own?.id]);
      if (wanted !== seen) drawPlan(values);
      seen = wanted;
      drawStep();
    }

    // A run has its own number of devices and microbatches: the plan takes them over.
    function follow(run) {
      for (const name of ["stages", "microbatches", "schedule"]) named(name).value = run[name];
    }

    async function open({ target }) {
      try {
        own = { ...runOf(await target.files[0].text()), id: (own?.id ?? 0) + 1 };
        said("opened", "The record is drawn below the plan.");
        follow(own);
        named("beside").value = "own";
      } catch {
        own = null;
        said("opened", "This file is no record of one pipeline, or lacks passes of it.");
      }
      named("beside").dispatchEvent(new Event("input", { bubbles: true }));
    }

    [stage, real].forEach((place, i) => {
      const passAt = (event) => event.target.closest("[data-pass]")?.dataset.pass;
      place.addEventListener("pointerover", (event) => {
        const pass = passAt(event);
        if (pass === undefined) hint();
        else said("told", told(views[i], Number(pass)));
      });
      place.addEventListener("pointerleave", hint);
      place.addEventListener("click", (event) => {
        const pass = passAt(event);
        if (pass === undefined) return;
        const name = key(views[i].events[pass]);
        jump(1 + events.findIndex((each) => key(each) === name));
      });
    });
    named("beside").addEventListener("input", ({ target }) => {
      const run = chosen(target.value, named("schedule").value);
      if (run) follow(run);
    });
    root.querySelector("[type=file]").addEventListener("change", open);
    return draw;
  });
})();
