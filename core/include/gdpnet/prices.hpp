// What choosing booleans costs beside the distance.
//
// What is minimised is the distance plus the prices of the disjuncts that are chosen, none of them negative. A rule
// that may be broken has one more disjunct, without rows, that costs something.
//
// A point does not tell what is paid for it: where several disjuncts of a rule hold, the cheapest is chosen. So
// - a clause that has no true literal owes at least the least price of its open literals, and these add up over the
//   clauses of rules, since a boolean is a disjunct of one rule only: with what has been paid they are a bound;
// - it needs no decision where a disjunct holds that costs no more than that, for then the bound is what it costs;
// - of literals that were explored the row's negation is enforced only in siblings that cost at least as much: a point
//   below such a sibling that satisfies the row too would cost no more under the explored literal, and has been covered
//   there. Below a cheaper sibling that is not so, nor below one that logic speaks of, for it may have to be true all the
//   same, and then both are paid; there the literal is merely not chosen.
#pragma once

#include <algorithm>
#include <vector>

#include "gdpnet/component.hpp"

namespace gdpnet {

class Prices {
public:
    explicit Prices(const Logic& logic)
        : any(!logic.priced.empty()), logic_(logic), of_(any ? logic.tied.size() : 0), cost_(any ? logic.clause_literal.size() : 0) {
        for (Index e : logic.priced_entry)
            clauses.push_back(std::upper_bound(logic.clause_start.begin(), logic.clause_start.end(), e) - logic.clause_start.begin() - 1);
        std::sort(clauses.begin(), clauses.end());
        clauses.erase(std::unique(clauses.begin(), clauses.end()), clauses.end());
    }

    const bool any;
    std::vector<Index> clauses;  // that have a literal with a price

    // Takes over the prices of a sample, in the order of `Logic::priced`, and multiplies them.
    void load(Vector<const double> given, double factor) {
        for (std::size_t p = 0; p < logic_.priced.size(); ++p)
            of_[logic_.priced[p]] = cost_[logic_.priced_entry[p]] = factor * given[p];
    }

    // Of a boolean that is chosen.
    double of(Index k) const { return any ? of_[k] : 0.0; }

    // Of a literal as a disjunct of its rule, by its place among the literals of all clauses; 0 in clauses of logic.
    double cost(Index e) const { return any ? cost_[e] : 0.0; }

    // Of all booleans that are true.
    double sum(Vector<const std::int8_t> truth) const {
        double total = 0.0;
        for (Index k : logic_.priced)
            if (truth[k] == 1) total += of_[k];
        return total;
    }

private:
    const Logic& logic_;
    std::vector<double> of_, cost_;
};

}  // namespace gdpnet
