"""PBMC3k: cell types from gene expression, under rules of marker genes.

The real-data study of the DisjunctiveNet paper. x holds the scaled expression of the genes of
`X` (1838 in PBMC3k) and behind them the inputs of the rules, the mean expression of each rule's
markers. y are probabilities of eight cell types. README.md says what the paper leaves open, and
what was chosen here.

Environment: GDPNET_DATA names the data (a folder with pbmc3k/, or pbmc68k_reduced: `_cells.py`),
GDPNET_RULES one of the rule sets A, B and C (C if absent).
"""

import os
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import nn

import gdpnet
from gdpnet.bio import MarkerRule, MarkerRules, marker_rules
from gdpnet.study.training import Method, Protocol, Stage

from ._cells import LABELS, cells
from ._rule_sets import CLASSES, RULE_SETS
from ._rules_only import RulesOnly

RHO = 0.5
SPLIT_SEED, TEST_FRACTION = 42, 0.1
FRACTIONS = (0.005, 0.01, 0.05, 0.1, 0.2)
HIDDEN = 8

TEST_SEEDS = {"test": SPLIT_SEED}
TEST_SIZE = 1_000_000  # all there are

FLOOR = 1e-4
"""Share of the uniform distribution that the loss mixes into the probabilities."""

EQUAL = 1e-6
"""Probabilities this close are equally high."""

PROTOCOLS = {
    "pbmc": Protocol(
        base=Stage(batch=1, rate=3e-3, epochs=500),
        finetune=Stage(batch=1, rate=3e-3, epochs=15),
    ),
    "smoke": Protocol(
        base=Stage(batch=1, rate=3e-3, epochs=20),
        finetune=Stage(batch=1, rate=3e-3, epochs=2),
    ),
}

LEAST_NORM = gdpnet.solve.Exact(tie="least_norm")

METHODS = {
    method.name: method
    for method in (
        Method("dnf-least-norm", projection={"relaxation": "dnf", "solver": LEAST_NORM}),
        Method("dnf-nearest", projection={"relaxation": "dnf", "on_conflict": "nearest"}),
        Method(
            "inference-least-norm",
            "plain",
            finetuned=False,
            projection={"relaxation": "dnf", "solver": LEAST_NORM},
        ),
        Method("rules", network=lambda: _OnRuleInputs(RulesOnly(markers()))),
    )
}


# ---- rules -------------------------------------------------------------------------------


def markers(rules: str | None = None, rho: float = RHO) -> MarkerRules:
    """The rules as marker rules.

    Args:
        rules: name of the rule set; None: that of GDPNET_RULES, else C.
        rho: least probability.
    """
    return _markers(rules or os.environ.get("GDPNET_RULES", "C"), rho)


def priced(price: float, rules: str | None = None, rho: float = RHO) -> MarkerRules:
    """The same rules, each of which may be broken at a price."""
    hard = markers(rules, rho)
    use_raw = hard.source.use_raw
    return marker_rules(hard.markers, CLASSES, tau=None, price=price, use_raw=use_raw)


@cache
def _markers(rules: str, rho: float) -> MarkerRules:
    if rules not in RULE_SETS:
        raise ValueError(f"rules: expected one of {', '.join(RULE_SETS)}, got {rules!r}.")
    chosen = RULE_SETS[rules]
    adata = cells()
    table = adata.raw if chosen.use_raw else adata
    present = [_with_genes(marker, set(table.var_names)) for marker in chosen.markers]
    return marker_rules(
        [marker for marker in present if marker is not None],
        CLASSES,
        tau=None,
        rho=rho,
        use_raw=chosen.use_raw,
    )


def _with_genes(marker: MarkerRule, known: set[str]) -> MarkerRule | None:
    """The rule with those of its genes that were measured: PBMC3k has all of them."""
    genes = [gene for gene in marker.genes if gene in known]
    return MarkerRule(genes, marker.classes, tau=marker.tau) if genes else None


def build(rules: str | None = None, rho: float = RHO) -> gdpnet.RuleModel:
    """The rules with the probabilities of `CLASSES` as outputs.

    Args:
        rules: name of the rule set; None: that of GDPNET_RULES, else C.
        rho: least probability.
    """
    return markers(rules, rho).rules


def rule_inputs(x: torch.Tensor) -> torch.Tensor:
    """The inputs of the rules, which stand behind the genes."""
    return x[..., cells().n_vars :]


