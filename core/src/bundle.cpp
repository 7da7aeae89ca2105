#include "gdpnet/bundle.hpp"

#include <algorithm>
#include <cmath>

namespace gdpnet {

double Bundle::propose(std::vector<double>& multipliers) const {
    const Index coupling = Index(centre.size()), n = parts + coupling;
    Rows rows;
    rows.outputs = parts;
    rows.lower.assign(std::size_t(n), -kInfinity);
    rows.upper.assign(std::size_t(n), kInfinity);
    rows.integer.assign(std::size_t(n), 0);
    std::vector<double> tilt(std::size_t(n), 0.0), kink(std::size_t(parts), kInfinity), weight(std::size_t(parts), 1.0);
    for (Index i = 0; i < coupling; ++i) {
        rows.lower[parts + i] = free[i] ? centre[i] - reach : std::max(centre[i] - reach, 0.0);
        rows.upper[parts + i] = centre[i] + reach;
        tilt[parts + i] = right[i];
    }
    rows.start.push_back(0);
    std::vector<double> rhs;
    for (const Cut& cut : cuts) {
        double largest = 1.0, most = cut.constant;
        for (Index i = 0; i < coupling; ++i) {
            largest = std::max(largest, std::abs(cut.rate[i]));
            most += cut.rate[i] * (cut.rate[i] > 0.0 ? rows.upper : rows.lower)[parts + i];
        }
        kink[cut.part] = std::min(kink[cut.part], most);
        const double scale = scale_of(largest);
        rows.column.push_back(cut.part);
        rows.coefficient.push_back(scale);
        for (Index i = 0; i < coupling; ++i) {
            if (cut.rate[i] == 0.0) continue;
            rows.column.push_back(parts + i);
            rows.coefficient.push_back(-scale * cut.rate[i]);
        }
        rows.start.push_back(Index(rows.column.size()));
        rows.largest.push_back(largest);
        rows.scale.push_back(scale);
        rows.equality.push_back(0);
        rows.place.push_back(-1);
        rhs.push_back(scale * cut.constant);
    }
    for (Index p = 0; p < parts; ++p) {
        if (!(kink[p] < kInfinity)) return -kInfinity;  // a part without a point
        rows.upper[p] = kink[p];
    }
    Sample sample(rows);
    for (std::size_t i = 0; i < rhs.size(); ++i) {
        sample.row[i].rhs = rhs[i];
        sample.row[i].tolerance = kFeasibility * std::max(1.0, std::abs(rhs[i]));
    }
    Linear linear(sample);
    linear.start(rows.lower, rows.upper, kink, weight, tilt);
    for (Index i = 0; i < rows.count(); ++i)
        if (!linear.enforce(i)) return -kInfinity;
    if (linear.solve(kInfinity) != Outcome::optimal) return -kInfinity;
    double expected = 0.0;
    for (Index p = 0; p < parts; ++p) expected += linear.value[p];
    for (Index i = 0; i < coupling; ++i) {
        double u = linear.value[parts + i];
        if (!free[i]) u = std::max(u, 0.0);
        multipliers[i] = u;
        expected -= u * right[i];
    }
    return expected;
}

}  // namespace gdpnet
