"""The y that the caller gets: rounded to the caller's type, does it hold?

A point on the boundary of a row, rounded to the caller's type, may lie beyond it: a hair beyond it
with numbers around 1, far beyond it with pressures of 2e5 in float32 or predictions of 1e16. So
where rounding can matter the rows are looked at once more with the numbers that are returned.
Where one is broken the sample is projected again with the rows that were broken tightened by what
they were broken, and half a unit in the last place of their terms,

    eps / 2 (|b| + sum |a_j y_j|),

until the rounded point holds. The distance grows by at most the sum of the tight rows' multipliers
times these margins, unless the nearest set has no inside at all (`c <= 0.4` and `c >= 0.4`, and no
number of the caller's type is 0.4): then the nearest set that has one is taken. Rows of whole
numbers need no margin, and equalities leave no room for one: their columns are rounded to a grid so
coarse that sums are exact, all but one, which is computed from the others.

With strict=True rows hold with tolerance 0 (equalities within a few units in the last place), else
within the tolerance of the type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from gdpnet.ir.batch import Batch
from gdpnet.rules.model import RuleModel
from gdpnet.solve._exact import AVAILABLE, LOST, engine_of, solve
from gdpnet.solve._results import ANSWERED, SOLVER_NAMES, Array, Options, Results
from gdpnet.solve.status import Status

if TYPE_CHECKING:
    from gdpnet.solve.exact import Instance

_ROUNDS = 8


def enforce_strictly(rules: RuleModel, yhat: Array, results: Results, options: Options) -> Array:
    """Make the results of a batch hold without tolerance, where that can be had.

    Args:
        rules: the rules.
        yhat: predictions, (B, d).
        results: of the exact engine; y becomes numbers of the caller's type.
        options: how to solve, `options.dtype` being the caller's type.

    Returns:
        Which samples hold strictly, (B,) bool.
    """
    strict = np.zeros(len(yhat), dtype=bool)
    if results.instance is None or results.solved is None:
        return strict
    answered = np.isin(results.status, (Status.SATISFIED, Status.PROJECTED)) & ~results.missing
    answered &= results.solver == SOLVER_NAMES.index("exact")
    samples = np.flatnonzero(answered)
    check = _Check(rules, results.instance, options.dtype, options.tolerance, strict=True)
    held, _ = _enforce(rules, yhat, results, options, samples, check)
    strict[held] = True
    return strict


def settle(rules: RuleModel, x: Array, yhat: Array, results: Results, options: Options) -> None:
    """See to it that what is returned holds within the tolerance of its type.

    What rounding alone prevents is mended, or becomes ERROR with `results.rounding`.

    Args:
        rules: the rules.
        x: inputs, (B, p).
        yhat: predictions, (B, d).
        results: of a projection that claims to satisfy the rules.
        options: how it was solved.
    """
    reach: Reach = rules.kept("reach", Reach)
    if reach.harmless(options):
        return
    z = results.y if results.solved is None else results.solved.z
    # The search had to do with the prediction's size as well.
    size = np.abs(z)
    size[:, : yhat.shape[1]] = np.maximum(size[:, : yhat.shape[1]], np.abs(yhat))
    at_risk = reach.at_risk(size, options)
    at_risk &= np.isin(results.status, ANSWERED) & ~results.missing
    if results.strict is not None:
        at_risk &= ~results.strict
    if not at_risk.any():
        return
    broken = np.zeros(len(yhat))
    samples = np.flatnonzero(at_risk)
    if results.solved is not None and results.instance is not None:
        finished = results.solver[samples] == SOLVER_NAMES.index("exact")
        check = _Check(rules, results.instance, options.dtype, options.tolerance)
        _, left = _enforce(rules, yhat, results, options, samples[finished], check)
        broken[samples[finished]] = left
        samples = samples[~finished]
    if len(samples):
        broken[samples] = _broken_otherwise(rules, x, yhat, results, options, samples)
    if broken.any():
        results.rounding = broken
        results.status[broken > 0.0] = Status.ERROR
        results.plain = False


def _broken_otherwise(
    rules: RuleModel, x: Array, yhat: Array, results: Results, options: Options, samples: Array
) -> Array:
    """The same for points of other solvers, whose auxiliaries are not known."""
    rounded = torch.from_numpy(results.y[samples]).to(options.dtype).double().numpy()
    batch = Batch.of_arrays(x[samples], rounded)
    each, globally = rules.measure(batch.y, batch.x)
    violation = np.maximum(globally.numpy(), each.numpy().max(1, initial=0.0))
    wrong = violation > options.tolerance
    results.y[samples] = rounded
    if results.layout is not None:  # a relaxation's point may break rules
        results.status[samples[wrong]] = Status.RELAXED
        return np.zeros(len(samples))
    if wrong.any() and AVAILABLE:
        # The engine knows how to mend it.
        some = samples[wrong]
        again = solve(rules, x[some], yhat[some], np.zeros(len(some), bool), options, True)
        settle(rules, x[some], yhat[some], again, options)
        good = np.isin(again.status, ANSWERED)
        for name in ("y", "status", "value", "assignment"):
            getattr(results, name)[some[good]] = getattr(again, name)[good]
        violation[np.flatnonzero(wrong)[good]] = 0.0
    return np.where(violation > options.tolerance, violation, 0.0)


class Reach:
    """How far rounding can move the rows of a rule model.

    Args:
        rules: the rules.
    """

    def __init__(self, rules: RuleModel) -> None:
        data, table = rules.data, rules.table
        self.outputs = data.outputs
        size = np.abs(table.shared.numpy())
        bound = np.array(
            [abs(r.bound.number) if r.bound.is_number else 0.0 for r in data.rows], dtype=float
        )
        size = size / np.maximum(1.0, np.maximum(bound, size.max(1, initial=0.0)))[:, None]
        for i in table.varying.tolist():  # at most 1 after scaling, whatever x is
            size[i, [j for j, _ in data.rows[i].terms]] = 1.0
        # A bound of a column is a row of its own.
        self.rows = np.vstack([size, np.eye(len(data.columns))]).T
        lower = np.array([column.lower for column in data.columns])
        upper = np.array([column.upper for column in data.columns])
        scale = np.concatenate([np.ones(len(size)), np.maximum(1.0, _least_size(lower, upper))])
        self.rows = self.rows / scale
        self.largest = np.maximum(np.abs(lower), np.abs(upper))
        self._harmless: dict[torch.dtype, bool] = {}

    def harmless(self, options: Options) -> bool:
        """Whether no output within its bounds can be rounded beyond the tolerance."""
        known = self._harmless.get(options.dtype)
        if known is None:
            known = bool(np.isfinite(self.largest).all()) and not bool(
                self.at_risk(self.largest[None], options)[0]
            )
            self._harmless[options.dtype] = known
        return known

    def at_risk(self, z: Array, options: Options) -> Array:
        """Which points can be rounded beyond the tolerance, (B,) bool.

        Args:
            z: all columns, or the outputs alone, (B, n).
            options: type and tolerance.
        """
        n = z.shape[1]
        exact = float(np.finfo(float).eps) * (n + 2)  # what adding up a row loses
        eps = np.full(n, exact)
        if options.dtype is not torch.float64:
            eps[: self.outputs] += 0.5 * float(torch.finfo(options.dtype).eps)
        lost = (np.abs(z) * eps) @ self.rows[:n]
        return np.asarray(~(lost.max(1, initial=0.0) <= 0.5 * options.tolerance))


def _least_size(lower: Array, upper: Array) -> Array:
    """The smaller of a column's finite bounds in size."""
    low, high = np.abs(lower), np.abs(upper)
    return np.where(np.isfinite(np.minimum(low, high)), np.minimum(low, high), 1.0)


