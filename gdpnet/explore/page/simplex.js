// Linear programs: least cost * v with v >= 0 and a * v <= b for every row {a, b}.
//
// No cost is negative, so v = 0 is dual feasible and the dual simplex needs no first phase. A dense
// dictionary: basic = right - table * nonbasic. Ties are broken by the largest pivot; after a while
// by the smallest number (Bland's rule), which cannot cycle.

const FEASIBLE = 1e-9;
const PIVOT = 1e-9;
const SLACK = 1e-10;

function minimise(cost, rows) {
  const n = cost.length, m = rows.length;
  const table = rows.map(({ a, b }) => {
    const line = new Float64Array(n + 1);
    let scale = 0;
    for (let j = 0; j < n; j++) scale = Math.max(scale, Math.abs(a[j]));
    if (scale === 0) scale = 1;
    for (let j = 0; j < n; j++) line[j] = a[j] / scale;
    line[n] = b / scale;
    return line;
  });
  const price = Float64Array.from(cost);
  const nonbasic = Array.from({ length: n }, (_, j) => j);
  const basic = Array.from({ length: m }, (_, i) => n + i);
  const patience = 4 * (n + m) + 50;
  for (let step = 0; step < 40 * patience; step++) {
    const careful = step > patience;
    const r = leavingRow(table, basic, n, careful);
    if (r < 0) return solution(table, basic, cost);
    const j = enteringColumn(table[r], price, nonbasic, n, careful);
    if (j < 0) return null;
    pivot(table, price, r, j, n);
    [basic[r], nonbasic[j]] = [nonbasic[j], basic[r]];
  }
  throw new Error("the simplex method did not finish");
}

function leavingRow(table, basic, n, careful) {
  let found = -1, worst = -FEASIBLE;
  for (let i = 0; i < table.length; i++) {
    const value = table[i][n];
    if (value >= -FEASIBLE) continue;
    if (careful ? found < 0 || basic[i] < basic[found] : value < worst) {
      found = i;
      worst = value;
    }
  }
  return found;
}

function enteringColumn(line, price, nonbasic, n, careful) {
  // Two passes: how far any price allows to go, then the best pivot within that.
  let reach = Infinity;
  for (let j = 0; j < n; j++) {
    if (line[j] < -PIVOT) reach = Math.min(reach, (price[j] + (careful ? 0 : SLACK)) / -line[j]);
  }
  let found = -1;
  for (let j = 0; j < n; j++) {
    if (line[j] >= -PIVOT || price[j] / -line[j] > reach) continue;
    if (found < 0 || (careful ? nonbasic[j] < nonbasic[found] : line[j] < line[found])) found = j;
  }
  return found;
}

function pivot(table, price, r, j, n) {
  const line = table[r], by = 1 / line[j];
  for (let k = 0; k <= n; k++) line[k] *= by;
  line[j] = by;
  for (let i = 0; i < table.length; i++) {
    const factor = table[i][j];
    if (i === r || factor === 0) continue;
    const other = table[i];
    for (let k = 0; k <= n; k++) other[k] -= factor * line[k];
    other[j] = -factor * by;
  }
  const factor = price[j];
  for (let k = 0; k < n; k++) price[k] = Math.max(0, price[k] - factor * line[k]);
  price[j] = Math.max(0, -factor * by);
}

function solution(table, basic, cost) {
  const n = cost.length, point = new Float64Array(n);
  basic.forEach((id, i) => { if (id < n) point[id] = table[i][n]; });
  let value = 0;
  for (let j = 0; j < n; j++) value += cost[j] * point[j];
  return { point, value };
}
