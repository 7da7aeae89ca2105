"""The exact engine of one rule model: arrays prepared once, batches projected in threads."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from gdpnet import core
from gdpnet.core import (
    ACCEPTED,
    ACCEPTED_AS_IS,
    NO_SOLUTION,
    NODE_LIMIT,
    NUMERICAL,
    SOLVED,
    Array,
)
from gdpnet.ir.instance import Instance, RuleTape
from gdpnet.ir.rules import Rules
from gdpnet.ir.steps import round_to_steps, stepping_inequalities
from gdpnet.solve.base import Gradients
from gdpnet.solve.exact.arrays import Component, components
from gdpnet.solve.exact.jacobian import FaceJacobian, FactoredJacobian
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.threads import FEW, workers_of


class Share(NamedTuple):
    """A component's share of a batch.

    Attributes:
        active: which of its clauses apply, (B, clauses) bool.
        varying: coefficients that depend on x, (B, k, n).
        bound: right sides, (B, m).
        yhat: predictions, (B, outputs).
        weights: (outputs,).
        price: of its booleans that have one, (B, priced).
        price_unit: what they are divided by.
    """

    active: Array
    varying: Array
    bound: Array
    yhat: Array
    weights: Array
    price: Array
    price_unit: float


class Leaving(NamedTuple):
    """Rules of a component that may be left out.

    Attributes:
        booleans: the last disjunct of each, which has no rows, (k,).
        clauses: the rules, (k,).
        importance: what leaving each of them out counts, (k,).
    """

    booleans: Array
    clauses: Array
    importance: Array


class Output(NamedTuple):
    """Results of a component for a batch.

    Attributes:
        z: the point, auxiliaries included; NaN where there is none, (B, n).
        distance: weighted l1 distance of its outputs, or their squared l2 distance, and prices, inf
            where there is none, (B,).
        bound: proved lower bound on that, (B,).
        status: outcome of the search, or ACCEPTED_AS_IS, (B,) int8.
        assignment: 1 true, -1 false, 0 not asked for, (B, booleans) int8.
        nodes: linear programs of the search, (B,).
    """

    z: Array
    distance: Array
    bound: Array
    status: Array
    assignment: Array
    nodes: Array


class Detail(NamedTuple):
    """The final dictionary of each sample.

    Attributes:
        column_state: whether a column follows the prediction, is at its lower or upper bound,
            DETERMINED by the tight rows, or rests (an auxiliary that nothing moves), (B, n) int8.
        column_source: the row with one entry that is a column's bound; -1 for its own bound, -2
            for an integer split, (B, n).
        tight_rows: rows that determine the DETERMINED columns, -1 beyond their number, (B, n).
        multipliers: the distance falls by the multiplier per unit of b, (B, n).
        reduced_costs: rate of the distance in a column that is at a bound, (B, n).
    """

    column_state: Array
    column_source: Array
    tight_rows: Array
    multipliers: Array
    reduced_costs: Array


class Solved(NamedTuple):
    """Results of a batch, over all components.

    Attributes:
        z: (B, n).
        distance: (B,).
        bound: (B,).
        status: worst outcome over the components, (B,) int8.
        assignment: (B, booleans) int8.
        nodes: (B,).
        unproved: samples whose tie could not be settled for certain, (B,) bool; None for vertices.
        follows: outputs that stand in no row and are where the prediction is, (B, d) bool; None
            where there are no such outputs.
        parts: final dictionaries, one for each component (empty arrays where not asked for).
        detailed: whether they were asked for.
        proved: whether all samples have a point that is proved nearest.
    """

    z: Array
    distance: Array
    bound: Array
    status: Array
    assignment: Array
    nodes: Array
    unproved: Array | None
    follows: Array | None
    parts: tuple[tuple[Component, Detail], ...]
    detailed: bool
    proved: bool


class ExactEngine:
    """Projects onto the rules of one model.

    Args:
        rules: the rule model.
    """

    def __init__(self, rules: Rules) -> None:
        self.data = rules.data
        self.rules = rules
        self.components = components(rules.data)
        constrained = {int(j) for component in self.components for j in component.columns}
        self._free = sorted(set(range(self.data.outputs)) - constrained)
        self.rule_clauses = np.array([rule.clause for rule in self.data.rules], dtype=np.int64)
        clauses = np.arange(len(self.data.clauses))
        self.all_rules = np.array_equal(self.rule_clauses, clauses)  # no clause is anything else
        # Whether predictions that are good enough are accepted before any search.
        self.plain = all(c.accepting for c in self.components)
        self._whole = len(self.components) == 1 and len(constrained) == len(self.data.columns)
        self._stepping = stepping_inequalities(rules.data)
        self.searches = [core.Search(component.native) for component in self.components]
        # Rules that are one component as they stand go from inputs to answers in one call.
        direct = self._whole and not self._stepping and self.components[0].ordinary(len(clauses))
        self._tape = rules.cache[RuleTape.of] if direct else None
        self._ties: dict[int, core.LeastNorm] = {}
        self._euclidean: dict[int, core.EuclideanSearch] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactEngine, (self.rules,)

    def __deepcopy__(self, memo: Any) -> ExactEngine:
        return self  # nothing in it ever changes

    def find(
        self, x: Array, yhat: Array, options: SearchOptions, detailed: bool = False
    ) -> tuple[core.Found, Array] | None:
        """Nearest points of a batch in one call, for the usual rules and options.

        Args:
            x: inputs, (B, p) float64.
            yhat: predictions, (B, d) float64, finite.
            options: limits are for each sample.
            detailed: keep the final dictionaries.

        Returns:
            What was found, and the points, (B, n); None where it takes `project`.
        """
        if self._tape is None or not options.usual:
            return None
        z = np.empty((len(yhat), self._tape.columns))
        l2 = options.norm == "l2"
        found = (core.find_euclidean if l2 else core.find_nearest)(
            self._tape.native,
            self._euclidean_of(0) if l2 else self.searches[0],  # type: ignore[arg-type]
            x,
            yhat,
            options.weights,
            options.price_unit,
            options.node_limit,
            options.tolerance,
            inf if options.time_limit is None else options.time_limit,
            1 if len(yhat) <= FEW else workers_of(options.threads),
            options.threads is not None,
            detailed and not l2,  # whose derivative needs none
            z,
            options.patience,
        )
        return None if found is None else (found, z)

    def shown(self, found: core.Found, z: Array) -> tuple[Instance, Solved]:
        """The rules of a batch and its results, of what `find` found."""
        detail = Detail(*found.dictionaries()) if found.detailed else _NO_DETAIL
        out, parts = Output(z, *found.answers()), ((self.components[0], detail),)
        active, bound, varying, price = found.instance()
        solved = Solved(*out, None, None, parts, found.detailed, found.proved)
        return Instance(active, bound, varying, price, finite=True), solved

    def vjp(self, found: core.Found, z: Array, gradient: Array) -> Gradients:
        """Gradients of a loss, of what `find` found with its dictionaries.

        Args:
            found: what it found.
            z: the points, (B, n).
            gradient: of the loss with respect to y, (B, d).
        """
        assert self._tape is not None
        size, (k, n) = len(z), (self._tape.varying, self._tape.columns)
        own = np.zeros((size, n))
        own[:, : gradient.shape[1]] = gradient
        to = Gradients(
            np.zeros(gradient.shape), np.zeros((size, self._tape.rows)), np.zeros((size, k, n))
        )
        found.vjp(self.components[0].native, z, own, *to[:3])
        return to

    def vjp_yhat(self, found: core.Found, z: Array, gradient: Array) -> Array:
        """As `vjp`, of the predictions alone, (B, d)."""
        to = np.empty(gradient.shape)
        found.vjp_yhat(self.components[0].native, z, gradient, to)
        return to

    def leaving(self, first: int, importance: list[float]) -> list[Leaving]:
        """The rules of each component that may be left out.

        Args:
            first: the boolean that leaves out the first of them; the others follow.
            importance: of each.
        """
        found = []
        for component in self.components:
            own = [(k, int(b)) for k, b in enumerate(component.booleans) if b >= first]
            place = {int(c): k for k, c in enumerate(component.clauses)}
            found.append(
                Leaving(
                    np.array([k for k, _ in own], dtype=np.int64),
                    np.array([place[self.data.owner[b]] for _, b in own], dtype=np.int64),
                    np.array([importance[b - first] for _, b in own], dtype=np.float64),
                )
            )
        return found

    def cheapest(
        self, instance: Instance, rules: list[Leaving], options: SearchOptions
    ) -> list[core.Sets]:
        """Of rules that may be left out the cheapest sets, one object for each component.

        Args:
            instance: the rules for the batch.
            rules: those of each component, from `leaving`.
            options: limits are for each pattern of rules and component.
        """
        instance = self._stepped(instance)
        size = len(instance.active)
        nowhere = np.zeros((size, self.data.outputs))
        found = []
        for index, (own, search) in enumerate(zip(rules, self.searches, strict=True)):
            outputs = self.components[index].outputs
            given = self._share(index, instance, nowhere[:, outputs], options)
            found.append(
                search.cheapest(
                    *(given.active, given.varying, given.bound, *own, options.node_limit),
                    inf if options.time_limit is None else options.time_limit,
                    1 if size <= FEW else workers_of(options.threads),
                    options.threads is not None,
                )
            )
        return found

    def _stepped(self, instance: Instance) -> Instance:
        """The same rules with right sides at whole steps, where rows can only have such."""
        if not self._stepping:
            return instance
        bound = instance.bound.copy()
        round_to_steps(self._stepping, bound)
        return instance._replace(bound=bound)

    def project(
        self,
        instance: Instance,
        yhat: Array,
        options: SearchOptions,
        detailed: bool = False,
        leaving: list[core.Sets] | None = None,
    ) -> Solved:
        """Nearest points of a batch.

        Args:
            instance: the rules for the batch.
            yhat: predictions, (B, d) float64, finite.
            options: limits are for each sample and component.
            detailed: report the final dictionaries.
            leaving: of rules that may be left out the sets that may be, from `cheapest`.
        """
        instance = self._stepped(instance)
        out_of: Sequence[core.Sets | None] = leaving or [None] * len(self.components)
        if self._whole:  # nothing to take apart and put together again
            out, detail, unproved, proved = self._run(
                0, instance, yhat, options, detailed, out_of[0]
            )
            return Solved(*out, unproved, None, ((self.components[0], detail),), detailed, proved)
        size, d = len(yhat), self.data.outputs
        z = np.full((size, len(self.data.columns)), np.nan)
        z[:, :d] = yhat
        distance, status, follows = self._clip_free(z, options)
        bound = distance.copy()
        nodes = np.zeros(size, dtype=np.int64)
        unproved = np.zeros(size, dtype=np.bool_) if options.tie == "least_norm" else None
        assignment = np.zeros((size, len(self.data.booleans)), dtype=np.int8)
        parts, all_proved = [], True
        for index, component in enumerate(self.components):
            out, detail, doubtful, proved = self._run(
                index, instance, yhat[:, component.outputs], options, detailed, out_of[index]
            )
            all_proved = all_proved and proved
            if doubtful is not None:
                unproved |= doubtful
            z[:, component.columns] = out.z
            distance += out.distance
            bound += out.bound
            nodes += out.nodes
            assignment[:, component.booleans] = out.assignment
            status = np.where(_SEVERITY[out.status] > _SEVERITY[status], out.status, status)
            parts.append((component, detail))
        return Solved(
            *(z, distance, bound, status, assignment, nodes, unproved, follows),
            *(tuple(parts), detailed, all_proved),
        )

    def jacobian(
        self, instance: Instance, solved: Solved, yhat: Array, options: SearchOptions
    ) -> FactoredJacobian | FaceJacobian:
        """The derivative of a batch.

        Args:
            instance: the rules for the batch.
            solved: its projections, with their dictionaries.
            yhat: predictions, (B, d).
            options: how they were projected.
        """
        face = FaceJacobian(instance, solved, yhat, options.weights, options.norm == "l1")
        if options.norm == "l2" or options.tie == "least_norm":
            return face
        return FactoredJacobian(instance, solved, self.data.outputs, face)

    def _clip_free(self, z: Array, options: SearchOptions) -> tuple[Array, Array, Array]:
        """Outputs that stand in no row: only their bounds count."""
        distance = np.zeros(len(z))
        status = np.full(len(z), ACCEPTED_AS_IS, dtype=np.int8)
        follows = np.zeros((len(z), self.data.outputs), dtype=np.bool_)
        for j in self._free:
            column = self.data.columns[j]
            inside = np.clip(z[:, j], column.lower, column.upper)
            moved = np.abs(inside - z[:, j])
            far = moved > options.tolerance * np.maximum(1.0, np.abs(inside))
            distance += options.sum_of(np.where(far, options.weights[j] * moved, 0.0)[:, None])
            z[:, j] = np.where(far, inside, z[:, j])
            status[far] = SOLVED
            follows[:, j] = ~far
        return distance, status, follows

    def _share(self, index: int, instance: Instance, yhat: Array, options: SearchOptions) -> Share:
        component = self.components[index]
        n = len(component.columns)
        bound, varying, weights = instance.bound, instance.varying, options.weights
        price = instance.price
        if n < len(self.data.columns):  # pick out what is its own
            bound = np.ascontiguousarray(bound[:, component.rows])
            varying = np.ascontiguousarray(varying[:, component.varying][:, :, component.columns])
            weights = np.ascontiguousarray(weights[component.outputs])
            price = np.ascontiguousarray(price[:, component.priced])
        own = np.ascontiguousarray(_snapped(yhat, component) if component.discrete else yhat)
        active = activity_of(component, instance.active)
        return Share(active, varying, bound, own, weights, price, options.price_unit)

    def _run(
        self,
        index: int,
        instance: Instance,
        yhat: Array,
        options: SearchOptions,
        detailed: bool,
        leaving: core.Sets | None = None,
    ) -> tuple[Output, Detail, Array | None, bool]:
        component = self.components[index]
        size, n = len(yhat), len(component.columns)
        out = new_output(size, n, len(component.booleans))
        detail = new_detail(size, n) if detailed else None
        given = self._share(index, instance, yhat, options)
        own, weights, price = given.yhat, given.weights, given.price
        how = (
            *(*given, options.node_limit, options.tolerance, options.lost),
            inf if options.time_limit is None else options.time_limit,
            1 if size <= FEW else workers_of(options.threads),
            options.threads is not None,
            out,
        )
        unproved = None
        if options.norm == "l2":
            proved = self._euclidean_of(index).project(*how, options.patience, leaving)
        else:
            proved = self.searches[index].project(
                *how, detail, options.patience, leaving, fine=options.fine
            )
            if options.tie == "least_norm":
                unproved = self._settle_ties(index, given, options, out)
        detail = _NO_DETAIL if detail is None else detail
        if component.discrete:  # what passed as a whole number, and was none, has moved
            away = options.sum_of(np.abs(own - yhat) * weights)
            shifted = (out.status == ACCEPTED_AS_IS) & (away > 0.0)
            out.status[shifted] = SOLVED
            out.distance[shifted] = out.bound[shifted] = away[shifted]
        if component.accepting:
            return out, detail, unproved, proved  # what was good enough has been accepted already
        # Whole outputs are returned whole, however near the prediction was.
        moved = np.abs(out.z[:, : yhat.shape[1]] - yhat).max(1, initial=0.0)
        near = (out.status == SOLVED) & (
            moved <= (0.0 if component.discrete else options.tolerance)
        )
        if price.shape[1]:  # nor was anything paid
            near &= ((out.assignment[:, component.logic.priced] == 1) * price == 0.0).all(1)
        if near.any():  # it was searched although the prediction was good enough
            out.status[near] = ACCEPTED_AS_IS
            out.distance[near] = out.bound[near] = 0.0
            out.z[near, : yhat.shape[1]] = yhat[near]
        return out, detail, unproved, proved

    def _settle_ties(self, index: int, given: Share, options: SearchOptions, out: Output) -> Array:
        """Of all nearest points the one of least norm; returns where that is not proved."""
        if index not in self._ties:
            self._ties[index] = core.LeastNorm(self.components[index].native)
        samples = np.flatnonzero((out.status == SOLVED) & (out.distance > 0.0))
        nodes = np.zeros(len(samples), dtype=np.int64)
        ties = np.zeros(len(samples), dtype=np.int8)
        self._ties[index].settle(
            *(*given[:5], samples, out.z, out.assignment, out.distance, options.node_limit),
            time_limit=inf if options.time_limit is None else options.time_limit,
            threads=workers_of(options.threads),
            chosen=options.threads is not None,
            nodes=nodes,
            ties=ties,
        )
        out.nodes[samples] += nodes
        unproved = np.zeros(len(out.status), dtype=np.bool_)
        unproved[samples] = ties != 0
        return unproved

    def _euclidean_of(self, index: int) -> core.EuclideanSearch:
        if index not in self._euclidean:
            self._euclidean[index] = core.EuclideanSearch(self.components[index].native)
        return self._euclidean[index]


# Which outcome a sample has when its components differ.
_SEVERITY = np.zeros(ACCEPTED_AS_IS + 1, dtype=np.int8)
for _rank, _code in enumerate([ACCEPTED_AS_IS, SOLVED, NODE_LIMIT, NUMERICAL, NO_SOLUTION]):
    _SEVERITY[_code] = _rank


def activity_of(component: Component, active: Array) -> Array:
    """Which of the component's clauses apply, from those of the rules.

    Args:
        component: whose.
        active: (B, clauses of the rules) bool.
    """
    whole = len(component.clauses) == active.shape[1]
    own = active if whole else np.ascontiguousarray(active[:, component.clauses])
    if not component.decided:
        return own
    extra = [own[:, clauses].any(1) for _, clauses in component.decided]
    return np.ascontiguousarray(np.column_stack([own, *extra]))


def _snapped(yhat: Array, component: Component) -> Array:
    """Predictions, those of integers that are whole but for rounding exactly so.

    A column rests on its prediction, and an integer must not rest on 2.0000000001.
    """
    whole = np.rint(yhat)
    near = component.prepared.integer[: yhat.shape[1]] & (np.abs(yhat - whole) <= ACCEPTED)
    return np.where(near, whole, yhat)


_INT8, _INT64 = np.dtype(np.int8), np.dtype(np.int64)


def new_output(size: int, n: int, booleans: int) -> Output:
    """Arrays for the results of a batch."""
    return Output(
        np.empty((size, n)),
        np.empty(size),
        np.empty(size),
        np.empty(size, _INT8),
        np.empty((size, booleans), _INT8),
        np.empty(size, _INT64),
    )


def new_detail(size: int, n: int) -> Detail:
    """Arrays for the final dictionaries of a batch."""
    return Detail(
        column_state=np.empty((size, n), dtype=np.int8),
        column_source=np.empty((size, n), dtype=np.int64),
        tight_rows=np.empty((size, n), dtype=np.int64),
        multipliers=np.empty((size, n)),
        reduced_costs=np.empty((size, n)),
    )


_NO_DETAIL = new_detail(0, 0)
