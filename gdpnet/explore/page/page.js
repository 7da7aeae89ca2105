// The page: one state, drawn anew whenever it changes.

const NAMES = { cnf: "CNF", pdnf: "partial DNF", dnf: "DNF" };
const NORMS = { l1: "l1, the sum of moves", l2: "l2, Euclidean" };
const LEFT_OUT = "With l2 the page computes the exact answer, the DNF's. CNF and partial DNF are left out: their programs are conic, and this page solves linear ones.";
// Rows that are not linear have names, and no programs of relaxations in this page.
const CURVED = [...new Set(MODEL.rows.filter((row) => row.curves).map((row) => row.name))];
const CURVED_OUT = `Some rows are not linear (${CURVED.slice(0, 8).join(", ")}${CURVED.length > 8 ? ", ..." : ""}). The page computes the exact answer, the DNF's, in both norms. CNF and partial DNF are left out: their programs are conic, and this page solves linear ones.`;
const PRICED_OUT = "Rules have prices. The page computes the exact answer, the DNF's, of distance and prices together: a rule may be broken where that costs less, and then the projection lies outside of the region. CNF and partial DNF are left out.";
const HULL = !MODEL.priced && (CURVED.length === 0 || MODEL.outputs.length < 3); // whether an outline is drawn
const GLOBALLY = "what has to hold always";
// With one output the picture is the lifted one: the output, and its distance as a second axis.
const LIFTED = MODEL.outputs.length === 1;
const AXES = LIFTED ? [MODEL.outputs[0], distanceAxis(MODEL.outputs[0])] : MODEL.outputs;
const FRAME = { left: 58, right: 620, top: 14, bottom: 546 };

const START = () => ({
  x: MODEL.inputs.map((input) => input.start),
  yhat: [...MODEL.start],
  norm: "l1", // with one output all norms are the same
  relaxation: "dnf",
  off: new Set(),
  merged: new Set([0, 1].filter((r) => r < MODEL.rules.length)),
  pair: [...MODEL.pair],
});
const state = START();

function distanceAxis({ name, low, high }) {
  return { name: `eta, at least |${name} - prediction|`, low: 0, high: high - low };
}

// Whether relaxations are left out.
function exactOnly() {
  return state.norm === "l2" || CURVED.length > 0 || MODEL.priced;
}

// ---- what is shown -------------------------------------------------------------------------

const kept = new Map(); // outlines and curves, which do not depend on the prediction

function keeping(key, make) {
  if (!kept.has(key)) {
    if (kept.size > 200) kept.clear();
    kept.set(key, make());
  }
  return kept.get(key);
}

function compute() {
  const at = new RulesAt(MODEL, state.x, state.off);
  if (at.unusable.length) return { at, error: `The coefficients of ${at.unusable[0].name} are not finite at these inputs.` };
  if (at.unpayable.length) return { at, error: `A price of ${at.unpayable[0].name} is negative or no number at these inputs.` };
  try {
    const answer = project(at, state.yhat, state.relaxation, state.merged, state.norm);
    if (LIFTED) return { at, answer, fixed: {}, ...computeLifted(at) };
    const fixed = {};
    for (let j = 0; j < at.d; j++) {
      if (!state.pair.includes(j)) fixed[j] = Math.min(Math.max(answer.y[j], at.low[j]), at.high[j]);
    }
    const on = at.active.flatMap((active, r) => (active ? [r] : []));
    const order = state.pair[0] < state.pair[1] ? [0, 1] : [1, 0];
    const region = regionOf(at, on, fixed).map((piece) => around(piece.map((y) => order.map((k) => y[k]))));
    if (CURVED.length || !HULL) return { at, answer, fixed, region, outline: HULL ? hullOf(region.flat()) : [] };
    const clusters = at.clusters(state.relaxation, state.merged);
    const key = JSON.stringify([state.x, clusters, state.pair, fixed]);
    const outline = keeping(key, () => outlineOf(at, clusters, state.pair, fixed));
    return { at, answer, fixed, region, outline };
  } catch (error) {
    return { at, error: `This is too large for the page: ${error.message}. Switch rules off.` };
  }
}

