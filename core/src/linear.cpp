// The dictionary of a node: bounds, rows that join, the stack of saved states. The steps are in simplex.cpp.
#include "gdpnet/linear.hpp"

#include <algorithm>
#include <numeric>

#include "gdpnet/twofold.hpp"

namespace gdpnet {

LinearState::LinearState(Index n) : numbers_(std::size_t(5 * n)), slots_(std::size_t(5 * n)) {
    const auto numbers = [&](Index line) { return Vector<double>(numbers_.data() + line * n, std::size_t(n)); };
    const auto slots = [&](Index line) { return Vector<Slot>(slots_.data() + line * n, std::size_t(n)); };
    lower = numbers(0);
    upper = numbers(1);
    value = numbers(2);
    reduced = numbers(3);
    slope = numbers(4);
    nonbasic = slots(0);
    basic = slots(1);
    place = slots(2);
    lower_source = slots(3);
    upper_source = slots(4);
}

void LinearState::copy(const LinearState& other) {
    std::copy(other.numbers_.begin(), other.numbers_.end(), numbers_.begin());
    std::copy(other.slots_.begin(), other.slots_.end(), slots_.begin());
    basics = other.basics;
    listed = other.listed;
}

Linear::Linear(Sample& sample)
    : LinearState(sample.rows.columns()),
      n(sample.rows.columns()),
      m(sample.rows.count()),
      sample(sample),
      kink(std::size_t(n)),
      weight(std::size_t(n)),
      tableau(n, n),
      curved(!sample.rows.curves.none()),
      enforced_(std::size_t(2 * m)),
      flag_(std::size_t(2 * m), 0),
      with_tableau_(std::max(Index(2), Index(kTableaus / (8.0 * double(std::max(n, Index(1)) * std::max(n, Index(1))))))),
      alpha_(std::size_t(n)),
      candidates_(std::size_t(n)),
      charges_(std::size_t(2 * n)),
      factor_(n, 2 * n + 1),
      cuts_(sample.rows),
      polish_(sample.rows),
      bent_(sample.rows) {
    if (!curved) return;
    for (auto* values : {&point_, &last_, &tangent_, &reach_}) values->resize(std::size_t(n));
    touching_.reserve(std::size_t(sample.rows.curves.count()));
    every_.resize(std::size_t(n));
    std::iota(every_.begin(), every_.end(), Index(0));
    spread_ = Table<double>(n, n);
    push_.resize(std::size_t(n * sample.rows.curves.count()));
    presses_.assign(std::size_t(sample.rows.curves.count()), 0);
    pinned_.assign(std::size_t(n), 0);
}

void Linear::start(Vector<const double> from, Vector<const double> to, Vector<const double> yhat,
                   Vector<const double> weights, Vector<const double> tilted) {
    for (Index e = 0; e < listed; ++e) flag_[enforced_[e]] = 0;
    basics = 0;
    listed = 0;
    age = 0;
    if (curved) {
        cuts_.begin();
        bent_.back_to(0);
    }
    for (Index j = 0; j < n; ++j) {
        const double lo = from[j], up = to[j];
        if (j < Index(yhat.size())) {
            kink[j] = yhat[j];
            weight[j] = weights[j];
            value[j] = std::min(std::max(yhat[j], lo), up);
        } else {
            kink[j] = -kInfinity;
            weight[j] = 0.0;
            double rest = std::min(std::max(0.0, lo), up);
            if (lo > -kInfinity && rest != lo && rest != up) {
                rest = -lo < up ? lo : up;
            } else if (up < kInfinity && rest != lo && rest != up) {
                rest = up;
            }
            value[j] = rest;
        }
        lower[j] = lo;
        upper[j] = up;
        reduced[j] = 0.0;
        slope[j] = 0.0;
        nonbasic[j] = Slot(j);
        place[j] = Slot(-1 - j);
        lower_source[j] = kFromBox;
        upper_source[j] = kFromBox;
    }
    tilt.assign(tilted.begin(), tilted.end());
    lean();
}

// Where a column's own tilt outweighs its distance, its cost is least at a bound. The tilts of all columns are part of
// the reduced costs from here on: what moves basic columns moves their tilts.
void Linear::lean() {
    if (tilt.empty()) return;
    for (Index j = 0; j < n; ++j) {
        reduced[j] = tilt[j];
        if (tilt[j] > weight[j]) value[j] = lower[j];
        if (tilt[j] < -weight[j]) value[j] = upper[j];
    }
}

double Linear::tilted_by(const double* z) const {
    double total = 0.0;
    for (Index j = 0; j < n; ++j) total += tilt[j] * z[j];
    return total;
}

void Linear::reset() {
    for (Index e = 0; e < listed; ++e) flag_[enforced_[e]] &= kListed;
    basics = 0;
    age = 0;
    for (Index j = 0; j < n; ++j) {
        const double lo = lower[j], up = upper[j];
        double rest = 0.0;
        if (weight[j] > 0.0) {
            rest = std::min(std::max(kink[j], lo), up);
        } else if (lo > -kInfinity) {
            rest = lo;
        } else if (up < kInfinity) {
            rest = up;
        }
        value[j] = rest;
        reduced[j] = 0.0;
        slope[j] = 0.0;
        nonbasic[j] = Slot(j);
        place[j] = Slot(-1 - j);
    }
    lean();
}

void Linear::move_nonbasic(Index position, Index j, double target) {
    const double step = target - value[j];
    value[j] = target;
    for (Index k = 0; k < basics; ++k) value[basic[k]] += tableau(k, position) * step;
}

// A bound that stems from a negated row (source >= m) is strict in effect: its boundary belongs to a sibling that
// has been explored, so a box with no inside beyond it is empty.
bool Linear::tighten(Index j, double bound, Side side, Slot source) {
    const bool is_lower = side == Side::lower;
    if (is_lower ? bound <= lower[j] : bound >= upper[j]) return true;
    const double gap = is_lower ? upper[j] - bound : bound - lower[j];
    const Slot other = is_lower ? upper_source[j] : lower_source[j];
    const double magnitude = std::max(1.0, std::abs(bound));
    if ((source >= m || other >= m) && gap <= kNoPivot * magnitude) return false;
    if (gap < 0.0) {
        const double allowed = sample.rows.integer[j] ? whole_slack(bound) : kAccepted * magnitude;
        if (gap < -allowed) return false;
        bound = is_lower ? upper[j] : lower[j];  // a contradiction within rounding
    }
    (is_lower ? lower : upper)[j] = bound;
    (is_lower ? lower_source : upper_source)[j] = source;
    if (place[j] < 0 && (is_lower ? value[j] < bound : value[j] > bound)) move_nonbasic(-1 - place[j], j, bound);
    return true;
}

bool Linear::enforce(Index code) {
    const bool negated = code >= m;
    const Index i = negated ? code - m : code;
    if (curved && sample.rows.curves.place[i] >= 0) return enforce_curved(sample.rows.curves.place[i]);
    const Sample::Row& row = sample.row[i];
    const Slot entries = row.last - row.first;
    if (entries > 1) {
        if ((flag_[code] & kListed) == 0) {
            flag_[code] |= kListed;
            enforced_[listed++] = Slot(code);
        }
        return true;
    }
    const double coefficient = entries == 1 ? sample.entry[row.first].coefficient : 0.0;
    const bool equality = row.equality;
    if (coefficient == 0.0) {
        const double excess = equality ? std::abs(row.rhs) : -row.rhs;
        return negated || excess <= row.tolerance;
    }
    const Index j = sample.entry[row.first].column;
    const double bound = row.rhs / coefficient;
    const bool upper_side = (coefficient > 0.0) != negated;
    double low = bound, high = bound;
    Slot source = Slot(code);
    if (sample.rows.integer[j]) {
        low = std::ceil(bound - whole_slack(bound));
        high = std::floor(bound + whole_slack(bound));
        if (negated) {  // the boundary itself has been explored: on to the next integer
            source = kFromSplit;
            const double above = high + 1.0;
            high = low - 1.0;
            low = above;
        }
    }
    if ((upper_side || equality) && !tighten(j, high, Side::upper, source)) return false;
    return (upper_side && !equality) || tighten(j, low, Side::lower, source);
}

void Linear::save(Index level) {
    while (level >= Index(levels_.size())) levels_.emplace_back(n);
    Level& kept = levels_[level];
    kept.state.copy(*this);
    if (curved) {
        bends_.resize(levels_.size());
        bends_[level] = {bent_.count(), cuts_.now()};
    }
    if (level >= with_tableau_) return;
    const std::size_t used = std::size_t(basics * n);
    if (kept.tableau.size() < used) kept.tableau.resize(std::max(used, std::min(2 * used, std::size_t(n * n))));
    std::copy_n(tableau.values.begin(), used, kept.tableau.begin());
}

void Linear::restore(Index level) {
    const Level& kept = levels_[level];
    for (Index p = 0; p < n; ++p)
        if (nonbasic[p] >= n) flag_[nonbasic[p] - n] &= kListed;
    for (Index e = kept.state.listed; e < listed; ++e) flag_[enforced_[e]] = 0;
    copy(kept.state);
    for (Index p = 0; p < n; ++p)
        if (nonbasic[p] >= n) flag_[nonbasic[p] - n] |= kTight;
    if (level < with_tableau_) {
        std::copy_n(kept.tableau.begin(), basics * n, tableau.values.begin());
    } else if (!refactor()) {
        reset();
    }
    if (curved) go_back(bends_[level]);
}

double Linear::dual_objective() const {
    double total = 0.0;
    for (Index j = 0; j < n; ++j) {
        if (weight[j] > 0.0) {
            const double away = value[j] - kink[j];
            total += place[j] >= 0 ? slope[j] * away : weight[j] * std::abs(away);
        }
    }
    return tilt.empty() ? total : total + tilted_by(value.data());
}

double Linear::distance() const {
    double total = 0.0;
    for (Index j = 0; j < n; ++j)
        if (weight[j] > 0.0) total += weight[j] * std::abs(value[j] - kink[j]);
    return tilt.empty() ? total : total + tilted_by(value.data());
}

bool Linear::verify() {
    for (Index k = 0; k < basics; ++k) {
        const Index j = basic[k];
        if (sample.rows.integer[j]) value[j] = std::nearbyint(value[j]);
        const double x = value[j];
        const double tolerance = 2.0 * column_tolerance(j, x);
        if (!(x >= lower[j] - tolerance && x <= upper[j] + tolerance)) return false;
    }
    for (Index e = 0; e < listed; ++e) {
        const Index code = enforced_[e];
        const Index i = row_of(code);
        double excess = sample.excess(i, value.data());
        if (code >= m) excess = -excess;
        if (sample.row[i].equality) excess = std::abs(excess);
        if (!(excess <= 2.0 * sample.row[i].tolerance)) return false;
    }
    return true;
}

bool Linear::refactor() {
    const Index r = basics, width = r + n + 1;
    age = 0;
    effort_ += long(r * width);
    Index line = 0;
    for (Index q = 0; q < n; ++q) {
        if (nonbasic[q] < n) continue;
        const Index code = nonbasic[q] - n;
        const Index i = row_of(code);
        double* work = &factor_(line, 0);
        std::fill(work, work + width, 0.0);
        double rest = sample.row[i].rhs;
        for (Slot e = sample.row[i].first; e < sample.row[i].last; ++e) {
            const Index j = sample.entry[e].column;
            const double a = sample.entry[e].coefficient;
            if (place[j] >= 0) {
                work[place[j]] += a;
            } else {
                work[r - 1 - place[j]] -= a;
                rest -= a * value[j];
            }
        }
        work[r + q] = code < m ? -1.0 : 1.0;
        work[r + n] = rest;
        ++line;
    }
    double least_pivot = kInfinity;
    for (Index k = 0; k < r; ++k) {
        Index best = k;
        for (Index c = k + 1; c < r; ++c)
            if (std::abs(factor_(c, k)) > std::abs(factor_(best, k))) best = c;
        const double pivot = std::abs(factor_(best, k));
        if (pivot < kNoPivot) return false;
        least_pivot = std::min(least_pivot, pivot);
        double* chosen = &factor_(k, 0);
        if (best != k) std::swap_ranges(chosen, chosen + width, &factor_(best, 0));
        const double inverse = 1.0 / chosen[k];
        for (Index c = k; c < width; ++c) chosen[c] *= inverse;
        for (Index other = 0; other < r; ++other) {
            double* line_of = &factor_(other, 0);
            const double factor = line_of[k];
            if (other == k || factor == 0.0) continue;
            for (Index c = k; c < width; ++c) line_of[c] -= factor * chosen[c];
            effort_ += long(width - k);
        }
    }
    std::fill(reduced.begin(), reduced.end(), 0.0);
    if (!tilt.empty())
        for (Index p = 0; p < n; ++p)
            if (nonbasic[p] < n) reduced[p] = tilt[nonbasic[p]];
    for (Index k = 0; k < r; ++k) {
        const double* work = &factor_(k, 0);
        double* built = &tableau(k, 0);
        const Index j = basic[k];
        value[j] = work[r + n];
        const double rate = tilt.empty() ? slope[j] : slope[j] + tilt[j];
        for (Index p = 0; p < n; ++p) {
            built[p] = work[r + p];
            reduced[p] += rate * built[p];
        }
    }
    if (least_pivot < kDelicatePivot && !curved) refine_values();
    return true;
}

// Basic columns to their last digits. Between nearly parallel rows what rounding leaves of these, 1e-15, is 1e-7 of a
// column, so what is left is computed at twice the precision. Steps get shorter while the tableau has any digits; what
// curves determine is not a vertex, and Newton's method looks after it.
void Linear::refine_values() {
    double* const step = alpha_.data();
    double last = kInfinity;
    for (int round = 0; round < kRefinements; ++round) {
        std::fill(step, step + basics, 0.0);
        for (Index q = 0; q < n; ++q) {
            if (nonbasic[q] < n) continue;
            const Index code = nonbasic[q] - n;
            const Sample::Row& row = sample.row[row_of(code)];
            Twofold left;
            left.add(row.rhs);
            for (Slot e = row.first; e < row.last; ++e)
                left.add_product(-sample.entry[e].coefficient, value[sample.entry[e].column]);
            const double slack = code < m ? left.value() : -left.value();
            for (Index k = 0; k < basics; ++k) step[k] -= tableau(k, q) * slack;
        }
        double longest = 0.0;
        for (Index k = 0; k < basics; ++k) longest = std::max(longest, std::abs(step[k]));
        effort_ += long(basics * n);
        if (!(longest < 0.5 * last)) return;
        for (Index k = 0; k < basics; ++k) value[basic[k]] += step[k];
        last = longest;
    }
}

}  // namespace gdpnet
