// The dual simplex method on the dictionary of a node.
//
// A step takes the most violated row or basic column out of the basis and lets a nonbasic quantity in. The ratio
// test passes kinks and bounds (long step), allows a small dual infeasibility for a larger pivot (Harris) and falls
// back to Bland's rule when the objective stalls.
#include <limits>

#include "gdpnet/linear.hpp"

namespace gdpnet {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

// Writes how the slack of a row changes with each nonbasic quantity.
void Linear::slack_line(Index code) {
    const Index i = row_of(code);
    double* alpha = alpha_.data();
    std::fill(alpha, alpha + n, 0.0);
    effort_ += long(n);
    for (Index e = sample.rows.start[i]; e < sample.rows.start[i + 1]; ++e) {
        const double a = code < m ? -sample.coefficient[e] : sample.coefficient[e];
        const Index at = place[sample.rows.column[e]];
        if (at < 0) {
            alpha[-1 - at] += a;
        } else {
            const double* line = &tableau(at, 0);
            for (Index p = 0; p < n; ++p) alpha[p] += a * line[p];
            effort_ += long(n);
        }
    }
}

// Prepares the ratio test: what each nonbasic quantity charges for moving the right way.
void Linear::price_positions(double direction) {
    Index count = 0;
    for (Index p = 0; p < n; ++p) {
        const double gain = alpha_[p] * direction;
        const double size = std::abs(gain);
        if (size <= kNoPivot) continue;
        const Index j = nonbasic[p];
        double price, room, further = 0.0;
        if (j >= n) {
            const Index code = j - n;
            if (!(gain > 0.0) || (code < m && sample.rows.equality[code])) continue;
            price = std::max(reduced[p], 0.0);
            room = kInfinity;
        } else if (gain > 0.0) {
            const double x = value[j], up = upper[j];
            if (!(x < up)) continue;
            if (x < kink[j]) {
                price = std::max(reduced[p] - weight[j], 0.0);
                room = std::min(kink[j], up) - x;
                if (kink[j] < up) further = up - kink[j];
            } else {
                price = std::max(reduced[p] + weight[j], 0.0);
                room = up - x;
            }
        } else {
            const double x = value[j], lo = lower[j];
            if (!(x > lo)) continue;
            if (x > kink[j]) {
                price = std::max(-reduced[p] - weight[j], 0.0);
                room = x - std::max(kink[j], lo);
                if (kink[j] > lo) further = kink[j] - lo;
            } else {
                price = std::max(-reduced[p] + weight[j], 0.0);
                room = x - lo;
            }
        }
        size_[p] = size;
        price_[p] = price;
        room_[p] = room;
        further_[p] = further;
        passed_[p] = 0;
        candidates_[count++] = Slot(p);
    }
    candidate_count_ = count;
}

// The dual step that closes `violation`: long step, Harris tolerance, largest pivot.
//
// Candidates are passed in order of price per gain. One whose whole way to its next breakpoint does not close the
// violation is passed by; the first that does enters. `forgiven` is what may be missing when all have been passed:
// then the last one enters all the same and ends beyond its bound by a rounding error. At the dual step `step_cap`
// the leaving column changes its cost piece instead. `lowest_id`: Bland's choice among ties.
Linear::Ratio Linear::ratio_test(double violation, double forgiven, double step_cap, bool lowest_id) {
    const double slack = lowest_id ? 0.0 : kDualSlack;
    const Slot* candidates = candidates_.data();
    const Index count = candidate_count_;
    double step = 0.0, gain = 0.0, last_room = 0.0;
    Index last = -1;
    while (true) {
        double limit = kInfinity;
        for (Index c = 0; c < count; ++c) {
            const Index p = candidates[c];
            if (size_[p] > 0.0 && price_[p] + slack < limit * size_[p]) limit = (price_[p] + slack) / size_[p];
        }
        Index best = -1;
        double best_size = 0.0;
        if (limit < kInfinity) {
            for (Index c = 0; c < count; ++c) {
                const Index p = candidates[c];
                const double size = size_[p];
                if (!(size > 0.0 && price_[p] <= limit * size)) continue;
                if (lowest_id) {
                    if (best < 0 || nonbasic[p] < nonbasic[best]) best = p;
                } else if (size > best_size) {
                    best = p;
                    best_size = size;
                }
            }
        }
        if (best < 0) {
            if (step_cap < kInfinity) return {Step::change_piece, -1, violation, gain + violation * (step_cap - step)};
            if (violation > forgiven) return {Step::none, -1, violation, kInfinity};
            if (last < 0) return {Step::none, -1, violation, 0.0};
            --passed_[last];
            return {Step::enter, last, violation + last_room, gain};
        }
        const double ratio = std::max(price_[best] / size_[best], step);
        if (ratio >= step_cap) return {Step::change_piece, -1, violation, gain + violation * (step_cap - step)};
        gain += violation * (ratio - step);
        step = ratio;
        const double room = size_[best] * room_[best];
        if (room >= violation) return {Step::enter, best, violation, gain};
        violation -= room;
        last = best;
        last_room = room;
        ++passed_[best];
        if (further_[best] > 0.0) {  // on to its bound, at a price higher by twice its weight
            room_[best] = further_[best];
            further_[best] = 0.0;
            price_[best] += 2.0 * weight[nonbasic[best]];
        } else {
            size_[best] = 0.0;
        }
    }
}

// Moves the columns that the ratio test passed by to the breakpoints they reached.
void Linear::move_passed(double direction) {
    for (Index c = 0; c < candidate_count_; ++c) {
        const Index p = candidates_[c];
        if (passed_[p] == 0) continue;
        const Index j = nonbasic[p];
        double target;
        if (alpha_[p] * direction > 0.0) {
            target = upper[j];
            if (passed_[p] == 1 && value[j] < kink[j]) target = std::min(kink[j], target);
        } else {
            target = lower[j];
            if (passed_[p] == 1 && value[j] > kink[j]) target = std::max(kink[j], target);
        }
        move_nonbasic(p, j, target);
    }
}

// Exchanges the leaving quantity with the nonbasic one at position q.
//
// `line` is the line of the leaving basic column, -1 if a row's slack leaves; `leaving` its id as a nonbasic
// quantity; `leaving_move` by how much it has to change (alpha is its derivative); `up` whether the entering
// quantity moves up.
void Linear::pivot(Index line, Index leaving, Index q, double leaving_move, bool up) {
    const Index r = basics;
    const double* alpha = alpha_.data();
    const double inverse = 1.0 / alpha[q];
    const Index entering = nonbasic[q];
    const double move = leaving_move * inverse;
    double entering_slope = 0.0;
    if (entering < n) {
        const double x = value[entering], at = kink[entering], cost = weight[entering];
        entering_slope = up ? (x < at ? -cost : cost) : (x > at ? cost : -cost);
    }
    const double dual_step = (reduced[q] + entering_slope) * inverse;
    double* rates = reduced.data();
    for (Index p = 0; p < n; ++p) rates[p] -= dual_step * alpha[p];
    rates[q] = dual_step - (leaving < n ? slope[leaving] : 0.0);

    for (Index k = 0; k < r; ++k) {
        if (k == line) continue;
        double* row = &tableau(k, 0);
        double factor = row[q];
        if (factor == 0.0) continue;
        value[basic[k]] += factor * move;
        factor *= inverse;
        for (Index p = 0; p < n; ++p) row[p] -= factor * alpha[p];
        row[q] = factor;
    }
    effort_ += long((r + 1) * n);

    if (entering < n) {
        const Index at = line < 0 ? basics++ : line;
        double* row = &tableau(at, 0);
        for (Index p = 0; p < n; ++p) row[p] = -alpha[p] * inverse;
        row[q] = inverse;
        basic[at] = Slot(entering);
        place[entering] = Slot(at);
        slope[entering] = entering_slope;
        value[entering] += move;
    } else {
        flag_[entering - n] &= kListed;
        if (line >= 0) {  // a slack replaces a basic column: its line goes, the last one moves up
            const Index last = r - 1;
            if (line != last) {
                std::copy_n(&tableau(last, 0), n, &tableau(line, 0));
                basic[line] = basic[last];
                place[basic[line]] = Slot(line);
            }
            basics = last;
        }
    }
    nonbasic[q] = Slot(leaving);
    if (leaving < n) {
        place[leaving] = Slot(-1 - q);
        slope[leaving] = 0.0;
    } else {
        flag_[leaving - n] |= kTight;
    }
    ++age;
    ++pivots;
}

// The most violated basic column or enforced row (`bland`: the one of lowest id). A basic column is violated outside
// its box, or beyond the kink that ends its cost piece.
Linear::Leaving Linear::choose_leaving(bool bland) const {
    Leaving found{-1, 0.0, 0.0, kInfinity};
    double worst = 0.0;
    for (Index k = 0; k < basics; ++k) {
        const Index j = basic[k];
        const double x = value[j], lo = lower[j], up = upper[j];
        const double tolerance = column_tolerance(j, x);
        const double rate = slope[j], at = kink[j];
        double size = 0.0, goal = 0.0, cap = kInfinity;
        // On the way to a bound beyond the kink the column first has to change its piece there.
        if (rate > 0.0 && at > lo && x <= up + tolerance) {
            if (x < at - tolerance) {
                size = at - x;
                goal = std::min(at, up);
                cap = 2.0 * rate;
            }
        } else if (rate < 0.0 && at < up && x >= lo - tolerance) {
            if (x > at + tolerance) {
                size = x - at;
                goal = std::max(at, lo);
                cap = -2.0 * rate;
            }
        } else if (x < lo - tolerance) {
            size = lo - x;
            goal = lo;
        } else if (x > up + tolerance) {
            size = x - up;
            goal = up;
        }
        if (size > worst || (bland && size > 0.0 && j < found.id)) {
            found = {j, goal - x, goal, cap};
            worst = bland ? kInfinity : size;
        }
    }
    if (bland && found.id >= 0) return found;
    for (Index e = 0; e < listed; ++e) {
        const Index code = enforced_[e];
        if (flag_[code] & kTight) continue;
        const Index i = row_of(code);
        double excess = sample.excess(i, value.data());
        if (code >= m) excess = -excess;
        const double size = sample.rows.equality[i] ? std::abs(excess) : excess;
        if (size > sample.tolerance[i] && (size > worst || (bland && n + code < found.id))) {
            found.id = n + code;
            found.move = excess;
            found.step_cap = kInfinity;
            worst = bland ? kInfinity : size;
        }
    }
    return found;
}

// Restores feasibility of the enforced rows, raising the dual objective up to `cutoff`.
Outcome Linear::dual_simplex(double cutoff) {
    Index stalled = 0;
    double last_objective = -kInfinity;
    const Index patience = 20 + 4 * n;
    const Index most = 400 + 60 * n;
    for (Index iteration = 0; iteration < most; ++iteration) {
        if (cutoff < kInfinity || stalled > 0 || iteration > 10) {
            const double objective = dual_objective();
            if (objective >= cutoff) return Outcome::cutoff;
            if (objective > last_objective + 1e-13 * std::max(1.0, std::abs(objective))) {
                last_objective = objective;
                stalled = 0;
            } else {
                ++stalled;
            }
        }
        const bool bland = stalled > patience;
        if (age > kRefactorAge && !refactor()) return Outcome::trouble;

        const Leaving leaving = choose_leaving(bland);
        if (leaving.id < 0) return Outcome::optimal;
        const bool is_column = leaving.id < n;
        const Index i = is_column ? -1 : row_of(leaving.id - n);
        Index line = -1;
        if (is_column) {
            line = place[leaving.id];
            std::copy_n(&tableau(line, 0), n, alpha_.data());
        } else {
            slack_line(leaving.id - n);
        }
        double direction = leaving.move >= 0.0 ? 1.0 : -1.0;
        if (leaving.step_cap < kInfinity) direction = slope[leaving.id] > 0.0 ? 1.0 : -1.0;
        price_positions(direction);
        const double forgiven = kAccepted * std::max(1.0, std::abs(is_column ? leaving.target : sample.rhs[i]));
        const Ratio found = ratio_test(std::abs(leaving.move), forgiven, leaving.step_cap, bland);

        const bool small = found.step == Step::enter && std::abs(alpha_[found.position]) < kSmallPivot;
        if ((found.step == Step::none || small) && age > 0) {
            if (!refactor()) return Outcome::trouble;
            continue;
        }
        if (found.step == Step::none) {
            if (found.violation > forgiven) return Outcome::infeasible;
            // A contradiction within rounding: let it pass.
            if (!is_column) {
                if (sample.tolerance[i] >= forgiven) return Outcome::trouble;
                sample.tolerance[i] = forgiven;
            } else if (leaving.move > 0.0) {
                lower[leaving.id] = value[leaving.id];
            } else {
                upper[leaving.id] = value[leaving.id];
            }
            continue;
        }
        move_passed(direction);
        if (found.step == Step::enter) {
            const Index q = found.position;
            pivot(line, leaving.id, q, direction * found.violation, alpha_[q] * direction > 0.0);
            if (is_column) value[leaving.id] = leaving.target;
        } else {
            const double change = -2.0 * slope[leaving.id];
            slope[leaving.id] += change;
            for (Index p = 0; p < n; ++p) reduced[p] += change * alpha_[p];
        }
    }
    return Outcome::trouble;
}

Outcome Linear::solve(double cutoff) {
    effort_ += long(8 * n + 4 * listed + 50);
    const Outcome outcome = dual_simplex(cutoff);
    if (outcome != Outcome::trouble) return outcome;
    reset();
    return dual_simplex(cutoff);
}

// Look-ahead of a row with one entry, on a nonbasic column: the cost of moving it to the bound.
Gain Linear::single_entry_gain(Index i) const {
    const Index e = sample.rows.start[i];
    const Index j = sample.rows.column[e];
    const Index position = -1 - place[j];
    const std::uint64_t bit = std::uint64_t(1) << (position & 63);
    const double bound = sample.rhs[i] / sample.coefficient[e];
    const double slack = kAccepted * std::max(1.0, std::abs(bound));
    if (bound < lower[j] - slack || bound > upper[j] + slack) return {kInfinity, bit, bit};
    double gain = reduced[position] * (bound - value[j]);
    if (weight[j] > 0.0) gain += weight[j] * (std::abs(bound - kink[j]) - std::abs(value[j] - kink[j]));
    return {std::max(gain, 0.0), bit, bit};
}

Gain Linear::look_ahead(Index i, double excess) {
    const Index first = sample.rows.start[i];
    const Index entries = sample.rows.start[i + 1] - first;
    if (entries == 1 && sample.coefficient[first] != 0.0 && place[sample.rows.column[first]] < 0)
        return single_entry_gain(i);
    if (entries == 0) return {kInfinity, 0, 0};
    slack_line(i);
    const double direction = excess > 0.0 ? 1.0 : -1.0;
    price_positions(direction);
    Gain found;
    for (Index c = 0; c < candidate_count_; ++c) {
        const Index p = candidates_[c];
        (alpha_[p] * direction > 0.0 ? found.up : found.down) |= std::uint64_t(1) << (p & 63);
    }
    const double forgiven = kAccepted * std::max(1.0, std::abs(sample.rhs[i]));
    found.gain = ratio_test(std::abs(excess), forgiven, kInfinity, false).gain;
    return found;
}

}  // namespace gdpnet
