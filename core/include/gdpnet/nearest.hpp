// Visitor of the search: the nearest point.
//
// A clause that holds at a node's optimum needs no decision. Bounds used for pruning, all valid by weak duality:
// - the dual objective after every pivot;
// - the look-ahead of a literal: the dual objective after one long dual step on one of its rows;
// - what the literals chosen so far cost by parts, where the rules have been taken apart (parts.hpp);
// - the packing bound: look-aheads of clauses whose dual steps press no reduced cost the same way add up.
#pragma once

#include <limits>
#include <vector>

#include "gdpnet/linear.hpp"
#include "gdpnet/penalties.hpp"
#include "gdpnet/search.hpp"

namespace gdpnet {

class Nearest {
public:
    Nearest(Linear& node, Assignment& assignment);

    // The incumbent, valid where `distance`, prices included, is finite.
    double distance = std::numeric_limits<double>::infinity();
    LinearState best;
    std::vector<Truth> best_state;

    double floor = -std::numeric_limits<double>::infinity();  // a bound that somebody else proved

    bool trouble = false;  // whether some node could not be settled

    // Forgets the incumbent.
    void begin(Index node_limit);

    // Looks on with the incumbent it has; what literals cost by parts is known.
    void go_on(Index node_limit, const Penalties* penalties = nullptr) {
        node_limit_ = node_limit;
        penalised_ = {};
        penalised_.penalties = penalties;
    }

    // Looks for nothing that costs as much as this.
    void below(double cutoff) { cutoff_ = std::min(cutoff_, cutoff); }

    // The least bound of what is still open, and of the incumbent.
    double lower_bound(Stack& stack) const;

    Verdict settle(const Effort&);
    void open(Frame& frame, const Children& children);
    bool wants(const Frame& frame, const Children& children) const { return children.bound[frame.next] < cutoff_; }
    bool apply(Frame& frame, const Children& children) { return apply_child(node_, assignment_, frame, children); }
    void close(const Frame&) {}
    bool exhausted(const Effort& effort) const { return effort.opened >= node_limit_; }
    bool troubled() { return trouble = true; }

private:
    enum class Finding { infeasible, cutoff, trouble, leaf, clause, column };

    Finding look();
    Finding look_at_clauses(bool& forced);
    template <class RowHolds>
    Finding look_at_clauses_by(RowHolds row_holds, bool& forced);
    double distance_of_node() const { return node_.curved ? node_.distance_of_point() : node_.distance(); }
    bool still_holds();
    Finding look_ahead(bool& forced);
    Gain literal_gain(Index literal);
    bool whole() const;
    Index most_fractional() const;
    void keep();

    Linear& node_;
    Assignment& assignment_;
    Index node_limit_ = 0;
    double cutoff_ = std::numeric_limits<double>::infinity();
    double owed_ = 0.0;  // prices at the node at hand
    Penalised penalised_;
    Branching branching_;
    Index column_ = -1;  // to split, or a clause is branched on
};

}  // namespace gdpnet
