#include "gdpnet/tape.hpp"

#include <algorithm>
#include <cmath>

namespace gdpnet {

namespace {

// Fills the registers for one sample. Every result is torch's, to the last bit and for NaN.
void run(const std::vector<Line>& lines, const double* x, double* value) {
    for (std::size_t r = 0; r < lines.size(); ++r) {
        const Line& line = lines[r];
        if (line.operation == Operation::input) {
            value[r] = x[line.first];
            continue;
        }
        if (line.operation == Operation::number) {
            value[r] = line.constant;
            continue;
        }
        const double a = value[line.first], b = value[line.second];
        switch (line.operation) {
            case Operation::sum: value[r] = a + b; break;
            case Operation::product: value[r] = a * b; break;
            case Operation::divide: value[r] = a / b; break;
            case Operation::max: value[r] = a > b || std::isnan(a) ? a : b; break;
            case Operation::min: value[r] = a < b || std::isnan(a) ? a : b; break;
            case Operation::abs: value[r] = std::abs(a); break;
            case Operation::choose: value[r] = a != 0.0 ? b : value[line.third]; break;
            case Operation::less_equal: value[r] = a <= b ? 1.0 : 0.0; break;
            case Operation::less: value[r] = a < b ? 1.0 : 0.0; break;
            case Operation::equal: value[r] = a == b ? 1.0 : 0.0; break;
            case Operation::and_: value[r] = a * b; break;
            case Operation::or_: value[r] = std::max(a, b); break;
            default: value[r] = 1.0 - a; break;  // not
        }
    }
}

}  // namespace

bool Tape::instantiate(Matrix<const double> x, Matrix<bool> active, Matrix<double> right, Tensor<double> coefficients,
                       Matrix<double> prices) const {
    std::vector<double> value(lines.size());
    double total = 0.0;  // of zeros, or NaN
    for (Index s = 0; s < x.lines; ++s) {
        run(lines, x[s].data(), value.data());
        for (Index c = 0; c < clauses(); ++c) {
            bool holds = true;
            for (Index e = clause_start[c]; e < clause_start[c + 1]; ++e) holds = holds && value[clause_register[e]] != 0.0;
            active(s, c) = holds;
        }
        double* b = right[s].data();
        std::copy(bound.begin(), bound.end(), b);
        for (const Term& term : bound_terms) {
            b[term.to] += term.multiplier * value[term.from];
            total += 0.0 * b[term.to];
        }
        double* a = coefficients[s].data;
        std::copy(varying.values.begin(), varying.values.end(), a);
        for (const Term& term : varying_terms) {
            a[term.to] += term.multiplier * value[term.from];
            total += 0.0 * a[term.to];
        }
        if (price.empty()) continue;
        double* c = prices[s].data();
        std::copy(price.begin(), price.end(), c);
        for (const Term& term : price_terms) c[term.to] += term.multiplier * value[term.from];
        for (std::size_t k = 0; k < price.size(); ++k) total += c[k] >= 0.0 ? 0.0 * c[k] : 1.0;
    }
    return total == 0.0;
}

}  // namespace gdpnet
