#include "gdpnet/euclidean_node.hpp"

#include "gdpnet/sample.hpp"
#include "gdpnet/tolerances.hpp"

namespace gdpnet {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double power_of_two_near(double value) { return std::ldexp(1.0, int(std::nearbyint(std::log2(value)))); }

}  // namespace

EuclideanNode::EuclideanNode(const Rows& rows) : QuadraticNode(rows), yhat_(rows.outputs), weight_(rows.outputs) {
    q.price = 0.0;
    q.rounding = kTermRounding;
    std::fill(q.kinked.begin(), q.kinked.end(), std::uint8_t(0));
}

void EuclideanNode::begin(const Given& given) {
    std::copy(given.yhat.begin(), given.yhat.end(), yhat_.begin());
    std::copy(given.weights.begin(), given.weights.end(), weight_.begin());
    units.load_rows(q, rows, given.varying, given.bound);
    choose_units(given);
    units.convert_rows(q);
    QuadraticNode::begin();
    q.restart_in_box();
}

// Origins, units, curvatures and centres.
void EuclideanNode::choose_units(const Given& given) {
    auxiliaries_ = false;
    for (Index j = 0; j < q.n; ++j) {
        const bool output = j < rows.outputs;
        const bool cost = output && given.weights[j] > 0.0;
        const double at = output ? given.yhat[j] : 0.0;
        const bool near = output && std::abs(at) <= kLargePrediction;
        units.origin[j] = near ? at : std::min(std::max(0.0, rows.lower[j]), rows.upper[j]);
        units.unit[j] = cost ? 1.0 / given.weights[j] : 1.0;
        q.costly[j] = cost;
        q.curvature[j] = cost ? 1.0 : kCentreCurvature;
        if (!cost) auxiliaries_ = true;
    }
    if (auxiliaries_) {
        // Twice, since auxiliaries may stand in rows with nothing but auxiliaries.
        for (int round = 0; round < 2; ++round) {
            for (Index j = 0; j < q.n; ++j)
                if (!q.costly[j]) q.x[j] = 0.0;
            for (Index i = 0; i < q.m; ++i) {
                double outputs = 0.0, others = 0.0;
                for (Index e = q.start[i]; e < q.start[i + 1]; ++e) {
                    const Index j = q.column[e];
                    double& largest = q.costly[j] ? outputs : others;
                    largest = std::max(largest, std::abs(units.coefficient[e]) * units.unit[j]);
                }
                const double size = outputs > 0.0 ? outputs : others;
                if (!(size > 0.0)) continue;
                for (Index e = q.start[i]; e < q.start[i + 1]; ++e) {
                    const Index j = q.column[e];
                    if (!q.costly[j]) q.x[j] = std::max(q.x[j], std::abs(units.coefficient[e]) / size);
                }
            }
            for (Index j = 0; j < q.n; ++j)
                if (!q.costly[j] && q.x[j] > 0.0) units.unit[j] = power_of_two_near(1.0 / q.x[j]);
        }
    }
    for (Index j = 0; j < q.n; ++j) q.centre[j] = j < rows.outputs ? (given.yhat[j] - units.origin[j]) / units.unit[j] : 0.0;
}

bool EuclideanNode::settled() const {
    double size = kLeastMultiplier;
    for (Index k = 0; k < q.active_count; ++k) size = std::max(size, std::abs(q.multiplier[k]));
    return q.pull() <= kSettledPull * size;
}

Outcome EuclideanNode::solve(double cutoff) {
    int restarts = 0;
    for (int round = 0; round < kCentres; ++round) {
        const Outcome outcome = q.minimise(cutoff);
        if (outcome == Outcome::trouble && restarts++ == 0) {
            q.restart_in_box();
            continue;
        }
        if (outcome != Outcome::optimal || !auxiliaries_ || settled()) return outcome;
        if (!q.recentre()) q.restart_in_box();
    }
    return Outcome::trouble;
}

void EuclideanNode::settle_point() {
    q.refine();
    units.read_point(q);
    for (Index j = 0; j < rows.outputs; ++j)  // minus zero becomes zero
        units.z[j] = q.state[j] == Quadratic::Column::free && q.x[j] == q.centre[j] ? yhat_[j] : units.z[j] + 0.0;
}

double EuclideanNode::value() const {
    double total = 0.0;
    for (Index j = 0; j < rows.outputs; ++j) {
        const double away = weight_[j] * (units.z[j] - yhat_[j]);
        total += away * away;
    }
    return 0.5 * total;
}

Gain EuclideanNode::look_ahead(Index i) const {
    Gain found;
    double over = q.excess(i);
    const double sign = over < 0.0 ? -1.0 : 1.0;  // negative only matters for equalities
    if (q.equality[i]) over = std::abs(over);
    if (!(over > q.forgiven[i])) return found;
    double square = 0.0;
    for (Index e = q.start[i]; e < q.start[i + 1]; ++e) {
        const Index j = q.column[e];
        const double a = sign * q.coefficient[e];
        if (a == 0.0) continue;
        const double room = a > 0.0 ? q.x[j] - q.lower[j] : q.upper[j] - q.x[j];
        if (!(room > 0.0)) continue;
        if (q.costly[j]) {
            square += a * a;
            found.up |= std::uint64_t(1) << (j & 63);
        } else {
            over -= std::abs(a) * room;
        }
    }
    found.down = found.up;
    if (!(over > q.forgiven[i])) return Gain();
    found.gain = square > 0.0 ? 0.5 * over * over / square : kInfinity;
    return found;
}

bool EuclideanNode::fix_whole() {
    bool changed = false;
    for (Index j = 0; j < q.n; ++j) {
        if (!rows.integer[j]) continue;
        const double whole = std::nearbyint(units.z[j]);
        if (units.z[j] == whole) continue;
        units.lower[j] = units.upper[j] = whole;
        changed = true;
    }
    if (changed) {
        units.convert_bounds(q);
        q.restart_in_box();
    }
    return changed;
}

}  // namespace gdpnet
