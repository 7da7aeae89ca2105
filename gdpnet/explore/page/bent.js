// The nearest point where rows may be convex and not linear: tangents cut off what breaks them, until
// nothing does; then Newton's method on the conditions of optimality gives the last digits.

const MOST_CUTS = 400;
const TOUCHES = 2e-9; // of the largest output: how far outside a point may be: linear programs are not more exact
const NEAR = 1e-5; // rows that may be met where Newton's method starts
const MET = 1e-11;
const PULL = 1e-3;

// Nearest to `start` within bounds and rows; `linear(start, indices, cuts)` knows linear rows alone.
function nearestBent(at, start, indices, norm, linear) {
  if (!indices.some((index) => at.rows[index].curves.length)) return linear(start, indices, []);
  const rows = [...new Set(indices)], curved = rows.filter((index) => at.rows[index].curves.length);
  const straight = rows.filter((index) => !at.rows[index].curves.length), cuts = [];
  for (let step = 0; step < MOST_CUTS; step++) {
    const found = linear(start, straight, cuts);
    if (found === null) return null;
    const before = cuts.length, near = TOUCHES * sizeOf(found.y);
    for (const index of curved) {
      const tangent = tangentAt(at, at.rows[index], found.y);
      if (tangent === null) return null;
      const length = Math.hypot(...tangent.slope);
      if (length < 1e-150) {
        if (tangent.value > MET * at.rows[index].scale) return null; // the least value, and too large
      } else if (tangent.value > near * length) {
        const a = tangent.slope.map((v) => v / length);
        cuts.push({ a, b: dot(a, found.y) - tangent.value / length, equality: false });
      }
    }
    if (cuts.length === before) return sharpened(at, start, found.y, rows, norm) ?? found;
  }
  throw new Error("the projection did not finish");
}

function sizeOf(y) {
  return Math.max(1, ...y.map(Math.abs));
}

// The optimal point near to y, or null where the conditions of optimality are not met there: at
// corners of curves, and where there are several.
function sharpened(at, start, y, indices, norm) {
  let all = metAt(at, start, y, indices, norm);
  const signs = y.map((v, j) => Math.sign(v - start[j])); // of the moves
  for (let round = 0; round < 2 * at.d + 2; round++) {
    const met = independent(y, all), problem = { at, start, norm, met, signs };
    const found = stationary(problem, y, 0) ?? stationary(problem, y, PULL);
    if (found === null) return null;
    const wrong = met.map(({ range }, k) => Math.max(range[0] - found.multipliers[k], found.multipliers[k] - range[1]));
    const worst = Math.max(0, ...wrong);
    if (worst <= 1e-9) return checked(at, start, y, found.y, indices, norm);
    const k = wrong.indexOf(worst);
    if (met[k].kink !== undefined) signs[met[k].kink] = Math.sign(found.multipliers[k]);
    all = all.filter((one) => one !== met[k]);
  }
  return null;
}

function checked(at, start, before, y, indices, norm) {
  const near = MET * sizeOf(y);
  if (y.some((v, j) => !(Math.abs(v - before[j]) <= 1e-3 * sizeOf(before)))) return null;
  if (y.some((v, j) => v < at.low[j] - near || v > at.high[j] + near)) return null;
  const broken = indices.some((index) => {
    const row = at.rows[index], tangent = row.curves.length ? tangentAt(at, row, y) : { value: dot(row.a, y) - row.b, slope: row.a };
    const over = row.equality ? Math.abs(tangent.value) : tangent.value;
    return over > near * Math.max(1, Math.hypot(...tangent.slope));
  });
  if (broken) return null;
  const moves = y.map((v, j) => v - start[j]);
  const value = norm === "l2" ? dot(moves, moves) : moves.reduce((sum, v) => sum + Math.abs(v), 0);
  return { y, value };
}

