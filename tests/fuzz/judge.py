"""Every mode of `gdpnet.project`, and certificates, against the oracle."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import torch

import gdpnet
from gdpnet import Status
from gdpnet.errors import InputError, SolverError
from gdpnet.ir.data import Column
from gdpnet.relaxation.blocks import LARGEST
from tests.fuzz import oracle
from tests.fuzz.classes import Case, case_of
from tests.fuzz.oracle import Problem, Sample, TooManyProductsError
from tests.fuzz.rational import INF, ZERO, TooLargeError

# docs/concepts.md, "Tolerance": relative to max(1, |b|, max|a|), on y as it is returned.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-6, torch.float16: 2e-3}
OF_RELAXATIONS = 1e-6
# A feasible set thinner than this, relative to the rows' scales, may be left undecided.
THIN = Fraction(1, 10**8)

# What rounding alone decides is asked of the engine only.
_ROUNDED = ("float32", "float16", "large_predictions")
_MILP_EVERY = 5
_SECONDS = 5.0  # for a MILP, and for a certificate


@dataclass
class Tally:
    """What became of the samples of a class.

    Attributes:
        samples: predictions that were judged, each in all its modes.
        failures: what is wrong, one sentence each.
        unfinished: answers with status LIMIT or UNSOLVED, and certificates refused.
        undecided: samples that are too large for the oracle.
    """

    samples: int = 0
    failures: list[str] = field(default_factory=list)
    unfinished: int = 0
    undecided: int = 0

    def add(self, other: Tally) -> None:
        self.samples += other.samples
        self.failures += other.failures
        self.unfinished += other.unfinished
        self.undecided += other.undecided


def judge(name: str, seed: int) -> Tally:
    """Project the case of a class and a seed in every mode, and compare with the oracle."""
    case, tally = case_of(name, seed), Tally()
    answers: dict[str, tuple[Check, Any]] = {}
    for mode, check in _modes(name, seed, case.rules):
        try:
            answers[mode] = check, check.solve(case)
        except Exception as error:  # whatever it is, it is a finding, and the other modes go on
            tally.failures.append(f"{name} seed {seed} {mode}: {type(error).__name__}: {error}")
    problem: Problem | None = None
    for i in range(len(case.yhat)):
        tally.samples += 1
        try:
            if problem is None or case.x is not None:
                problem = Problem.of(case.rules, None if case.x is None else case.x[i])
            sample = _sample(case, problem, i)
            for mode, (check, projection) in answers.items():
                if i >= check.most:
                    continue
                answer = Answer(case, projection, i, "time_limit" in check.keywords)
                for found in check.compare(sample, answer, name):
                    if found == _UNFINISHED:
                        tally.unfinished += 1
                    else:
                        tally.failures.append(f"{name} seed {seed} sample {i} {mode}: {found}")
        except (TooLargeError, TooManyProductsError):
            tally.undecided += 1
    return tally


def _sample(case: Case, problem: Problem, i: int) -> Sample:
    weights = case.weights or [1.0] * problem.d
    return Sample(problem, case.yhat[i].double().tolist(), weights)


# ---- modes --------------------------------------------------------------------------------------

_UNFINISHED = "unfinished"


class Answer:
    """What gdpnet says of one sample."""

    def __init__(self, case: Case, projection: Any, i: int, limited: bool = False) -> None:
        self.case, self.projection, self.i, self.limited = case, projection, i, limited
        self.status = Status(int(projection.status[i]))
        self.floats = projection.y[i].double().tolist()
        self.y = [Fraction(v) for v in self.floats]
        self.distance = float(projection.distance[i])
        price = float(projection.price[i])
        self.price = Fraction(price) if price == price else ZERO
        self.dtype = case.yhat.dtype
        self.eps = Fraction(float(torch.finfo(self.dtype).eps))
        strict = projection.info.strict
        self.strict = strict is not None and bool(strict[i])


@dataclass(frozen=True)
class Check:
    """A mode: how it is projected and how the answer is judged.

    Attributes:
        keywords: of `gdpnet.project`.
        compare: yields what is wrong, or `_UNFINISHED`.
        most: samples of a case that are judged.
    """

    keywords: dict[str, Any]
    compare: Callable[[Sample, Answer, str], Iterator[str]]
    most: int = 1000

    def solve(self, case: Case) -> Any:
        keywords = dict(self.keywords)
        if case.weights is not None:
            keywords["weights"] = case.weights
        yhat, x = case.yhat[: self.most], case.x if case.x is None else case.x[: self.most]
        with warnings.catch_warnings():
            # Where globals contradict each other there is nothing that "nearest" could break.
            warnings.simplefilter("ignore", gdpnet.errors.ConflictWarning)
            return gdpnet.project(case.rules, yhat, x, **keywords)


def _modes(name: str, seed: int, rules: gdpnet.RuleModel) -> Iterator[tuple[str, Check]]:
    # Branching over wide ranges of whole numbers may take for ever.
    limit = {"time_limit": 1.0} if name.startswith("integers") else {}
    yield "auto", Check(limit, _nearest_point)
    yield "strict", Check({"strict": True, "threads": 1, **limit}, _nearest_point)
    if name in _ROUNDED:
        return
    if rules.data.priced or any(c.breaking >= 0 for c in rules.data.clauses):  # new to others
        if seed % _MILP_EVERY == 0:
            keywords = {"solver": "milp", "threads": 1, "time_limit": _SECONDS}
            yield "milp", Check(keywords, _nearest_point, most=2)
        return
    yield "exact", Check({"solver": "exact", "threads": 1, **limit}, _nearest_point)
    least_norm = {"solver": gdpnet.solve.Exact(tie="least_norm"), "threads": 1, **limit}
    yield "least_norm", Check(least_norm, _nearest_point)
    if all(_hull_takes(column) for column in rules.data.columns):
        yield "cnf", Check({"relaxation": "cnf", "threads": 1}, _lower_bound)
    if name != "integers_1e12":  # violations are relative to 1e12 there, beyond HiGHS's digits
        keywords = {"on_conflict": "nearest", "threads": 1, **limit}
        yield "nearest", Check(keywords, _least_broken, most=1)
    yield "certificate", Check({"threads": 1, **limit}, _certificate, most=1)
    if seed % _MILP_EVERY == 0:
        keywords = {"solver": "milp", "threads": 1, "time_limit": _SECONDS}
        yield "milp", Check(keywords, _nearest_point, most=2)


def _hull_takes(column: Column) -> bool:
    """The hull needs bounds that are not too large, and writes out up to 16 whole numbers."""
    width = column.upper - column.lower
    return width < 16 if column.integer else max(-column.lower, column.upper) <= LARGEST


# ---- the nearest point --------------------------------------------------------------------------


def _nearest_point(sample: Sample, answer: Answer, name: str) -> Iterator[str]:
    tolerance = Fraction(TOLERANCE[answer.dtype])
    status = answer.status
    if status in (Status.SATISFIED, Status.PROJECTED):
        yield from _broken(sample, answer, tolerance)
        yield from _far(sample, answer, tolerance)
        if status is Status.SATISFIED and answer.y != sample.yhat:
            yield f"SATISFIED, yet {answer.floats} is not the prediction"
    elif status is Status.CONFLICT:
        yield from _refuted(sample, answer)
    elif status is Status.LIMIT:
        yield _UNFINISHED
        if answer.distance < INF:
            yield from _broken(sample, answer, tolerance)
    elif status is Status.ERROR:
        # Rounding stands in the way of the nearest set; another one may be far away.
        around = sample.relaxed(_tightened(sample, answer), _key(answer))
        if around <= sample.nearest * (1 + tolerance) + tolerance:
            yield f"ERROR, yet rounding prevents nothing: {answer.floats}"
    elif status is Status.UNSOLVED:
        yield _UNFINISHED
        if not answer.limited and (name != "parallel" or not _is_thin(sample)):
            yield "UNSOLVED, yet the numbers are not close"
    else:
        yield f"status {status.name}"


def _broken(sample: Sample, answer: Answer, tolerance: Fraction) -> Iterator[str]:
    """Bounds, whole numbers and rows of y as it is returned."""
    p, y = sample.problem, answer.y
    allowed = ZERO if answer.strict else tolerance
    for j, v in enumerate(y):
        for bound, sign in ((p.lower[j], -1), (p.upper[j], 1)):
            if bound in (INF, -INF):
                continue
            limit = Fraction(float(bound))
            if sign * (v - limit) > allowed * max(1, abs(limit)):
                yield f"y[{j}] = {float(v)!r} is outside of its bound {bound!r}"
        if p.integer[j] and v.denominator != 1:
            yield f"y[{j}] = {float(v)!r} is not whole"
    if not sample.holds(y, _strictly(sample, answer) if answer.strict else _times(p, tolerance)):
        how = "strictly" if answer.strict else f"within {float(tolerance):g}"
        yield f"{answer.status.name}, yet rules do not hold {how} at {answer.floats}"


def _times(problem: Problem, tolerance: Fraction) -> oracle.Relaxation:
    return lambda row: tolerance * problem.documented[row]


def _strictly(sample: Sample, answer: Answer) -> oracle.Relaxation:
    """No tolerance; of equalities a few units in the last place, auxiliaries being unknown."""
    p = sample.problem

    def allowed(row: int) -> Fraction:
        a, b = p.rows[row]
        if not p.equality[row]:
            return ZERO
        if max(a, default=0) >= p.d:
            return Fraction(TOLERANCE[torch.float64]) * p.documented[row]
        return 8 * answer.eps * (abs(b) + sum(abs(c * answer.y[j]) for j, c in a.items()))

    return allowed


def _far(sample: Sample, answer: Answer, tolerance: Fraction) -> Iterator[str]:
    """The distance: neither more than the nearest point's, nor less than is possible."""
    p = sample.problem
    own = sample.distance_of(answer.y)
    size = sum(
        w * (abs(v) + abs(u)) for w, v, u in zip(sample.weights, answer.y, sample.yhat, strict=True)
    )
    rounding = 4 * answer.eps * size
    if abs(own - Fraction(answer.distance)) > rounding + Fraction(1, 10**12):
        yield f"distance {answer.distance!r}, yet y is at {float(own)!r}"
    own += answer.price
    slack = rounding + Fraction(1, 10**9) * max(1, own)
    if own < sample.nearest - slack:
        relaxed = sample.relaxed(lambda row: tolerance * p.relative[row], ("relaxed", tolerance))
        wrong = own < relaxed - slack
    elif own > sample.nearest + slack:
        # Where rounding broke rows they were tightened; what then is left may be further away.
        wrong = own > sample.relaxed(_tightened(sample, answer), _key(answer)) + slack
    else:
        wrong = False
    if wrong:
        yield (f"{answer.status.name} at {float(own)!r}, nearest is at {float(sample.nearest)!r}")


