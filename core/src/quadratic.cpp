#include "gdpnet/quadratic.hpp"

#include <algorithm>
#include <cmath>

#include "gdpnet/tolerances.hpp"

namespace gdpnet {

Quadratic::Quadratic(const Rows& rows)
    : n(rows.columns()),
      m(rows.count()),
      start(rows.start),
      column(rows.column),
      equality(rows.equality),
      coefficient(rows.column.size()) {
    for (auto* values : {&rhs, &tolerance, &forgiven}) values->resize(m);
    for (auto* values : {&centre, &lower, &upper, &x, &side, &normal_, &step_, &slope_, &slope_rate_, &kept_, &inverse_})
        values->assign(n, 0.0);
    kinked.assign(n, 0);
    costly.assign(n, 0);
    curvature.assign(n, kAuxiliaryCurvature);
    for (Index j = 0; j < rows.outputs; ++j) kinked[j] = costly[j] = 1, curvature[j] = 1.0;
    state.assign(n, Column::free);
    passed_.assign(n, 0);
    enforced.assign(2 * m, 0);
    mark.assign(2 * m, 0);
    active.assign(n + 1, 0);
    for (auto* values : {&orientation, &multiplier, &right_, &rate_}) values->assign(n + 1, 0.0);
    dense_ = Table<double>(n + 1, n);
    schur_ = Table<double>(n + 1, n + 1);
    room_.assign(2 * n + 1, 0.0);
    speed_.assign(2 * n + 1, 0.0);
}

void Quadratic::enforce(Index code) {
    if (mark[code] != 0) return;
    mark[code] = kEnforced;
    enforced[enforced_count++] = code;
}

void Quadratic::enforce_only(Index count) {
    for (Index e = count; e < enforced_count; ++e) mark[enforced[e]] = 0;
    enforced_count = std::min(count, enforced_count);
}

void Quadratic::restart() {
    for (Index e = 0; e < enforced_count; ++e) mark[enforced[e]] = kEnforced;
    active_count = 0;
    factored_ = 0;
    for (Index j = 0; j < n; ++j) {
        side[j] = 0.0;
        if (!kinked[j]) {
            x[j] = centre[j], set_state(j, Column::free);
        } else if (lower[j] > 0.0) {
            x[j] = lower[j], set_state(j, Column::lower);
        } else if (upper[j] < 0.0) {
            x[j] = upper[j], set_state(j, Column::upper);
        } else {
            x[j] = 0.0, set_state(j, Column::kink);
        }
    }
}

void Quadratic::save(Saved& saved) const {
    saved.x = x;
    saved.side = side;
    saved.centre = centre;
    saved.state = state;
    saved.enforced = enforced_count;
    saved.factored = factored_;
    const auto lines = [&](const auto& from, auto& to, Index width) {
        to.assign(from.begin(), from.begin() + active_count * width);
    };
    lines(active, saved.active, 1);
    lines(orientation, saved.orientation, 1);
    lines(multiplier, saved.multiplier, 1);
    lines(right_, saved.right, 1);
    lines(dense_.values, saved.dense, dense_.width);
    lines(schur_.values, saved.schur, schur_.width);
}

void Quadratic::restore(const Saved& saved) {
    enforce_only(saved.enforced);
    for (Index e = 0; e < enforced_count; ++e) mark[enforced[e]] = kEnforced;
    x = saved.x;
    side = saved.side;
    centre = saved.centre;
    for (Index j = 0; j < n; ++j) set_state(j, saved.state[j]);
    active_count = Index(saved.active.size());
    factored_ = saved.factored;
    std::copy(saved.active.begin(), saved.active.end(), active.begin());
    std::copy(saved.orientation.begin(), saved.orientation.end(), orientation.begin());
    std::copy(saved.multiplier.begin(), saved.multiplier.end(), multiplier.begin());
    std::copy(saved.right.begin(), saved.right.end(), right_.begin());
    std::copy(saved.dense.begin(), saved.dense.end(), dense_.values.begin());
    std::copy(saved.schur.begin(), saved.schur.end(), schur_.values.begin());
    for (Index k = 0; k < active_count; ++k) mark[active[k]] |= kActive;
}

double Quadratic::bound_value() const {
    double total = 0.0;
    for (Index j = 0; j < n; ++j) {
        if (kinked[j]) {
            const double linear = state[j] == Column::free ? side[j] * x[j] : std::abs(x[j]);
            total += price * linear + 0.5 * x[j] * x[j];
        } else if (costly[j]) {
            total += 0.5 * curvature[j] * (x[j] - centre[j]) * (x[j] - centre[j]);
        } else if (price == 0.0) {
            // By weak duality: without the centre the column's rate is what the centre withholds, and could be
            // collected up to the bound.
            const double away = x[j] - centre[j];
            const double rate = curvature[j] * std::abs(away);
            const double room = away > 0.0 ? upper[j] - x[j] : x[j] - lower[j];
            if (rate > kSettled || room < kFar) total -= away == 0.0 ? 0.0 : rate * std::max(room, 0.0);
        }
    }
    return total;
}

double Quadratic::pull() const {
    double most = 0.0;
    for (Index j = 0; j < n; ++j)
        if (!costly[j]) most = std::max(most, curvature[j] * std::abs(x[j] - centre[j]));
    return most;
}

void Quadratic::restart_in_box() {
    for (Index e = 0; e < enforced_count; ++e) mark[enforced[e]] = kEnforced;
    active_count = 0;
    factored_ = 0;
    for (Index j = 0; j < n; ++j) {
        side[j] = 0.0;
        if (centre[j] < lower[j]) {
            x[j] = lower[j], set_state(j, Column::lower);
        } else if (centre[j] > upper[j]) {
            x[j] = upper[j], set_state(j, Column::upper);
        } else {
            x[j] = centre[j], set_state(j, Column::free);
        }
    }
}

// ---------------------------------------------------------------- centres, and an optimum afresh

void Quadratic::set_centre_curvature(double value) {
    for (Index j = 0; j < n; ++j) {
        if (costly[j]) continue;
        curvature[j] = value;
        set_state(j, state[j]);
    }
    factored_ = 0;
}

bool Quadratic::recentre(double beyond) {
    for (Index j = 0; j < n; ++j)
        if (!costly[j]) centre[j] = std::min(std::max(x[j] + beyond * (x[j] - centre[j]), lower[j]), upper[j]);
    if (!factor()) return false;
    for (Index j = 0; j < n; ++j) {
        if (state[j] == Column::free) x[j] = centre[j];
    }
    std::fill(multiplier.begin(), multiplier.begin() + active_count, 0.0);
    for (int round = 0; round < 2; ++round) {  // the second time on the residuals of the first
        correct();
        for (Index i = 0; i < active_count; ++i) multiplier[i] -= rate_[i];
    }
    return multipliers_have_right_signs();
}

// Up to rounding, which is taken away from those of rows.
bool Quadratic::multipliers_have_right_signs() {
    double size = 0.0;
    for (Index i = 0; i < active_count; ++i) size = std::max(size, std::abs(multiplier[i]));
    const double slack = kSmallRate * size;
    for (Index i = 0; i < active_count; ++i) {
        if (active[i] < m && equality[active[i]]) continue;
        if (multiplier[i] < -slack) return false;
        multiplier[i] = std::max(multiplier[i], 0.0);
    }
    std::fill(normal_.begin(), normal_.end(), 0.0);
    find_slopes(0.0);
    for (Index j = 0; j < n; ++j) {
        if (state[j] == Column::free) continue;
        double low, high;
        slope_range(j, low, high);
        if (slope_[j] < low - slack || slope_[j] > high + slack) return false;
    }
    return true;
}

void Quadratic::refine() {
    std::copy(x.begin(), x.end(), kept_.begin());
    for (Index j = 0; j < n; ++j)
        if (state[j] == Column::free) x[j] = centre[j];
    for (int round = 0; round < 2; ++round) correct();  // the second time on the residuals of the first
    bool agrees = true;
    double before = 0.0, after = 0.0;
    for (Index j = 0; j < n; ++j) {
        if (kinked[j]) before += std::abs(kept_[j]), after += std::abs(x[j]);
        if (!(std::abs(x[j] - kept_[j]) <= 1e-3 * std::max(1.0, std::abs(x[j])))) agrees = false;
    }
    if (!(after <= before + 1e-11 * std::max(1.0, before))) agrees = false;  // off the face the price does matter
    if (agrees) agrees = most_violated().kind == Kind::nothing;
    if (!agrees) std::copy(kept_.begin(), kept_.end(), x.begin());
}

}  // namespace gdpnet
