#include "gdpnet/judge.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gdpnet {

namespace {

// The nearest of a clause's booleans.
double least(const std::vector<double>& value, const Lists& booleans, Index c) {
    double found = std::numeric_limits<double>::infinity();
    for (Index e = booleans.start[c]; e < booleans.start[c + 1]; ++e) found = std::min(found, value[booleans.entry[e]]);
    return found;
}

}  // namespace

void Judge::operator()(const Judged& judged) const {
    std::vector<double> residual(place.size()), value(std::size_t(boolean_rows.count()));
    for (Index q = 0; q < Index(judged.samples.size()); ++q) {
        const Index s = judged.samples[q];
        measure(judged, s, residual, value);
        for (Index k = 0; k < boolean_rows.count(); ++k) judged.assignment(s, k) = value[k] <= judged.tolerance;
        bool good = inside(judged.y[s], judged.tolerance);
        for (Index r = 0; r < rule_booleans.count(); ++r) {
            const double broken = judged.rule_active(s, r) ? least(value, rule_booleans, r) : 0.0;
            judged.violation(s, r) = broken;
            good = good && broken <= judged.tolerance;
        }
        for (Index i : global_rows) good = good && residual[i] <= judged.tolerance;
        judged.holds[q] = good;
    }
}

// How far each row is from holding, relative to its size, and each boolean, the clauses nested in it included.
void Judge::measure(const Judged& judged, Index s, std::vector<double>& residual, std::vector<double>& value) const {
    const Vector<const double> y = judged.y[s];
    for (Index i = 0; i < Index(place.size()); ++i) {
        double total = 0.0, size = largest[i];
        if (place[i] >= 0) {
            size = 1.0;
            const Vector<const double> row = judged.varying[s][place[i]];
            for (std::size_t j = 0; j < y.size(); ++j) {
                total += row[j] * y[j];
                size = std::max(size, std::abs(row[j]));
            }
        } else {
            const double* row = shared.values.data() + i * shared.width;
            for (std::size_t j = 0; j < y.size(); ++j) total += row[j] * y[j];
        }
        const double bound = judged.bound(s, i);
        const double excess = equality[i] ? std::abs(total - bound) : std::max(total - bound, 0.0);
        residual[i] = excess / std::max(size, std::abs(bound));
    }
    for (Index k = 0; k < boolean_rows.count(); ++k) {
        value[k] = 0.0;
        for (Index e = boolean_rows.start[k]; e < boolean_rows.start[k + 1]; ++e)
            value[k] = std::max(value[k], residual[boolean_rows.entry[e]]);
    }
    for (Index c = 0; c < Index(nested_clause.size()); ++c) {
        if (!judged.active(s, nested_clause[c])) continue;
        double& guard = value[nested_guard[c]];
        guard = std::max(guard, least(value, nested_booleans, c));
    }
}

bool Judge::inside(Vector<const double> y, double tolerance) const {
    for (std::size_t j = 0; j < y.size(); ++j) {
        if (!(lower[j] - y[j] <= tolerance * std::max(1.0, std::abs(lower[j])))) return false;
        if (!(y[j] - upper[j] <= tolerance * std::max(1.0, std::abs(upper[j])))) return false;
        if (integer[j] && !(std::abs(y[j] - std::nearbyint(y[j])) <= tolerance)) return false;
    }
    return true;
}

}  // namespace gdpnet
