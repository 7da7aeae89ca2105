// Regions of the plane with curved sides, as polygons so fine that a picture shows no corner: tangents
// cut off what breaks a row. They are for the eye alone; no distance is computed with them.

const FINE = 1e-4; // of the picture's extent: less than a tenth of a pixel
const MOST_SIDES = 600;

// The products of some rules on the two outputs that are not held, counterclockwise.
function roundedPieces(at, rules, fixed = {}) {
  const free = at.low.flatMap((_, j) => (j in fixed ? [] : [j]));
  const low = at.low.map((v, j) => fixed[j] ?? v), high = at.high.map((v, j) => fixed[j] ?? v);
  const held = { d: at.d, low, high, rows: at.rows.map((row) => ({ ...row, windows: undefined })) };
  return productsOf(at, rules, fixed).flatMap(({ rows, corners }) => {
    const all = [...at.globals, ...rows], polygon = around(corners.map(({ y }) => y));
    const curved = [...new Set(all)].filter((index) => at.rows[index].curves.length);
    if (!curved.length) return [polygon];
    // A set that is thinner than the picture can show is there all the same, or is not.
    const inner = nearestIn(held, low.map((v, j) => (v + high[j]) / 2), all, "l2");
    if (inner === null) return [];
    const found = rounded(held, polygon, curved, free);
    return [found.length ? found : [free.map((j) => inner.y[j])]];
  });
}

function rounded(at, polygon, curved, free) {
  const extent = free.map((j) => at.high[j] - at.low[j] || 1);
  const embed = (point) => at.low.map((v, j) => (free.includes(j) ? point[free.indexOf(j)] : v));
  let corners = polygon.map((point) => ({ point, over: undefined }));
  for (let side = 0; side < MOST_SIDES && corners.length; side++) {
    for (const corner of corners) corner.over ??= farthest(at, embed(corner.point), curved, free, extent);
    const worst = corners.reduce((a, b) => (b.over.depth > a.over.depth ? b : a));
    if (worst.over.depth <= FINE) break;
    const a = worst.over.slope, b = dot(a, worst.point) - worst.over.value;
    corners = clipped(corners, a, b);
  }
  return corners.map(({ point }) => point);
}

// How far a point is beyond the tangents there, as a share of the picture; of the worst of them.
function farthest(at, y, curved, free, extent) {
  let found = { depth: 0 };
  for (const index of curved) {
    const { value, slope } = tangentAt(at, at.rows[index], y);
    const own = free.map((j) => slope[j]), length = Math.hypot(...own.map((v, k) => v * extent[k]));
    const depth = length > 0 ? value / length : 0;
    if (depth > found.depth) found = { depth, value: value / length, slope: own.map((v) => v / length) };
  }
  return found;
}

// The part of a convex polygon, its corners in order, where a * point <= b.
function clipped(corners, a, b) {
  const above = corners.map(({ point }) => dot(a, point) - b);
  return corners.flatMap((corner, k) => {
    const next = (k + 1) % corners.length, kept = above[k] <= 0 ? [corner] : [];
    if (above[k] * above[next] >= 0) return kept;
    const share = above[k] / (above[k] - above[next]), to = corners[next].point;
    const point = corner.point.map((v, i) => v + share * (to[i] - v));
    return [...kept, { point, over: undefined }];
  });
}

// The corners of the convex hull of points of the plane, counterclockwise.
function hullOf(points) {
  const sorted = [...points].sort((p, q) => p[0] - q[0] || p[1] - q[1]);
  const turns = (o, p, q) => (p[0] - o[0]) * (q[1] - o[1]) - (p[1] - o[1]) * (q[0] - o[0]);
  const half = (list) => list.reduce((chain, p) => {
    while (chain.length > 1 && turns(chain[chain.length - 2], chain[chain.length - 1], p) <= 0) chain.pop();
    return [...chain, p];
  }, []);
  return sorted.length < 3 ? sorted : [...half(sorted).slice(0, -1), ...half(sorted.reverse()).slice(0, -1)];
}