function regionOf(at, on, fixed) {
  if (!CURVED.length) return piecesOf(at, on, fixed);
  const key = JSON.stringify([state.x, on, fixed, LIFTED ? state.yhat : []]);
  return keeping(key, () => roundedPieces(at, on, fixed));
}

function computeLifted(at) {
  const start = Math.min(Math.max(state.yhat[0], at.low[0]), at.high[0]);
  const lifted = liftedAt(at, start);
  const on = at.active.flatMap((active, r) => (active ? [r] : []));
  const clusters = at.clusters(state.relaxation, state.merged);
  const region = regionOf(lifted, on, {}).map(around);
  if (!HULL) return { region, outline: [] };
  return { region, outline: CURVED.length ? hullOf(region.flat()) : outlineOf(lifted, clusters, [0, 1], {}) };
}

// ---- drawing -------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes = {}, ...children) {
  const inSvg = ["svg", "g", "path", "circle", "line", "rect", "text", "defs", "pattern", "marker"].includes(tag);
  const element = inSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function scales() {
  const [i, j] = state.pair, margin = 0.04;
  const range = (k) => {
    const { low, high } = AXES[k], extra = margin * (high - low || 1);
    return [low - extra, high + extra];
  };
  const [left, right] = range(i), [bottom, top] = range(j);
  return {
    x: (v) => FRAME.left + (v - left) / (right - left) * (FRAME.right - FRAME.left),
    y: (v) => FRAME.bottom - (v - bottom) / (top - bottom) * (FRAME.bottom - FRAME.top),
    toX: (px) => left + (px - FRAME.left) / (FRAME.right - FRAME.left) * (right - left),
    toY: (px) => bottom + (FRAME.bottom - px) / (FRAME.bottom - FRAME.top) * (top - bottom),
    range: [[left, right], [bottom, top]],
  };
}

function ticks([low, high]) {
  const rough = (high - low) / 6, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough);
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

function pathOf(polygon, scale) {
  return polygon.map(([u, v], k) => `${k ? "L" : "M"}${scale.x(u).toFixed(2)} ${scale.y(v).toFixed(2)}`).join("") + "Z";
}

