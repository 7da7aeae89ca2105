"""Certificates: proofs of an answer, written once and checked in exact arithmetic.

| module | what is in it |
|---|---|
| `certificate` | `certify`, `verify`, and what they return |
| `_instance`, `_exactly` | the rules of one sample in rational numbers |
| `_tangents` | linear rows in place of convex ones |
| `_relaxation`, `_euclidean` | programs at a node, for l1 and for l2 |
| `_tree`, `_check`, `_search` | the proof's tree, its check, and the search for it |
"""

from gdpnet.proof.certificate import Certificate, Verdict, certify, verify

__all__ = ["Certificate", "Verdict", "certify", "verify"]
