#include "gdpnet/kept.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gdpnet/leaving.hpp"
#include "gdpnet/sample.hpp"
#include "gdpnet/tolerances.hpp"

namespace gdpnet {

namespace {

// Bounds of all columns.
struct Box {
    std::vector<double> lower, upper;
};

double room_of(double size) { return kBoxRoom * std::max(1.0, size); }

// The least that a row's terms add up to within a box.
struct Least {
    double finite = 0.0, size = 0.0;
    Index endless = 0;  // terms without a least value

    void add(double term) {
        if (std::abs(term) < kInfinity) {
            finite += term;
            size += std::abs(term);
        } else {
            ++endless;
        }
    }
    double total() const { return endless == 0 ? finite : -kInfinity; }
    // Without one of the terms.
    double others(double term) const {
        if (std::abs(term) < kInfinity) return endless == 0 ? finite - term : -kInfinity;
        return endless == 1 ? finite : -kInfinity;
    }
};

// The rules that are kept, and what may be chosen for them.
class Listing {
public:
    Listing(const Sample& sample, const Logic& logic, Vector<const bool> active, const Droppable& rules)
        : sample_(sample), logic_(logic), active_(active), rules_(rules), base_{sample.rows.lower, sample.rows.upper} {
        for (double& end : base_.lower) end -= room_of(std::abs(end));
        for (double& end : base_.upper) end += room_of(std::abs(end));
    }

    // Adds the products of the set at a place. False where they are too many, or take too much work.
    bool add(Index place, const std::vector<Index>& set, KeptProducts& found);

private:
    struct Level {
        Index next, last;  // literals of the rule, in `clause_literal`
        Index rows;        // that were chosen before
        Box box;           // before
    };

    Vector<const Index> rows_of(Index literal) const {
        const Index k = std::abs(literal) - 1;
        const auto& start = literal > 0 ? logic_.true_start : logic_.false_start;
        const auto& listed = literal > 0 ? logic_.true_row : logic_.false_row;
        return {listed.data() + start[k], std::size_t(start[k + 1] - start[k])};
    }
    // The least of a row's terms within a box, each times a sign.
    Least least(Index i, double sign, const Box& box) const {
        Least found;
        for (Slot e = sample_.row[i].first; e < sample_.row[i].last; ++e) found.add(term(sample_.entry[e], sign, box));
        return found;
    }
    static double term(const Sample::Entry& entry, double sign, const Box& box) {
        const double a = sign * entry.coefficient;
        return a == 0.0 ? 0.0 : a * (a > 0.0 ? box.lower : box.upper)[std::size_t(entry.column)];
    }
    bool curved(Index i) const { return sample_.rows.curved(i); }

    bool settle(Box& box) const;
    bool tighten(Index i, double sign, Box& box) const;
    bool possible(Index literal, const Box& box) const;
    bool holds(Index literal, const Box& box) const;
    Index narrowest(const std::vector<Index>& set, const Box& box, Index& width) const;

