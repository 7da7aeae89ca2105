"""The full DNF's regularised program, written down and solved.

Nothing of `gdpnet.derivative` is used: products are those of `gdpnet.convexify`, empty ones are
found by linear programs, and the program is solved as a least-distance
problem. The solution is returned only if it meets the optimality conditions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag, null_space
from scipy.optimize import linprog, nnls

from gdpnet.ir.instance import Instance
from gdpnet.model import RuleModel
from gdpnet.relaxation.products import products
from gdpnet.solve.exact.arrays import Component
from gdpnet.solve.exact.engine import ExactEngine


@dataclass(frozen=True)
class Polyhedron:
    """`upper z <= limit`, `equal z == right` over the columns of a component."""

    upper: np.ndarray
    limit: np.ndarray
    equal: np.ndarray
    right: np.ndarray

    def empty(self) -> bool:
        answer = linprog(
            np.zeros(self.upper.shape[1]),
            A_ub=self.upper,
            b_ub=self.limit,
            A_eq=self.equal,
            b_eq=self.right,
            bounds=(None, None),
        )
        assert answer.status in (0, 2), answer.message
        return bool(answer.status == 2)


@dataclass(frozen=True)
class Program:
    """minimise `cost x + 1/2 sum(curvature x^2)`, `upper x <= limit`, `equal x == right`."""

    cost: np.ndarray
    curvature: np.ndarray
    upper: np.ndarray
    limit: np.ndarray
    equal: np.ndarray
    right: np.ndarray
    moves: np.ndarray  # y - yhat = moves x


def terms(
    rules: RuleModel, component: Component, instance: Instance, sample: int, most: int
) -> list[Polyhedron] | None:
    """Products of a component that are not empty; None where there are more than `most`."""
    data = rules.data
    own = {int(c) for c in component.clauses}
    active = instance.active[sample].tolist()
    chosen = [r for r, rule in enumerate(data.rules) if rule.clause in own and active[rule.clause]]
    table = rules.table.shared.numpy().copy()
    table[rules.table.varying.numpy()] = instance.varying[sample]
    lower = np.array([data.columns[c].lower for c in component.columns])
    upper = np.array([data.columns[c].upper for c in component.columns])
    found = []
    all_products = products(data, chosen, active)
    if len(all_products) > most:
        return None
    always = [i for i in data.global_rows if i in set(component.rows.tolist())]
    for product in all_products:
        rows = list(dict.fromkeys((*always, *product.rows)))
        less = [i for i in rows if not data.rows[i].equality]
        same = [i for i in rows if data.rows[i].equality]
        eye = np.eye(len(lower))
        low, high = np.isfinite(lower), np.isfinite(upper)
        polyhedron = Polyhedron(
            upper=np.vstack([table[less][:, component.columns], eye[high], -eye[low]]),
            limit=np.concatenate([instance.bound[sample, less], upper[high], -lower[low]]),
            equal=table[same][:, component.columns],
            right=instance.bound[sample, same],
        )
        if not polyhedron.empty():
            found.append(polyhedron)
    return found


def written(
    polyhedra: list[Polyhedron], yhat: np.ndarray, weights: np.ndarray, eps: float
) -> Program:
    """The program over (p, q, a, lambda) of every product, z = p - q, eta = p + q."""
    d, n = len(yhat), polyhedra[0].upper.shape[1]
    width = 2 * d + (n - d) + 1
    size = width * len(polyhedra)
    shift = np.concatenate([yhat, np.zeros(n - d)])

    def block(k: int, matrix: np.ndarray, bound: np.ndarray) -> np.ndarray:
        rows = np.zeros((len(matrix), size))
        at = k * width
        rows[:, at : at + d] = matrix[:, :d]
        rows[:, at + d : at + 2 * d] = -matrix[:, :d]
        rows[:, at + 2 * d : at + width - 1] = matrix[:, d:]
        rows[:, at + width - 1] = matrix @ shift - bound
        return rows

    one = np.zeros(size)
    one[width - 1 :: width] = 1.0
    signed = np.tile(np.r_[np.ones(2 * d), np.zeros(n - d), 1.0], len(polyhedra)) > 0
    upper = [block(k, p.upper, p.limit) for k, p in enumerate(polyhedra)]
    equal = [block(k, p.equal, p.right) for k, p in enumerate(polyhedra)]
    moves = np.hstack([np.eye(d), -np.eye(d), np.zeros((d, n - d + 1))])
    return Program(
        cost=np.tile(np.r_[weights, weights, np.zeros(n - d + 1)], len(polyhedra)),
        curvature=np.tile(np.r_[np.full(2 * d, 2 * eps), np.full(n - d + 1, eps)], len(polyhedra)),
        upper=np.vstack([*upper, -np.eye(size)[signed]]),
        limit=np.zeros(sum(len(u) for u in upper) + signed.sum()),
        equal=np.vstack([*equal, one]),
        right=np.r_[np.zeros(sum(len(e) for e in equal)), 1.0],
        moves=np.tile(moves, (1, len(polyhedra))),
    )


def least_norm(rows: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """The least v with `rows v <= limit`, by Lawson and Hanson's non-negative least squares.

    The rows that turn out to be tight give the point to full precision. That depends on units and
    on what counts as zero; a point is returned only if it is proved to be optimal.
    """
    largest = max(1.0, float(np.abs(limit).max(initial=0.0)))
    for unit in largest * np.logspace(0, -4, 9):
        stacked = np.vstack([-rows.T, -limit[None] / unit])
        target = np.zeros(len(stacked))
        target[-1] = 1.0
        multiplier, _ = nnls(stacked, target, maxiter=100 * stacked.shape[1])
        residual = stacked @ multiplier - target
        if not residual[-1] < 0.0:
            continue
        for zero in (0.0, 1e-12, 1e-9, 1e-7):
            held = multiplier > zero * multiplier.max(initial=0.0)
            v = np.zeros(rows.shape[1])
            if held.any():
                v = np.linalg.lstsq(rows[held], limit[held], rcond=1e-11)[0]
            scale = max(1.0, float(np.abs(v).max(initial=0.0)))
            if not (rows @ v <= limit + 1e-9 * scale).all():
                continue
            tight = rows @ v >= limit - 1e-9 * scale
            _, missing = nnls(rows[tight].T, -v) if tight.any() else (None, np.linalg.norm(v))
            if missing <= 1e-9 * scale:  # v is a sum of tight rows: nothing feasible is shorter
                return v
    raise AssertionError("the oracle found no proved solution")


def solve(program: Program) -> np.ndarray:
    """The solution, checked."""
    root = np.sqrt(program.curvature)
    centre = -program.cost / root  # x = (u + centre) / root
    equal, right = program.equal / root, program.right - program.equal @ (centre / root)
    start = np.linalg.lstsq(equal, right, rcond=None)[0]
    basis = null_space(equal)
    upper = program.upper / root
    limit = program.limit - program.upper @ (centre / root) - upper @ start
    reduced = upper @ basis
    size = np.linalg.norm(reduced, axis=1)
    implied = size <= 1e-12 * np.linalg.norm(upper, axis=1)  # by the equalities
    assert (limit[implied] >= -1e-9).all()
    reduced, limit = reduced[~implied] / size[~implied, None], limit[~implied] / size[~implied]
    v = least_norm(reduced, limit)
    return (start + basis @ v + centre) / root


def regularised(
    engine: ExactEngine,
    instance: Instance,
    sample: int,
    yhat: np.ndarray,
    weights: np.ndarray,
    eps: float,
    most: int = 40,
) -> np.ndarray | None:
    """y of one sample, (d,); None where the program is too large to write down."""
    data = engine.data
    lower = np.array([c.lower for c in data.columns[: data.outputs]])
    upper = np.array([c.upper for c in data.columns[: data.outputs]])
    y = np.clip(yhat, lower, upper)
    for component in engine.components:
        found = terms(engine.rules, component, instance, sample, most)
        if found is None:
            return None
        own = y[component.outputs]
        program = written(found, own, weights[component.outputs], eps)
        y[component.outputs] = own + program.moves @ solve(program)
    return y


def written_blocks(
    blocks: list[list[Polyhedron]],
    reach: np.ndarray,
    yhat: np.ndarray,
    weights: np.ndarray,
    eps: float,
) -> Program:
    """The program of several blocks: as `written` for each, with equal sums of all copies.

    As in the hull, `eta <= width lambda`; with one block that follows from the bounds.
    """
    d = len(yhat)
    apart = [written(block, yhat, weights / len(blocks), eps) for block in blocks]
    sizes = [len(program.cost) for program in apart]
    n = blocks[0][0].upper.shape[1]
    width = d + n + 1
    sums = [np.tile(np.eye(width), (1, size // width))[:-1] for size in sizes]
    links = [
        np.hstack([-sums[0], *(sums[c] if k == c else np.zeros((width - 1, sizes[k]))
                               for k in range(1, len(blocks)))])
        for c in range(1, len(blocks))
    ]  # fmt: skip
    range_of_eta = np.hstack([np.eye(d), np.eye(d), np.zeros((d, n - d)), -reach[:, None]])
    copies = sum(sizes) // width
    return Program(
        cost=np.concatenate([p.cost for p in apart]),
        curvature=np.concatenate([p.curvature for p in apart]),
        upper=np.vstack(
            [block_diag(*(p.upper for p in apart)), block_diag(*[range_of_eta] * copies)]
        ),
        limit=np.concatenate([*(p.limit for p in apart), np.zeros(d * copies)]),
        equal=np.vstack([block_diag(*(p.equal for p in apart)), *links]),
        right=np.concatenate([*(p.right for p in apart), np.zeros((width - 1) * len(links))]),
        moves=np.hstack([apart[0].moves, np.zeros((d, sum(sizes[1:])))]),
    )
