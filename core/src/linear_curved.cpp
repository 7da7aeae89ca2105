// Curved rows at a node of the l1 search: cuts, and Newton's method on what is active.
#include <algorithm>
#include <cmath>

#include "gdpnet/linear.hpp"

namespace gdpnet {

namespace {

constexpr int kPinnings = 4;  // times that Newton's method starts anew with columns held at a breakpoint

}  // namespace

// ---------------------------------------------------------------- which are enforced

bool Linear::enforce_curved(Index c) {
    if (bent_.add(c)) enforce_cuts(c);
    return true;
}

// What has been learned about a row elsewhere.
void Linear::enforce_cuts(Index c) {
    for (Index i = cuts_.first(c); i < cuts_.last(c); ++i) enforce(i);
}

void Linear::go_back(const Bends::Mark& kept) {
    bent_.back_to(kept.count);
    bool stale = false;
    for (Index p = 0; p < n; ++p) {
        const Index code = nonbasic[p] - n;
        stale = stale || (code >= 0 && code < m && cuts_.is_cut(code) && cuts_.written_since(code, kept.then));
    }
    for (Index c : bent_) enforce_cuts(c);
    if (stale) reset();
}

bool Linear::curved_rows_hold(double share) const {
    for (Index c : bent_) {
        const Index i = sample.rows.curves.row[c];
        if (!(CurvedRows::excess(sample, c, point_.data()) <= share * sample.row[i].tolerance)) return false;
    }
    return true;
}

// ---------------------------------------------------------------- cuts

Index Linear::add_cut(Index c, const double* z) {
    const Index i = cuts_.add(sample, c, z, [this](Index k) { return (flag_[k] & kTight) != 0; });
    if (i < 0) return -1;
    sample.row[i].tolerance *= kFinerCut;
    return i;
}

void Linear::note_tight_cuts() {
    std::fill(presses_.begin(), presses_.end(), std::uint8_t(0));
    for (Index p = 0; p < n; ++p) {
        const Index code = nonbasic[p] - n;
        if (code >= 0 && code < m && cuts_.is_cut(code)) presses_[cuts_.owner(code)] = 1;
    }
}

// Cuts the enforced rows that do not hold at the point, those with tight cuts or the others. False if nothing came of it.
bool Linear::add_cuts(bool tight) {
    bool deeper = false;
    for (Index c : bent_) {
        if (presses_[c] != tight) continue;
        const Index row = sample.rows.curves.row[c];
        if (CurvedRows::excess(sample, c, point_.data()) <= kFineCut * sample.row[row].tolerance) continue;
        const Index i = add_cut(c, point_.data());
        if (i < 0) continue;
        enforce(i);
        deeper = deeper || sample.excess(i, point_.data()) > sample.row[i].tolerance;
    }
    return deeper;
}

Outcome Linear::solve_curved(double cutoff) {
    const Index rounds = kCutRounds + kCutRoundsOfColumn * n;
    bool cut = false;
    Index ask = kTouchRounds;  // when it is asked whether rows touch
    for (Index round = 0; round < rounds; ++round) {
        const Outcome outcome = solve_linear(cutoff);
        if (outcome != Outcome::optimal) return outcome;
        if (age > 0 && !refactor()) return Outcome::trouble;
        for (Index j = 0; j < n; ++j) point_[j] = std::min(std::max(value[j], lower[j]), upper[j]);
        if (cut && point_ == last_) break;  // what is left is rounding
        last_ = point_;
        note_tight_cuts();
        if ((cut = add_cuts(false))) continue;
        if (curved_rows_hold(kFineCut)) return Outcome::optimal;
        if (polish()) return distance_of_point() >= cutoff ? Outcome::cutoff : Outcome::optimal;
        if (round >= ask) {
            ask *= 2;
            const Touch found = touch();
            if (found == Touch::nowhere) return Outcome::infeasible;
            if (found == Touch::point) return solve_at_touch(cutoff);
        }
        if (!(cut = add_cuts(true))) break;
    }
    return curved_rows_hold(1.0) ? Outcome::optimal : Outcome::trouble;
}

// ---------------------------------------------------------------- Newton's method

// The optimum of what is active becomes the point, if it is that of the node. What was learned on the way is kept as
// cuts.
bool Linear::polish() {
    std::fill(pinned_.begin(), pinned_.end(), Slot(0));
    polish_.x = point_;
    bool converged = false;
    for (int attempt = 0; attempt < kPinnings; ++attempt) {
        list_active();
        effort_ += 20 * n * n;
        converged = polish_.run(sample, cuts_.curved);
        if (!converged || !pin_crossing()) break;
    }
    if (!converged) return false;
    for (Index k = 0; k < polish_.curved(); ++k) {
        const Index i = add_cut(polish_.place(k), polish_.x.data());
        if (i >= 0) enforce(i);
    }
    if (!is_optimal()) return false;
    point_.swap(polish_.x);
    if (rows_hold(point_.data()) && curved_rows_hold(1.0)) return true;
    point_.swap(polish_.x);
    return false;
}

// Writes the equations: free are the basic columns, but for those that are held at a breakpoint.
void Linear::list_active() {
    polish_.clear();
    for (Index j = 0; j < n; ++j) {
        polish_.cost[j] = 0.0;
        if (place[j] < 0 || pinned_[j] || lower[j] == upper[j]) continue;
        polish_.cost[j] = slope[j];
        polish_.add_free(j);
    }
    active_codes_.clear();
    std::fill(push_.begin(), push_.end(), 0.0);
    for (Index p = 0; p < n; ++p) {
        const Index code = nonbasic[p] - n;
        if (code < 0) continue;
        if (code < m && cuts_.is_cut(code)) {
            const Sample::Row& row = sample.row[code];
            double* push = push_.data() + cuts_.owner(code) * n;
            const double price = std::max(reduced[p], 1e-12);
            for (Slot e = row.first; e < row.last; ++e) push[sample.entry[e].column] += price * sample.entry[e].coefficient;
            continue;
        }
        write_active(code);
        active_codes_.push_back(Slot(code));
    }
    for (Index c : bent_) {
        const double* push = push_.data() + c * n;
        if (!presses_[c]) continue;
        cuts_.curved.gradient(sample, c, point_.data(), tangent_);
        double both = 0.0, square = 0.0;
        for (Index j = 0; j < n; ++j) {
            both += tangent_[j] * push[j];
            square += tangent_[j] * tangent_[j];
        }
        polish_.add_curved(c, square > 0.0 ? std::max(both / square, 0.0) : 0.0);
    }
}

// Makes a row one of the equations.
void Linear::write_active(Index code) {
    const Sample::Row& row = sample.row[row_of(code)];
    const double sign = code < m ? 1.0 : -1.0;
    const Vector<double> line = polish_.add_row(sign * row.rhs);
    std::fill(line.begin(), line.end(), 0.0);
    for (Slot e = row.first; e < row.last; ++e) line[sample.entry[e].column] += sign * sample.entry[e].coefficient;
}

// Holds free columns that have crossed a breakpoint there. False where none has.
bool Linear::pin_crossing() {
    bool crossed = false;
    for (Index j = 0; j < n; ++j) {
        if (place[j] < 0 || pinned_[j]) continue;
        const double x = polish_.x[j], slack = kFeasibility * std::max(1.0, std::abs(x));
        double held = x;
        if (slope[j] != 0.0 && slope[j] * (x - kink[j]) < -slack * std::abs(slope[j])) held = kink[j];
        if (x < lower[j] - slack) held = lower[j];
        if (x > upper[j] + slack) held = upper[j];
        if (held == x) continue;
        polish_.x[j] = held;
        pinned_[j] = 1;
        crossed = true;
    }
    return crossed;
}

// Whether no multiplier has a wrong sign: of rows, curved rows, and columns that are held.
bool Linear::is_optimal() {
    double size = 0.0;
    for (Index j = 0; j < n; ++j) size = std::max(size, weight[j]);
    const double slack = kWrongMultiplier * size;
    for (Index k = 0; k < polish_.curved(); ++k)
        if (polish_.curved_multiplier(k) < 0.0) return false;
    for (Index k = 0; k < polish_.rows(); ++k) {
        const Index code = active_codes_[k];
        if (!(code < m && sample.row[code].equality) && polish_.row_multiplier(k) < -slack) return false;
    }
    for (Index j = 0; j < n; ++j) {
        if (lower[j] == upper[j]) continue;
        const double x = polish_.x[j], at = kink[j];
        const bool free = place[j] >= 0 && !pinned_[j];
        if (free) {
            if (slope[j] != 0.0 && slope[j] * (x - at) < -kFeasibility * std::max(1.0, std::abs(x)) * std::abs(slope[j])) return false;
            continue;
        }
        const double pressed = polish_.slope(j) - polish_.cost[j];
        const double up = x < at ? -weight[j] : weight[j], down = x > at ? weight[j] : -weight[j];
        if (x < upper[j] && pressed + up < -slack) return false;
        if (x > lower[j] && pressed + down > slack) return false;
    }
    return true;
}

// ---------------------------------------------------------------- the point

// Whether bounds and enforced rows that are not curved hold.
bool Linear::rows_hold(const double* z) const {
    for (Index j = 0; j < n; ++j) {
        const double tolerance = 2.0 * column_tolerance(j, z[j]);
        if (!(z[j] >= lower[j] - tolerance && z[j] <= upper[j] + tolerance)) return false;
    }
    for (Index e = 0; e < listed; ++e) {
        const Index code = enforced_[e], i = row_of(code);
        if (code < m && cuts_.is_cut(code)) continue;
        double excess = sample.excess(i, z);
        if (code >= m) excess = -excess;
        if (sample.row[i].equality) excess = std::abs(excess);
        if (!(excess <= 2.0 * sample.row[i].tolerance)) return false;
    }
    return true;
}

bool Linear::verify_curved() const { return rows_hold(point_.data()) && curved_rows_hold(2.0); }

double Linear::distance_of_point() const {
    double total = 0.0;
    for (Index j = 0; j < n; ++j)
        if (weight[j] > 0.0) total += weight[j] * std::abs(point_[j] - kink[j]);
    return total;
}

Gain Linear::look_ahead_curved(Index i) {
    const Index c = sample.rows.curves.place[i];
    if (curved_excess(i) <= sample.row[i].tolerance) return {};
    const Index cut = add_cut(c, point_.data());
    if (cut < 0) return {};
    const double excess = sample.excess(cut, value.data());
    return excess > sample.row[cut].tolerance ? look_ahead(cut, excess) : Gain();
}

}  // namespace gdpnet
