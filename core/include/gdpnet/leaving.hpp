// Hard rules of which some may be left out.
//
// Such a rule has one more disjunct, the last, without rows, whose boolean is tied: it is never found to hold by itself,
// somebody has to decide for it. Which rules are left out is a matter of the rules alone, not of the prediction: the
// cheapest sets by importance. They are found by a search in which no distance counts, once for all samples whose rules
// are the same (`Search::cheapest`). Then each sample is searched as usual, but for one thing: the first decision is among
// the products of disjuncts that go with the sets (kept.hpp). Where these are too many, it is among the sets, as soon as a
// decision is needed. What a set costs at least is known there from what was looked ahead: the most that a broken rule
// costs which it does not leave out. So of many sets few are opened.
#pragma once

#include <algorithm>
#include <vector>

#include "gdpnet/component.hpp"
#include "gdpnet/kept.hpp"
#include "gdpnet/tolerances.hpp"

namespace gdpnet {

struct Batch;

// The rules that may be left out.
struct Droppable {
    std::vector<Index> boolean;      // (h,): of the disjunct that leaves a rule out
    std::vector<Index> clause;       // (h,): the rule
    std::vector<double> importance;  // (h,), positive

    Index count() const { return Index(boolean.size()); }

    // Importance of the rules that are left out, by the truth of all booleans.
    double left_out(const std::vector<std::int8_t>& truth) const {
        double total = 0.0;
        for (Index p = 0; p < count(); ++p)
            if (truth[std::size_t(boolean[p])] == 1) total += importance[p];
        return total;
    }
};

// The cheapest sets of rules to leave out, of samples whose rules are the same.
struct CheapestSets {
    static constexpr Index kMost = 32;  // that are listed

    double least = kInfinity;  // importance of each of them; infinite: leaving out rules does not help, or nobody knows
    bool hopeless = false;     // it is proved not to help
    bool listed = true;        // whether all are in the list; else whatever is as cheap will do
    std::vector<std::vector<Index>> sets;  // places among the rules that may be left out, in their order
    KeptProducts products;     // that go with them; none where there are too many

    // What counts as equally cheap, and as cheaper.
    double enough() const { return least + kSameImportance * std::max(1.0, least); }
    bool cheaper(double importance) const { return importance < least - kSameImportance * std::max(1.0, importance); }

    // Takes over a set that is as cheap as the others, or cheaper.
    void add(std::vector<Index> set, double importance) {
        if (cheaper(importance)) {
            least = importance;
            listed = true;
            sets.clear();
        }
        if (Index(sets.size()) < kMost) {
            sets.push_back(std::move(set));
        } else {
            listed = false;
        }
    }
};

// The sets of a batch.
struct SetsOfBatch {
    Droppable rules;
    std::vector<Index> pattern;           // (B,): which of the lists
    std::vector<CheapestSets> cheapest;   // one for each different set of rules

    const CheapestSets& of(Index s) const { return cheapest[std::size_t(pattern[std::size_t(s)])]; }
};

// Which samples have the same rules: `first` one of each kind, and for every sample its kind, (B,).
struct Patterns {
    std::vector<Index> first, pattern;
    explicit Patterns(const Batch& batch);
};

}  // namespace gdpnet
