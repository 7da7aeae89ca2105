// What is chosen for the rules that are kept, once a set of rules is left out.
//
// Which disjuncts go together is a matter of the rules alone, as are the sets. So the products of the disjuncts of the
// rules that are kept are listed once for all samples whose rules are the same: one disjunct after the other is chosen,
// and bounds of the columns follow from the rows that hold then. A product whose bounds contradict each other is left
// away. Rules that need no choice within these bounds, and what is nested or said by logic, are left to the search.
//
// A product is one of the first decisions of a sample's search. Its points are within its box, so they cost at least what
// the nearest point of the box does, and few products are opened.
#pragma once

#include <algorithm>
#include <vector>

#include "gdpnet/component.hpp"

namespace gdpnet {

struct Droppable;
struct Sample;

// How costs count: the distance itself or, of the Euclidean norm, half its square.
enum class Norm { l1, l2 };

// What a sample's costs count from.
struct Prediction {
    Norm norm = Norm::l1;
    Vector<const double> yhat, weights;  // (outputs,)
};

struct KeptProducts {
    static constexpr Index kMost = 64;  // that are listed

    std::vector<Index> set;           // (p,): which rules are left out
    std::vector<Index> start = {0};   // (p + 1,): literals of each
    std::vector<Index> literal;       // that are chosen
    std::vector<double> box;          // (p, 2, outputs): bounds that every point of it keeps

    Index count() const { return Index(set.size()); }

    void add(Index place, const std::vector<Index>& chosen, const std::vector<double>& lower, const std::vector<double>& upper,
             Index outputs) {
        set.push_back(place);
        literal.insert(literal.end(), chosen.begin(), chosen.end());
        start.push_back(Index(literal.size()));
        box.insert(box.end(), lower.begin(), lower.begin() + outputs);
        box.insert(box.end(), upper.begin(), upper.begin() + outputs);
    }
    Vector<const Index> literals(Index p) const {
        const Index first = start[std::size_t(p)], last = start[std::size_t(p) + 1];
        return {literal.data() + first, std::size_t(last - first)};
    }

    // What the points of a product cost at least.
    double bound(Index p, const Prediction& from) const {
        const auto d = from.yhat.size();
        const double *const lower = box.data() + 2 * std::size_t(p) * d, *const upper = lower + d;
        double total = 0.0;
        for (std::size_t j = 0; j < d; ++j) {
            const double away = from.weights[j] * std::max({lower[j] - from.yhat[j], from.yhat[j] - upper[j], 0.0});
            total += from.norm == Norm::l1 ? away : 0.5 * away * away;
        }
        return total;
    }
};

// The products that go with each of some sets of rules, in the order of the sets and of the model; none where there are
// too many.
KeptProducts kept_products(const Sample& sample, const Logic& logic, Vector<const bool> active, const Droppable& rules,
                           const std::vector<std::vector<Index>>& sets);

}  // namespace gdpnet
