#include "gdpnet/euclidean_node.hpp"

#include "gdpnet/tolerances.hpp"

namespace gdpnet {

namespace {

double power_of_two_near(double value) { return std::ldexp(1.0, int(std::nearbyint(std::log2(value)))); }

}  // namespace

EuclideanNode::EuclideanNode(Sample& sample)
    : QuadraticNode(sample.rows),
      sample_(sample),
      cuts_(sample.rows),
      polish_(sample.rows),
      bent_(sample.rows),
      push_(sample.rows.curves.row.size() * sample.rows.lower.size()),
      tangent_(sample.rows.lower.size()),
      polished_(sample.rows.lower.size()),
      presses_(sample.rows.curves.row.size(), 0),
      yhat_(sample.rows.outputs),
      weight_(sample.rows.outputs),
      violation_(sample.rows.equality.size()) {
    q.price = 0.0;
    q.rounding = kTermRounding;
    std::fill(q.kinked.begin(), q.kinked.end(), std::uint8_t(0));
}

bool EuclideanNode::begin(Vector<const double> yhat, Vector<const double> weights) {
    std::copy(yhat.begin(), yhat.end(), yhat_.begin());
    std::copy(weights.begin(), weights.end(), weight_.begin());
    for (Index i : rows.varying)
        for (Index e = q.start[i]; e < q.start[i + 1]; ++e) units.coefficient[e] = sample_.entry[e].coefficient;
    for (Index i = 0; i < q.m; ++i) units.rhs[i] = sample_.row[i].rhs;
    cuts_.begin();
    go_back(Bends::Mark());
    farthest_ = farthest();
    std::fill(polished_.begin(), polished_.end(), std::numeric_limits<double>::quiet_NaN());
    choose_units();
    units.convert_rows(q);
    touch();
    q.enforce_only(0);
    units.lower = rows.lower;
    units.upper = rows.upper;
    units.convert_bounds(q);
    bool possible = true;
    for (Index i : rows.global_rows) possible = possible && enforce(i);
    q.restart_in_box();
    return possible;
}

// Origins, units, curvatures and centres.
void EuclideanNode::choose_units() {
    auxiliaries_ = false;
    for (Index j = 0; j < q.n; ++j) {
        const bool output = j < rows.outputs;
        const bool cost = output && weight_[j] > 0.0;
        const bool near = output && std::abs(yhat_[j]) <= kLargePrediction;
        units.origin[j] = near ? yhat_[j] : std::min(std::max(0.0, rows.lower[j]), rows.upper[j]);
        units.unit[j] = cost ? 1.0 / weight_[j] : 1.0;
        q.costly[j] = cost;
        q.curvature[j] = cost ? 1.0 : kCentreCurvature;
        if (!cost) auxiliaries_ = true;
    }
    if (auxiliaries_) choose_auxiliary_units();
    for (Index j = 0; j < q.n; ++j) q.centre[j] = j < rows.outputs ? (yhat_[j] - units.origin[j]) / units.unit[j] : 0.0;
}

// Units of columns without cost: by the largest coefficient that they have beside outputs; of those that stand beside
// none, beside others whose unit is known. Rows with one entry are bounds and say nothing.
void EuclideanNode::choose_auxiliary_units() {
    std::vector<double>& known = q.x;  // free until the program starts: 1 where a unit is known
    std::vector<double>& largest = q.side;
    for (Index j = 0; j < q.n; ++j) known[j] = q.costly[j];
    for (bool changed = true; changed;) {
        changed = false;
        std::fill(largest.begin(), largest.end(), 0.0);
        for (Index i = 0; i < rows.given(); ++i) {  // cuts are those of the sample before
            double size = 0.0;
            for (Index e = q.start[i]; e < q.start[i + 1]; ++e)
                if (known[q.column[e]] > 0.0)
                    size = std::max(size, std::abs(units.coefficient[e]) * units.unit[q.column[e]]);
            if (!(size > 0.0)) continue;
            for (Index e = q.start[i]; e < q.start[i + 1]; ++e)
                largest[q.column[e]] = std::max(largest[q.column[e]], std::abs(units.coefficient[e]) / size);
        }
        for (Index j = 0; j < q.n; ++j) {
            if (known[j] > 0.0 || !(largest[j] > 0.0)) continue;
            units.unit[j] = power_of_two_near(1.0 / largest[j]);
            known[j] = 1.0;
            changed = true;
        }
    }
}

bool EuclideanNode::enforce(Index code) {
    if (rows.curved(q.row_of(code))) {
        enforce_curved(rows.curves.place[code]);
        return true;
    }
    const Index i = q.row_of(code), first = q.start[i], entries = q.start[i + 1] - first;
    if (entries > 1) return QuadraticNode::enforce(code);
    const bool negated = code >= q.m, equality = q.equality[i];
    const double coefficient = entries == 1 ? sample_.entry[first].coefficient : 0.0;
    if (coefficient == 0.0) {
        const double over = equality ? std::abs(sample_.row[i].rhs) : -sample_.row[i].rhs;
        return negated || over <= sample_.row[i].tolerance;
    }
    const Index j = q.column[first];
    const double bound = sample_.row[i].rhs / coefficient;
    const bool upper_side = (coefficient > 0.0) != negated;
    double low = bound, high = bound;
    bool boundary = negated;  // whether the boundary itself has been explored
    if (rows.integer[j]) {
        low = std::ceil(bound - whole_slack(bound));
        high = std::floor(bound + whole_slack(bound));
        if (negated) {  // on to the next integer
            boundary = false;
            const double above = high + 1.0;
            high = low - 1.0;
            low = above;
        }
    }
    if ((upper_side || equality) && !tighten(j, high, false, boundary)) return false;
    return (upper_side && !equality) || tighten(j, low, true, boundary);
}

// Raises the lower bound of column j, or drops the upper one. False if the box empties.
bool EuclideanNode::tighten(Index j, double bound, bool is_lower, bool negated) {
    if (is_lower ? bound <= units.lower[j] : bound >= units.upper[j]) return true;
    const double gap = is_lower ? units.upper[j] - bound : bound - units.lower[j];
    const double magnitude = std::max(1.0, std::abs(bound));
    if (negated && gap <= kNoPivot * magnitude) return false;
    if (gap < 0.0) {
        const double allowed = rows.integer[j] ? whole_slack(bound) : kAccepted * magnitude;
        if (gap < -allowed) return false;
        bound = is_lower ? units.upper[j] : units.lower[j];  // a contradiction within rounding
    }
    touch();
    (is_lower ? units.lower : units.upper)[j] = bound;
    (is_lower ? q.lower : q.upper)[j] = (bound - units.origin[j]) / units.unit[j];
    return true;
}

// Whether centres hold nothing back, up to rounding.
bool EuclideanNode::settled(double share) const {
    double size = kLeastMultiplier, far = 1.0;
    for (Index k = 0; k < q.active_count; ++k) size = std::max(size, std::abs(q.multiplier[k]));
    for (Index j = 0; j < q.n; ++j)
        if (!q.costly[j]) far = std::max(far, std::abs(q.x[j]));
    return q.pull() <= share * size + kTermRounding * kCentreCurvature * far;
}

Outcome EuclideanNode::solve(double cutoff) {
    double curvature = kCentreCurvature;
    const Outcome outcome = solve(cutoff, curvature);
    // Settled centres hold nothing back, whatever their curvature.
    if (curvature != kCentreCurvature) q.set_centre_curvature(kCentreCurvature);
    return outcome;
}

Outcome EuclideanNode::solve(double cutoff, double& curvature) {
    bool restarted = false;
    double last = 0.0;  // squared way of the last move of the centres, 0 where there is none to compare with
    for (int round = 0; round < kCentres; ++round) {
        const Outcome outcome = minimise(cutoff);
        if (outcome == Outcome::trouble && !restarted) {
            restarted = true;
            last = 0.0;
            q.restart_in_box();
            continue;
        }
        if (outcome != Outcome::optimal || !auxiliaries_ || settled(kSettledPull)) return outcome;
        if (round % kCentresOfOneCurvature == kCentresOfOneCurvature - 1) {
            // Slow centres are let loose: that costs digits on the way, not in the end.
            if (settled(kNearlySettledPull)) return outcome;
            curvature *= kLooser;
            q.set_centre_curvature(curvature);
            q.recentre(0.0);
            q.restart_in_box();
            last = 0.0;
            continue;
        }
        // Centres that move by a constant share of the way are taken to where that leads.
        double way = 0.0;
        for (Index j = 0; j < q.n; ++j)
            if (!q.costly[j]) way += (q.x[j] - q.centre[j]) * (q.x[j] - q.centre[j]);
        const double share = last > 0.0 ? std::sqrt(way / last) : 0.0;
        const bool jump = share > kSlowCentres && share < 1.0;
        last = jump ? 0.0 : way;
        if (!q.recentre(jump ? share / (1.0 - share) : 0.0)) q.restart_in_box();
    }
    return Outcome::trouble;
}

void EuclideanNode::read_point(bool exactly) {
    if (exactly) rows.curves.none() ? q.refine() : refine_curved();
    units.read_point(q);
    for (Index j = 0; j < rows.outputs; ++j)  // minus zero becomes zero
        units.z[j] = q.state[j] == Quadratic::Column::free && q.x[j] == q.centre[j] ? yhat_[j] : units.z[j] + 0.0;
    std::fill(violation_.begin(), violation_.end(), std::numeric_limits<double>::quiet_NaN());
}

double EuclideanNode::value() const {
    double total = 0.0;
    for (Index j = 0; j < rows.outputs; ++j) {
        const double away = weight_[j] * (units.z[j] - yhat_[j]);
        total += away * away;
    }
    return 0.5 * total;
}

Gain EuclideanNode::look_ahead(Vector<const Index> listed, double) const {
    Gain found;
    for (Index i : listed) {
        const Gain ahead = look_ahead_row(i);
        if (ahead.gain > found.gain) found = ahead;
    }
    return found;
}

Gain EuclideanNode::look_ahead_row(Index i) const {
    Gain found;
    if (row_holds(i)) return found;
    if (rows.curved(i)) return look_ahead_curved(i);
    double over = q.excess(i);
    const double sign = over < 0.0 ? -1.0 : 1.0;  // negative only matters for equalities
    if (q.equality[i]) over = std::abs(over);
    if (!(over > q.forgiven[i])) return found;
    Push push{over};
    for (Index e = q.start[i]; e < q.start[i + 1]; ++e) add_push(push, q.column[e], sign * q.coefficient[e]);
    return push.gain(over, q.forgiven[i]);
}

bool EuclideanNode::verify() const {
    for (Index e = 0; e < q.enforced_count; ++e) {
        const Index code = q.enforced[e], i = q.row_of(code);
        const double over = sample_.excess(i, units.z.data());
        if (!((code >= q.m ? -over : q.equality[i] ? std::abs(over) : over) <= 2.0 * sample_.row[i].tolerance)) return false;
    }
    return curved_rows_hold(2.0);
}

bool EuclideanNode::whole() const {
    for (Index j = 0; j < q.n; ++j)
        if (rows.integer[j] && units.z[j] != std::nearbyint(units.z[j])) return false;
    return true;
}

void EuclideanNode::fix_whole() {
    touch();
    for (Index j = 0; j < q.n; ++j)
        if (rows.integer[j]) units.lower[j] = units.upper[j] = std::nearbyint(units.z[j]);
    units.convert_bounds(q);
    q.restart_in_box();
}

Index EuclideanNode::unfixed() const {
    for (Index j = 0; j < q.n; ++j)
        if (rows.integer[j] && units.lower[j] < units.upper[j]) return j;
    return -1;
}

}  // namespace gdpnet
