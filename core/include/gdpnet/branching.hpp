// Which broken clause to branch on, by what its literals would cost at least.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "gdpnet/assignment.hpp"

namespace gdpnet {

// What enforcing a row would cost at least, and what this presses up or down, as bit masks: costs that press
// nothing in common the same way add up.
struct Gain {
    double gain = 0.0;
    std::uint64_t up = 0, down = 0;
    double floor = -std::numeric_limits<double>::infinity();  // another bound on all that it costs
};

class Branching {
public:
    enum class Choice { cutoff, single, clause };

    explicit Branching(const Logic& logic)
        : literal_bound(logic.clause_literal.size()), broken_(std::size_t(logic.clauses())) {}

    Index clause = -1;                  // to branch on
    Index literal = 0;                  // of `Choice::single`: the only one left
    std::vector<double> literal_bound;  // by literal of the clauses: what any point below costs at least

    void clear() { count_ = 0; }
    void add(Index c) { broken_[count_++].clause = c; }
    bool empty() const { return count_ == 0; }

    // Whether a clause was added.
    bool lists(Index c) const {
        for (Index b = 0; b < count_; ++b)
            if (broken_[b].clause == c) return true;
        return false;
    }

    // Of a clause that was chosen among: what any point costs at least that satisfies one of its literals but the last.
    double least_without_last(const Logic& logic, Index c) const {
        double least = kInfinity;
        for (Index e = logic.clause_start[c]; e + 1 < logic.clause_start[c + 1]; ++e) least = std::min(least, literal_bound[e]);
        return least;
    }

    // Chooses among the clauses that were added. `objective` is what the node costs at least, `gain_of(literal)`
    // what a literal adds to that by its rows. `floor` is another bound on what the node costs.
    template <class GainOf>
    Choice choose(const Assignment& assignment, double objective, double cutoff, GainOf gain_of, double floor = -kInfinity) {
        const Logic& logic = assignment.logic;
        double best_score = -1.0;
        Index best_width = 0;
        for (Index b = 0; b < count_; ++b) {
            Broken& broken = broken_[b];
            const Index c = broken.clause;
            double least = kInfinity, second = kInfinity, packed = kInfinity;
            Index viable = 0;
            broken.up = broken.down = 0;
            const double owed = assignment.prices.any ? assignment.least_price(c) : 0.0;
            for (Index e = logic.clause_start[c]; e < logic.clause_start[c + 1]; ++e) {
                const Index candidate = logic.clause_literal[e];
                if (assignment.state[boolean_of(candidate)] != 0) {
                    literal_bound[e] = kInfinity;
                    continue;
                }
                Gain ahead = gain_of(candidate);
                if (assignment.prices.any) ahead.gain += assignment.prices.cost(e) - owed;
                literal_bound[e] = std::max(objective + ahead.gain, ahead.floor);
                if (!(literal_bound[e] < cutoff)) continue;
                ++viable;
                literal = candidate;
                broken.up |= ahead.up;
                broken.down |= ahead.down;
                packed = std::min(packed, ahead.gain);
                // The better bound tells where to branch; among what it leaves open, the program does.
                if (floor > -kInfinity) ahead.gain = 0.1 * ahead.gain + (ahead.floor - floor);
                if (ahead.gain < least) {
                    second = least;
                    least = ahead.gain;
                } else if (ahead.gain < second) {
                    second = ahead.gain;
                }
            }
            if (viable == 0) return Choice::cutoff;
            if (viable == 1) return Choice::single;
            broken.bound = packed;
            // Mostly what the cheapest literal costs, a little what leaving it out would.
            const double score = least + 0.25 * std::min(std::min(second, cutoff - objective), 1e6);
            if (score > best_score || (score == best_score && viable < best_width)) {
                best_score = score;
                best_width = viable;
                clause = c;
            }
        }
        if (cutoff < kInfinity && packing_bound() + objective >= cutoff) return Choice::cutoff;
        return Choice::clause;
    }

private:
    // A required clause that does not hold.
    struct Broken {
        Index clause;
        double bound;            // the least that one of its literals adds
        std::uint64_t up, down;  // what these press
    };

    // Sum of the gains of clauses that press nothing in common the same way.
    double packing_bound() {
        double total = 0.0;
        std::uint64_t up = 0, down = 0;
        while (true) {
            Broken* most = nullptr;
            double gain = 0.0;
            for (Index b = 0; b < count_; ++b) {
                Broken& broken = broken_[b];
                if (broken.bound > gain && (broken.up & up) == 0 && (broken.down & down) == 0) {
                    gain = broken.bound;
                    most = &broken;
                }
            }
            if (most == nullptr) return total;
            total += gain;
            most->bound = 0.0;
            up |= most->up;
            down |= most->down;
        }
    }

    Index count_ = 0;
    std::vector<Broken> broken_;  // (clauses,)
};

}  // namespace gdpnet
