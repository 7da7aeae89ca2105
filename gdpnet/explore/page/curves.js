// Rows with convex functions: a * y + sum of weight * shape(arguments) <= b.
//
// An argument is a row itself, whose a * y - b it is. Values outside of a shape's domain are those
// of gdpnet; that the domain holds is a row of its own.

const INNER = 1e-100; // where what falls from infinity becomes a line
const LARGEST_EXPONENT = 300;
const LEAST_ARGUMENT = 1e-14; // for tangents of what is infinitely steep at 0

// Functions of one argument: value, slope and slope of the slope.
const SHAPES = {
  exp: () => [Math.exp, Math.exp, Math.exp],
  log: () => [(t) => -Math.log(t), (t) => -1 / t, (t) => 1 / t ** 2],
  power: (p) => {
    const sign = p > 0 && p < 1 ? -1 : 1;
    return [(t) => sign * t ** p, (t) => sign * p * t ** (p - 1), (t) => sign * p * (p - 1) * t ** (p - 2)];
  },
};

const isEven = (curve) => curve.shape === "power" && curve.exponent > 0 && curve.exponent % 2 === 0;

// Values of a curve's arguments at y.
function argumentsOf(at, curve, y) {
  return curve.arguments.map((index) => dot(at.rows[index].a, y) - at.rows[index].b);
}

function curveValue(at, curve, y) {
  const ts = argumentsOf(at, curve, y), [t] = ts;
  if (curve.shape === "squares") return curve.weight * dot(ts, ts);
  if (curve.shape === "norm") return curve.weight * Math.hypot(...ts);
  const [value, slope] = SHAPES[curve.shape](curve.exponent);
  const [low, high] = domainOf(curve);
  const inside = Math.min(Math.max(t, low), high);
  const beyond = low > 0 || t > high ? slope(inside) * (t - inside) : 0;
  return curve.weight * (value(inside) + beyond);
}

// Where a curve is what it says; beyond it is a line, or stays as it is.
function domainOf(curve) {
  if (curve.shape === "exp") return [-Infinity, LARGEST_EXPONENT];
  if (curve.shape === "log") return [INNER, Infinity];
  if (curve.exponent < 0) return [Math.max(INNER, 1e100 ** (1 / curve.exponent)), Infinity];
  return isEven(curve) ? [-Infinity, Infinity] : [0, Infinity];
}

// Left minus right side of a row.
function excessOf(at, { a, b, curves }, y) {
  return curves.reduce((sum, curve) => sum + curveValue(at, curve, y), dot(a, y) - b);
}

// Least and largest value of a * y - b within the bounds.
function rangeOf(at, { a, b }) {
  const ends = [-b, -b];
  a.forEach((v, j) => {
    ends[0] += Math.min(v * at.low[j], v * at.high[j]);
    ends[1] += Math.max(v * at.low[j], v * at.high[j]);
  });
  return ends;
}

// Arguments of a curve at which its row can hold at all within the bounds: tangents from farther
// out would cut little off. Null where there are none.
function windowOf(at, row, curve) {
  const { shape, weight, exponent: p } = curve;
  const rest = row.curves.reduce((sum, other) => sum + (other === curve ? 0 : leastOf(at, other)), rangeOf(at, row)[0]);
  const most = -rest / weight, slack = 1e-9 * Math.max(1, Math.abs(most));
  const level = most + slack;
  let [low, high] = rangeOf(at, at.rows[curve.arguments[0]]);
  if (shape === "exp") high = Math.min(high, Math.log(Math.max(level, 0)));
  else if (shape === "log") low = Math.max(low, Math.exp(-level));
  else if (p < 0) low = Math.max(low, Math.max(level, 0) ** (1 / p));
  else if (p < 1) low = Math.max(low, level < 0 ? (-level) ** (1 / p) : 0);
  else {
    const reach = level < 0 ? NaN : level ** (1 / p);
    high = Math.min(high, reach);
    low = isEven(curve) ? Math.max(low, -reach) : Math.max(low, 0);
  }
  if (shape === "log" || p < 1) low = Math.max(low, LEAST_ARGUMENT);
  if (!(low <= high + 1e-9 * Math.max(1, Math.abs(high)))) return null;
  return [Math.min(low, high), high];
}

