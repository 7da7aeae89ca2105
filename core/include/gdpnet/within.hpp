// Visitor of the search: all products of disjuncts within a reach, which are the terms of the DNF that matter near
// the optimum.
//
// The search for the nearest point stops deciding as soon as every rule holds; here every required clause gets an
// explicit literal, so that each product of the DNF is met once. Products farther away are pruned by the bound of
// the linear program, empty ones by its infeasibility.
#pragma once

#include <limits>

#include "gdpnet/linear.hpp"
#include "gdpnet/search.hpp"

namespace gdpnet {

// Products of one sample.
struct Products {
    Vector<double> distance;  // (cap,)
    Matrix<double> point;     // (cap, n)
    Matrix<Truth> assignment; // (cap, booleans)
};

class Within {
public:
    Within(Linear& node, Assignment& assignment, double reach, Products products)
        : node_(node), assignment_(assignment), reach_(reach), products_(products) {}

    Index found = 0;  // products; more than there is room for: there are more

    Verdict settle(const Effort&) {
        const Outcome outcome = node_.solve(std::numeric_limits<double>::infinity());
        if (outcome == Outcome::trouble) return Verdict::trouble;
        if (outcome != Outcome::optimal || !(node_.distance() <= reach_)) return Verdict::closed;
        clause_ = undecided();
        if (clause_ >= 0) return Verdict::branch;
        if (found < Index(products_.distance.size())) keep();
        ++found;
        return Verdict::closed;
    }
    void open(Frame& frame, const Children&) {
        frame.subject = clause_;
        frame.children = assignment_.logic.clause_start[clause_ + 1] - assignment_.logic.clause_start[clause_];
    }
    bool wants(const Frame&, const Children&) const { return found <= Index(products_.distance.size()); }
    bool apply(Frame& frame, const Children&) {
        const Index first = assignment_.logic.clause_start[frame.subject];
        return assignment_.choose(node_, assignment_.logic.clause_literal[first + frame.next - 1]);
    }
    void close(const Frame&) {}
    bool exhausted(const Effort&) const { return false; }
    bool troubled() const { return false; }

private:
    // The first required clause without a literal that was chosen, -1 where there is none.
    Index undecided() const {
        for (Index c = 0; c < assignment_.logic.clauses(); ++c)
            if (assignment_.required(c) && !assignment_.has_true_literal(c)) return c;
        return -1;
    }

    void keep() {
        products_.distance[found] = node_.distance();
        for (Index j = 0; j < node_.n; ++j) products_.point(found, j) = node_.value[j];
        for (Index k = 0; k < products_.assignment.width; ++k) products_.assignment(found, k) = assignment_.state[k];
    }

    Linear& node_;
    Assignment& assignment_;
    double reach_;
    Products products_;
    Index clause_ = -1;
};

}  // namespace gdpnet
