// The pipeline, pass by pass: the plan's timeline, and that of a real run below it. What is drawn
// comes from pipelines.js and runs.js; notebooks/drawing/explore_pipeline.py writes the controls.
(() => {
  "use strict";

  const { svg, text, rect, table, start } = globalThis.explorer;
  const { CHUNKS, orders, needed, simulate, endOf, bubble, mostLive, key } = globalThis.pipelines;
  const { LARGEST, kept, runOf, differences, ordered, number, way } = globalThis.runs;

  const LANE = 28, BOX = 19, LOW = 6, FOOT = 18; // a backward pass stands lower than a forward one
  const DIGIT = 0.72 * 11; // the widest that a digit is on average, in any font
  const WIDEST = 16_000; // pixels
  const PLAY = { pause: 500, all: 30_000 }; // milliseconds: from pass to pass, and at most
  const NAMES = { naive: "naive", gpipe: "GPipe", "1f1b": "1F1B", interleaved: "interleaved 1F1B" };

  const percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;
  const devicesOf = (count) => `${count} device${count === 1 ? "" : "s"}`;
  const microbatchesOf = (count) => `${count} microbatch${count === 1 ? "" : "es"}`;

  // The share of time that devices wait, which does not depend on how long passes take.
  const THEORY = {
    naive: [(p) => (p - 1) / p, "(p − 1) / p, as one device works at a time"],
    gpipe: [(p, m) => (p - 1) / (m + p - 1), "(p − 1) / (m + p − 1)"],
    "1f1b": [(p, m) => (p - 1) / (m + p - 1), "(p − 1) / (m + p − 1)"],
    interleaved: [(p, m) => (p - 1) / (CHUNKS * m + p - 1), `(p − 1) / (${CHUNKS}m + p − 1)`],
  };

  // Lanes, a box for each pass, and `mark`, which shows how far the steps have come.
  function timeline(events, devices, { width, roomy, measure, label }) {
    const left = width > 480 ? 62 : 26, prefix = width > 480 ? "device " : "d";
    const end = endOf(events), lengths = events.map((event) => event.end - event.begin);
    const digits = DIGIT * String(Math.max(...events.map((event) => event.microbatch))).length + 2;
    const fit = (width - left - 2) / end;
    const shortest = Math.min(...lengths.filter((each) => each > 0));
    const unit = roomy ? Math.max(fit, Math.min(digits / shortest, WIDEST / end)) : fit;
    const height = devices * LANE + FOOT, whole = left + end * unit + 2;
    const x = (time) => left + time * unit;
    const top = ({ device, forward }) => device * LANE + (forward ? 1 : 1 + LOW);
    const boxes = events.map((event, i) => {
      const wide = Math.max(0.5, lengths[i] * unit - (lengths[i] * unit > 4 ? 1 : 0));
      const part = event.forward ? "cell" : "sent-cell";
      const share = event.stage < devices ? 0.25 : 0.55;
      const box = svg("g", { class: wide > 5 ? "pic-pass" : "pic-pass tiny", "data-pass": i },
        rect(x(event.begin), top(event), wide, BOX, part, share));
      if (wide >= DIGIT * String(event.microbatch).length)
        box.append(text(x(event.begin) + wide / 2, top(event) + 14, String(event.microbatch)));
      return box;
    });
    const lanes = [...Array(devices).keys()].flatMap((device) => [
      text(0, device * LANE + 18, prefix + device, "muted", "start"),
      rect(left, device * LANE, end * unit, LANE - 2, "rule")]);
    const marks = svg("g", { class: "pic-marks" });
    const drawn = svg("svg", { viewBox: `0 0 ${whole} ${height}`, width: whole, height, role: "img",
      "aria-label": label, "font-size": 11 }, ...lanes,
      text(left, height - 3, "0", "muted", "start"),
      text(whole - 2, height - 3, `${number(end)} ${measure}`, "muted", "end"), ...boxes, marks);
    const places = new Map(events.map((event, i) => [key(event), i]));

    function mark(done, now) {
      for (const [name, i] of places) boxes[i].classList.toggle("later", !done.has(name));
      marks.replaceChildren();
      if (!now) return null;
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
      return x(at.begin);
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
      [...needs, `its own device is free at ${number(free)}${waited}`].join("; ") + ".";
  }

  start("pipeline", (root) => {
    const find = (selector) => root.querySelector(selector);
    const named = (name) => find(`[name=${name}]`);
    const { runs } = JSON.parse(find("script[type='application/json']").textContent);
    const [stage, real] = root.querySelectorAll(".explorer-stage");
    const slider = named("step"), play = named("play"), file = find("input[type=file]");
    const said = (name, words) => { find(`.explorer-${name}`).textContent = words; };
    const still = matchMedia("(prefers-reduced-motion: reduce)");
    let own = null, seen = "", events = [], views = [], devices = 0, live = [], timer = null;

    const hint = () => said("told", events.length ?
      "Point at a box: it tells what it waits for. Tap it: the step goes there." : "");

    function go(wanted) {
      slider.value = wanted;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
    }

    function pause() {
      clearInterval(timer);
      timer = null;
      play.textContent = "play";
    }

    const chosen = (beside, schedule) => beside === "own" ? own :
      kept(runs, beside, schedule) ?? kept(runs, beside, "1f1b");

    // The run to draw below, or why there is none.
    function besides({ beside, schedule, stages, microbatches }) {
      if (beside === "nothing") return [null, ""];
      const run = chosen(beside, schedule);
      if (!run) return [null, "Choose a record of your own below."];
      const fits = run.schedule === schedule && run.stages === stages &&
        run.microbatches === microbatches;
      const [these, orders] = beside === "own" ? ["Your run has", `the order ${NAMES[run.schedule]}`]
        : ["These runs have", "the orders naive, GPipe and 1F1B"];
      return [fits ? run : null, fits ? "" : `${these} ${devicesOf(run.stages)} and ` +
        `${microbatchesOf(run.microbatches)}, in ${orders}: choose these.`];
    }

    function drawRun(run, { times, forward, backward, width }, place) {
      const lengths = new Map(run.events.map((event) => [key(event), event.end - event.begin]));
      const by = {
        alone: (one) => lengths.get(key(one)),
        order: (one) => (one.forward ? forward : backward),
      };
      const shown = by[times] ? simulate(ordered(run.events, run.stages), by[times]) : run.events;
      const measure = times === "order" ? "units" : "ms";
      const view = timeline(shown, run.stages, { ...place, measure, roomy: width === "numbers",
        label: `What the devices of ${run.name} did.` });
      real.replaceChildren(view.drawn);
      views.push({ ...view, place: real });
      find(".explorer-differences").replaceChildren(...differences(events, run).map((words) =>
        Object.assign(document.createElement("li"), { textContent: words })));
      return [`${number(endOf(shown))} ${measure}`, percent(bubble(shown, devices)), "–"];
    }

    // Everything but the step.
    function drawPlan(values) {
      const { stages, microbatches, schedule, forward, backward, width } = values;
      const possible = schedule !== "interleaved" || microbatches % stages === 0;
      const chunks = schedule === "interleaved" ? CHUNKS : 1, atEnd = slider.value === slider.max;
      devices = stages;
      events = possible ? simulate(orders[schedule](stages, microbatches),
        (one) => (one.forward ? forward : backward) / chunks) : [];
      views = [];
      find(".explorer-shown").hidden = !possible;
      for (const name of ["step", "play", ...Object.keys(steps)]) named(name).disabled = !possible;
      slider.max = slider.defaultValue = String(events.length);
      if (atEnd) slider.value = slider.max;
      const [run, refused] = besides(values);
      find(".explorer-run").hidden = !run || !possible;
      find("[data-for=times]").hidden = values.beside === "nothing";
      said("refused", refused);
      if (!possible) return;
      const place = { width: Math.max(240, stage.clientWidth) };
      const label = `${NAMES[schedule]}, ${devicesOf(stages)}, ${microbatchesOf(microbatches)}.`;
      const view = timeline(events, devices, { ...place, measure: "units",
        roomy: width === "numbers", label: `The plan: ${label}` });
      stage.replaceChildren(view.drawn);
      views.push({ ...view, place: stage });
      const [share, formula] = THEORY[schedule];
      const plan = [`${number(endOf(events))} units`, percent(bubble(events, devices)),
        percent(share(stages, microbatches))];
      const beside = run ? drawRun(run, values, place) : [];
      find(".explorer-sums").replaceChildren(table(["", "plan", ...(run ? [run.name] : [])],
        ["whole time", "bubble", "bubble in theory"].map((each, i) =>
          [each, plan[i], ...(run ? [beside[i]] : [])])));
      said("theory", `In theory, the bubble is ${formula} with p = ${stages} devices and ` +
        `m = ${microbatchesOf(microbatches)}, however long a pass takes.`);
      if (run) said("about", `Below: ${run.name}${run.about ?? ""}.`);
      live = ordered(events, devices).map((each) => [mostLive(each), chunks * microbatches]);
    }

    function drawStep() {
      const step = Math.min(Number(slider.value), events.length), now = events[step - 1];
      const done = events.slice(0, step), names = new Set(done.map(key));
      for (const { mark, place } of views) {
        const at = mark(names, now);
        const seen = at - place.scrollLeft;
        if (at !== null && (seen < 62 || seen > place.clientWidth - 40))
          place.scrollLeft = at - place.clientWidth / 2;
      }
      const counts = live.map((_, device) => done.reduce((sum, event) =>
        sum + (event.device === device ? (event.forward ? 1 : -1) : 0), 0));
      const heads = ["", "live now", "live at most", "of the minibatch"];
      find(".explorer-devices").replaceChildren(table(heads, live.map(([most, all], device) =>
        [`device ${device}`, String(counts[device]), String(most), percent(most / all)])));
      said("words", now ? `Step ${step} of ${events.length}: ${told(views[0], step - 1)} ` +
        `Then it has ${microbatchesOf(counts[now.device])} live.` :
        "Start: no microbatch has been passed yet.");
      slider.setAttribute("aria-valuetext", `${step} of ${events.length}`);
      const ends = { first: 0, back: 0, next: events.length, last: events.length };
      for (const [name, end] of Object.entries(ends))
        named(name).setAttribute("aria-disabled", step === end);
      if (step === events.length) pause();
      hint();
    }

    function draw(values) {
      const { step, ...others } = values;
      const wanted = JSON.stringify([others, root.clientWidth, own?.id]);
      if (wanted !== seen) drawPlan(values);
      seen = wanted;
      if (!events.length) return said("words", impossible(values));
      drawStep();
    }

    function impossible({ stages, microbatches }) {
      pause();
      hint();
      const near = [Math.floor, Math.ceil].map((each) => each(microbatches / stages) * stages)
        .filter((each) => each > 0 && each <= LARGEST.microbatches);
      return "Interleaving passes microbatches in groups of as many as there are devices: " +
        `${microbatches} is no multiple of ${stages}. Choose ${near.join(" or ")} microbatches.`;
    }

    // A run has its own number of devices and microbatches: the plan takes them over.
    function follow(run) {
      for (const name of ["stages", "microbatches", "schedule"]) named(name).value = run[name];
    }

    async function open() {
      const [given] = file.files;
      if (!given) return;
      try {
        if (given.size > LARGEST.bytes) throw Error("This file is too large for a record.");
        own = { ...runOf(await given.text()), id: (own?.id ?? 0) + 1 };
        said("opened", "The record is drawn below the plan.");
        follow(own);
        named("beside").value = "own";
      } catch (error) {
        own = null;
        said("opened", error.message);
      }
      named("beside").dispatchEvent(new Event("input", { bubbles: true }));
    }

    const steps = {
      first: () => 0,
      back: (at) => at - 1,
      next: (at) => at + 1,
      last: () => events.length,
    };
    const move = (name) => go(steps[name](Number(slider.value)));
    const keys = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last" };

    root.addEventListener("keydown", (event) => {
      // Lists and fields have these keys to themselves; with a modifier they are the browser's.
      const other = event.altKey || event.ctrlKey || event.metaKey;
      if (!(event.key in keys) || other || !events.length ||
          event.target.matches("select, [type=number], [type=file]")) return;
      event.preventDefault();
      pause();
      move(keys[event.key]);
    });
    for (const name of Object.keys(steps))
      named(name).addEventListener("click", () => { pause(); move(name); });
    play.addEventListener("click", () => {
      if (timer !== null) return pause();
      if (Number(slider.value) === events.length) go(0);
      timer = setInterval(() => move("next"), Math.min(PLAY.pause, PLAY.all / events.length));
      play.textContent = "pause";
    });
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
        pause();
        go(1 + events.findIndex((each) => key(each) === name));
      });
    });
    named("beside").addEventListener("input", ({ target }) => {
      const run = chosen(target.value, named("schedule").value);
      if (run) follow(run);
    });
    file.addEventListener("change", open);
    const calm = () => { play.hidden = still.matches; if (still.matches) pause(); };
    still.addEventListener("change", calm);
    calm();
    return draw;
  });
})();
