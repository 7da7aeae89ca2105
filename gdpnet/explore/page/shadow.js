// The outline of a relaxation on two outputs, the others held: points that are a mixture of corners
// of every block.

function outlineOf(at, clusters, pair, fixed) {
  const blocks = (clusters.length ? clusters : [[]]).map((rules) => piecesOf(at, rules).flat());
  if (blocks.some((corners) => corners.length === 0)) return [];
  const size = pair.map((j) => at.high[j] - at.low[j] || 1);
  const outermost = (direction) => outermostPoint(at, blocks, pair, fixed, direction, size);
  const first = outermost([1, 0]);
  if (first === null) return [];
  const found = [first, ...[[0, 1], [-1, 0], [0, -1]].map(outermost)];
  const between = (p, q) => {
    const along = [(q[0] - p[0]) / size[0], (q[1] - p[1]) / size[1]], length = Math.hypot(...along);
    if (length < 1e-7) return [];
    const normal = [along[1] / length, -along[0] / length];
    const r = outermost(normal);
    const out = normal[0] * (r[0] - p[0]) / size[0] + normal[1] * (r[1] - p[1]) / size[1];
    return out >= 1e-8 ? [...between(p, r), r, ...between(r, q)] : [];
  };
  return found.flatMap((p, k) => [p, ...between(p, found[(k + 1) % 4])]);
}

// Rules about one output y in the plane (y, eta) with eta >= |y - start|: the lifted set.
function liftedAt(at, start) {
  const rows = at.rows.map((row) => ({ ...row, a: [row.a[0], 0], windows: undefined }));
  const epigraph = [{ a: [1, -1], b: start }, { a: [-1, -1], b: -start }].map((row) => ({ ...row, equality: false, scale: 1, curves: [] }));
  return {
    d: 2,
    low: [at.low[0], 0],
    high: [at.high[0], at.high[0] - at.low[0]],
    rows: [...rows, ...epigraph],
    globals: [...at.globals, rows.length, rows.length + 1],
    terms: at.terms,
  };
}

// Columns are weights of corners, which sum to 1 in every block; all blocks give the same point.
function outermostPoint(at, blocks, pair, fixed, direction, size) {
  const n = blocks.reduce((count, corners) => count + corners.length, 0);
  const cost = new Float64Array(n), rows = [];
  const equal = (a, b) => rows.push({ a, b }, { a: a.map((v) => -v), b: -b });
  const first = [];
  blocks.reduce((start, corners) => (first.push(start), start + corners.length), 0);
  blocks.forEach((corners, c) => {
    const one = new Float64Array(n);
    const costs = corners.map((y) => -(direction[0] * y[pair[0]] / size[0]
      + direction[1] * y[pair[1]] / size[1]) / blocks.length);
    const least = Math.min(...costs); // weights sum to 1, so costs may be shifted
    corners.forEach((_, k) => {
      cost[first[c] + k] = costs[k] - least;
      one[first[c] + k] = 1;
    });
    equal(one, 1);
    for (let j = 0; j < at.d; j++) {
      const a = new Float64Array(n);
      corners.forEach((y, k) => { a[first[c] + k] = y[j] - at.low[j]; });
      if (j in fixed) equal(a, fixed[j] - at.low[j]);
      else if (c > 0) {
        blocks[0].forEach((y, k) => { a[k] -= y[j] - at.low[j]; });
        equal(a, 0);
      }
    }
  });
  const found = minimise(cost, rows);
  if (found === null) return null;
  return pair.map((j) => blocks[0].reduce((sum, y, k) => sum + found.point[k] * y[j], 0));
}
