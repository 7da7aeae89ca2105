#include "gdpnet/quadratic_node.hpp"

#include "gdpnet/sample.hpp"

namespace gdpnet {

void QuadraticNode::begin() {
    touch();
    q.enforce_only(0);
    units.lower = rows.lower;
    units.upper = rows.upper;
    units.convert_bounds(q);
    for (Index i : rows.global_rows) q.enforce(i);
}

bool QuadraticNode::split(Index column, double value, bool up) {
    touch();
    if (up) {
        units.lower[column] = std::max(units.lower[column], std::ceil(value));
    } else {
        units.upper[column] = std::min(units.upper[column], std::floor(value));
    }
    units.convert_bounds(q);
    return units.lower[column] <= units.upper[column];
}

void QuadraticNode::save(Index level) {
    if (level >= Index(levels_.size())) levels_.resize(std::size_t(level) + 1);
    save(levels_[level]);
    untouched_ = level;
}

void QuadraticNode::restore(Index level) {
    if (untouched_ == level) return;
    restore(levels_[level]);
    untouched_ = level;
}

void QuadraticNode::save(Level& kept) const {
    q.save(kept.saved);
    kept.lower = units.lower;
    kept.upper = units.upper;
}

void QuadraticNode::restore(const Level& kept) {
    touch();
    q.restore(kept.saved);
    units.lower = kept.lower;
    units.upper = kept.upper;
    units.convert_bounds(q);
}

Index QuadraticNode::fractional() const {
    double worst = 0.0;
    Index column = -1;
    for (Index j = 0; j < q.n; ++j) {
        if (!rows.integer[j]) continue;
        const double away = std::abs(units.z[j] - std::nearbyint(units.z[j]));
        if (away > whole_slack(units.z[j]) && away > worst) worst = away, column = j;
    }
    return column;
}

}  // namespace gdpnet
