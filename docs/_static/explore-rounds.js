// Steps through an allreduce. notebooks/drawing/explorers.py writes the data; here they
// are drawn, as wide as there is room, so that 16 devices fit on a phone.
(() => {
  "use strict";

  const { svg, text, rect, steps, start } = globalThis.explorer;

  const CELL = 20, FIRST = 10, LANE = 6, HEAD = 24, LABELS = 26, WIDEST = 96, TALL = 14;
  const DIGIT = 0.72 * 12; // the widest that a digit or a sign is on average, in any font

  const devicesIn = (mask) => [...Array(16).keys()].filter((device) => (mask >> device) & 1);

  const spelled = (mask) => devicesIn(mask).join("+");

  // What each device has after each round: the data hold only what a round has changed.
  function unpacked(walk, k) {
    let held = [...Array(k).keys()].map((device) => Array(walk.chunks).fill(1 << device));
    return walk.frames.map((frame) => {
      held = held.map((chunks) => [...chunks]);
      for (const [, target, start, , ...sums] of frame.messages)
        sums.forEach((sum, i) => { held[target][start + i] = sum; });
      return held;
    });
  }

  // Where everything is, for one algorithm and number of devices, in a picture of this width.
  function layout(walk, k, held, width) {
    const labels = walk.chunks > 1 ? LABELS : 2;
    const pitch = Math.min(WIDEST, (width - labels - 2) / k);
    const tops = [HEAD];
    for (const lanes of walk.gaps)
      tops.push(tops.at(-1) + CELL + LANE + (lanes ? FIRST + LANE * (lanes - 1) : 0));
    const everyone = 2 ** k - 1;
    const partial = held.flat(2).filter((mask) => mask !== everyone);
    const longest = Math.max("sum".length, ...partial.map((mask) => spelled(mask).length));
    return { k, pitch, tops, everyone, left: labels, full: longest * DIGIT + 4 <= pitch - 2,
      width: labels + pitch * k + 2 };
  }

  function names(place, chunks) {
    const { k, pitch, left, tops } = place;
    const fits = (prefix) => (prefix.length + String(k - 1).length) * DIGIT <= pitch;
    const prefix = ["device ", "dev ", "d", ""].find((each) => fits(each) || each === "");
    const made = [...Array(k).keys()].map((device) =>
      text(left + (device + 0.5) * pitch, HEAD - 8, prefix + device, "muted"));
    for (let chunk = 0; chunks > 1 && chunk < chunks; chunk += 1)
      made.push(text(LABELS / 2 - 2, tops[chunk] + TALL, `c${chunk}`, "muted"));
    return made;
  }

  function cell(place, device, chunk, mask) {
    const { k, pitch, left, tops, everyone, full } = place;
    const count = devicesIn(mask).length, all = mask === everyone;
    const share = all ? 1 : 0.1 + (0.4 * (count - 1)) / Math.max(1, k - 2);
    const words = full ? (all ? "sum" : spelled(mask)) : String(count);
    const x = left + device * pitch + 1;
    return svg("g", { class: "pic-box" },
      rect(x, tops[chunk], pitch - 2, CELL, "cell", share),
      text(x + pitch / 2 - 1, tops[chunk] + TALL, words, all ? "on-sum" : "ink"));
  }

  // A message: a thin outline around what is sent, a thick one around what has got it, an arrow.
  function message(place, adds, [source, target, start, lane, ...sums]) {
    const { pitch, left, tops } = place;
    const bottom = tops[start + sums.length - 1] + CELL, top = tops[start];
    const edge = (device) => left + device * pitch + 1;
    const middle = (device) => edge(device) + pitch / 2 - 1;
    const [from, to] = [middle(source), middle(target)];
    const way = bottom + FIRST + LANE * lane, turn = 3 * Math.sign(to - from);
    const line = `M${from} ${bottom}V${way - 3}Q${from} ${way} ${from + turn} ${way}` +
      `H${to - turn}Q${to} ${way} ${to} ${way - 3}V${bottom + 6}`;
    return svg("g", { class: "pic-arrow" },
      rect(edge(source), top, pitch - 2, bottom - top, "given"),
      rect(edge(target), top, pitch - 2, bottom - top, "got"),
      svg("path", { d: line, class: adds ? "pic-adds" : "pic-copies" }),
      svg("path", { d: `M${to} ${bottom + 1}l-3.5 6h7Z`, class: "pic-head" }),
      svg("circle", { cx: from, cy: bottom, r: 2, class: "pic-head" }));
  }

  function drawing(walk, place, held, number) {
    const { messages, adds, words } = walk.frames[number];
    const height = place.tops.at(-1) + 4;
    return svg("svg", { viewBox: `0 0 ${place.width} ${height}`, width: place.width, height,
      role: "img", "aria-label": words, "font-size": 12 },
      ...names(place, walk.chunks),
      ...held[number].flatMap((chunks, device) =>
        chunks.map((mask, chunk) => cell(place, device, chunk, mask))),
      ...messages.map((each) => message(place, adds, each)));
  }

  function legend(chunks, full) {
    const cells = full ? "A cell names the devices that it sums; “sum” is the sum of all." :
      "The number in a cell says how many devices it sums.";
    const rows = chunks > 1 ? "a row, a chunk of it" : "it is not cut";
    return `A column is a device’s vector; ${rows}. ${cells} A thin outline: sent. ` +
      "A thick outline: received. A solid arrow adds, a dashed one copies.";
  }

  start("rounds", ({ root, data, find, named }) => {
    const slider = named("round"), { shown, walk } = steps(root, slider);
    return ({ algorithm, devices, round }) => {
      const chosen = data[algorithm][devices], { frames, chunks } = chosen, k = Number(devices);
      const held = unpacked(chosen, k), place = layout(chosen, k, held, find("stage").clientWidth);
      walk(algorithm + devices, frames.length - 1, round);
      shown();
      const number = Number(slider.value), last = frames.length - 1;
      const percent = ({ sent }) => `${Math.round((100 * sent) / chunks)}\u00a0%`;
      find("words").textContent = frames[number].words;
      find("sent").textContent = `Sent by the busiest device: ${percent(frames[number])} of the ` +
        `vector’s bytes (${percent(frames[last])} in all ${last} rounds).`;
      find("stage").replaceChildren(drawing(chosen, place, held, number));
      find("key").textContent = legend(chunks, place.full);
    };
  });
})();