def _enforce(
    rules: RuleModel,
    yhat: Array,
    results: Results,
    options: Options,
    rest: Array,
    check: _Check,
) -> tuple[Array, Array]:
    """Make some results of the exact engine hold on the numbers that are returned.

    Returns:
        The samples that do, and by how much the others are broken, (len(rest),).
    """
    from gdpnet.solve.exact import ACCEPTED_AS_IS, SOLVED

    assert results.instance is not None
    assert results.solved is not None
    d = yhat.shape[1]
    z, assignment = results.solved.z[rest].copy(), results.assignment[rest]
    z[:, :d] = results.y[rest]
    value = results.value[rest]
    # What passed within a tolerance was never solved: that comes before any margin.
    passed = (results.status[rest] == Status.SATISFIED)[:, None]
    margin = np.zeros((len(rest), len(rules.data.rows)))
    broken, place = np.zeros(len(rest)), np.arange(len(rest))
    held: list[Array] = []
    engine = engine_of(rules)
    results.y = results.y.copy()
    for round_ in range(_ROUNDS + 1):
        inside, found = check.mended(rest, check.rounded(z), assignment)
        good = rest[found.holds]
        results.y[good] = inside[found.holds, :d]
        results.assignment[good] = assignment[found.holds]
        results.value[good] = value[found.holds]
        moved = (inside[found.holds, :d] != yhat[good]).any(1)
        settled = results.status[good] != Status.LIMIT
        results.status[good[moved & settled]] = Status.PROJECTED
        held.append(good)
        if round_ == 0:  # what stays if nothing better is found
            broken = found.size
            results.y[rest] = inside[:, :d]
        broken[place[found.holds]] = 0.0
        left = ~found.holds
        rest, place, passed = rest[left], place[left], passed[left]
        margin = margin[left] + np.where(passed & (round_ == 0), 0.0, found.margin[left])
        if not len(rest) or round_ == _ROUNDS:
            break
        instance = results.instance.take(rest)
        tightened = instance._replace(bound=instance.bound - margin)
        again = options._replace(tolerance=0.0, lost=LOST)
        solved = engine.project(tightened, yhat[rest], again)
        some = (solved.status == SOLVED) | (solved.status == ACCEPTED_AS_IS)
        rest, place, margin, passed = rest[some], place[some], margin[some], passed[some]
        z, assignment, value = solved.z[some], solved.assignment[some], solved.distance[some]
    return np.concatenate(held), broken


