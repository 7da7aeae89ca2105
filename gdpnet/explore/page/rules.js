// Rules at one input: coefficients, which rules apply, which hold.

const TOLERANCE = 1e-6; // of what holds, after a row was scaled; as in gdpnet

const OPERATIONS = {
  "sum": (...v) => v.reduce((a, b) => a + b),
  "product": (...v) => v.reduce((a, b) => a * b),
  "divide": (...v) => v.reduce((a, b) => a / b),
  "power": (...v) => v.reduce((a, b) => a ** b),
  "max": (...v) => Math.max(...v),
  "min": (...v) => Math.min(...v),
  "<=": (a, b) => a <= b,
  "<": (a, b) => a < b,
  "==": (a, b) => a === b,
  "and": (...v) => v.every(Boolean),
  "or": (...v) => v.some(Boolean),
  "not": (a) => !a,
};

// Value of an expression of the inputs, a nested list as gdpnet saves it.
function evaluate(tree, x) {
  const [kind, ...parts] = tree;
  if (kind === "input") return x[parts[0]];
  if (kind === "number") return parts[0];
  if (kind === "true" || kind === "false") return kind === "true";
  if (kind === "if") return evaluate(evaluate(parts[0], x) ? parts[1] : parts[2], x);
  const values = parts.map((part) => evaluate(part, x));
  return kind in OPERATIONS ? OPERATIONS[kind](...values) : Math[kind](...values);
}

function coefficient([number, ...atoms], x) {
  return atoms.reduce((sum, [factor, tree]) => sum + factor * evaluate(tree, x), number);
}

// The rules of a model at inputs x, those in `off` (a Set of rules) switched off.
class RulesAt {
  constructor(model, x, off) {
    this.model = model;
    this.d = model.outputs.length;
    this.low = model.outputs.map((output) => output.low);
    this.high = model.outputs.map((output) => output.high);
    this.rows = model.rows.map((row) => this.row(row, x));
    this.unusable = model.rows.filter((_, i) => ![...this.rows[i].a, this.rows[i].b].every(Number.isFinite));
    this.globals = model.globals;
    const hold = (clause) => model.clauses[clause].conditions.every((tree) => evaluate(tree, x));
    this.applies = model.clauses.map((_, clause) => hold(clause));
    this.active = model.rules.map((rule, r) => !off.has(r) && this.applies[rule.clause]);
    this.price = (value) => coefficient(value, x);
    this.prices = model.rules.map((rule) => this.priceOf(rule.clause)); // of breaking each rule
    this.terms = model.rules.map((rule) => this.waysToHold(rule.clause));
    this.unpayable = model.rules.filter((_, r) => this.active[r] &&
      ![this.prices[r], ...this.terms[r].map((term) => term.price)].every((price) => price >= 0));
  }

  priceOf(clause) {
    const { price } = this.model.clauses[clause];
    return price === null ? Infinity : this.price(price);
  }

  row(row, x) {
    const a = new Float64Array(this.d);
    for (const [column, value] of row.terms) a[column] += coefficient(value, x);
    const b = coefficient(row.bound, x);
    const scale = Math.max(1, Math.abs(b), ...a.map(Math.abs));
    return { a, b, equality: row.equality, scale, curves: row.curves ?? [] };
  }

  // Every way to satisfy a rule: rows of a disjunct with a choice in all that is nested in it. Each
  // has a price; what is nested may be bought off.
  waysToHold(clause) {
    return this.model.clauses[clause].disjuncts.flatMap((disjunct) => this.termsIn(disjunct));
  }

  termsIn({ rows, nested, price }) {
    const choices = nested.filter((inner) => this.applies[inner]).map((inner) => {
      const broken = Object.assign([], { price: this.priceOf(inner) });
      return [...this.waysToHold(inner), ...(broken.price < Infinity ? [broken] : [])];
    });
    const own = Object.assign([...rows], { price: this.price(price) });
    return product([[own], ...choices]).map((parts) =>
      Object.assign(parts.flat(), { price: parts.reduce((sum, part) => sum + part.price, 0) }));
  }

  // What each active rule pays at a point: its cheapest way to hold there, or to be broken.
  pays(y, tolerance = TOLERANCE) {
    return this.active.map((on, r) => {
      const held = this.terms[r].filter((term) => this.least([term], y) <= tolerance);
      return on ? Math.min(this.prices[r], ...held.map((term) => term.price)) : 0;
    });
  }

  residual(index, y) {
    const { equality, scale } = this.rows[index];
    const excess = excessOf(this, this.rows[index], y);
    return Math.max(equality ? Math.abs(excess) : excess, 0) / scale;
  }

  // Least over some terms of the largest residual of their rows.
  least(terms, y) {
    const worst = (term) => Math.max(0, ...term.map((index) => this.residual(index, y)));
    return Math.min(...terms.map(worst));
  }

  violation(rule, y) {
    return this.least(this.terms[rule], y);
  }

  globalViolation(y) {
    const outside = y.map((value, j) => Math.max(this.low[j] - value, value - this.high[j], 0)
      / Math.max(1, Math.abs(value < this.low[j] ? this.low[j] : this.high[j])));
    return Math.max(0, ...outside, ...this.globals.map((index) => this.residual(index, y)));
  }

  broken(y) {
    return this.active.flatMap((on, r) => (on && this.violation(r, y) > TOLERANCE ? [r] : []));
  }

  // Whether all that has to hold does: a rule with a price need not.
  satisfied(y) {
    return this.globalViolation(y) <= TOLERANCE && this.broken(y).every((r) => this.prices[r] < Infinity);
  }

  // Clusters of active rules: the merged ones together, every other one by itself.
  clusters(relaxation, merged) {
    const on = this.active.flatMap((active, r) => (active ? [r] : []));
    if (relaxation === "dnf") return on.length ? [on] : [];
    const chosen = relaxation === "pdnf" ? on.filter((r) => merged.has(r)) : [];
    const alone = on.filter((r) => !chosen.includes(r)).map((r) => [r]);
    return chosen.length ? [chosen, ...alone] : alone;
  }
}

function dot(a, b) {
  let sum = 0;
  for (let j = 0; j < a.length; j++) sum += a[j] * b[j];
  return sum;
}

// All ways to take one of each list.
function product(lists) {
  return lists.reduce((found, list) => found.flatMap((some) => list.map((one) => [...some, one])), [[]]);
}
