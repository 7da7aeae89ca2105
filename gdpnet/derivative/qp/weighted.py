r"""The regularised program of the DNF with a term on the weights alone, and its derivative.

For the Euclidean norm, and in either norm for rules with convex rows. For every part of the rules
that hangs together and its products k,

    minimise    sum_k lambda_k f(y_k / lambda_k) + eps/2 sum_k lambda_k^2
    subject to  y_k / lambda_k in product k,  sum_k lambda_k = 1,  lambda >= 0

gives `y = sum_k y_k`, f being the squared distance or, in l1, the distance; of linear rows the
second line is `A_k (y_k, a_k) <= lambda_k b_k`. The square is curved enough in the copies, and so
are convex rows that are tight; only the weights need a quadratic term to be unique. For shifted
copies, z_k = y_k - lambda_k yhat, it is the same program. With p_k the projection onto product k
and v_k its f, y_k is lambda_k p_k, and what is left is

    minimise    sum_k lambda_k v_k + eps/2 sum_k lambda_k^2    over the simplex:

lambda is the point of the simplex next to -v / eps. So only products with v_k < v* + eps have
weight, where one alone does the derivative is that of the projection, and near a tie between
disjuncts the loss feels both sides. The derivative follows by the chain rule, since p_k is the
exact engine's and v_k its value. In l1 several points of a product may be equally near. With linear
rows alone the term therefore stands on the copies, too (`dnf`); here the engine's point is taken.

What a product chooses may cost something: prices are part of its v_k, and move the weights alone.

The products of a layout are written out, and each is projected onto for the whole batch; more than
`MOST` of them are refused.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gdpnet.derivative.regularised import Regularised
from gdpnet.errors import RuleError
from gdpnet.relaxation.blocks import Part
from gdpnet.relaxation.layouts import layouts_of
from gdpnet.solve.base import Answer, Array, Gradients, Linearisation, Request
from gdpnet.solve.exact.backend import Exact
from gdpnet.solve.extended.rows_alone import with_rows_alone
from gdpnet.solve.status import Status

MOST = 1024
"""Products of a part that are written out."""


class _Term(NamedTuple):
    """A product of a part.

    Attributes:
        point: the projections, (B, outputs of the part).
        weight: (B,).
        linearisation: of the projections.
        pays: whether it chooses each boolean that has a price, (priced,).
    """

    point: Array
    weight: Array
    linearisation: Linearisation
    pays: Array


class _Mixture(NamedTuple):
    """The products of a part for some samples.

    Attributes:
        samples: (B',).
        outputs: of the part.
        terms: products with weight.
    """

    samples: Array
    outputs: Array
    terms: tuple[_Term, ...]


class WeightedQPs(Regularised):
    """The regularised points of a batch.

    Args:
        request: the batch.
        answer: its projections.
        eps: the regularisation.
        cap: most products with weight, of a sample and part.

    Attributes:
        y: the regularised point, (B, d); the projection where there is none.
        capped: samples for which not all products that could have weight were mixed, (B,) bool.
    """

    def __init__(self, request: Request, answer: Answer, eps: float, cap: int) -> None:
        self._request, self._eps = request, eps
        self._squared = request.settings.norm == "l2"
        self.y = answer.y.copy()
        self.capped: Array = np.zeros(len(self.y), dtype=bool)
        self.known: Array = answer.answered
        self._missing = np.zeros(len(self.y), dtype=bool)
        self._mixtures: list[_Mixture] = []
        apart = (answer.y != request.yhat).any(1)
        if request.rules.data.priced:  # something may have been paid where nothing moved
            apart |= answer.status == Status.PROJECTED
        moved = np.flatnonzero(self.known & apart)
        if not len(moved):
            return
        layouts = layouts_of(request.rules)
        rules = layouts.ready.rules
        settings = request.settings._replace(linearise=True)
        part = request.take(moved)._replace(rules=rules, settings=settings)
        instance = part.evaluate()
        active = instance.active
        price = instance.price / settings.price_unit
        pruned = layouts.within_input_bounds(part.x)
        first, which = layouts.patterns(active, pruned)
        for k, s in enumerate(first.tolist()):
            number = layouts.planned(None, active[s], bool(pruned[s]))
            own = np.flatnonzero(which == k)
            if layouts.contradictory[number]:
                self._missing[moved[own]] = True
                continue
            pays, first_product = layouts.prices(number, price[own])[1], 0
            for one in layouts.listed[number]:
                last = first_product + sum(len(block.products) for block in one.blocks)
                payers = pays[:, first_product:last]
                self._mix(one, moved[own], part.take(own), cap, (price[own], payers))
                first_product = last

    @property
    def missing(self) -> Array:
        """Samples without a regularised point, (B,) bool."""
        return self._missing

    def _mix(
        self, part: Part, samples: Array, request: Request, cap: int, prices: tuple[Array, Array]
    ) -> None:
        price, payers = prices
        paid = price @ payers
        outputs = np.array([j for j in part.columns if j < request.rules.data.outputs])
        products = [product for block in part.blocks for product in block.products]
        if len(products) > MOST:
            raise RuleError(
                f"gradient: with norm='l2' or convex rows QP projects onto every product of rules "
                f"that hang together; expected at most {MOST}, these rules have {len(products):,}. "
                "Use gradient='vertex' or 'auto', or a relaxation with fewer basic steps."
            )
        if not len(outputs):
            return
        weights = request.settings.weights[outputs]
        yhat = request.yhat[:, outputs]
        points: list[Array] = []
        values: list[Array] = []
        linearisations = []
        for product in products:
            rules = with_rows_alone(request.rules, (*part.rows, *product.rows))
            found = Exact().solve(request._replace(rules=rules))
            point = found.y[:, outputs]
            away = np.abs(point - yhat) * weights
            value_of = (away**2 if self._squared else away).sum(1)
            points.append(point)
            values.append(np.where(found.answered, value_of + paid[:, len(values)], np.inf))
            assert found.linearisation is not None
            linearisations.append(found.linearisation)
        value = np.column_stack(values)
        self._missing[samples] |= ~np.isfinite(value).any(1)
        near = np.sort(value, 1)
        if len(products) > cap:  # the nearest ones
            self.capped[samples] |= near[:, cap] < near[:, 0] + self._eps
            value = np.where(value <= near[:, cap - 1 : cap], value, np.inf)
        share = simplex_weights(value / self._eps)
        terms = tuple(
            _Term(points[k], share[:, k], linearisations[k], payers[:, k])
            for k in range(len(products))
            if share[:, k].any()
        )
        self.y[np.ix_(samples, outputs)] = sum(t.weight[:, None] * t.point for t in terms)
        self._mixtures.append(_Mixture(samples, outputs, terms))

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d)."""
        request = self._request
        found = Gradients.passing(request.rules, gradient)
        price = np.zeros((len(gradient), len(request.rules.data.priced)))
        rows, varying, columns = found.bound.shape[1], *found.varying.shape[1:]
        mixed = np.zeros(gradient.shape, dtype=bool)
        for mixture in self._mixtures:
            samples, outputs, terms = mixture
            there = np.ix_(samples, outputs)
            found.yhat[there] = 0.0
            mixed[there] = True
            along = gradient[there]
            weights = request.settings.weights[outputs]
            seen = np.column_stack([(along * t.point).sum(1) for t in terms])
            inside = np.column_stack([t.weight > 0.0 for t in terms])
            mean = (seen * inside).sum(1) / np.maximum(inside.sum(1), 1)
            for k, term in enumerate(terms):
                pull = np.where(inside[:, k], (mean - seen[:, k]) / self._eps, 0.0)
                price[samples] += pull[:, None] * term.pays / request.settings.price_unit
                away = term.point - request.yhat[there]
                away = 2.0 * weights**2 * away if self._squared else weights * np.sign(away)
                away = away * pull[:, None]
                incoming = np.zeros((len(samples), gradient.shape[1]))
                incoming[:, outputs] = term.weight[:, None] * along + away
                part = term.linearisation.vjp(incoming)
                # A product without weight may have no point in a sample, and so no derivative.
                own = inside[:, k]
                at = samples[own]
                found.yhat[at] += part.yhat[own]
                found.yhat[there] -= away
                found.bound[at] += part.bound[own, :rows]
                found.varying[at] += part.varying[own, :varying, :columns]
        # Outputs in no part stay within their bounds.
        held = ~mixed & (self.y != request.yhat)
        found.yhat[held & self.known[:, None]] = 0.0
        return found._replace(price=price)


def simplex_weights(prices: Array) -> Array:
    """Where `sum(weight * price) + sum(weight^2) / 2` is least over the simplex, row by row.

    Args:
        prices: (B, k); infinite for what gets no weight.
    """
    usable = np.isfinite(prices)
    base = np.min(np.where(usable, prices, np.inf), axis=1, keepdims=True)
    level = np.where(usable, np.where(np.isfinite(base), base, 0.0) - prices, -np.inf)
    ordered = -np.sort(-level, axis=1)
    count = np.arange(1, prices.shape[1] + 1)
    total = np.cumsum(np.where(np.isfinite(ordered), ordered, 0.0), axis=1)
    kept = np.isfinite(ordered) & (1.0 + count * ordered > total)
    size = np.maximum(kept.sum(1), 1)
    threshold = (total[np.arange(len(prices)), size - 1] - 1.0) / size
    return np.asarray(np.where(usable, np.maximum(level - threshold[:, None], 0.0), 0.0))