    const Sample& sample_;
    const Logic& logic_;
    const Vector<const bool> active_;
    const Droppable& rules_;
    Box base_;
    std::vector<Index> rows_;  // of the literals that are chosen
    Index steps_ = 0;
};

// Draws bounds in by the rows that hold, until that changes little. False if it empties the box for certain.
bool Listing::settle(Box& box) const {
    for (Index round = 0, moved = 1; moved > 0 && round < kBoxRounds; ++round) {
        moved = 0;
        const auto draw_in = [&](Index i) {
            moved += tighten(i, 1.0, box);
            if (sample_.row[i].equality) moved += tighten(i, -1.0, box);
        };
        for (Index i : sample_.rows.global_rows) draw_in(i);
        for (Index i : rows_) draw_in(i);
    }
    for (std::size_t j = 0; j < box.lower.size(); ++j) {
        const double lower = box.lower[j], upper = box.upper[j];
        if (lower - upper > kBoxEmpty * std::max({1.0, std::abs(lower), std::abs(upper)})) return false;
    }
    return true;
}

// The same by one row, `sign (a z - b) <= 0`. Whether it changed much.
bool Listing::tighten(Index i, double sign, Box& box) const {
    if (curved(i)) return false;
    const Least all = least(i, sign, box);
    const double most = sign * sample_.row[i].rhs + room_of(all.size + std::abs(sample_.row[i].rhs));
    bool moved = false;
    for (Slot e = sample_.row[i].first; e < sample_.row[i].last; ++e) {
        const Sample::Entry& entry = sample_.entry[e];
        const double a = sign * entry.coefficient, others = all.others(term(entry, sign, box));
        if (std::abs(a) < kBoxEmpty || others == -kInfinity) continue;
        const double end = (most - others) / a;
        double& bound = (a > 0.0 ? box.upper : box.lower)[std::size_t(entry.column)];
        const double gain = a > 0.0 ? bound - end : end - bound;
        if (gain > 0.0) bound = end;
        moved = moved || gain > kBoxEmpty * std::max(1.0, std::abs(end));
    }
    return moved;
}

// Whether some point of a box may satisfy a literal's rows.
bool Listing::possible(Index literal, const Box& box) const {
    const auto broken = [&](Index i, double sign) {
        const Least all = least(i, sign, box);
        const double rhs = sign * sample_.row[i].rhs;
        return all.total() - rhs > kBoxEmpty * std::max({1.0, all.size, std::abs(rhs)});
    };
    for (Index i : rows_of(literal))
        if (!curved(i) && (broken(i, 1.0) || (sample_.row[i].equality && broken(i, -1.0)))) return false;
    return true;
}

// Whether all points of a box, about, satisfy a literal's rows.
bool Listing::holds(Index literal, const Box& box) const {
    const auto kept = [&](Index i, double sign) {
        const Least all = least(i, -sign, box);
        const double rhs = sign * sample_.row[i].rhs;
        return -all.total() - rhs <= kBoxEmpty * std::max({1.0, all.size, std::abs(rhs)});
    };
    for (Index i : rows_of(literal))
        if (curved(i) || !kept(i, 1.0) || (sample_.row[i].equality && !kept(i, -1.0))) return false;
    return true;
}

// Of the rules that a set keeps, and that do not hold in a box, that with the fewest possible disjuncts; -1 if all hold.
Index Listing::narrowest(const std::vector<Index>& set, const Box& box, Index& width) const {
    Index found = -1;
    std::size_t next = 0;  // of the set, which is in order
    width = std::numeric_limits<Index>::max();
    for (Index p = 0; p < rules_.count(); ++p) {
        if (next < set.size() && set[next] == p) {
            ++next;
            continue;
        }
        const Index c = rules_.clause[std::size_t(p)];
        if (!active_[std::size_t(c)] || logic_.clause_guard[std::size_t(c)] >= 0) continue;
        Index open = 0;
        bool held = false;
        for (Index e = logic_.clause_start[c]; e + 1 < logic_.clause_start[c + 1] && !held; ++e) {
            open += possible(logic_.clause_literal[e], box);
            held = holds(logic_.clause_literal[e], box);
        }
        if (!held && open < width) {
            width = open;
            found = c;
        }
    }
    return found;
}

bool Listing::add(Index place, const std::vector<Index>& set, KeptProducts& found) {
    std::vector<Level> levels;
    std::vector<Index> chosen;
    Box box = base_;
    rows_.clear();
    bool alive = settle(box);
    while (true) {
        Index width = 0;
        const Index c = alive ? narrowest(set, box, width) : -1;
        if (alive && c < 0) {
            if (found.count() == KeptProducts::kMost) return false;
            found.add(place, chosen, box.lower, box.upper, sample_.rows.outputs);
        } else if (alive && width > 0) {
            if (Index(levels.size()) == kBoxRules) return false;
            levels.push_back({logic_.clause_start[c], logic_.clause_start[c + 1] - 1, Index(rows_.size()), box});
            chosen.push_back(0);
        }
        while (!levels.empty() && levels.back().next == levels.back().last) {
            levels.pop_back();
            chosen.pop_back();
        }
        if (levels.empty()) return true;
        if (++steps_ > kBoxSteps) return false;
        Level& level = levels.back();
        box = level.box;
        rows_.resize(std::size_t(level.rows));
        const Index literal = chosen.back() = logic_.clause_literal[level.next++];
        const Vector<const Index> rows = rows_of(literal);
        rows_.insert(rows_.end(), rows.begin(), rows.end());
        alive = possible(literal, box) && settle(box);
    }
}

}  // namespace

KeptProducts kept_products(const Sample& sample, const Logic& logic, Vector<const bool> active, const Droppable& rules,
                           const std::vector<std::vector<Index>>& sets) {
    Listing listing(sample, logic, active, rules);
    KeptProducts found;
    for (Index place = 0; place < Index(sets.size()); ++place)
        if (!listing.add(place, sets[std::size_t(place)], found)) return {};
    return found;
}

}  // namespace gdpnet