// What may be met with equality at y: outputs that do not move (in l1), bounds, rows; each with the
// range of its multiplier where y is optimal.
function metAt(at, start, y, indices, norm) {
  const near = NEAR * sizeOf(y), found = [];
  const line = (a, b, range, more = {}) => ({ at: (z) => ({ value: dot(a, z) - b, slope: a }), bend: null, range, ...more });
  y.forEach((v, j) => {
    const a = [...unit(at.d, j)], top = v >= at.high[j] - near, bottom = v <= at.low[j] + near;
    const ends = [bottom ? -Infinity : 0, top ? Infinity : 0];
    // An output that stays at a bound is both.
    if (norm === "l1" && Math.abs(v - start[j]) <= near) {
      const both = [start[j] === at.low[j] ? -Infinity : -1, start[j] === at.high[j] ? Infinity : 1];
      found.push(line(a, start[j], both, { kink: j }));
    }
    if (top || bottom) found.push(line(a, top ? at.high[j] : at.low[j], ends));
  });
  for (const index of indices) {
    const row = at.rows[index];
    const one = row.curves.length
      ? { at: (z) => tangentAt(at, row, z), bend: (z) => bendAt(at, row, z), range: [0, Infinity] }
      : line([...row.a], row.b, [row.equality ? -Infinity : 0, Infinity]);
    const { value, slope } = one.at(y);
    if (Math.abs(value) <= near * Math.hypot(...slope)) found.push(one);
  }
  return found;
}

// Those of which none depends on those before it.
function independent(y, all) {
  const basis = [];
  return all.filter((one) => {
    const { slope } = one.at(y), size = Math.hypot(...slope);
    if (!(size > 0)) return false;
    const { left } = without(slope.map((v) => v / size), basis), rest = Math.hypot(...left);
    if (rest < 1e-4) return false;
    basis.push(left.map((v) => v / rest));
    return true;
  });
}

// Newton's method for: slope of the distance + multipliers * slopes of what is met = 0.
// `pull` towards the point of the step before leaves the solution what it is, and chooses one of many.
function stationary({ at, start, norm, met, signs }, from, pull) {
  const d = at.d, n = d + met.length, stay = new Set(met.map(({ kink }) => kink));
  let y = [...from], multipliers = null;
  for (let step = 0; step < 40; step++) {
    const tangents = met.map((one) => one.at(y));
    if (tangents.includes(null)) return null;
    const rows = Array.from({ length: n }, () => new Float64Array(n + 1));
    for (let j = 0; j < d; j++) {
      rows[j][j] = norm === "l2" || multipliers === null ? 2 : pull;
      rows[j][n] = norm === "l2" ? -2 * (y[j] - start[j]) : stay.has(j) ? 0 : -signs[j];
    }
    met.forEach(({ bend }, k) => {
      const { value, slope } = tangents[k];
      for (let j = 0; j < d; j++) rows[j][d + k] = rows[d + k][j] = slope[j];
      rows[d + k][n] = -value;
      if (bend === null || multipliers === null) return;
      bend(y).forEach((line, i) => line.forEach((v, j) => { rows[i][j] += multipliers[k] * v; }));
    });
    const solved = solveSquare(rows);
    if (solved === null) return null;
    const first = multipliers === null; // that step is for the multipliers
    multipliers = solved.slice(d);
    if (first) continue;
    y = y.map((v, j) => v + solved[j]);
    if (!y.every(Number.isFinite)) return null;
    if (Math.max(...solved.slice(0, d).map(Math.abs)) <= 4e-16 * sizeOf(y) || step === 39) break;
  }
  return { y, multipliers };
}

// The solution of a square system, its right side in the last column; null where it is singular.
function solveSquare(rows) {
  const n = rows.length;
  for (let k = 0; k < n; k++) {
    let best = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(rows[i][k]) > Math.abs(rows[best][k])) best = i;
    if (!(Math.abs(rows[best][k]) > 1e-13)) return null;
    [rows[k], rows[best]] = [rows[best], rows[k]];
    for (let i = 0; i < n; i++) {
      const factor = i === k ? 0 : rows[i][k] / rows[k][k];
      if (factor !== 0) for (let j = k; j <= n; j++) rows[i][j] -= factor * rows[k][j];
    }
  }
  return rows.map((row, k) => row[n] / row[k]);
}
