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

double Quadratic::excess(Index code) const {
    const Index i = row_of(code);
    double total = -rhs[i];
    for (Index e = start[i]; e < start[i + 1]; ++e) total += coefficient[e] * x[column[e]];
    return code < m ? total : -total;
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

// ---------------------------------------------------------------- active rows

// Writes a row as a dense vector and returns its right side.
double Quadratic::write_row(Index code, double oriented, Vector<double> target) const {
    const Index i = row_of(code);
    const double sign = code < m ? oriented : -oriented;
    std::fill(target.begin(), target.end(), 0.0);
    for (Index e = start[i]; e < start[i + 1]; ++e) target[column[e]] += sign * coefficient[e];
    return sign * rhs[i];
}

bool Quadratic::activate(Index code, double oriented, double value) {
    const Index k = active_count;
    if (k >= Index(active.size())) return false;
    active[k] = code;
    orientation[k] = oriented;
    multiplier[k] = value;
    right_[k] = write_row(code, oriented, dense_[k]);
    mark[code] |= kActive;
    active_count = k + 1;
    return true;
}

void Quadratic::release() {
    for (Index k = 0; k < active_count; ++k) mark[active[k]] &= std::uint8_t(~kActive);
    active_count = 0;
    factored_ = 0;
}

void Quadratic::deactivate(Index k) {
    mark[active[k]] &= std::uint8_t(~kActive);
    const Index last = active_count - 1;
    for (Index i = k; i < last; ++i) {
        active[i] = active[i + 1];
        orientation[i] = orientation[i + 1];
        multiplier[i] = multiplier[i + 1];
        right_[i] = right_[i + 1];
        std::copy(dense_[i + 1].begin(), dense_[i + 1].end(), dense_[i].begin());
    }
    active_count = last;
    factored_ = std::min(factored_, k);
}

// The product of two rows over the free columns, in the metric of the inverse curvatures.
double Quadratic::product(const double* one, const double* other) const {
    if (price == 0.0) {
        // Four sums side by side: without kinks there are many free columns.
        const double* inverse = inverse_.data();
        double sum[4] = {0.0, 0.0, 0.0, 0.0};
        Index j = 0;
        for (; j + 4 <= n; j += 4)
            for (Index k = 0; k < 4; ++k) sum[k] += one[j + k] * other[j + k] * inverse[j + k];
        for (; j < n; ++j) sum[0] += one[j] * other[j] * inverse[j];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    double total = 0.0;
    for (Index j = 0; j < n; ++j)
        if (state[j] == Column::free) total += one[j] * other[j] / curvature[j];
    return total;
}

void Quadratic::set_state(Index j, Column to) {
    state[j] = to;
    inverse_[j] = to == Column::free ? 1.0 / curvature[j] : 0.0;
}

// Brings the factor up to date. False where rows depend on each other.
bool Quadratic::factor() {
    for (Index i = factored_; i < active_count; ++i) {
        const double* row = dense_[i].data();
        double* line = schur_[i].data();
        for (Index k = 0; k <= i; ++k) line[k] = product(row, dense_[k].data());
        const double diagonal = line[i];
        for (Index k = 0; k <= i; ++k) {
            const double* other = schur_[k].data();
            double total = line[k];
            for (Index e = 0; e < k; ++e) total -= line[e] * other[e];
            if (k < i) {
                line[k] = total / other[k];
            } else if (total <= kDependentPivot * diagonal || !(total > 0.0)) {
                return false;
            } else {
                line[i] = std::sqrt(total);
            }
        }
        factored_ = i + 1;
    }
    return true;
}

// Overwrites `rate_` by the solution for it as right side.
void Quadratic::solve_factored() {
    for (Index i = 0; i < active_count; ++i) {
        const double* line = schur_[i].data();
        double total = rate_[i];
        for (Index k = 0; k < i; ++k) total -= line[k] * rate_[k];
        rate_[i] = total / line[i];
    }
    if (price == 0.0) {  // by lines, which are read faster than columns
        for (Index i = active_count - 1; i >= 0; --i) {
            const double* line = schur_[i].data();
            const double value = rate_[i] /= line[i];
            for (Index k = 0; k < i; ++k) rate_[k] -= line[k] * value;
        }
        return;
    }
    for (Index i = active_count - 1; i >= 0; --i) {
        double total = rate_[i];
        for (Index k = i + 1; k < active_count; ++k) total -= schur_(k, i) * rate_[k];
        rate_[i] = total / schur_(i, i);
    }
}

// Rates of x and of the multipliers as the multiplier of `normal_` rises. `fall` is the rate at which
// the excess falls, 0 if `normal_` depends on the active rows. False on failure.
bool Quadratic::find_direction(double& fall) {
    if (!factor()) return false;
    const double size = product(normal_.data(), normal_.data());
    for (Index i = 0; i < active_count; ++i) rate_[i] = -product(dense_[i].data(), normal_.data());
    solve_factored();
    // By lines of the active rows, so that columns are worked on side by side.
    std::copy(normal_.begin(), normal_.end(), slope_rate_.begin());
    for (Index i = 0; i < active_count; ++i) {
        const double* row = dense_[i].data();
        const double rate = rate_[i];
        for (Index j = 0; j < n; ++j) slope_rate_[j] += rate * row[j];
    }
    fall = 0.0;
    for (Index j = 0; j < n; ++j) {
        step_[j] = 0.0;
        if (state[j] != Column::free) continue;
        const double total = slope_rate_[j];
        step_[j] = -total / curvature[j];
        fall += total * total / curvature[j];
    }
    if (size == 0.0 || fall <= kDependent * size) fall = 0.0;
    return true;
}

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

// What columns could do for a violated constraint, each within its bounds, by the little in which its normal leaves the
// plane of the active ones.
double Quadratic::reach_of_rest() const {
    double total = 0.0;
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
