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

// What a row's terms add up to within a box, at least or at most: a finite part, and how many terms have no end.
struct End {
    double finite = 0.0;
    Index endless = 0;

    void add(double term) {
        if (std::abs(term) < kInfinity) {
            finite += term;
        } else {
            ++endless;
        }
    }
    bool known() const { return endless == 0; }
    // Whether it is known without one of the terms, and what it is then.
    bool known_without(double term) const { return endless == (std::abs(term) < kInfinity ? 0 : 1); }
    double without(double term) const { return std::abs(term) < kInfinity ? finite - term : finite; }
};

// What a row's terms add up to within a box.
struct Sum {
    End least, most;
    double size = 1.0;  // of its numbers, at least 1
};

// The rules that are kept, and what may be chosen for them.
class Listing {
public:
    Listing(const Sample& sample, const Logic& logic, Vector<const bool> active, const Droppable& rules)
        : sample_(sample), logic_(logic), active_(active), rules_(rules), base_{sample.rows.lower, sample.rows.upper} {
        for (double& end : base_.lower) end -= room_of(std::abs(end));
        for (double& end : base_.upper) end += room_of(std::abs(end));
        possible_ = settle(base_);
    }

    // Adds the products of the set at a place. False where they are too many, or take too much work.
    bool add(Index place, const std::vector<Index>& set, KeptProducts& found);

private:
    enum class Standing { impossible, open, holds };
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
    bool curved(Index i) const { return sample_.rows.curved(i); }

    Sum sum_of(Index i, const Box& box) const;
    bool settle(Box& box) const;
    bool tighten(Index i, Box& box) const;
    Standing stands(Index literal, const Box& box) const;
    Index narrowest(const std::vector<Index>& set, const Box& box, Index& width) const;

    const Sample& sample_;
    const Logic& logic_;
    const Vector<const bool> active_;
    const Droppable& rules_;
    Box base_;                   // of what always holds
    bool possible_;              // whether it has a point, as far as bounds tell
    std::vector<Index> rows_;    // of the literals that are chosen
    std::vector<Level> levels_;  // of the product at work, the first `depth`; the others keep their memory
    Index steps_ = 0;
};

Sum Listing::sum_of(Index i, const Box& box) const {
    Sum found;
    double size = std::abs(sample_.row[i].rhs);
    for (Slot e = sample_.row[i].first; e < sample_.row[i].last; ++e) {
        const double a = sample_.entry[e].coefficient;
        if (a == 0.0) continue;
        const auto j = std::size_t(sample_.entry[e].column);
        const double low = a * (a > 0.0 ? box.lower : box.upper)[j], high = a * (a > 0.0 ? box.upper : box.lower)[j];
        found.least.add(low);
        found.most.add(high);
        size += std::max(std::abs(low) < kInfinity ? std::abs(low) : 0.0, std::abs(high) < kInfinity ? std::abs(high) : 0.0);
    }
    found.size = std::max(1.0, size);
    return found;
}

// Draws bounds in by the rows that hold, until that changes little. False if it empties the box for certain.
bool Listing::settle(Box& box) const {
    bool moved = true;
    for (Index round = 0; moved && round < kBoxRounds; ++round) {
        moved = false;
        for (Index i : rows_) moved |= tighten(i, box);
        for (Index i : sample_.rows.global_rows) moved |= tighten(i, box);
    }
    for (std::size_t j = 0; j < box.lower.size(); ++j) {
        const double lower = box.lower[j], upper = box.upper[j];
        if (lower - upper > kBoxEmpty * std::max({1.0, std::abs(lower), std::abs(upper)})) return false;
    }
    return true;
}