def _tightened(sample: Sample, answer: Answer) -> oracle.Relaxation:
    """Rows tightened by a few times what rounding to the caller's type may break of them.

    An equality has no room: where rounding breaks it beyond the tolerance, or none is allowed, it
    is luck whether a point of that type lies on it.
    """
    p = sample.problem
    reach = sample.nearest if sample.nearest < INF else ZERO
    size = [abs(v) + reach / w for v, w in zip(sample.yhat, sample.weights, strict=True)]
    tolerance = Fraction(TOLERANCE[answer.dtype])

    def relaxed(row: int) -> Fraction:
        a, b = p.rows[row]
        broken = answer.eps * (abs(b) + sum(abs(c) * size[j] for j, c in a.items() if j < p.d))
        if p.equality[row] and not answer.strict and broken < tolerance * p.documented[row]:
            return ZERO
        return -8 * broken

    return relaxed


def _key(answer: Answer) -> tuple[Any, ...]:
    return "tight", answer.eps, answer.strict


def _refuted(sample: Sample, answer: Answer) -> Iterator[str]:
    if sample.nearest < INF:
        yield f"CONFLICT, yet there is a point at {float(sample.nearest)!r}"
    if answer.y != sample.yhat:
        yield f"CONFLICT, yet {answer.floats} is not the prediction"