class _Found(NamedTuple):
    """What a check says of rounded points.

    Attributes:
        holds: (B,) bool.
        margin: by how much each row has to be tightened, (B, m).
        size: largest scaled violation, (B,).
        unequal: largest one of an equality, (B,).
    """

    holds: Array
    margin: Array
    size: Array
    unequal: Array


class _Check:
    """Residuals on the numbers that the caller will see.

    Args:
        rules: the rules.
        instance: the rules of the batch.
        dtype: type of the caller.
        tolerance: scaled, within which a row holds.
        strict: inequalities hold without it, equalities within a few units in the last place.
    """

    def __init__(
        self,
        rules: RuleModel,
        instance: Instance,
        dtype: torch.dtype,
        tolerance: float,
        strict: bool = False,
    ) -> None:
        data = rules.data
        self.rules, self.instance, self.dtype = rules, instance, dtype
        self.tolerance, self.strict = tolerance, strict
        self.eps = float(torch.finfo(dtype).eps)
        self.equality = np.array([row.equality for row in data.rows], dtype=bool)
        self.integer = np.array([c.integer for c in data.columns[: data.outputs]], dtype=bool)
        # A row of whole numbers either holds or does not; there is no rounding in it.
        self.whole = np.array([c.integer for c in data.columns], dtype=bool)
        self.discrete = np.array(
            [all(self.whole[j] for j, _ in row.terms) for row in data.rows], dtype=bool
        )
        self.lower, self.upper = rules.lower.numpy(), rules.upper.numpy()
        auxiliaries = data.columns[data.outputs :]
        self.floor = np.array([column.lower for column in auxiliaries])
        self.ceiling = np.array([column.upper for column in auxiliaries])
        rows = len(self.equality)
        self.true_rows = _incidence([b.true_rows for b in data.booleans], data.rows)
        self.false_rows = _incidence([b.false_rows for b in data.booleans], data.rows)
        self.globals = np.zeros(rows, dtype=bool)
        self.globals[list(data.global_rows)] = True
        literals = [clause.literals for clause in data.clauses]
        self.positive = _incidence([[k - 1 for k in c if k > 0] for c in literals], data.booleans)
        self.negative = _incidence([[-k - 1 for k in c if k < 0] for c in literals], data.booleans)
        self.guard = np.array([clause.guard for clause in data.clauses], dtype=np.int64)

    def rounded(self, z: Array) -> Array:
        """Points with the outputs as the caller gets them: whole where they must be, in bounds."""
        d = len(self.lower)
        y = np.where(self.integer, np.rint(z[:, :d]), z[:, :d])
        cast = torch.from_numpy(y).to(self.dtype)
        infinity = torch.full_like(cast, float("inf"))
        low, high = torch.from_numpy(self.lower), torch.from_numpy(self.upper)
        cast = torch.where(cast.double() < low, torch.nextafter(cast, infinity), cast)
        cast = torch.where(cast.double() > high, torch.nextafter(cast, -infinity), cast)
        return np.concatenate([cast.double().numpy(), z[:, d:]], 1)

    def __call__(self, samples: Array, z: Array, assignment: Array) -> _Found:
        """What rounded points break."""
        d = len(self.lower)
        bound = self.instance.bound[samples]
        excess = self._excess(samples, z)
        size = np.abs(bound) + self._product(samples, np.abs(z), np.abs)
        enforced = self.enforced(assignment)
        beyond = np.where(self.equality, np.abs(excess), np.maximum(excess, 0.0))
        beyond = np.where(enforced, beyond, 0.0)
        scale = self.instance.take(samples).scale(self.rules.table)
        scaled = beyond / scale
        y = z[:, :d]
        outside = np.maximum(self.lower - y, y - self.upper)
        # Auxiliaries are as the search left them, unless an equality was put right by one.
        beside = np.maximum(self.floor - z[:, d:], z[:, d:] - self.ceiling)
        beside = beside > self.tolerance * np.maximum(1.0, np.abs(z[:, d:]))
        if not self.strict:
            broken = scaled > self.tolerance
            allowed = self.tolerance * np.maximum(1.0, np.abs(np.clip(y, self.lower, self.upper)))
            holds = ~(broken.any(1) | (outside > allowed).any(1) | beside.any(1))
        else:
            few = np.minimum(8.0 * self.eps * size, self.tolerance * scale)
            allowed = np.where(self.equality, few, 0.0)
            broken = beyond > allowed
            # Close calls depend on the order in which terms are added up: decide them exactly.
            close = enforced & ~self.equality & (np.abs(excess) <= 4.0 * np.finfo(float).eps * size)
            for s, i in zip(*np.nonzero(close), strict=True):
                broken[s, i] = self._breaks(int(samples[s]), int(i), z[s])
            holds = ~(broken.any(1) | (outside > 0.0).any(1) | beside.any(1))
        holds &= self._decided(samples, assignment)
        wanted = np.maximum(excess, 0.0) + 0.5 * self.eps * size
        loose = broken & ~self.equality & ~self.discrete
        worst = np.maximum(scaled.max(1, initial=0.0), outside.max(1, initial=0.0))
        unequal = np.where(self.equality, scaled, 0.0).max(1, initial=0.0)
        return _Found(holds, np.where(loose, wanted, 0.0), worst, unequal)

    def mended(self, samples: Array, z: Array, assignment: Array) -> tuple[Array, _Found]:
        """Rounded points with equalities put right where that helps, and what they break."""
        found = self(samples, z, assignment)
        wrong = np.flatnonzero(~found.holds)
        if not len(wrong) or not self.equality.any():
            return z, found
        balanced = self._balanced(samples[wrong], z[wrong], assignment[wrong])
        again = self(samples[wrong], balanced, assignment[wrong])
        # Inequalities that it breaks can be tightened, equalities cannot.
        better = again.holds | (again.unequal < found.unequal[wrong])
        place = wrong[better]
        z = z.copy()
        z[place] = balanced[better]
        for before, after in zip(found, again, strict=True):
            before[place] = after[better]
        return z, found

    def _balanced(self, samples: Array, z: Array, assignment: Array) -> Array:
        """Points whose enforced equalities hold exactly, as far as the caller's type allows."""
        d = len(self.lower)
        enforced = self.enforced(assignment) & self.equality
        equalities = np.flatnonzero(enforced.any(0))
        matrix = self._coefficients(samples, equalities)  # (B, equalities, n)
        size = np.abs(self.instance.bound[samples][:, equalities])
        size = np.maximum(size, (np.abs(matrix) * np.abs(z)[:, None]).sum(2))
        largest = np.where(enforced[:, equalities], size, 0.0).max(1, initial=0.0)
        grid = np.where(largest > 0.0, np.ldexp(self.eps, np.frexp(largest)[1]), 1.0)[:, None]
        touched = (np.abs(matrix) * enforced[:, equalities, None]).any(1)
        touched[:, :d] &= ~self.integer
        touched[:, d:] = False
        z = np.where(touched, np.rint(z / grid) * grid + 0.0, z)
        used = np.zeros(z.shape, dtype=bool)
        for k, row in enumerate(equalities.tolist()):
            own = np.flatnonzero(enforced[:, row])
            pivot = self._pivots(matrix[own, k], used[own], matrix[own])
            known = pivot >= 0
            own, pivot = own[known], pivot[known]
            a = matrix[own, k]
            here = np.arange(len(own)), pivot
            rest = (a * z[own]).sum(1) - a[here] * z[own, pivot]
            value = (self.instance.bound[samples[own], row] - rest) / a[here]
            rounded = torch.from_numpy(value).to(self.dtype).double().numpy()
            z[own, pivot] = np.where(pivot < d, rounded, value) + 0.0  # no minus zero
            used[own, pivot] = True
        return z

    def _pivots(self, a: Array, used: Array, matrix: Array) -> Array:
        """The column of an equality that is computed from the others, (B,); -1 where none can be.

        One with a power of two in front of it that stands in few other equalities, else an
        auxiliary, which is not rounded.
        """
        d = len(self.lower)
        allowed = (a != 0.0) & ~used
        allowed[:, :d] &= ~self.integer
        allowed[:, d:] &= ~self.whole[d:]
        others = (matrix != 0.0).sum(1)
        exact = np.frexp(np.abs(a))[0] == 0.5
        cost = others + 100.0 * ~exact
        cost[:, d:] = 50.0
        cost = np.where(allowed, cost, np.inf)
        best = cost.argmin(1)
        return np.where(np.isfinite(cost.min(1)), best, -1)

    def _coefficients(self, samples: Array, rows: Array) -> Array:
        """Coefficients of some rows, (B, rows, n)."""
        shared = self.rules.table.shared.numpy()[rows]
        matrix = np.broadcast_to(shared, (len(samples), *shared.shape)).copy()
        varying = self.rules.table.varying.tolist()
        for k, row in enumerate(rows.tolist()):
            if row in varying:
                matrix[:, k] = self.instance.varying[samples, varying.index(row)]
        return matrix

    def enforced(self, assignment: Array) -> Array:
        """Rows that must hold at points with these truth values, (B, m) bool."""
        rows = self.globals | ((assignment == 1).astype(np.float64) @ self.true_rows > 0)
        return np.asarray(rows | ((assignment == -1).astype(np.float64) @ self.false_rows > 0))

    def _decided(self, samples: Array, assignment: Array) -> Array:
        """Whether every clause that applies has a true literal: else rows were not looked at."""
        true = (assignment == 1).astype(np.float64) @ self.positive.T
        true += (assignment == -1).astype(np.float64) @ self.negative.T
        required = self.instance.active[samples].copy()
        nested = self.guard >= 0
        required[:, nested] &= assignment[:, self.guard[nested]] == 1
        return ~(required & (true == 0.0)).any(1)

    def _breaks(self, sample: int, row: int, z: Array) -> bool:
        """Whether a row is broken in exact arithmetic, or when added up in either order."""
        terms = [(j, self._coefficient(sample, row, j)) for j, _ in self.rules.data.rows[row].terms]
        bound = float(self.instance.bound[sample, row])
        exact = sum((Fraction(a) * Fraction(float(z[j])) for j, a in terms), Fraction(0))
        forward = sum(a * float(z[j]) for j, a in terms)
        backward = sum(a * float(z[j]) for j, a in reversed(terms))
        return exact > Fraction(bound) or max(forward, backward) > bound

    def _coefficient(self, sample: int, row: int, column: int) -> float:
        varying = self.rules.table.varying.tolist()
        if row in varying:
            return float(self.instance.varying[sample, varying.index(row), column])
        return float(self.rules.table.shared[row, column])

    def _excess(self, samples: Array, z: Array) -> Array:
        """`a z - b` of each row as if it had been computed with twice the digits."""
        excess = np.empty((len(z), len(self.equality)))
        varying = self.rules.table.varying.numpy()
        constant = np.ones(len(self.equality), dtype=bool)
        constant[varying] = False
        shared = self.rules.table.shared.numpy()[constant]
        bound = self.instance.bound[samples]
        excess[:, constant] = _compensated(shared[None], z, bound[:, constant])
        if len(varying):
            own = self.instance.varying[samples]
            excess[:, varying] = _compensated(own, z, bound[:, varying])
        return excess

    def _product(self, samples: Array, z: Array, of: Callable[[Array], Array]) -> Array:
        product = z @ of(self.rules.table.shared.numpy()).T
        varying = self.rules.table.varying.numpy()
        if len(varying):
            coefficients = of(self.instance.varying[samples])
            product[:, varying] = np.einsum("bkn,bn->bk", coefficients, z)
        return product


