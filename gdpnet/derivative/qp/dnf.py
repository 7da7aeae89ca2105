r"""The regularised quadratic program of the DNF, and its derivative, for a batch.

For every component of the rules and the products k of its active rules that are not empty,

    minimise    sum_k w.eta_k + eps/2 sum_k (|z_k|^2 + |eta_k|^2 + lambda_k^2 + |a_k|^2)
    subject to  A_k (z_k + lambda_k yhat, a_k) <= lambda_k b_k     rows of the product, globals
                lambda_k lower <= z_k + lambda_k yhat <= lambda_k upper, likewise a_k
                |z_k| <= eta_k,  sum_k lambda_k = 1,  lambda >= 0

gives `y = yhat + sum_k z_k`, with yhat clipped to the box first and `z_k = y_k - lambda_k yhat` the
shifted copy. The weights w are those of the projection, the largest being 1, and eps refers to
them. The optimum has eta_k = \|z_k\|, so a coordinate costs `w |z| + eps z^2`.

**Which products can have weight.** Let v_k be the least distance `w.|z|` of product k, v* the least
of them, attained at (z*, a*). Then lambda_k > 0 only if

    v_k < v* + eps (1 + 2 |z*|^2 + |a*|^2).

Proof. Let mu be the multiplier of `sum lambda = 1`. Constraints and linear costs are homogeneous in
(z_k, eta_k, a_k, lambda_k), and moving along a copy's own ray keeps it feasible both ways, so for
each product linear part + 2 x quadratic part = mu lambda_k. In the sum mu = L + 2 Q with L and Q
the linear and quadratic parts of the optimal value F = L + Q, hence mu = 2 F - L. The point that
puts all weight on (z*, a*) is feasible: F <= v* + eps/2 (1 + 2 |z*|^2 + |a*|^2). And L >= sum_k
lambda_k v_k >= v*. So mu <= v* + eps (1 + 2 |z*|^2 + |a*|^2). If lambda_k > 0, its own equation
reads lambda_k v_k + 2 Q_k <= mu lambda_k with Q_k >= eps/2 lambda_k^2 > 0, so v_k < mu. The weights
w enter through v only; the statement holds for any w >= 0. The price of what a product chooses is
one more linear cost of it, c_k lambda_k, and part of v_k.

**How it is solved** (in the core, `band/`). The band of these products is listed. As long as the
quadratic term leaves a product's vertex optimal, `z_k = lambda_k (vertex - yhat)`, and the program
is one in the weights alone: equal prices `v_k + eps lambda_k (1 + 2 |z|^2 + |a|^2)`. Where a vertex
moves, each product is a quadratic program of its own, joined by that price. Both leave the rows and
columns that hold the solution, and the derivative is one small system a product.

**Decisions.**

- A prediction (or its part in a component) that satisfies everything, or breaks only what costs
  nothing, passes unchanged, with the
  identity as Jacobian; so do samples without a proved projection.
- A coordinate of yhat outside the box has gradient 0.
- Where more than `cap` products lie in the band, the products with distinct nearest vertices among
  those met (at most `cap`, the nearest ones) are mixed instead: a regularisation of its own.
  Likewise where the time limit, or the limit of work (`WORK`), is over before all have been met.
- Where mixing them takes more than this work, or fails, the sample has the derivative of the vertex
  (`instead`).
- Where rows are tight that depend on each other the active set is a largest independent subset, so
  multipliers are unique and finite; of two identical rows one carries the derivative. On a kink of
  the map the derivative is that of one of the adjoining pieces.
- Integer columns are fixed at their value in the projection.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdpnet import core
from gdpnet.core import Array
from gdpnet.derivative.qp.choices import choices
from gdpnet.derivative.regularised import Regularised
from gdpnet.ir.instance import Instance
from gdpnet.ir.rules import Rules
from gdpnet.solve.base import Gradients
from gdpnet.solve.exact.arrays import Component
from gdpnet.solve.exact.backend import engine_of
from gdpnet.solve.exact.engine import ExactEngine, Solved, activity_of
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.threads import workers_of

WORK = 1e9
"""Operations that listing the band of a sample and component may take, and mixing it as well."""

# `Status` of the core's `band/products.hpp`: 0 is passed, 1 to be solved.
_FAILED = 3
_ALL = slice(None)


@dataclass(frozen=True)
class BandPart:
    """A component's data for a batch, and its band.

    Attributes:
        component: which.
        whole: whether it has all columns, so that there is nothing to pick out.
        solver: of the component.
        varying: coefficients that depend on x, (B, k, n).
        bound: right sides, (B, m).
        yhat: predictions within the box, (B, outputs).
        weights: (outputs,).
        band: products with weight.
        failed: samples whose program could not be solved, (B,) bool.
        priced: its booleans with a price among those of all rules.
    """

    component: Component
    whole: bool
    solver: core.BandSolver
    varying: Array
    bound: Array
    yhat: Array
    weights: Array
    band: core.Band
    failed: Array
    priced: Array


@dataclass(frozen=True)
class QPSolved(Regularised):
    """Solutions of a batch.

    Attributes:
        y: the regularised point, (B, d).
        value: optimal value, for the clipped prediction and in normalised weights, (B,).
        products: products with weight, over all components, (B,).
        instance: the rules of the batch.
        inside: coordinates of the prediction that the gradient may reach, (B, d) bool.
        eps: the regularisation.
        parts: one for each component.
        threads: as asked for, or None to choose.
        price_unit: what prices are divided by.
        capped: samples for which not the whole band was mixed, (B,) bool.
        known: samples whose projection it knows, (B,) bool, or True for all of them.
    """

    y: Array
    value: Array
    products: Array
    instance: Instance
    inside: Array
    eps: float
    parts: tuple[BandPart, ...]
    threads: int | None
    price_unit: float = 1.0
    capped: Array | None = None
    known: Array | bool = True

    @property
    def missing(self) -> Array:
        """Samples without a regularised point, (B,) bool."""
        missing = np.zeros(len(self.y), dtype=np.bool_)
        for part in self.parts:
            missing |= part.failed
        return missing

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y.

        Args:
            gradient: (B, d).
        """
        yhat = gradient.copy()
        bound = np.zeros(self.instance.bound.shape)
        varying = np.zeros(self.instance.varying.shape)
        price = np.zeros(self.instance.price.shape)
        threads = workers_of(self.threads), self.threads is not None
        for part in self.parts:
            component = part.component
            given = part.varying, part.bound, part.yhat, part.weights, self.eps, *threads
            to_price = np.zeros((len(gradient), len(part.priced)))
            if part.whole:
                own = np.ascontiguousarray(gradient)
                part.solver.vjp(part.band, *given, own, yhat, bound, varying, to_price)
                price[:, part.priced] = to_price
                continue
            own = np.ascontiguousarray(gradient[:, component.outputs])
            to_yhat, to_bound = own.copy(), np.zeros(part.bound.shape)
            to_varying = np.zeros(part.varying.shape)
            part.solver.vjp(part.band, *given, own, to_yhat, to_bound, to_varying, to_price)
            price[:, part.priced] = to_price
            yhat[:, component.outputs] = to_yhat
            bound[:, component.rows] = to_bound
            if len(component.varying):
                place = np.ix_(np.arange(len(own)), component.varying, component.columns)
                varying[place] = to_varying
        price /= self.price_unit
        return Gradients(np.where(self.inside, yhat, 0.0), bound, varying, price)