def _is_thin(sample: Sample) -> bool:
    p = sample.problem
    inside = sample.relaxed(lambda row: -THIN * p.relative[row], "thin")
    around = sample.relaxed(lambda row: THIN * p.relative[row], "thick")
    return inside == INF and around < INF


def _is_close(sample: Sample) -> bool:
    """Whether the tolerance of `satisfied` changes the distance itself, or makes a point exist."""
    p, tolerance = sample.problem, Fraction(OF_RELAXATIONS)
    least = sample.nearest
    around = sample.relaxed(lambda row: tolerance * p.documented[row], "documented")
    return around < least - tolerance * max(1, least) if least < INF else around < INF


# ---- the other modes ----------------------------------------------------------------------------


def _lower_bound(sample: Sample, answer: Answer, name: str) -> Iterator[str]:
    """A relaxation is never further away than the nearest point, nor empty where one exists."""
    if answer.status is Status.CONFLICT:
        yield from _refuted(sample, answer)
    elif answer.status in (Status.LIMIT, Status.ERROR, Status.UNSOLVED):
        yield _UNFINISHED
    else:
        yield from _above(sample, float(answer.projection.value[answer.i]))
        if answer.status in (Status.SATISFIED, Status.PROJECTED):
            yield from _broken(sample, answer, Fraction(OF_RELAXATIONS))


