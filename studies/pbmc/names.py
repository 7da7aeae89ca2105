"""Methods as the page calls them, and what the paper's appendix prints of them."""

NAMES = {
    "base": "base",
    "finetuned-base": "base, fine-tuned",
    "penalty": "penalty",
    "finetuned-penalty": "fine-tuned penalty",
    "inference": "projected at inference",
    "inference-least-norm": "projected at inference, least norm",
    "cnf": "CNF",
    "cnf-mixed": "CNF, mixed gradient",
    "cnf-relaxed": "CNF, relaxed",
    "dnf": "DNF",
    "dnf-mixed": "DNF, mixed gradient",
    "dnf-relaxed": "DNF, relaxed",
    "dnf-least-norm": "DNF, least norm",
    "dnf-nearest": "DNF, nearest on conflict",
    "rules": "rules only",
}

PAPER_SIZES = (12, 23, 117, 234, 469)
MEASURES = ("accuracy", "macro_f1", "macro_precision", "macro_recall", "csat")

# Means of the paper's appendix, in the order of MEASURES, one row for each of its sizes.
PAPER = {
    "base": (
        (0.251, 0.232, 0.381, 0.339, 0.105),
        (0.470, 0.296, 0.381, 0.392, 0.242),
        (0.713, 0.559, 0.582, 0.650, 0.487),
        (0.736, 0.606, 0.664, 0.646, 0.520),
        (0.835, 0.709, 0.773, 0.710, 0.742),
    ),
    "penalty": (
        (0.468, 0.339, 0.385, 0.466, 0.046),
        (0.431, 0.319, 0.361, 0.411, 0.052),
        (0.753, 0.567, 0.600, 0.632, 0.464),
        (0.753, 0.528, 0.553, 0.556, 0.575),
        (0.829, 0.675, 0.720, 0.680, 0.595),
    ),
    "finetuned-penalty": (
        (0.254, 0.224, 0.389, 0.328, 0.180),
        (0.414, 0.293, 0.465, 0.358, 0.317),
        (0.673, 0.538, 0.574, 0.599, 0.611),
        (0.686, 0.551, 0.617, 0.591, 0.654),
        (0.776, 0.648, 0.662, 0.709, 0.778),
    ),
    "cnf": (
        (0.329, 0.324, 0.459, 0.460, 0.709),
        (0.503, 0.407, 0.496, 0.539, 0.804),
        (0.726, 0.588, 0.614, 0.703, 0.846),
        (0.691, 0.566, 0.607, 0.658, 0.863),
        (0.804, 0.643, 0.646, 0.736, 0.856),
    ),
    "dnf": (
        (0.342, 0.326, 0.450, 0.462, 0.908),
        (0.501, 0.402, 0.488, 0.534, 0.951),
        (0.723, 0.584, 0.610, 0.699, 0.948),
        (0.691, 0.549, 0.590, 0.645, 0.918),
        (0.813, 0.666, 0.666, 0.756, 0.882),
    ),
    "rules": (
        (0.180, 0.162, 0.181, 0.315, 0.980),
        (0.167, 0.158, 0.161, 0.343, 0.980),
        (0.193, 0.175, 0.196, 0.362, 0.980),
        (0.193, 0.167, 0.184, 0.311, 0.980),
        (0.189, 0.167, 0.181, 0.337, 0.980),
    ),
}

PRICES = (0.25, 0.5, 1.0)

# What can be done about a cell whose rules contradict each other.
WAYS = {
    "none": "no rules",
    "pass": "pass",
    "nearest": "nearest",
    "drop": "drop",
    **{f"price {price:g}": f"every rule priced at {price:g}" for price in PRICES},
}