def solve_qp(
    engine: ExactEngine,
    instance: Instance,
    yhat: Array,
    options: SearchOptions,
    solved: Solved,
    eps: float,
    cap: int = 64,
    *,
    known: Array | bool = True,
) -> QPSolved:
    """Solves the regularised program of the DNF.

    Args:
        engine: of the rules.
        instance: the rules for the batch.
        yhat: predictions, (B, d) float64.
        options: its weights, as in the projection.
        solved: the projections.
        eps: the regularisation, positive.
        cap: most products of a sample and component.
        known: samples whose projection is the engine's own.
    """
    size, d = yhat.shape
    static = engine.rules.cache[_Static]
    clipped = np.minimum(np.maximum(yhat, static.lower), static.upper)
    passed = solved.status != core.SOLVED
    moved = np.where(passed[:, None], yhat, solved.z[:, :d])
    y, inside = yhat.copy(), np.ones((size, d), dtype=np.bool_)
    value, capped = np.zeros(size), np.zeros(size, dtype=np.bool_)
    products = np.zeros(size, dtype=np.int64)
    parts = []
    weights = options.weights
    limit = np.inf if options.time_limit is None else options.time_limit
    threads = workers_of(options.threads), options.threads is not None
    for component, solver in zip(engine.components, static.solvers, strict=True):
        whole = len(component.columns) == len(engine.data.columns)
        outputs, columns = (_ALL, _ALL) if whole else (component.outputs, component.columns)
        varying, bound, assignment = instance.varying, instance.bound, solved.assignment
        if not whole:
            varying = varying[:, component.varying][:, :, columns]
            bound, assignment = bound[:, component.rows], assignment[:, component.booleans]
        given = (
            *(np.ascontiguousarray(varying), np.ascontiguousarray(bound)),
            *(np.ascontiguousarray(clipped[:, outputs]), np.ascontiguousarray(weights[outputs])),
        )
        point = np.ascontiguousarray(y[:, outputs])  # y itself, if there is nothing to pick out
        price = np.ascontiguousarray(instance.price[:, component.priced])
        paid = (assignment[:, component.logic.priced] == 1) & (price > 0.0)
        wanted = (moved[:, outputs] != point).any(1) | (paid.any(1) & ~passed)
        status = wanted.astype(np.int8)
        band = solver.solve(
            *(activity_of(component, instance.active), *given),
            nearest=np.ascontiguousarray(solved.z[:, columns]),
            assignment=np.ascontiguousarray(assignment),
            eps=eps,
            cap=cap,
            threads=threads[0],
            chosen=threads[1],
            time_limit=limit,
            patience=WORK,
            status=status,
            y=point,
            value=value,
            products=products,
            capped=capped,
            price=price,
            price_unit=options.price_unit,
        )
        failed = status == _FAILED
        inside[:, outputs] = ~(wanted & ~failed)[:, None] | (given[2] == yhat[:, outputs])
        y[:, outputs] = point
        parts.append(BandPart(component, whole, solver, *given, band, failed, component.priced))
    free = static.free
    if free:  # in no row: only the bounds count
        y[:, free] = moved[:, free]
        assert solved.follows is not None
        inside[:, free] = passed[:, None] | solved.follows[:, free]
    return QPSolved(
        *(
            y,
            value,
            products,
            instance,
            inside,
            eps,
            tuple(parts),
            options.threads,
            options.price_unit,
        ),
        capped=capped,
        known=known,
    )


class _Static:
    """What all batches of the rules share."""

    def __init__(self, rules: Rules) -> None:
        engine = engine_of(rules)
        columns = engine.data.columns[: engine.data.outputs]
        self.lower = np.array([c.lower for c in columns])
        self.upper = np.array([c.upper for c in columns])
        self.solvers = [
            core.BandSolver(c.native, *choices(engine.data, c)) for c in engine.components
        ]
        used = {int(j) for c in engine.components for j in c.outputs}
        self.free = sorted(set(range(len(columns))) - used)
