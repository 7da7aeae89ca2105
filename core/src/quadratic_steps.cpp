// Steps of the dual method of the quadratic program.
#include "gdpnet/quadratic.hpp"

#include <algorithm>
#include <cmath>

#include "gdpnet/tolerances.hpp"

namespace gdpnet {

// ---------------------------------------------------------------- the ratio test

// Within which the smooth part's derivative at a fixed column may lie.
void Quadratic::slope_range(Index j, double& low, double& high) const {
    const double cost = kinked[j] ? price : 0.0;
    const double value = x[j];
    low = -kInfinity, high = kInfinity;
    if (lower[j] == upper[j] && value == lower[j]) return;
    if (state[j] == Column::kink) {
        if (!(upper[j] <= 0.0)) low = -cost;
        if (!(lower[j] >= 0.0)) high = cost;
    } else if (state[j] == Column::lower) {
        low = value >= 0.0 ? -cost : cost;
    } else {
        high = value <= 0.0 ? cost : -cost;
    }
}

// Derivatives of the smooth part, multipliers included; `find_direction` has written their rates.
void Quadratic::find_slopes(double pending) {
    for (Index j = 0; j < n; ++j) slope_[j] = curvature[j] * (x[j] - centre[j]) + pending * normal_[j];
    for (Index i = 0; i < active_count; ++i) {
        const double* row = dense_[i].data();
        const double value = multiplier[i];
        for (Index j = 0; j < n; ++j) slope_[j] += value * row[j];
    }
}

// The first multiplier that would get a wrong sign, of nearly equal ones the steepest.
Quadratic::Block Quadratic::blocking(double pending) {
    const double slack = kPriceSlack * std::max(price, 1.0);
    double reach = kInfinity;
    // Only what is fixed is held by its slope.
    if (std::any_of(state.begin(), state.end(), [](Column at) { return at != Column::free; })) find_slopes(pending);
    const auto consider = [&](Index k, double rate, double room) {
        if (!(std::abs(rate) > kSmallRate && room < kInfinity)) return;
        speed_[k] = std::abs(rate);
        room_[k] = room > 0.0 ? room : 0.0;
        reach = std::min(reach, (room_[k] + slack) / speed_[k]);
    };
    for (Index j = 0; j < n; ++j) {
        speed_[j] = 0.0;
        if (state[j] == Column::free) continue;
        const double slope = slope_[j], rate = slope_rate_[j];
        double low, high;
        slope_range(j, low, high);
        consider(j, rate, rate > 0.0 ? high - slope : slope - low);
    }
    for (Index i = 0; i < active_count; ++i) {
        speed_[n + i] = 0.0;
        const Index code = active[i];
        if (rate_[i] >= 0.0 || (code < m && equality[code])) continue;
        consider(n + i, rate_[i], multiplier[i]);
    }
    // The first pass, with some slack, found how far one may go; the steepest within that keeps small
    // rates, where rounding rules, out.
    Block found;
    double steepest = 0.0;
    for (Index k = 0; k < n + active_count; ++k) {
        if (speed_[k] > steepest && room_[k] / speed_[k] <= reach) {
            steepest = speed_[k];
            found = {room_[k] / speed_[k], k};
        }
    }
    return found;
}

// Frees a blocking column, or lets a blocking row go.
void Quadratic::let_go(Index who) {
    if (who >= n) {
        deactivate(who - n);
        return;
    }
    const Index j = who;
    if (!kinked[j]) {
        side[j] = 0.0;
    } else if (state[j] == Column::kink) {
        side[j] = slope_rate_[j] > 0.0 ? -1.0 : 1.0;
    } else if (state[j] == Column::lower) {
        side[j] = x[j] >= 0.0 ? 1.0 : -1.0;
    } else {
        side[j] = x[j] <= 0.0 ? -1.0 : 1.0;
    }
    set_state(j, Column::free);
    factored_ = 0;
}

// ---------------------------------------------------------------- the method

double Quadratic::excess(Index code) const {
    const Index i = row_of(code);
    double total = -rhs[i];
    for (Index e = start[i]; e < start[i + 1]; ++e) total += coefficient[e] * x[column[e]];
    return code < m ? total : -total;
}

Quadratic::Violation Quadratic::most_violated() const {
    Violation worst;
    for (Index e = 0; e < enforced_count; ++e) {
        const Index code = enforced[e];
        if (mark[code] & (kActive | kIgnored)) continue;
        const Index i = row_of(code);
        double over = excess(code);
        if (equality[i]) over = std::abs(over);
        if (!(over > tolerance[i] && over > worst.size)) continue;
        if (over < kSmallViolation && rounding > 0.0 && over <= rounding * size_of_terms(i)) continue;
        worst = {Kind::row, code, over};
    }
    for (Index j = 0; j < n; ++j) {
        if (passed_[j]) continue;
        const double value = x[j];
        const double slack = kColumnTolerance * std::max(1.0, std::abs(value));
        const double below = lower[j] - value, above = value - upper[j];
        if (below > slack && below > worst.size) worst = {Kind::lower, j, below};
        if (above > slack && above > worst.size) worst = {Kind::upper, j, above};
        if (state[j] == Column::free && kinked[j] && -side[j] * value > std::max(slack, worst.size))
            worst = {Kind::kink, j, -side[j] * value};
    }
    return worst;
}

double Quadratic::size_of_terms(Index i) const {
    double size = std::abs(rhs[i]);
    for (Index e = start[i]; e < start[i + 1]; ++e) size = std::max(size, std::abs(coefficient[e] * x[column[e]]));
    return size;
}

// Writes the normal of what is brought in and returns its orientation.
double Quadratic::write_normal(const Violation& violation) {
    const Index which = violation.which;
    if (violation.kind == Kind::row) {
        const bool from_below = which < m && equality[which] && excess(which) < 0.0;
        const double oriented = from_below ? -1.0 : 1.0;
        write_row(which, oriented, normal_);
        return oriented;
    }
    std::fill(normal_.begin(), normal_.end(), 0.0);
    if (violation.kind == Kind::kink) {
        normal_[which] = -side[which];
    } else {
        normal_[which] = violation.kind == Kind::lower ? -1.0 : 1.0;
    }
    return 1.0;
}

// Fixes a column at the kink or bound that has been reached.
void Quadratic::fix_column(Kind kind, Index j) {
    if (kind == Kind::kink) {
        set_state(j, Column::kink), x[j] = 0.0;
    } else if (kind == Kind::lower) {
        set_state(j, Column::lower), x[j] = lower[j];
    } else {
        set_state(j, Column::upper), x[j] = upper[j];
    }
    factored_ = 0;
}

double Quadratic::active_excess(Index k) const {
    const Vector<const double> row = active_row(k);
    double total = -right_[k];
    for (Index j = 0; j < n; ++j) total += row[j] * x[j];
    return total;
}

double Quadratic::missed() const {
    double total = 0.0;
    for (Index k = 0; k < active_count; ++k) total += multiplier[k] * active_excess(k);
    return total;
}

// What could be done for a violated constraint all the same: by columns, each within its bounds, as its normal leaves the
// plane of the active ones by a little, and by the active ones, each giving way by what it is forgiven and by what steps
// have left of it.
double Quadratic::reach_of_rest() const {
    double total = 0.0;
    for (Index i = 0; i < active_count; ++i)
        total += std::abs(rate_[i]) * (forgiven[row_of(active[i])] + std::abs(active_excess(i)));
    for (Index j = 0; j < n; ++j) {
        if (state[j] != Column::free) continue;
        const double room = slope_rate_[j] > 0.0 ? x[j] - lower[j] : upper[j] - x[j];
        total += std::abs(slope_rate_[j]) * std::min(room, kFar);
    }
    return total;
}

// Raises the multiplier of a violated constraint until it holds.
Quadratic::Outcome Quadratic::bring_in(Violation violation) {
    const double oriented = write_normal(violation);
    const bool is_kink = violation.kind == Kind::kink;
    double pending = 0.0;
    const Index rounds = 4 * n + 4 * active_count + 8;
    for (Index round = 0; round < rounds; ++round) {
        double fall = 0.0;
        effort += 4 * (active_count + 4) * n;
        if (!find_direction(fall)) return Outcome::trouble;
        const double full = fall > 0.0 ? violation.size / fall : kInfinity;
        const double flip = is_kink ? 2.0 * price - pending : kInfinity;
        const Block block = blocking(pending);
        if (block.length == kInfinity && full == kInfinity && flip == kInfinity) {
            if (violation.kind == Kind::row && violation.size <= forgiven[row_of(violation.which)]) {
                mark[violation.which] |= kIgnored;  // the same row once more, up to rounding
                return Outcome::optimal;
            }
            if (violation.kind != Kind::row && violation.size <= kAccepted * std::max(1.0, std::abs(x[violation.which]))) {
                passed_[violation.which] = 1;  // active rows say where the column is, its bound says so once more
                return Outcome::optimal;
            }
            contradiction = violation.size - reach_of_rest();
            return Outcome::infeasible;
        }
        const double t = std::min(std::min(block.length, full), flip);
        for (Index i = 0; i < active_count; ++i) multiplier[i] += t * rate_[i];
        if (fall > 0.0) {
            for (Index j = 0; j < n; ++j) x[j] += t * step_[j];
            violation.size -= t * fall;
        }
        pending += t;
        if (full <= std::min(block.length, flip)) {
            if (violation.kind != Kind::row) {
                fix_column(violation.kind, violation.which);
            } else if (!activate(violation.which, oriented, pending)) {
                return Outcome::trouble;
            }
            return Outcome::optimal;
        }
        if (flip <= block.length) {
            side[violation.which] = -side[violation.which];  // past the kink after all
            return Outcome::optimal;
        }
        let_go(block.who);
    }
    return Outcome::trouble;
}

void Quadratic::correct() {
    for (Index i = 0; i < active_count; ++i) {
        const double* row = dense_[i].data();
        double total = right_[i];
        for (Index j = 0; j < n; ++j) total -= row[j] * x[j];
        rate_[i] = total;
    }
    solve_factored();
    std::fill(step_.begin(), step_.end(), 0.0);
    for (Index i = 0; i < active_count; ++i) {
        const double* row = dense_[i].data();
        const double rate = rate_[i];
        for (Index j = 0; j < n; ++j) step_[j] += rate * row[j];
    }
    for (Index j = 0; j < n; ++j)
        if (state[j] == Column::free) x[j] += step_[j] / curvature[j];
}

Quadratic::Outcome Quadratic::minimise(double cutoff) {
    for (Index e = 0; e < enforced_count; ++e) mark[enforced[e]] &= std::uint8_t(~kIgnored);
    std::fill(passed_.begin(), passed_.end(), std::uint8_t(0));
    bool corrected = false;
    const Index rounds = 20 * (n + m) + 100;
    for (Index round = 0; round < rounds; ++round) {
        const Violation worst = most_violated();
        if (worst.kind == Kind::nothing) {
            if (corrected) return Outcome::optimal;
            // Steps add up rounding errors; without them a row may turn out to be violated.
            if (!factor()) return Outcome::trouble;
            correct();
            corrected = true;
            continue;
        }
        const Outcome outcome = bring_in(worst);
        if (outcome != Outcome::optimal) return outcome;
        corrected = false;
        if (cutoff < kInfinity && bound_value() >= cutoff) return Outcome::cutoff;
    }
    return Outcome::trouble;
}

}  // namespace gdpnet
