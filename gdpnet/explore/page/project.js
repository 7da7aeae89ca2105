// The nearest point: of the rules themselves (DNF), or of a relaxation's lifted hull.

const MOST_NODES = 20000;
const MOST_ENTRIES = 1e6; // of a dense linear program, so that the page answers within a second

// Project a prediction. The answer has y, the relaxation's optimal value (the l1 distance, or the
// square of the Euclidean one, and prices), and a status: "satisfied", "projected", "relaxed" (y
// breaks a rule) or "conflict" (y is yhat). An exact one has what it paid, and the rules that were
// broken for it.
function project(at, yhat, relaxation, merged, norm = "l1") {
  if (at.satisfied(yhat) && at.pays(yhat).every((price) => price === 0)) {
    return { y: [...yhat], value: 0, status: "satisfied", paid: 0, bought: [] };
  }
  if (norm === "l2") { // the exact answer alone: the relaxations are no linear programs
    const nearest = nearestPoint(at, (rows) => nearestIn(at, yhat, rows, norm));
    return nearest === null
      ? { y: [...yhat], value: Infinity, status: "conflict" }
      : { ...nearest, status: at.satisfied(nearest.y) ? "projected" : "relaxed" };
  }
  const start = yhat.map((value, j) => Math.min(Math.max(value, at.low[j]), at.high[j]));
  const outside = yhat.reduce((sum, value, j) => sum + Math.abs(value - start[j]), 0);
  const found = relaxation === "dnf"
    ? nearestPoint(at, (rows) => nearestIn(at, start, rows, norm))
    : nearestOfHulls(at, start, at.clusters(relaxation, merged));
  if (found === null) return { y: [...yhat], value: Infinity, status: "conflict" };
  const status = at.satisfied(found.y) ? "projected" : "relaxed";
  return { ...found, value: found.value + outside, status };
}

// Branch on a rule none of whose cheapest ways is had, bound by the distance, the price of what was
// decided and the least price of every other rule. No product is written down. `nearest` has the
// nearest point of some rows.
function nearestPoint(at, nearest) {
  let best = null, nodes = 0;
  const least = at.terms.map((terms, r) => Math.min(at.prices[r], ...terms.map((term) => term.price)));
  const on = at.active.flatMap((active, r) => (active ? [r] : []));
  const visit = (rows, decided, bought, price) => {
    if (++nodes > MOST_NODES) throw new Error(`more than ${MOST_NODES} nodes`);
    const found = nearest(rows);
    if (found === null) return;
    const open = on.filter((r) => !decided.includes(r));
    const paid = open.reduce((sum, r) => sum + least[r], price);
    if (best !== null && found.value + paid >= best.value - 1e-12) return;
    const had = (r) => at.terms[r].some((term) => term.price <= least[r] && at.least([term], found.y) <= 1e-8);
    const rule = open.find((r) => !had(r) && at.prices[r] > least[r]);
    if (rule === undefined) {
      best = { ...found, value: found.value + paid, paid, bought: [...bought, ...open.filter((r) => !had(r))] };
      return;
    }
    for (const term of at.terms[rule]) visit([...rows, ...term], [...decided, rule], bought, price + term.price);
    if (at.prices[rule] < Infinity) visit(rows, [...decided, rule], [...bought, rule], price + at.prices[rule]);
  };
  visit(at.globals, [], [], 0);
  return best;
}

function nearestIn(at, start, indices, norm) {
  const linear = norm === "l2" ? nearestInSquare : nearestInRows;
  return nearestBent(at, start, indices, norm, (...rows) => linear(at, ...rows));
}

// y = start + p - q within bounds, linear rows and cuts.
function nearestInRows(at, start, indices, cuts) {
  const d = at.d, rows = [];
  for (let j = 0; j < d; j++) {
    rows.push({ a: unit(2 * d, j), b: at.high[j] - start[j] });
    rows.push({ a: unit(2 * d, d + j), b: start[j] - at.low[j] });
  }
  for (const row of [...indices.map((index) => at.rows[index]), ...cuts]) {
    for (const { a, b } of sides(row)) {
      rows.push({ a: [...a, ...a.map((v) => -v)], b: b - dot(a, start) });
    }
  }
  const found = minimise(new Float64Array(2 * d).fill(1), rows);
  if (found === null) return null;
  const y = start.map((value, j) => value + found.point[j] - found.point[d + j]);
  return { y, value: found.value };
}

// The same in the Euclidean norm; the prediction is not brought into the bounds first.
function nearestInSquare(at, yhat, indices, cuts) {
  const rows = at.low.flatMap((low, j) => [
    { a: unit(at.d, j), b: at.high[j] },
    { a: unit(at.d, j).map((v) => -v), b: -low },
  ]);
  for (const row of [...indices.map((index) => at.rows[index]), ...cuts]) rows.push(...sides(row));
  return nearestInPolytope(yhat, rows);
}

