// Polytopes as lists of corners, cut by half-spaces. A corner knows which cuts it lies on: two are
// the ends of an edge if no third lies on all cuts that they share.

const FLAT = 1e-9;

function boxOf(low, high) {
  const d = low.length;
  return Array.from({ length: 2 ** d }, (_, code) => {
    const y = low.map((_, j) => ((code >> j) & 1 ? high[j] : low[j]));
    const cuts = low.reduce((bits, _, j) => bits | (1n << BigInt(2 * j + ((code >> j) & 1))), 0n);
    return { y, cuts };
  });
}

// What is left of a polytope where a * y <= b; `number` tells this cut from all others.
function cut(corners, a, b, number) {
  const bit = 1n << BigInt(number), length = Math.hypot(...a);
  if (length === 0) return b >= -FLAT ? corners : [];
  const size = Math.max(1, ...corners.flatMap(({ y }) => y.map(Math.abs)));
  const near = FLAT * size;
  const above = corners.map(({ y }) => (dot(a, y) - b) / length);
  const kept = [];
  corners.forEach((corner, k) => {
    if (above[k] > near) return;
    kept.push(above[k] >= -near ? { y: corner.y, cuts: corner.cuts | bit } : corner);
  });
  corners.forEach((inner, i) => {
    if (above[i] >= -near) return;
    corners.forEach((outer, o) => {
      if (above[o] <= near) return;
      const shared = inner.cuts & outer.cuts;
      const between = corners.some((c) => c !== inner && c !== outer && (c.cuts & shared) === shared);
      if (between) return;
      const share = above[i] / (above[i] - above[o]);
      const y = inner.y.map((value, j) => value + share * (outer.y[j] - value));
      kept.push({ y, cuts: shared | bit });
    });
  });
  return withoutTwins(kept, near);
}

function withoutTwins(corners, near) {
  const kept = [];
  for (const corner of corners) {
    const twin = kept.find(({ y }) => y.every((v, j) => Math.abs(v - corner.y[j]) <= near));
    if (twin) twin.cuts |= corner.cuts;
    else kept.push({ ...corner });
  }
  return kept;
}

function cutByRow(corners, row, index, first) {
  const found = cut(corners, row.a, row.b, first + 2 * index);
  if (!row.equality || !found.length) return found;
  return cut(found, row.a.map((v) => -v), -row.b, first + 2 * index + 1);
}

// All products of some rules that are not empty: their rows and their corners.
//
// Columns in `fixed` ({column: value}) are held there: then corners have the other columns only.
// Corners are those of linear rows.
function productsOf(at, rules, fixed = {}) {
  const free = at.low.flatMap((_, j) => (j in fixed ? [] : [j]));
  const first = 2 * free.length;
  const rows = at.rows.map(({ a, b, equality }) => ({
    a: free.map((j) => a[j]),
    b: b - Object.entries(fixed).reduce((sum, [j, value]) => sum + a[j] * value, 0),
    equality,
  }));
  const by = (corners, indices) => indices.filter((index) => !at.rows[index].curves.length).reduce(
    (left, index) => (left.length ? cutByRow(left, rows[index], index, first) : left), corners);
  const start = by(boxOf(free.map((j) => at.low[j]), free.map((j) => at.high[j])), at.globals);
  let found = start.length ? [{ rows: [], corners: start }] : [];
  for (const rule of rules) {
    found = found.flatMap((product) => at.terms[rule].map((term) => ({
      rows: [...new Set([...product.rows, ...term])],
      corners: by(product.corners, term),
    }))).filter(({ corners }) => corners.length);
    if (found.length > MOST_PIECES) throw new Error(`more than ${MOST_PIECES} products`);
  }
  return found;
}

// Their polytopes alone, as lists of points.
function piecesOf(at, rules, fixed = {}) {
  return productsOf(at, rules, fixed).map(({ corners }) => corners.map(({ y }) => y));
}

const MOST_PIECES = 4000;

// Corners of a polygon in order, counterclockwise.
function around(points) {
  const middle = [0, 1].map((k) => points.reduce((sum, p) => sum + p[k], 0) / points.length);
  const angle = (p) => Math.atan2(p[1] - middle[1], p[0] - middle[0]);
  return [...points].sort((p, q) => angle(p) - angle(q));
}