// The same by one row. Whether it changed much.
bool Listing::tighten(Index i, Box& box) const {
    if (curved(i)) return false;
    const Sum sum = sum_of(i, box);
    const double room = room_of(sum.size), rhs = sample_.row[i].rhs;
    bool moved = false;
    const auto draw_in = [&](double& bound, double end, bool upper) {
        const double gain = upper ? bound - end : end - bound;
        if (gain > 0.0) bound = end;
        moved = moved || gain > kBoxEmpty * std::max(1.0, std::abs(end));
    };
    for (Slot e = sample_.row[i].first; e < sample_.row[i].last; ++e) {
        const double a = sample_.entry[e].coefficient;
        const auto j = std::size_t(sample_.entry[e].column);
        if (std::abs(a) < kBoxEmpty) continue;
        const double before[] = {box.lower[j], box.upper[j]};
        const double low = a * before[a < 0.0], high = a * before[a > 0.0];
        if (sum.least.known_without(low))
            draw_in(a > 0.0 ? box.upper[j] : box.lower[j], (rhs + room - sum.least.without(low)) / a, a > 0.0);
        if (sample_.row[i].equality && sum.most.known_without(high))
            draw_in(a > 0.0 ? box.lower[j] : box.upper[j], (rhs - room - sum.most.without(high)) / a, a < 0.0);
    }
    return moved;
}

// Whether no point of a box, or every one, about, satisfies a literal's rows.
Listing::Standing Listing::stands(Index literal, const Box& box) const {
    Standing found = Standing::holds;
    for (Index i : rows_of(literal)) {
        found = curved(i) ? Standing::open : found;
        if (curved(i)) continue;
        const Sum sum = sum_of(i, box);
        const double rhs = sample_.row[i].rhs, slack = kBoxEmpty * sum.size;
        const bool equality = sample_.row[i].equality;
        if (sum.least.known() && sum.least.finite - rhs > slack) return Standing::impossible;
        if (equality && sum.most.known() && rhs - sum.most.finite > slack) return Standing::impossible;
        const bool below = sum.most.known() && sum.most.finite - rhs <= slack;
        const bool above = !equality || (sum.least.known() && rhs - sum.least.finite <= slack);
        if (!below || !above) found = Standing::open;
    }
    return found;
}

// Of the rules that a set keeps, and that do not hold in a box, that with the fewest possible disjuncts; -1 if all hold.
Index Listing::narrowest(const std::vector<Index>& set, const Box& box, Index& width) const {
    Index found = -1;
    std::size_t next = 0;  // of the set, which is in order
    width = std::numeric_limits<Index>::max();
    for (Index p = 0; p < rules_.count() && width > 0; ++p) {
        if (next < set.size() && set[next] == p) {
            ++next;
            continue;
        }
        const Index c = rules_.clause[std::size_t(p)];
        if (!active_[std::size_t(c)] || logic_.clause_guard[std::size_t(c)] >= 0) continue;
        Index open = 0;
        bool held = false;
        for (Index e = logic_.clause_start[c]; e + 1 < logic_.clause_start[c + 1] && !held; ++e) {
            const Standing standing = stands(logic_.clause_literal[e], box);
            open += standing == Standing::open;
            held = standing == Standing::holds;
        }
        if (!held && open < width) {
            width = open;
            found = c;
        }
    }
    return found;
}

bool Listing::add(Index place, const std::vector<Index>& set, KeptProducts& found) {
    Index depth = 0;
    std::vector<Index> chosen;
    Box box = base_;
    rows_.clear();
    bool alive = possible_;
    while (true) {
        Index width = 0;
        const Index c = alive ? narrowest(set, box, width) : -1;
        if (alive && c < 0) {
            if (found.count() == KeptProducts::kMost) return false;
            found.add(place, chosen, box.lower, box.upper, sample_.rows.outputs);
        } else if (alive && width > 0) {
            if (depth == kBoxRules) return false;
            if (depth == Index(levels_.size())) levels_.emplace_back();
            Level& level = levels_[std::size_t(depth++)];
            level.next = logic_.clause_start[c];
            level.last = logic_.clause_start[c + 1] - 1;
            level.rows = Index(rows_.size());
            std::swap(level.box, box);
            chosen.push_back(0);
        }
        // The next disjunct that is possible.
        alive = false;
        while (depth > 0 && !alive) {
            Level& level = levels_[std::size_t(depth - 1)];
            if (level.next == level.last) {
                --depth;
                chosen.pop_back();
                continue;
            }
            const Index literal = chosen.back() = logic_.clause_literal[level.next++];
            if (stands(literal, level.box) == Standing::impossible) continue;
            if (++steps_ > kBoxSteps) return false;
            const Vector<const Index> rows = rows_of(literal);
            rows_.resize(std::size_t(level.rows));
            rows_.insert(rows_.end(), rows.begin(), rows.end());
            box = level.box;
            alive = settle(box);
        }
        if (!alive) return true;
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