def _inside(sample: Sample) -> oracle.Relaxation:
    p, tolerance = sample.problem, Fraction(TOLERANCE[torch.float64])
    return lambda row: ZERO if p.equality[row] else -tolerance * p.documented[row]


def _above(sample: Sample, bound: float) -> Iterator[str]:
    """Points nearer than what is said to be a lower bound."""
    size = max([Fraction(1), Fraction(bound), *(abs(v) for v in sample.yhat)])
    least = Fraction(bound) - Fraction(OF_RELAXATIONS) * size
    # Rows hold within a tolerance, which counts where they are nearly parallel.
    if sample.nearest < least and sample.relaxed(_inside(sample), "inside") < least:
        yield f"lower bound {bound!r}, yet there is a point at {float(sample.nearest)!r}"


def _least_broken(sample: Sample, answer: Answer, name: str) -> Iterator[str]:
    """Bounds and globals hold; violations add up to the least, and no such point is nearer."""
    p = sample.problem
    if answer.status is not Status.CONFLICT or len(p.lower) > p.d:
        return
    least = oracle.least_broken(sample)
    if least == INF:
        if answer.y != sample.yhat:
            yield f"the globals contradict each other, yet y is {answer.floats}"
        return
    close = Fraction(OF_RELAXATIONS)
    broken = oracle.broken_at(sample, answer.y, _times(p, close))
    if broken > least + close * max(1, least):
        yield f"rules are broken by {float(broken)!r}, {float(least)!r} is possible"
        return
    own, nearest = sample.distance_of(answer.y), oracle.nearest_broken(sample, least)
    if own > nearest + 10 * close * max(1, nearest):
        yield f"as little broken, yet at {float(own)!r}, {float(nearest)!r} is possible"


def _certificate(sample: Sample, answer: Answer, name: str) -> Iterator[str]:
    """A certificate is verified, proves nothing false, and is none for the prediction itself."""
    case, i = answer.case, answer.i
    x, yhat = None if case.x is None else case.x[i], case.yhat[i]
    if answer.status not in (Status.SATISFIED, Status.PROJECTED, Status.CONFLICT):
        return
    try:
        proof = gdpnet.proof.certify(case.rules, yhat, x, weights=case.weights, time_limit=_SECONDS)
    except SolverError:
        yield _UNFINISHED
        return
    except InputError as error:
        yield _UNFINISHED if _is_close(sample) else f"certify: {error}"
        return
    conflict = proof.bound == INF
    y = None if conflict else answer.projection.y[i]
    verdict = gdpnet.proof.verify(case.rules, yhat, y, x, proof, weights=case.weights)
    if not verdict.ok:
        yield f"verify: {verdict.reason}"
    if conflict:
        if sample.nearest < INF:
            yield f"a contradiction is proved, yet there is a point at {float(sample.nearest)!r}"
        return
    yield from _above(sample, proof.bound)
    breaks = not sample.holds(sample.yhat, _times(sample.problem, Fraction(OF_RELAXATIONS)))
    if breaks and gdpnet.proof.verify(case.rules, yhat, yhat, x, proof, weights=case.weights).ok:
        yield "verify accepts a prediction that breaks rules"