// A row as one or two inequalities.
function sides({ a, b, equality }) {
  const there = { a: [...a], b };
  return equality ? [there, { a: there.a.map((v) => -v), b: -b }] : [there];
}

function unit(n, k) {
  const a = new Float64Array(n);
  a[k] = 1;
  return a;
}

// The intersection of the lifted hulls of clusters. Clusters that share no output, directly or
// through global rows, are solved apart: copies of one in the other bring fractional corners.
function nearestOfHulls(at, start, clusters) {
  const blocks = clusters.map((cluster) => productsOf(at, cluster).map(({ rows }) => rows));
  if (blocks.some((terms) => terms.length === 0)) return null;
  const y = [...start];
  let value = 0;
  for (const part of partsOf(at, blocks)) {
    const found = nearestInPart(at, start, part);
    if (found === null) return null;
    part.outputs.forEach((j, k) => { y[j] = start[j] + found.move[k]; });
    value += found.value;
  }
  return { y, value };
}

function partsOf(at, blocks) {
  const parent = Array.from({ length: at.d + blocks.length }, (_, k) => k);
  const root = (k) => (parent[k] === k ? k : (parent[k] = root(parent[k])));
  const join = (k, outputs) => outputs.forEach((j) => { parent[root(j)] = root(k); });
  const outputsOf = (indices) => indices.flatMap((index) =>
    [...at.rows[index].a.keys()].filter((j) => at.model.rows[index].terms.some(([c]) => c === j)));
  const homes = at.globals.map((index) => {
    const outputs = outputsOf([index]);
    if (outputs.length) join(outputs[0], outputs);
    return outputs[0] ?? 0;
  });
  blocks.forEach((terms, b) => {
    const outputs = outputsOf(terms.flat());
    join(at.d + b, outputs.length ? outputs : [0]);
  });
  const roots = [...new Set(Array.from({ length: at.d }, (_, j) => root(j)))];
  return roots.map((r) => ({
    outputs: at.low.flatMap((_, j) => (root(j) === r ? [j] : [])),
    globals: at.globals.filter((_, k) => root(homes[k]) === r),
    blocks: blocks.filter((_, b) => root(at.d + b) === r),
  }));
}

// Columns: p, q and the weight of every term of every block. A copy is weight * start + p - q; the
// sums of p and of q over a block are the same for all blocks, so they share the cost.
function nearestInPart(at, start, { outputs, globals, blocks }) {
  const d = outputs.length, width = 2 * d + 1;
  const all = blocks.length ? blocks : [[[]]];
  const firsts = [];
  let n = 0;
  for (const terms of all) firsts.push(terms.map(() => (n += width) - width));
  const cost = new Float64Array(n), rows = [];
  const add = (entries, b) => {
    const a = new Float64Array(n);
    for (const [k, value] of entries) a[k] += value;
    rows.push({ a, b });
  };
  const equal = (entries, b) => {
    add(entries, b);
    add(entries.map(([k, value]) => [k, -value]), -b);
  };
  all.forEach((terms, c) => terms.forEach((term, t) => {
    const first = firsts[c][t], weight = first + 2 * d;
    for (let k = 0; k < d; k++) {
      cost[first + k] = cost[first + d + k] = 1 / all.length;
      const move = [[first + k, 1], [first + d + k, -1]], j = outputs[k];
      add([...move, [weight, start[j] - at.high[j]]], 0);
      add([...move.map(([column, v]) => [column, -v]), [weight, at.low[j] - start[j]]], 0);
    }
    for (const index of new Set([...term, ...globals])) {
      for (const { a, b } of sides(at.rows[index])) {
        const own = outputs.flatMap((j, k) => [[first + k, a[j]], [first + d + k, -a[j]]]);
        add([...own, [weight, dot(a, start) - b]], 0);
      }
    }
  }));
  all.forEach((_, c) => {
    equal(firsts[c].map((first) => [first + 2 * d, 1]), 1);
    if (c === 0) return;
    for (let k = 0; k < 2 * d; k++) {
      equal([...firsts[c].map((f) => [f + k, 1]), ...firsts[0].map((f) => [f + k, -1])], 0);
    }
  });
  if (rows.length * n > MOST_ENTRIES) throw new Error(`a linear program with ${n} columns`);
  const found = minimise(cost, rows);
  if (found === null) return null;
  const sum = (k) => firsts[0].reduce((total, first) => total + found.point[first + k], 0);
  return { move: outputs.map((_, k) => sum(k) - sum(d + k)), value: found.value };
}