function drawBackground(svg, scale) {
  const [across, up] = scale.range;
  svg.append(make("defs", {},
    make("pattern", { id: "hatch", width: 9, height: 9, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      make("rect", { width: 9, height: 9, fill: "#d2efe6" }),
      make("line", { x1: 0, y1: 0, x2: 0, y2: 9, stroke: "#009e73", "stroke-width": 1.6 })),
    make("marker", { id: "tip", viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" },
      make("path", { d: "M0 0L10 5L0 10z", fill: "#1b1b1b" }))));
  for (const value of ticks(across)) {
    const x = scale.x(value);
    svg.append(make("line", { class: "grid", x1: x, x2: x, y1: FRAME.top, y2: FRAME.bottom }),
      make("text", { class: "tick", x, y: FRAME.bottom + 17, "text-anchor": "middle" }, String(value)));
  }
  for (const value of ticks(up)) {
    const y = scale.y(value);
    svg.append(make("line", { class: "grid", x1: FRAME.left, x2: FRAME.right, y1: y, y2: y }),
      make("text", { class: "tick", x: FRAME.left - 7, y: y + 4, "text-anchor": "end" }, String(value)));
  }
}

function drawFrame(svg) {
  const [i, j] = state.pair.map((k) => AXES[k].name);
  const middle = (FRAME.top + FRAME.bottom) / 2;
  svg.append(
    make("rect", { class: "frame", x: FRAME.left, y: FRAME.top, width: FRAME.right - FRAME.left, height: FRAME.bottom - FRAME.top }),
    make("text", { x: (FRAME.left + FRAME.right) / 2, y: FRAME.bottom + 38, "text-anchor": "middle" }, i),
    make("text", { x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, j));
}

function drawPicture({ answer, region, outline, error }) {
  const svg = document.getElementById("plot"), scale = scales();
  const focused = document.activeElement?.id === "prediction";
  svg.replaceChildren();
  drawBackground(svg, scale);
  if (error) {
    svg.append(make("text", { class: "message", x: 340, y: 280 }, error));
  } else {
    // The fill covers the inner half of the edges, and edges inside of the union.
    const d = region.map((polygon) => pathOf(polygon, scale)).join("");
    svg.append(make("path", { class: "edge", d }), make("path", { id: "region", d, fill: "url(#hatch)" }));
    if (outline.length) {
      svg.append(make("path", { id: "outline", class: `outline ${state.relaxation}`, d: pathOf(outline, scale) }));
    }
    if (!region.length) {
      const where = state.pair.length < MODEL.outputs.length ? "No point of this plane satisfies the active rules" : "No point satisfies the active rules";
      svg.append(make("text", { class: "message", x: 340, y: 280 }, where));
    }
    drawAnswer(svg, scale, answer);
  }
  drawFrame(svg);
  drawPrediction(svg, scale);
  if (focused) document.getElementById("prediction").focus();
}

function drawAnswer(svg, scale, answer) {
  const outside = Math.max(MODEL.outputs[0].low - state.yhat[0], state.yhat[0] - MODEL.outputs[0].high, 0);
  const from = shownAt(scale), to = point(scale, answer.y, answer.value - outside - (answer.paid ?? 0));
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
  if (answer.status === "conflict") return;
  if (length > 14) {
    const back = 6 / length, out = 8 / length;
    svg.append(make("line", { class: "arrow",
      x1: from[0] + out * (to[0] - from[0]), y1: from[1] + out * (to[1] - from[1]),
      x2: to[0] - back * (to[0] - from[0]), y2: to[1] - back * (to[1] - from[1]) }));
  }
  if (answer.status === "relaxed") {
    for (const s of [1, -1]) {
      svg.append(make("line", { class: "cross", x1: to[0] - 6, y1: to[1] - 6 * s, x2: to[0] + 6, y2: to[1] + 6 * s }));
    }
  } else svg.append(make("circle", { class: "projection", cx: to[0], cy: to[1], r: 6 }));
}

function point(scale, y, eta) {
  return [scale.x(y[state.pair[0]]), scale.y(LIFTED ? eta : y[state.pair[1]])];
}

function inside(v, low, high) {
  return Math.min(Math.max(v, low), high);
}

// Where the prediction is drawn: at the edge of the picture, if it lies outside of it.
function shownAt(scale) {
  const [x, y] = point(scale, state.yhat, 0);
  return [inside(x, FRAME.left, FRAME.right), inside(y, FRAME.top, FRAME.bottom)];
}

function isOutside(scale) {
  const [x, y] = point(scale, state.yhat, 0), [cx, cy] = shownAt(scale);
  return x !== cx || y !== cy;
}

function drawPrediction(svg, scale) {
  const [cx, cy] = shownAt(scale), [i] = state.pair;
  const said = moved().map((j) => `${MODEL.outputs[j].name} ${show(state.yhat[j])}`).join(", ");
  const handle = make("g", { id: "prediction", tabindex: 0, role: "slider", "aria-label": "prediction; arrow keys move it, with shift in small steps",
    "aria-valuemin": MODEL.outputs[i].low, "aria-valuemax": MODEL.outputs[i].high, "aria-valuenow": state.yhat[i], "aria-valuetext": said },
    make("circle", { class: "halo", cx, cy, r: 18 }), make("circle", { class: isOutside(scale) ? "outside" : "", cx, cy, r: 8 }));
  handle.addEventListener("pointerdown", startDrag);
  handle.addEventListener("keydown", moveByKey);
  svg.append(handle);
}

function show(value) {
  return String(Number(value.toPrecision(4)));
}

// The outputs that a mouse or an arrow key moves, across and up.
function moved() {
  return LIFTED ? [0] : state.pair;
}

// ---- moving the prediction -----------------------------------------------------------------

function startDrag(event) {
  event.preventDefault();
  document.getElementById("prediction").focus();
  const svg = document.getElementById("plot"), scale = scales();
  const move = (pointer) => {
    const box = svg.getBoundingClientRect(), ratio = 640 / box.width;
    const u = inside((pointer.clientX - box.left) * ratio, FRAME.left, FRAME.right);
    const v = inside((pointer.clientY - box.top) * ratio, FRAME.top, FRAME.bottom);
    const to = [scale.toX(u), scale.toY(v)];
    moved().forEach((j, k) => { state.yhat[j] = to[k]; });
    changed();
  };
  const stop = () => {
    window.removeEventListener("pointermove", move);
    window.removeEventListener("pointerup", stop);
    window.removeEventListener("pointercancel", stop);
  };
  window.addEventListener("pointermove", move);
  window.addEventListener("pointerup", stop);
  window.addEventListener("pointercancel", stop);
}

function moveByKey(event) {
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] }[event.key];
  if (!way) return;
  event.preventDefault();
  moved().forEach((j, k) => {
    const { low, high } = MODEL.outputs[j];
    state.yhat[j] += way[k] * (high - low) * (event.shiftKey ? 0.002 : 0.02);
  });
  changed();
}

// ---- tables --------------------------------------------------------------------------------

function tellAnswer({ at, answer, fixed, error }) {
  const box = document.getElementById("answer");
  const say = (className, ...lines) => {
    box.className = className;
    box.replaceChildren(...lines.map((line, k) => make("p", k ? {} : { class: "verdict" }, line)));
  };
  if (error) return say("bad", error);
  const names = (rules) => rules.map((r) => MODEL.rules[r].name).join(", ");
  const before = at.broken(state.yhat), after = at.broken(answer.y);
  const outside = at.globalViolation(state.yhat) > TOLERANCE ? [GLOBALLY] : [];
  const all = [names(before), ...outside].filter(Boolean).join(" and ");
  const broken = all ? `The prediction itself breaks ${all}.` : "";
  const plane = Object.keys(fixed).length
    ? `The picture shows the plane ${Object.entries(fixed).map(([j, v]) => `${MODEL.outputs[j].name} = ${show(v)}`).join(", ")}, where the ${answer.status === "conflict" ? "prediction" : "projection"} lies.` : "";
  const moves = state.yhat.map((v, j) => Math.abs(v - answer.y[j]));
  const distance = state.norm === "l2" ? Math.hypot(...moves) : moves.reduce((a, b) => a + b, 0);
  const verdicts = {
    satisfied: ["good", "The prediction satisfies every active rule and stays where it is."],
    projected: ["good", `The prediction moves by ${show(distance)}${state.norm === "l2" ? " (l2)" : ""}; then every active rule holds${told(answer)}.`],
    relaxed: ["bad", `${NAMES[state.relaxation]} moves the prediction to a point that breaks ${after.length ? names(after) : GLOBALLY}.`],
    conflict: ["bad", "No point satisfies the active rules together with what always holds: the prediction stays where it is."],
  };
  const [mood, verdict] = verdicts[answer.status];
  const value = answer.status === "relaxed" ? ` The relaxation's value ${show(answer.value)} is a lower bound on the distance to the rules.` : "";
  const where = isOutside(scales()) ? "The prediction lies outside of the picture; the dashed circle at its edge stands for it. " : "";
  return say(mood, verdict, broken + value, where + plane);
}

// What was paid, and which rules were broken for it.
function told({ paid, bought }) {
  if (!MODEL.priced) return "";
  const broken = bought.length ? ` but ${bought.map((r) => MODEL.rules[r].name).join(", ")}` : "";
  return `${broken}, and ${paid > 0 ? show(paid) : "nothing"} is paid`;
}

function verdict(cell, on, holds, otherwise = "") {
  cell.className = on ? (holds ? "holds" : "breaks") : "idle";
  cell.textContent = on ? (holds ? "holds" : "broken") : otherwise;
}

function tellRules({ at, answer }) {
  MODEL.rules.forEach((rule, r) => {
    const line = document.getElementById(`rule-${r}`), on = at.active[r];
    const idle = state.off.has(r) ? "off" : "inactive";
    verdict(line.cells[3], on, at.violation(r, state.yhat) <= TOLERANCE, idle);
    verdict(line.cells[4], on && answer, answer && at.violation(r, answer.y) <= TOLERANCE, idle);
    line.querySelectorAll(".disjunct").forEach((part, k) => {
      const terms = at.termsIn(MODEL.clauses[rule.clause].disjuncts[k]);
      part.classList.toggle("chosen", Boolean(on && answer && at.least(terms, answer.y) <= TOLERANCE));
    });
  });
}

function tellOutputs({ answer }) {
  MODEL.outputs.forEach((_, j) => {
    const line = document.getElementById(`output-${j}`);
    for (const field of line.querySelectorAll("input")) {
      if (document.activeElement !== field) field.value = show(state.yhat[j]);
    }
    line.cells[3].textContent = answer ? show(answer.y[j]) : "";
  });
  MODEL.inputs.forEach((_, k) => {
    for (const field of document.querySelectorAll(`#input-${k} input`)) {
      if (document.activeElement !== field) field.value = show(state.x[k]);
    }
  });
}

function tellLegend() {
  const icon = (child) => make("svg", { viewBox: "0 0 30 14", "aria-hidden": "true" }, child);
  const items = [
    [make("rect", { x: 1, y: 1, width: 28, height: 12, fill: "url(#hatch)", stroke: "#009e73" }), LIFTED ? "active rules hold, lifted" : "all active rules hold"],
    ...(HULL ? [[make("path", { d: "M1 7H29", class: state.relaxation, "stroke-width": 2.6 }), `${LIFTED ? "lifted hull" : "outline"} of ${NAMES[state.relaxation]}`]] : []),
    [make("circle", { cx: 15, cy: 7, r: 6, fill: "#fff", stroke: "#1b1b1b", "stroke-width": 2 }), "prediction"],
    [make("circle", { cx: 15, cy: 7, r: 5, fill: "#1b1b1b" }), state.norm === "l2" ? "projection, nearest in l2" : "projection"],
    [make("path", { d: "M10 2L20 12M10 12L20 2", stroke: "#b34a00", "stroke-width": 3.4 }), "projection that breaks a rule"],
  ];
  document.getElementById("legend").replaceChildren(...items.map(([child, text]) => make("li", {}, icon(child), text)));
}

// ---- controls ------------------------------------------------------------------------------

function buildControls() {
  const norm = document.getElementById("norm");
  norm.hidden = LIFTED;
  for (const [value, name] of Object.entries(NORMS)) {
    const field = make("input", { type: "radio", name: "norm", value });
    field.addEventListener("change", () => { state.norm = value; changed(); });
    norm.append(make("label", {}, field, ` ${name}`));
  }
  norm.append(make("p", { id: "left-out" }, LEFT_OUT));
  const relaxation = document.getElementById("relaxation");
  for (const [value, name] of Object.entries(NAMES)) {
    const field = make("input", { type: "radio", name: "relaxation", value });
    field.addEventListener("change", () => { state.relaxation = value; changed(); });
    relaxation.append(make("label", {}, field, ` ${name}`));
  }
  if (CURVED.length) relaxation.append(make("p", { id: "curved-out" }, CURVED_OUT));
  if (MODEL.priced) relaxation.append(make("p", { id: "priced-out" }, PRICED_OUT));
  if (!HULL) {
    document.getElementById("note").textContent = MODEL.priced ? "" : "With rows that are not linear and more than two outputs the outline of the DNF is left out.";
  }
  if (MODEL.outputs.length > 2) buildAxes();
  if (LIFTED && HULL) document.getElementById("note").textContent = "The outline is the lifted hull itself: the layer takes its lowest point.";
  buildOutputs();
  buildInputs();
  buildRules();
  document.getElementById("reset").addEventListener("click", () => { Object.assign(state, START()); changed(); });
}

function buildAxes() {
  const names = ["across", "up"];
  const fields = names.map((name, k) => {
    const select = make("select", { id: `axis-${k}` }, ...MODEL.outputs.map((o, j) => make("option", { value: j }, o.name)));
    select.addEventListener("change", () => {
      const other = state.pair[1 - k], chosen = Number(select.value);
      if (chosen === other) state.pair[1 - k] = state.pair[k];
      state.pair[k] = chosen;
      changed();
    });
    return make("label", {}, `${name} `, select);
  });
  document.getElementById("axes").append(...fields);
}

function slider(low, high, label, set) {
  const range = make("input", { type: "range", min: low, max: high, step: "any", "aria-label": label });
  const field = make("input", { type: "number", step: "any", "aria-label": `${label}, as a number` });
  for (const input of [range, field]) {
    input.addEventListener("input", () => {
      const value = Number(input.value);
      if (input.value !== "" && Number.isFinite(value)) { set(value); changed(); }
    });
    input.addEventListener("blur", changed); // what is no number gives way to the one that counts
  }
  return [range, field];
}

function buildOutputs() {
  const body = document.querySelector("#outputs tbody");
  MODEL.outputs.forEach(({ name, low, high }, j) => {
    const [range, field] = slider(low, high, `prediction of ${name}`, (value) => { state.yhat[j] = value; });
    body.append(make("tr", { id: `output-${j}` }, make("th", { scope: "row" }, name),
      make("td", {}, range), make("td", {}, field), make("td", {})));
  });
}

function buildInputs() {
  const box = document.getElementById("inputs");
  box.hidden = MODEL.inputs.length === 0;
  if (MODEL.samples.length) {
    const select = make("select", { id: "samples" }, make("option", { value: "" }, "choose"),
      ...MODEL.samples.map((_, k) => make("option", { value: k }, `sample ${k + 1}`)));
    select.addEventListener("change", () => {
      if (select.value !== "") { state.x = [...MODEL.samples[Number(select.value)]]; changed(); }
    });
    box.append(make("div", { class: "line" }, make("label", {}, "take the inputs of ", select)));
  }
  MODEL.inputs.forEach(({ name, low, high }, k) => {
    const fields = slider(low, high, name, (value) => { state.x[k] = value; });
    box.append(make("div", { class: "input", id: `input-${k}` }, make("label", { title: name }, name), ...fields));
  });
}

function buildRules() {
  const body = document.querySelector("#rules tbody");
  MODEL.rules.forEach((rule, r) => {
    const toggle = (set, ticked) => (event) => {
      if (event.target.checked === ticked) state[set].add(r); else state[set].delete(r);
      changed();
    };
    const on = make("input", { type: "checkbox", class: "on", "aria-label": `${rule.name} on` });
    on.addEventListener("change", toggle("off", false));
    const merge = make("input", { type: "checkbox", class: "join", "aria-label": `merge ${rule.name}` });
    merge.addEventListener("change", toggle("merged", true));
    const disjuncts = rule.disjuncts.flatMap((text, k) => [...(k ? [" or "] : []), make("span", { class: "disjunct" }, text)]);
    if (rule.price) disjuncts.push(` or broken for ${rule.price}`);
    const when = rule.hand
      ? make("span", { class: "when hand" }, "its condition is a Python function, which this page cannot compute: switch the rule by hand")
      : make("span", { class: "when" }, rule.when ? `if ${rule.when}` : "always");
    body.append(make("tr", { id: `rule-${r}` }, make("td", {}, on), make("td", { class: "merge" }, merge),
      make("td", {}, make("span", { class: "name" }, rule.name), when, make("span", { class: "disjuncts" }, ...disjuncts)),
      make("td", {}), make("td", {})));
  });
  if (MODEL.always.length) {
    body.append(make("tr", {}, make("td", {}), make("td", { class: "merge" }), make("td", {}, make("span", { class: "name" }, "always"),
      make("span", { class: "disjuncts" }, MODEL.always.join(", "))), make("td", { id: "globals-before" }), make("td", { id: "globals-after" })));
  }
}

function tellControls({ at, answer }) {
  document.body.classList.toggle("merging", state.relaxation === "pdnf");
  for (const field of document.querySelectorAll("#norm input")) field.checked = field.value === state.norm;
  document.getElementById("left-out").hidden = state.norm === "l1" || CURVED.length > 0;
  for (const field of document.querySelectorAll("#relaxation input")) {
    field.checked = field.value === state.relaxation;
    field.disabled = exactOnly() && field.value !== "dnf";
  }
  document.querySelectorAll("#rules .on").forEach((field, r) => { field.checked = !state.off.has(r); });
  document.querySelectorAll("#rules .join").forEach((field, r) => { field.checked = state.merged.has(r); });
  document.querySelectorAll("#axes select").forEach((field, k) => { field.value = state.pair[k]; });
  if (MODEL.always.length) {
    verdict(document.getElementById("globals-before"), true, at.globalViolation(state.yhat) <= TOLERANCE);
    verdict(document.getElementById("globals-after"), Boolean(answer), answer && at.globalViolation(answer.y) <= TOLERANCE);
  }
}

// ---- the state in the address, so that a link shows the same ---------------------------------

function readAddress() {
  let given;
  try {
    given = JSON.parse(decodeURIComponent(location.hash.slice(1)) || "{}") ?? {};
  } catch {
    return;
  }
  const numbers = (list, n) => Array.isArray(list) && list.length === n && list.every(Number.isFinite);
  const indices = (list, n) => Array.isArray(list) && list.every((k) => Number.isInteger(k) && k >= 0 && k < n);
  if (numbers(given.x, MODEL.inputs.length)) state.x = given.x;
  if (numbers(given.y, MODEL.outputs.length)) state.yhat = given.y;
  if (Object.hasOwn(NAMES, given.relaxation)) state.relaxation = given.relaxation;
  if (!LIFTED && Object.hasOwn(NORMS, given.norm)) state.norm = given.norm;
  if (indices(given.off, MODEL.rules.length)) state.off = new Set(given.off);
  if (indices(given.merged, MODEL.rules.length)) state.merged = new Set(given.merged);
  if (!LIFTED && indices(given.pair, MODEL.outputs.length) && given.pair.length === 2 && given.pair[0] !== given.pair[1]) state.pair = given.pair;
}

function writeAddress() {
  const { x, yhat, norm, relaxation, off, merged, pair } = state;
  const told = { x, y: yhat, norm, relaxation, off: [...off], merged: [...merged], pair };
  history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify(told))}`);
}

let writing = 0;

function changed() {
  if (exactOnly()) state.relaxation = "dnf";
  const shown = compute();
  drawPicture(shown);
  tellAnswer(shown);
  tellRules(shown);
  tellOutputs(shown);
  tellLegend();
  tellControls(shown);
  clearTimeout(writing);
  writing = setTimeout(writeAddress, 200); // browsers limit how often an address may change
}

buildControls();
readAddress();
changed();
window.addEventListener("hashchange", () => { readAddress(); changed(); });
