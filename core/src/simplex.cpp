// The dual simplex method on the dictionary of a node.
//
// A step takes the most violated row or basic column out of the basis and lets a nonbasic quantity in. The ratio
// test passes kinks and bounds (long step), allows a small dual infeasibility for a larger pivot (Harris) and falls
// back to Bland's rule when the objective stalls.

#include "gdpnet/linear.hpp"

namespace gdpnet {

// Writes how the slack of a row changes with each nonbasic quantity.
void Linear::slack_line(Index code) {
    const Index i = row_of(code);
    double* alpha = alpha_.data();
    std::fill(alpha, alpha + n, 0.0);
    effort_ += long(n);
    for (Slot e = sample.row[i].first; e < sample.row[i].last; ++e) {
        const double a = code < m ? -sample.entry[e].coefficient : sample.entry[e].coefficient;
        const Index at = place[sample.entry[e].column];
        if (at < 0) {
            alpha[-1 - at] += a;
        } else {
            const double* line = &tableau(at, 0);
            for (Index p = 0; p < n; ++p) alpha[p] += a * line[p];
            effort_ += long(n);
        }
    }
}

// What the quantity at a position charges for moving up or down.
//
// A column that moves down is looked at as its negative, which is exact.
inline Linear::Charge Linear::charge(Index position, bool up) const {
    const Index j = nonbasic[position];
    if (j >= n) {
        const Index code = j - n;
        if (!up || (code < m && sample.row[code].equality)) return {kInfinity, 0.0, 0.0};
        return {std::max(reduced[position], 0.0), kInfinity, 0.0};
    }
    const double sign = up ? 1.0 : -1.0;
    const double x = sign * value[j], at = sign * kink[j], end = sign * (up ? upper[j] : lower[j]);
    if (!(x < end)) return {kInfinity, 0.0, 0.0};
    if (x < at)
        return {std::max(sign * reduced[position] - weight[j], 0.0), std::min(at, end) - x, at < end ? end - at : 0.0};
    return {std::max(sign * reduced[position] + weight[j], 0.0), end - x, 0.0};
}

// Prepares the ratio test: the quantities that can move the right way.
void Linear::list_candidates(double direction) {
    Index count = 0;
    for (Index p = 0; p < n; ++p) {
        const double gain = alpha_[p] * direction;
        const double size = std::abs(gain);
        if (size <= kNoPivot) continue;
        const Charge found = charge(p, gain > 0.0);
        candidates_[count] = {found, size, Slot(p), 0};
        count += found.price < kInfinity;
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
    Candidate* const first = candidates_.data();
    Candidate* const end = first + candidate_count_;
    double step = 0.0, gain = 0.0, last_room = 0.0;
    Candidate* last = nullptr;
    while (true) {
        double limit = kInfinity;
        Candidate* tightest = nullptr;
        for (Candidate* c = first; c != end; ++c) {
            if (!(c->size > 0.0 && c->charge.price + slack < limit * c->size)) continue;
            limit = (c->charge.price + slack) / c->size;
            tightest = c;
        }
        Candidate* best = nullptr;
        if (limit < kInfinity) {
            double best_size = 0.0;
            for (Candidate* c = first; c != end; ++c) {
                if (!(c->size > 0.0 && c->charge.price <= limit * c->size)) continue;
                if (lowest_id) {
                    if (best == nullptr || nonbasic[c->position] < nonbasic[best->position]) best = c;
                } else if (c->size > best_size) {
                    best = c;
                    best_size = c->size;
                }
            }
        }
        if (best == nullptr) best = tightest;  // whose own price, multiplied out again, may round above its limit
        if (best == nullptr) {
            if (step_cap < kInfinity) return {Step::change_piece, -1, violation, gain + violation * (step_cap - step)};
            if (violation > forgiven) return {Step::none, -1, violation, kInfinity};
            if (last == nullptr) return {Step::none, -1, violation, 0.0};
            --last->passed;
            return {Step::enter, last->position, violation + last_room, gain};
        }
        const double ratio = std::max(best->charge.price / best->size, step);
        if (ratio >= step_cap) return {Step::change_piece, -1, violation, gain + violation * (step_cap - step)};
        gain += violation * (ratio - step);
        step = ratio;
        const double room = best->size * best->charge.room;
        if (room >= violation) return {Step::enter, best->position, violation, gain};
        violation -= room;
        last = best;
        last_room = room;
        ++best->passed;
        if (best->charge.further > 0.0) {  // on to its bound, at a price higher by twice its weight
            best->charge.room = best->charge.further;
            best->charge.further = 0.0;
            best->charge.price += 2.0 * weight[nonbasic[best->position]];
        } else {
            best->size = 0.0;
        }
    }
}

// Moves the columns that the ratio test passed by to the breakpoints they reached.
void Linear::move_passed(double direction) {
    for (Index c = 0; c < candidate_count_; ++c) {
        const Index p = candidates_[c].position, passed = candidates_[c].passed;
        if (passed == 0) continue;
        const Index j = nonbasic[p];
        double target;
        if (alpha_[p] * direction > 0.0) {
            target = upper[j];
            if (passed == 1 && value[j] < kink[j]) target = std::min(kink[j], target);
        } else {
            target = lower[j];
            if (passed == 1 && value[j] > kink[j]) target = std::max(kink[j], target);
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
        const double size = sample.row[i].equality ? std::abs(excess) : excess;
        if (size > sample.row[i].tolerance && (size > worst || (bland && n + code < found.id))) {
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
        list_candidates(direction);
        const double forgiven = sample.accepted * std::max(1.0, std::abs(is_column ? leaving.target : sample.row[i].rhs));
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
                if (sample.row[i].tolerance >= forgiven) return Outcome::trouble;
                sample.row[i].tolerance = forgiven;
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

Outcome Linear::solve_linear(double cutoff) {
    effort_ += long(8 * n + 4 * listed + 50);
    const Outcome outcome = dual_simplex(cutoff);
    if (outcome != Outcome::trouble) return outcome;
    reset();
    return dual_simplex(cutoff);
}

// Look-ahead of a row with one entry, on a nonbasic column: the cost of moving it to the bound.
Gain Linear::single_entry_gain(Index i) const {
    const Sample::Entry& entry = sample.entry[sample.row[i].first];
    const Index j = entry.column;
    const Index position = -1 - place[j];
    const std::uint64_t bit = std::uint64_t(1) << (position & 63);
    const double bound = sample.row[i].rhs / entry.coefficient;
    const double slack = kAccepted * std::max(1.0, std::abs(bound));
    if (bound < lower[j] - slack || bound > upper[j] + slack) return {kInfinity, bit, bit};
    double gain = reduced[position] * (bound - value[j]);
    if (weight[j] > 0.0) gain += weight[j] * (std::abs(bound - kink[j]) - std::abs(value[j] - kink[j]));
    return {std::max(gain, 0.0), bit, bit};
}

// The charges of a node are the same for all rows that are looked ahead at.
void Linear::list_charges() {
    charged_ = true;
    for (Index p = 0; p < n; ++p) {
        charges_[2 * p] = charge(p, false);
        charges_[2 * p + 1] = charge(p, true);
    }
}

Gain Linear::look_ahead(Index i, double excess) {
    const Sample::Row& row = sample.row[i];
    const Slot entries = row.last - row.first;
    if (entries == 1 && sample.entry[row.first].coefficient != 0.0 && place[sample.entry[row.first].column] < 0)
        return single_entry_gain(i);
    if (entries == 0) return {kInfinity, 0, 0};
    if (!charged_) list_charges();
    slack_line(i);
    const double direction = excess > 0.0 ? 1.0 : -1.0;
    Gain found;
    Index count = 0;
    for (Index p = 0; p < n; ++p) {
        const double gain = alpha_[p] * direction;
        const double size = std::abs(gain);
        if (size <= kNoPivot) continue;
        const bool up = gain > 0.0;
        const Charge& own = charges_[2 * p + up];
        if (!(own.price < kInfinity)) continue;
        (up ? found.up : found.down) |= std::uint64_t(1) << (p & 63);
        candidates_[count++] = {own, size, Slot(p), 0};
    }
    candidate_count_ = count;
    const double forgiven = sample.accepted * std::max(1.0, std::abs(row.rhs));
    found.gain = ratio_test(std::abs(excess), forgiven, kInfinity, false).gain;
    return found;
}

}  // namespace gdpnet