class _OnRuleInputs(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(rule_inputs(x))


# ---- data --------------------------------------------------------------------------------


def sample(n: int, split: str = "train", seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Cells and their classes.

    The test split is fixed: a tenth of the cells, the same share of every class, drawn with seed
    42. A training set is drawn from the rest, whatever the class; one of n cells is part of the
    larger ones of the same seed.

    Args:
        n: number of cells; fewer are returned where there are no more.
        split: "train" or "test".
        seed: of the training set.

    Returns:
        x `n x (genes + rules)`, float64, and classes `n`, int64.
    """
    x, classes = _data(os.environ.get("GDPNET_DATA", ""), os.environ.get("GDPNET_RULES", "C"))
    train, test = split_rows()
    if split == "train":
        rows = np.random.default_rng([seed, SPLIT_SEED]).permutation(train)[:n]
    elif split == "test":
        rows = test[:n]
    else:
        raise ValueError(f"split must be train or test; got {split!r}")
    return x[rows], classes[rows]


@cache
def _data(where: str, rules: str) -> tuple[torch.Tensor, torch.Tensor]:
    adata = cells()
    dense = adata.X.toarray() if hasattr(adata.X, "toarray") else adata.X
    genes = np.asarray(dense, dtype=np.float64)
    x = np.concatenate([genes, markers(rules).expression(adata)], axis=1)
    return torch.from_numpy(x), torch.from_numpy(_true_classes(adata))


def _true_classes(adata: Any) -> np.ndarray:
    return np.array([CLASSES.index(name) for name in adata.obs[LABELS]])


def split_rows() -> tuple[np.ndarray, np.ndarray]:
    """Rows of the cells for training and for testing."""
    from sklearn.model_selection import train_test_split

    true = _true_classes(cells())
    train, test = train_test_split(
        np.arange(len(true)), test_size=TEST_FRACTION, random_state=SPLIT_SEED, stratify=true
    )
    return train, test


def sizes() -> tuple[int, ...]:
    """The training sizes of the study: the paper's fractions of the cells for training."""
    train, _ = split_rows()
    return tuple(round(fraction * len(train)) for fraction in FRACTIONS)


# ---- learning ----------------------------------------------------------------------------


class Classifier(nn.Module):
    """The paper's backbone, genes - 8 - 8 classes, Glorot, with ReLU between and softmax behind."""

    def __init__(self, genes: int) -> None:
        super().__init__()
        self.genes = genes
        self.hidden = nn.Linear(genes, HIDDEN)
        self.classes = nn.Linear(HIDDEN, len(CLASSES))
        for layer in (self.hidden, self.classes):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Probabilities, `... x classes`."""
        hidden = torch.relu(self.hidden(x[..., : self.genes]))
        return torch.softmax(self.classes(hidden), dim=-1)


def network() -> nn.Module:
    """A new backbone."""
    return Classifier(cells().n_vars)


def loss(y: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross entropy of probabilities, mixed with a little of the uniform distribution.

    A projection may leave the true class with probability 0, where the logarithm is infinite. A
    clamp would make it finite but without gradient, just where one is needed; the mixture has one
    of at most `classes / FLOOR` there.

    Args:
        y: probabilities, `n x classes`.
        target: classes, `n`.
    """
    true = y.gather(-1, target[:, None])
    return -torch.log((1.0 - FLOOR) * true + FLOOR / len(CLASSES)).mean()


def metrics(y: torch.Tensor, target: torch.Tensor) -> dict[str, float]:
    """Accuracy, and precision, recall and F1 averaged over the classes.

    The label is the most probable class; see `labels` for several. A class that is never predicted
    has precision 0, one that does not occur recall 0. `ties` is the share of cells without a single
    most probable class.

    Args:
        y: probabilities, `n x classes`.
        target: classes, `n`.
    """
    table = confusion(y, target)
    hits, predicted, true = table.diag(), table.sum(0), table.sum(1)
    precision = _share(hits, predicted)
    recall = _share(hits, true)
    f1 = _share(2 * hits, predicted + true)
    return {
        "accuracy": float(hits.sum() / table.sum()),
        "macro_f1": float(f1.mean()),
        "macro_precision": float(precision.mean()),
        "macro_recall": float(recall.mean()),
        "ties": float((labels(y).amax(-1) < 1.0).double().mean()),
    }


def _share(part: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
    return torch.where(whole > 0, part / whole.clamp(min=1e-9), 0.0)


def labels(y: torch.Tensor) -> torch.Tensor:
    """Labels as shares, `n x classes`: 1 at the most probable class, equal shares at several.

    Rules that ask for half of the probability leave two classes with half each in many cells. Which
    of them an argmax takes is a matter of rounding; shares are what a fair draw gives on average.
    """
    highest = (y >= y.amax(-1, keepdim=True) - EQUAL).double()
    return highest / highest.sum(-1, keepdim=True)


def confusion(y: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Numbers of cells, true class x label; fractions where labels are shared."""
    return nn.functional.one_hot(target, len(CLASSES)).double().T @ labels(y)
