// The nearest point of a polytope in the Euclidean norm: least |y - start|^2 with a * y <= b for
// every row {a, b}.
//
// A dual method: from the start itself, the row that is broken most is brought in by raising its
// multiplier, and rows whose multiplier would turn negative on the way are let go. Every step raises
// the distance, so it ends. In the few dimensions of this page everything is computed afresh.

const BROKEN = 1e-11; // of a scaled row
const DEPENDENT = 1e-14; // squared sine of the angle between a row and those that are met

function nearestInPolytope(start, rows) {
  const scaled = rows.map(({ a, b }) => {
    const size = Math.sqrt(dot(a, a));
    return size > 0 ? { a: Array.from(a, (v) => v / size), b: b / size } : { a: null, b };
  });
  if (scaled.some(({ a, b }) => a === null && b < -1e-9)) return null;
  const y = [...start], met = []; // rows that are met: { row, multiplier }
  for (let step = 0; step < 50 * (scaled.length + 10); step++) {
    const row = mostBroken(scaled, y);
    if (row === null) {
      const value = y.reduce((sum, v, j) => sum + (v - start[j]) ** 2, 0);
      return { y, value };
    }
    if (!bringIn(row, y, met)) return null;
  }
  throw new Error("the projection did not finish");
}

function mostBroken(rows, y) {
  const size = Math.max(1, ...y.map(Math.abs));
  let found = null, worst = BROKEN * size;
  for (const row of rows) {
    const over = row.a === null ? 0 : dot(row.a, y) - row.b;
    if (over > worst) [found, worst] = [row, over];
  }
  return found;
}

// Whether the row can hold together with those that are met; moves y there.
function bringIn(row, y, met) {
  let pending = 0;
  for (let round = 0; round < 1000; round++) {
    const { rest, shares } = partsOfRow(row.a, met.map(({ row: other }) => other.a));
    const length = dot(rest, rest), free = length > DEPENDENT;
    const over = dot(row.a, y) - row.b;
    const full = free ? over / length : Infinity;
    let block = Infinity, leaving = -1;
    met.forEach(({ multiplier }, k) => {
      if (shares[k] > 1e-13 && multiplier / shares[k] < block) [block, leaving] = [multiplier / shares[k], k];
    });
    const t = Math.max(0, Math.min(full, block));
    if (t === Infinity) return over <= 1e-9 * Math.max(1, ...y.map(Math.abs));
    met.forEach((one, k) => { one.multiplier -= t * shares[k]; });
    if (free) y.forEach((_, j) => { y[j] -= t * rest[j]; });
    pending += t;
    if (full <= block) {
      met.push({ row, multiplier: pending });
      return true;
    }
    met.splice(leaving, 1);
  }
  throw new Error("the projection did not finish");
}

// A row as a combination of independent rows, and what is left of it.
function partsOfRow(a, others) {
  const basis = [], triangle = [];
  others.forEach((other) => {
    const { left, along } = without(other, basis);
    const size = Math.sqrt(dot(left, left));
    triangle.push([...along, size]);
    basis.push(left.map((v) => v / size));
  });
  const { left: rest, along } = without(a, basis);
  const shares = [...along];
  for (let k = others.length - 1; k >= 0; k--) {
    shares[k] /= triangle[k][k];
    for (let i = 0; i < k; i++) shares[i] -= triangle[k][i] * shares[k];
  }
  return { rest, shares };
}

// A vector without its parts along an orthonormal basis; twice, for rounding.
function without(a, basis) {
  const left = [...a], along = basis.map(() => 0);
  for (let round = 0; round < 2; round++) {
    basis.forEach((b, k) => {
      const part = dot(left, b);
      along[k] += part;
      left.forEach((_, j) => { left[j] -= part * b[j]; });
    });
  }
  return { left, along };
}
