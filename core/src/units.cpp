#include "gdpnet/units.hpp"

#include <algorithm>
#include <cmath>

#include "gdpnet/tolerances.hpp"

namespace gdpnet {

Units::Units(const Rows& rows) : coefficient(rows.coefficient), rhs(rows.equality.size()) {
    for (auto* values : {&origin, &unit, &lower, &upper, &z}) values->resize(rows.lower.size());
}

void Units::load(Quadratic& q, const Rows& rows, Matrix<const double> varying, Vector<const double> bound,
                 Vector<const double> yhat, Vector<const double> weights, Vector<const double> auxiliaries,
                 double distance) {
    load_rows(q, rows, varying, bound);
    for (Index j = 0; j < q.n; ++j) {
        const bool output = j < rows.outputs;
        origin[j] = output ? yhat[j] : auxiliaries[j];
        unit[j] = output ? distance / weights[j] : distance;
    }
    convert_rows(q);
}

void Units::load_rows(const Quadratic& q, const Rows& rows, Matrix<const double> varying, Vector<const double> bound) {
    for (Index i = 0; i < q.m; ++i) rhs[i] = bound[i] * rows.scale[i];
    for (Index v = 0; v < Index(rows.varying.size()); ++v) {
        const Index i = rows.varying[v];
        double largest = 0.0;
        for (Index e = q.start[i]; e < q.start[i + 1]; ++e)
            largest = std::max(largest, std::abs(varying(v, q.column[e])));
        const double factor = scale_of(largest);
        for (Index e = q.start[i]; e < q.start[i + 1]; ++e) coefficient[e] = varying(v, q.column[e]) * factor;
        rhs[i] = bound[i] * factor;
    }
}

void Units::convert_rows(Quadratic& q) const {
    for (Index i = 0; i < q.m; ++i) convert_row(q, i);
}

void Units::convert_row(Quadratic& q, Index i) const {
    double largest = 0.0, size = std::max(1.0, std::abs(rhs[i])), right = rhs[i];
    for (Index e = q.start[i]; e < q.start[i + 1]; ++e) {
        const Index j = q.column[e];
        q.coefficient[e] = coefficient[e] * unit[j];
        const double shift = coefficient[e] * origin[j];
        largest = std::max(largest, std::abs(q.coefficient[e]));
        size = std::max(size, std::abs(shift));
        right -= shift;
    }
    const double factor = largest > 0.0 ? 1.0 / largest : 1.0;
    for (Index e = q.start[i]; e < q.start[i + 1]; ++e) q.coefficient[e] *= factor;
    q.rhs[i] = right * factor;
    q.tolerance[i] = std::max(1e-13, 1e-12 * size * factor);
    q.forgiven[i] = std::max(1e-11, kFeasibility * size * factor);
}

void Units::convert_bounds(Quadratic& q) const {
    for (Index j = 0; j < q.n; ++j) {
        q.lower[j] = (lower[j] - origin[j]) / unit[j];
        q.upper[j] = (upper[j] - origin[j]) / unit[j];
    }
}

void Units::read_point(const Quadratic& q) {
    for (Index j = 0; j < q.n; ++j) {
        switch (q.state[j]) {
            case Quadratic::Column::kink: z[j] = origin[j]; break;
            case Quadratic::Column::lower: z[j] = lower[j]; break;
            case Quadratic::Column::upper: z[j] = upper[j]; break;
            case Quadratic::Column::free: z[j] = std::min(std::max(origin[j] + unit[j] * q.x[j], lower[j]), upper[j]);
        }
    }
}

double Units::excess(const Quadratic& q, Index i) const {
    double total = -rhs[i];
    for (Index e = q.start[i]; e < q.start[i + 1]; ++e) total += coefficient[e] * z[q.column[e]];
    return q.equality[i] ? std::abs(total) : total;
}

bool Units::row_holds(const Quadratic& q, Index i) const {
    return excess(q, i) <= kFeasibility * std::max(1.0, std::abs(rhs[i]));
}

bool Units::enforced_rows_hold(const Quadratic& q) const {
    for (Index e = 0; e < q.enforced_count; ++e) {
        const Index code = q.enforced[e], i = q.row_of(code);
        const double over = code < q.m ? excess(q, i) : -excess(q, i);
        if (!(over <= 2.0 * kFeasibility * std::max(1.0, std::abs(rhs[i])))) return false;
    }
    return true;
}

}  // namespace gdpnet
