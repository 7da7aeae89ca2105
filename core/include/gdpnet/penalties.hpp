// What choosing literals costs at least by parts; see parts.hpp.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "gdpnet/assignment.hpp"

namespace gdpnet {

// Any point at which literals have been chosen costs `base`, and for each part the most of what its literals add.
struct Penalties {
    double base = -kInfinity;
    std::vector<double> if_true, if_false;  // by boolean
    std::vector<Slot> part;                 // by boolean, -1 where it is in none
    Index parts = 0;
    std::function<double(Index, const std::vector<Index>&, double)> together;  // what literals of a part add together

    double of(Index literal) const { return (literal > 0 ? if_true : if_false)[boolean_of(literal)]; }
};

// The sum at a node, and with one literal more.
class Penalised {
public:
    const Penalties* penalties = nullptr;  // null: none
    double total = -kInfinity;

    void look(const Assignment& assignment) {
        worst_.assign(std::size_t(penalties->parts), 0.0);
        literals_.resize(std::size_t(penalties->parts));
        for (auto& each : literals_) each.clear();
        for (const Index k : assignment.trail()) {
            const Slot p = penalties->part[k];
            const bool chosen = assignment.state[k] > 0;
            if (p < 0 || !(chosen || assignment.logic.tied[k])) continue;
            const Index literal = chosen ? k + 1 : -k - 1;
            worst_[p] = std::max(worst_[p], penalties->of(literal));
            literals_[p].push_back(literal);
        }
        total = penalties->base;
        for (double each : worst_) total += each;
    }

    // The same where all literals of a part count together, as long as that may matter.
    void look_closely(double cutoff) {
        for (Index p = 0; p < penalties->parts && total < cutoff; ++p) {
            if (literals_[p].size() < 2) continue;
            std::sort(literals_[p].begin(), literals_[p].end());
            const double joint = penalties->together(p, literals_[p], cutoff - penalties->base);
            if (joint > worst_[p]) {
                total += joint - worst_[p];
                worst_[p] = joint;
            }
        }
    }

    double with(Index literal) const {
        const Slot p = penalties->part[boolean_of(literal)];
        return p < 0 ? total : total + std::max(0.0, penalties->of(literal) - worst_[p]);
    }

private:
    std::vector<double> worst_;                 // by part
    std::vector<std::vector<Index>> literals_;  // by part: those that are chosen
};

}  // namespace gdpnet
