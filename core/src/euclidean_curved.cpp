// Curved rows at a node of the Euclidean search: cuts, and Newton's method on what is active.
#include <algorithm>
#include <cmath>
#include <limits>

#include "gdpnet/euclidean_node.hpp"
#include "gdpnet/tolerances.hpp"

namespace gdpnet {

// ---------------------------------------------------------------- which are enforced

void EuclideanNode::enforce_curved(Index c) {
    if (!bent_.add(c)) return;
    touch();
    enforce_cuts(c);
}

// What has been learned about a row elsewhere.
void EuclideanNode::enforce_cuts(Index c) {
    for (Index i = cuts_.first(c); i < cuts_.last(c); ++i) q.enforce(i);
}

void EuclideanNode::save(Index level) {
    QuadraticNode::save(level);
    if (rows.curves.none()) return;
    if (level >= Index(bends_.size())) bends_.resize(std::size_t(level) + 1);
    bends_[level] = {bent_.count(), cuts_.now()};
}

void EuclideanNode::restore(Index level) {
    QuadraticNode::restore(level);
    if (!rows.curves.none()) go_back(bends_[level]);
}

void EuclideanNode::keep_aside() {
    QuadraticNode::keep_aside();
    bend_aside_ = {bent_.count(), cuts_.now()};
}

void EuclideanNode::take_back() {
    QuadraticNode::take_back();
    if (!rows.curves.none()) go_back(bend_aside_);
}

void EuclideanNode::go_back(const Bends::Mark& kept) {
    bent_.back_to(kept.count);
    bool stale = false;
    for (Index k = 0; k < q.active_count && kept.count > 0; ++k) {
        const Index code = q.active[k];
        stale = stale || (code < q.m && cuts_.is_cut(code) && cuts_.written_since(code, kept.then));
    }
    for (Index c : bent_) enforce_cuts(c);
    if (stale) q.restart_in_box();
}

// Whether the enforced curved rows hold at z, within a share of their tolerance.
bool EuclideanNode::curved_rows_hold(double share) const {
    for (Index c : bent_) {
        if (!(cuts_.curved.excess(sample_, c, units.z.data()) <= share * sample_.row[rows.curves.row[c]].tolerance)) return false;
    }
    return true;
}

// ---------------------------------------------------------------- cuts

// Adds a cut of curved row c at z and returns its row, -1 where there is no room.
Index EuclideanNode::add_cut(Index c, const double* z) {
    const Index i = cuts_.add(sample_, c, z, [this](Index k) { return (q.mark[k] & Quadratic::kActive) != 0; });
    if (i < 0) return -1;
    touch();
    for (Index e = q.start[i]; e < q.start[i + 1]; ++e) units.coefficient[e] = sample_.entry[e].coefficient;
    units.rhs[i] = sample_.row[i].rhs;
    units.convert_row(q, i);
    q.tolerance[i] *= kFinerCut;
    q.enforce(i);
    return i;
}

// Which curved rows have active cuts.
void EuclideanNode::note_active_cuts() {
    std::fill(presses_.begin(), presses_.end(), std::uint8_t(0));
    for (Index k = 0; k < q.active_count; ++k)
        if (q.active[k] < q.m && cuts_.is_cut(q.active[k])) presses_[cuts_.owner(q.active[k])] = 1;
}

bool EuclideanNode::has_active_cuts() const {
    return std::find(presses_.begin(), presses_.end(), std::uint8_t(1)) != presses_.end();
}

// Cuts the enforced rows at z that do not hold there, those with active cuts or the others. False if nothing came of it.
bool EuclideanNode::add_cuts(bool active) {
    bool deeper = false;
    for (Index c : bent_) {
        if (presses_[c] != active) continue;
        if (cuts_.curved.excess(sample_, c, units.z.data()) <= kFineCut * sample_.row[rows.curves.row[c]].tolerance) continue;
        const Index i = add_cut(c, units.z.data());
        deeper = deeper || (i >= 0 && q.excess(i) > q.tolerance[i]);
    }
    return deeper;
}

// What no point of the box costs, by a margin. Where sets are nearly apart, multipliers go to infinity instead of
// contradicting each other; a bound beyond this is a proof all the same.
double EuclideanNode::farthest() const {
    double total = 1.0;
    for (Index j = 0; j < rows.outputs; ++j) {
        if (!(weight_[j] > 0.0)) continue;
        const double far = weight_[j] * std::max(std::abs(rows.lower[j] - yhat_[j]), std::abs(rows.upper[j] - yhat_[j]));
        total += far * far;
    }
    return total;
}

// Whether rows that the program found infeasible are. Cuts of a set without an interior are nearly parallel, so that
// points far along them may be on the right side of all; what bounds do not exclude is left open.
bool EuclideanNode::contradicts() {
    note_active_cuts();
    return q.contradiction > kAccepted || !has_active_cuts();
}

Outcome EuclideanNode::minimise_curved(double cutoff) {
    const Index rounds = kCutRounds + kCutRoundsOfColumn * q.n;
    bool cut = false;
    for (Index round = 0; round < rounds; ++round) {
        const double least = std::min(cutoff, farthest_);
        Outcome outcome = q.minimise(least);
        if (outcome == Outcome::infeasible && !contradicts()) return Outcome::trouble;
        // Steps between cuts that are nearly parallel leave rows behind: what is missed there counts so many times.
        if (outcome == Outcome::cutoff && !(q.bound_value() + q.missed() >= least * (1.0 - kSameDistance))) return Outcome::trouble;
        if (outcome == Outcome::cutoff && q.bound_value() >= farthest_) outcome = Outcome::infeasible;
        if (outcome != Outcome::optimal) return outcome;
        units.read_point(q);
        note_active_cuts();
        if (cut && units.z == last_) break;  // what is left is rounding
        last_ = units.z;
        cut = false;
        // Rows that nothing speaks for yet come first: before that it is not known what is active.
        if ((cut = add_cuts(false))) continue;
        const bool fine = curved_rows_hold(kFineCut);
        const bool settled = has_active_cuts() ? still_there() : true;
        if (fine && settled) return Outcome::optimal;
        if (!settled && polish()) continue;
        if (fine) return Outcome::optimal;
        if (!(cut = add_cuts(true))) break;
    }
    return curved_rows_hold(1.0) ? Outcome::optimal : Outcome::trouble;
}

// Whether the program's point is where Newton's method had put it.
bool EuclideanNode::still_there() const {
    for (Index j = 0; j < q.n; ++j)
        if (!(std::abs(q.x[j] - polished_[j]) <= kSamePolished * std::max(1.0, std::abs(q.x[j])))) return false;
    return true;
}

// ---------------------------------------------------------------- Newton's method

// Solves for what is active and takes the tangents there in place of the cuts. False where that does not work out;
// what was learned on the way is kept as cuts.
bool EuclideanNode::polish() {
    list_active();
    q.effort += 20 * q.n * q.n;
    if (!polish_.run(sample_, cuts_.curved)) return false;
    if (signs_are_right()) return install();
    return false;
}

// Writes the equations: free columns, active rows, and the curved rows whose cuts are active.
void EuclideanNode::list_active() {
    const Index n = q.n;
    polish_.clear();
    polish_.x = q.x;
    polish_.curvature = q.curvature;
    polish_.centre = q.centre;
    polish_.origin = units.origin;
    polish_.unit = units.unit;
    for (Index j = 0; j < n; ++j)
        if (q.state[j] == Quadratic::Column::free) polish_.add_free(j);
    kept_rows_.clear();
    std::fill(push_.begin(), push_.end(), 0.0);
    for (Index k = 0; k < q.active_count; ++k) {
        const Index code = q.active[k];
        const Vector<const double> row = q.active_row(k);
        if (code < q.m && cuts_.is_cut(code)) {
            double* push = push_.data() + cuts_.owner(code) * n;
            for (Index j = 0; j < n; ++j) push[j] += q.multiplier[k] * row[j];
        } else {
            std::copy(row.begin(), row.end(), polish_.add_row(q.active_right(k)).begin());
            kept_rows_.emplace_back(code, q.orientation[k]);
        }
    }
    for (Index c : bent_) {
        const double* push = push_.data() + c * n;
        if (std::all_of(push, push + n, [](double value) { return value == 0.0; })) continue;
        // The multiplier by which the row presses about as much.
        cuts_.curved.gradient(sample_, c, units.z.data(), tangent_);
        double both = 0.0, square = 0.0;
        for (Index j = 0; j < n; ++j) {
            const double slope = tangent_[j] * units.unit[j];
            both += slope * push[j];
            square += slope * slope;
        }
        polish_.add_curved(c, square > 0.0 ? std::max(both / square, 0.0) : 0.0);
    }
}

// Of the multipliers of rows, curved rows, and columns on a bound.
bool EuclideanNode::signs_are_right() {
    double size = 0.0;
    for (Index k = 0; k < polish_.curved(); ++k)
        for (double value : polish_.gradient(k)) size = std::max(size, std::abs(polish_.curved_multiplier(k) * value));
    for (Index k = 0; k < polish_.rows(); ++k) size = std::max(size, std::abs(polish_.row_multiplier(k)));
    const double slack = kWrongMultiplier * size;
    for (Index k = 0; k < polish_.curved(); ++k)
        if (polish_.curved_multiplier(k) < 0.0) return false;
    for (Index k = 0; k < polish_.rows(); ++k) {
        const Index code = kept_rows_[k].first;
        if (!(code < q.m && q.equality[code]) && polish_.row_multiplier(k) < -slack) return false;
    }
    for (Index j = 0; j < q.n; ++j) {
        if (q.state[j] == Quadratic::Column::free || q.lower[j] == q.upper[j]) continue;
        const double slope = polish_.slope(j);
        if (q.state[j] == Quadratic::Column::lower ? slope < -slack : slope > slack) return false;
    }
    return true;
}

// The tangents of the curved rows become active in place of their cuts, with multipliers that press the same.
bool EuclideanNode::install() {
    double value = 0.0;
    for (Index j = 0; j < q.n; ++j)
        if (q.costly[j]) value += 0.5 * q.curvature[j] * (polish_.x[j] - q.centre[j]) * (polish_.x[j] - q.centre[j]);
    if (!(value >= q.bound_value() * (1.0 - kSameDistance) - kSameDistanceFloor)) return false;
    q.release();
    q.x = polished_ = polish_.x;
    for (Index k = 0; k < polish_.rows(); ++k) {
        const auto [code, orientation] = kept_rows_[k];
        const double multiplier = polish_.row_multiplier(k);
        q.activate(code, orientation, code < q.m && q.equality[code] ? multiplier : std::max(multiplier, 0.0));
    }
    for (Index k = 0; k < polish_.curved(); ++k) {
        const Index i = add_cut(polish_.place(k), polish_.point().data());
        if (i < 0) return false;
        const Vector<double> slope = polish_.gradient(k);
        double both = 0.0, square = 0.0;
        q.activate(i, 1.0, 0.0);
        const Vector<const double> row = q.active_row(q.active_count - 1);
        for (Index j = 0; j < q.n; ++j) {
            both += row[j] * slope[j];
            square += row[j] * row[j];
        }
        q.multiplier[q.active_count - 1] = polish_.curved_multiplier(k) * both / square;
    }
    return true;
}

// Computes the point afresh, unless digits are lost by that: multipliers of a far prediction are large, and Newton's
// method needs none of them.
void EuclideanNode::refine_curved() {
    last_ = q.x;
    q.refine();
    units.read_point(q);
    if (!curved_rows_hold(kFineCut)) q.x = last_;
}

// ---------------------------------------------------------------- looking ahead

// As for a row, of the cut at z.
Gain EuclideanNode::look_ahead_curved(Index i) const {
    std::vector<double>& slope = cuts_.scratch();
    const double right = cuts_.curved.cut(sample_, rows.curves.place[i], units.z.data(), slope);
    double needed = -right, largest = 0.0;
    for (Index j = 0; j < q.n; ++j) {
        needed += slope[j] * units.z[j];
        slope[j] *= units.unit[j];
        largest = std::max(largest, std::abs(slope[j]));
    }
    const double forgiven = kAccepted * std::max(1.0, std::abs(right)) / std::max(largest, 1e-300);
    needed /= std::max(largest, 1e-300);
    Push push{needed};
    for (Index j = 0; j < q.n; ++j) {
        const double a = slope[j] / std::max(largest, 1e-300);
        slope[j] = 0.0;
        add_push(push, j, a);
    }
    return push.gain(needed, forgiven);
}

}  // namespace gdpnet
