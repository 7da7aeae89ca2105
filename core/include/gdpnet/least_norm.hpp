// Of all l1-nearest points of the feasible set the one nearest in l2.
//
// Where several points are equally near, as always on a probability simplex, the vertex search returns
// one that depends on the order of rules and rows. The least-norm point does not. It cannot be had by
// moving the vertex afterwards, which breaks rules: it takes a search of its own, with both criteria in
// every bound.
//
// Units: x = w (z - yhat) / D for an output, D the least distance, so that every l1-nearest point has l1
// norm 1. A node's quadratic program minimises `price * l1 + norm^2 / 2`. Any point x of a descendant with
// l1 norm 1 has `norm(x)^2 / 2 >= value of the node - price`, whatever the price: so nodes are pruned
// soundly, and a leaf with l1 norm 1 is least in norm. A leaf with a larger l1 norm shows that the price is
// too small for this sample; the search is then repeated with a higher one. Distances that differ by less
// than about 1e-9 of themselves count as equal.
//
// Two least-norm points in different disjuncts may have equal norms. Then the one whose first differing
// output is larger is taken, as long as the search is small; with very many ties the first one found.
#pragma once

#include <cstdint>

#include "gdpnet/given.hpp"
#include "gdpnet/quadratic_node.hpp"
#include "gdpnet/search.hpp"

namespace gdpnet {

// What became of a sample: settled for certain; the best point found within the limits; or likewise, where
// rounding prevented the proof.
enum class Tie : std::int8_t { settled, limited, doubtful };

// Memory of one thread.
class LeastNorm {
public:
    explicit LeastNorm(const Component& component);

    // Moves the feasible and nearest point `z` to the least-norm one; `assignment` goes with it. A point that
    // is left as it is, or that is the only nearest one, is kept bit by bit.
    Tie settle(const Given& given, Vector<double> z, Vector<std::int8_t> assignment, double distance,
               Index node_limit, Watch& watch, Index& nodes);

private:
    class Visit;

    QuadraticNode node_;
    Assignment assignment_;
    Stack stack_;
    std::vector<double> best_z_;
    std::vector<Truth> best_state_;
    double best_ = 0.0;  // squared norm of the incumbent
};

}  // namespace gdpnet