// A number that a curve is not below within the bounds.
function leastOf(at, curve) {
  if (["squares", "norm", "exp"].includes(curve.shape)) return 0;
  const [, high] = rangeOf(at, at.rows[curve.arguments[0]]);
  if (curve.shape === "log") return -curve.weight * Math.log(Math.max(high, INNER));
  const p = curve.exponent;
  return p > 0 && p < 1 ? -curve.weight * Math.max(high, 0) ** p : 0;
}

// Windows of all curves of a row, kept with it; null where the row can not hold.
function windowsOf(at, row) {
  if (row.windows === undefined) {
    const found = row.curves.map((curve) => (curve.shape in SHAPES ? windowOf(at, row, curve) : []));
    row.windows = found.includes(null) ? null : found;
  }
  return row.windows;
}

// Whether a curve falls ever steeper towards 0: there its tangents cut next to nothing off.
function isSteep({ shape, exponent }) {
  return shape === "log" || (shape === "power" && exponent < 1);
}

// The least argument of a steep curve at which its row holds, all else in it being as it is at y.
function restored(at, row, curve, y) {
  const others = row.curves.filter((other) => other !== curve);
  const level = -excessOf(at, { ...row, curves: others }, y) / curve.weight, p = curve.exponent;
  if (curve.shape === "log") return Math.exp(-level);
  if (p < 0) return level > 0 ? level ** (1 / p) : 0;
  return level < 0 ? (-level) ** (1 / p) : 0;
}

// A linear function that is nowhere above the row's left minus right side: its value at y and its
// slope. Null where the row holds nowhere.
function tangentAt(at, row, y) {
  const windows = windowsOf(at, row);
  if (windows === null) return null;
  const slope = [...row.a], all = row.curves.filter(isSteep);
  const steep = all.length === 1 ? row.curves.indexOf(all[0]) : -1;
  let value = dot(row.a, y) - row.b;
  row.curves.forEach((curve, k) => {
    const ts = argumentsOf(at, curve, y);
    let slopes;
    if (curve.shape === "squares") {
      value += curve.weight * dot(ts, ts);
      slopes = ts.map((t) => 2 * t);
    } else if (curve.shape === "norm") {
      const size = Math.hypot(...ts);
      value += curve.weight * size;
      slopes = ts.map((t) => (size > 0 ? t / size : 0));
    } else {
      const [valueOf, slopeOf] = SHAPES[curve.shape](curve.exponent);
      const least = k === steep ? Math.max(windows[k][0], restored(at, row, curve, y)) : windows[k][0];
      const t = Math.min(Math.max(ts[0], least), windows[k][1]);
      slopes = [slopeOf(t)];
      value += curve.weight * (valueOf(t) + slopes[0] * (ts[0] - t));
    }
    curve.arguments.forEach((index, i) => {
      at.rows[index].a.forEach((v, j) => { slope[j] += curve.weight * slopes[i] * v; });
    });
  });
  return { value, slope };
}

// The matrix of second derivatives of a row at y.
function bendAt(at, row, y) {
  const found = Array.from({ length: at.d }, () => new Float64Array(at.d));
  const add = (factor, p, q) => p.forEach((u, i) => q.forEach((v, j) => { found[i][j] += factor * u * v; }));
  for (const curve of row.curves) {
    const ts = argumentsOf(at, curve, y), rows = curve.arguments.map((index) => [...at.rows[index].a]);
    if (curve.shape === "squares") rows.forEach((a) => add(2 * curve.weight, a, a));
    else if (curve.shape === "norm") {
      const size = Math.hypot(...ts);
      const along = Array.from({ length: at.d }, (_, j) => rows.reduce((sum, a, i) => sum + ts[i] * a[j], 0));
      rows.forEach((a) => add(curve.weight / size, a, a));
      add(-curve.weight / size ** 3, along, along);
    } else add(curve.weight * SHAPES[curve.shape](curve.exponent)[2](ts[0]), rows[0], rows[0]);
  }
  return found;
}
