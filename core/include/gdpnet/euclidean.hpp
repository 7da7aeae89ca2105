// Visitor of the search: the nearest point in the weighted Euclidean norm. Prices are halved, as squared distances are.
//
// As for l1, a clause that holds at a node's optimum needs no decision. Bounds used for pruning, of half the squared
// distance:
// - that of the node's program after every step of its dual method, centres left out;
// - the look-ahead of a literal: the distance of the node's optimum from one of its rows;
// - the packing bound: look-aheads of clauses that have no column in common add up.
//
// Inside a disjunct the nearest point is unique. Points of different disjuncts may be equally near: then the first in
// the order of the model is taken. Clauses are compared one after the other by the first of their literals that holds.
// So nodes that can only equal the incumbent are looked at, too, as long as they may come before it.
#pragma once

#include <limits>
#include <vector>

#include "gdpnet/euclidean_node.hpp"
#include "gdpnet/gram_node.hpp"
#include "gdpnet/search.hpp"

namespace gdpnet {

// Nodes whose columns may have to be whole.
template <class AnyNode>
concept MayBeWhole = requires(AnyNode node) { node.fix_whole(); };

// The node is an EuclideanNode or, where that will do, a GramNode.
template <class AnyNode>
class Euclidean {
public:
    Euclidean(AnyNode& node, Assignment& assignment);

    // The incumbent, valid where `value`, half its squared distance and prices, is finite.
    double value = std::numeric_limits<double>::infinity();
    std::vector<double> best;
    std::vector<Truth> best_state;

    bool trouble = false;  // whether some node could not be settled

    // Forgets the incumbent.
    void begin(Index node_limit);

    // The least bound of what is still open, and of the incumbent.
    double lower_bound(Stack& stack) const;

    Verdict settle(const Effort&);
    void open(Frame& frame, const Children& children);
    bool wants(const Frame& frame, const Children& children) const { return children.bound[frame.next] < cutoff(); }
    bool apply(Frame& frame, const Children& children) { return apply_child(node_, assignment_, frame, children); }
    void close(const Frame&) {}
    bool exhausted(const Effort& effort) const { return effort.opened >= node_limit_; }
    bool troubled() { return trouble = true; }

private:
    enum class Finding { closed, trouble, leaf, branch };

    Finding look();
    bool look_at_clauses(bool& forced);
    Gain literal_gain(Index literal, double enough) const;
    Finding make_whole(double bound);
    bool keep();

    double cutoff() const { return value + same_; }
    bool may_come_first() const;
    void label();

    AnyNode& node_;
    Assignment& assignment_;
    Branching branching_;
    Index node_limit_ = 0;
    double same_ = 0.0;                    // values that differ by less are equal
    double limit_ = 0.0;                   // what a point of the node at hand must be below
    double owed_ = 0.0;                    // prices there
    Index column_ = -1;                    // to split, or a clause is branched on
    double split_ = 0.0;                   // its value
    std::vector<Truth> label_;             // of the point at hand
    std::vector<Index> rank_, best_rank_;  // by clause: the first literal that holds; -1 for those not required
};

extern template class Euclidean<EuclideanNode>;
extern template class Euclidean<GramNode>;

}  // namespace gdpnet