def _compensated(matrix: Array, z: Array, bound: Array) -> Array:
    """`matrix z - bound` with the rounding errors of all products and sums added at the end.

    Args:
        matrix: (1 or B, m, n).
        z: (B, n).
        bound: (B, m).
    """
    total, lost = -bound, np.zeros(bound.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        for j in np.flatnonzero(matrix.any((0, 1))).tolist():
            a, x = matrix[:, :, j], z[:, j, None]
            product = a * x
            a_high, x_high = _upper_half(a), _upper_half(x)
            a_low, x_low = a - a_high, x - x_high
            lost += a_low * x_low - (
                ((product - a_high * x_high) - a_low * x_high) - a_high * x_low
            )
            after = total + product
            back = after - total
            lost += (total - (after - back)) + (product - back)
            total = after
        found = total + lost
    # Beyond what can be added up nothing holds.
    return np.where(np.isfinite(found), found, np.inf)


def _upper_half(number: Array) -> Array:
    """A number with the upper half of its digits, so that products of two such are exact."""
    scaled = 134217729.0 * number
    return np.asarray(scaled - (scaled - number))


def _incidence(lists: Sequence[Sequence[int]], of: Sequence[object]) -> Array:
    """1 where a list (line) names one of some things (column)."""
    matrix = np.zeros((len(lists), len(of)))
    for k, listed in enumerate(lists):
        matrix[k, list(listed)] = 1.0
    return matrix
