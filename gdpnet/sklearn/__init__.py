"""Rules behind any estimator of scikit-learn: `RuleProjector`."""

from gdpnet.extras import need

need("sklearn", "sklearn", "gdpnet.sklearn needs")

from gdpnet.sklearn.projector import RuleProjector  # noqa: E402

__all__ = ["RuleProjector"]
