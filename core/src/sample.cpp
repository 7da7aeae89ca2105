#include "gdpnet/sample.hpp"

namespace gdpnet {

void Sample::load(Matrix<const double> varying, Vector<const double> bound) {
    for (Index v = 0; v < Index(rows.varying.size()); ++v) {
        const Index i = rows.varying[v];
        double most = 0.0;
        for (Index e = rows.start[i]; e < rows.start[i + 1]; ++e)
            most = std::max(most, std::abs(varying(v, rows.column[e])));
        const double factor = most > 0.0 ? std::ldexp(1.0, -std::ilogb(most)) : 1.0;
        scale[i] = factor;
        largest[i] = most;
        for (Index e = rows.start[i]; e < rows.start[i + 1]; ++e)
            coefficient[e] = varying(v, rows.column[e]) * factor;
    }
    for (Index i = 0; i < rows.count(); ++i) {
        rhs[i] = bound[i] * scale[i];
        tolerance[i] = kFeasibility * std::max(1.0, std::abs(rhs[i]));
    }
}

void Sample::allow_rounding(Vector<const double> yhat, double lost) {
    const Index outputs = Index(yhat.size());
    for (Index i = 0; i < rows.count(); ++i) {
        double size = 0.0;
        for (Index e = rows.start[i]; e < rows.start[i + 1]; ++e) {
            const Index j = rows.column[e];
            if (j < outputs) size += std::abs(coefficient[e] * yhat[j]);
        }
        tolerance[i] = kFeasibility * std::max(1.0, std::abs(rhs[i])) + lost * size;
    }
}

}  // namespace gdpnet
