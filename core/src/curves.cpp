#include "gdpnet/curves.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gdpnet {

namespace {

bool is_even(double exponent) { return exponent > 0.0 && std::fmod(exponent, 2.0) == 0.0; }

// Where the domain ends at 0.
bool from_zero(const Curves::Curve& curve) {
    return curve.shape == Shape::log || (curve.shape == Shape::power && !is_even(curve.exponent));
}

// Whether 0 itself belongs to it.
bool has_zero(const Curves::Curve& curve) { return curve.shape == Shape::power && curve.exponent > 0.0; }

// Whether it also has a slope there, 0.
bool flat_at_zero(const Curves::Curve& curve) { return has_zero(curve) && curve.exponent > 1.0; }

// At the end of a domain, within what is accepted as 0, where a shape is flat.
bool at_flat_end(const Curves::Curve& curve, double t) {
    return t <= 0.0 && t >= -kAccepted && flat_at_zero(curve) && from_zero(curve);
}

// The argument at which a shape of one argument has a value; NaN where there is none.
double argument_of(const Curves::Curve& curve, double value) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    switch (curve.shape) {
        case Shape::exp: return value > 0.0 ? std::log(value) : none;
        case Shape::log: return std::exp(-value);
        case Shape::power:
            if (curve.exponent > 0.0 && curve.exponent < 1.0)
                return value < 0.0 ? std::pow(-value, 1.0 / curve.exponent) : none;
            return value > 0.0 ? std::pow(value, 1.0 / curve.exponent) : none;
        default: return none;
    }
}

double dot(Vector<const double> one, Vector<const double> other) {
    double total = 0.0;
    for (std::size_t j = 0; j < one.size(); ++j) total += one[j] * other[j];
    return total;
}

}  // namespace

double shape_value(const Curves::Curve& curve, double t) {
    const double p = curve.exponent;
    if (from_zero(curve)) {
        if (has_zero(curve)) {
            if (t < -kAccepted) return kInfinity;
            t = std::max(t, 0.0);
        } else if (!(t > 0.0)) {
            return kInfinity;
        }
    }
    switch (curve.shape) {
        case Shape::squares: return t * t;
        case Shape::norm: return std::abs(t);
        case Shape::exp: return std::exp(t);
        case Shape::log: return -std::log(t);
        case Shape::power: return p > 0.0 && p < 1.0 ? -std::pow(t, p) : std::pow(t, p);
    }
    return kInfinity;
}

double shape_slope(const Curves::Curve& curve, double t) {
    const double p = curve.exponent;
    if (at_flat_end(curve, t)) return 0.0;
    switch (curve.shape) {
        case Shape::squares: return 2.0 * t;
        case Shape::norm: return t > 0.0 ? 1.0 : t < 0.0 ? -1.0 : 0.0;
        case Shape::exp: return std::exp(t);
        case Shape::log: return -1.0 / t;
        case Shape::power: return p > 0.0 && p < 1.0 ? -p * std::pow(t, p - 1.0) : p * std::pow(t, p - 1.0);
    }
    return 0.0;
}

double shape_curvature(const Curves::Curve& curve, double t) {
    const double p = curve.exponent;
    if (at_flat_end(curve, t)) return 0.0;  // the end of the domain holds the argument
    switch (curve.shape) {
        case Shape::squares: return 2.0;
        case Shape::norm: return 0.0;
        case Shape::exp: return std::exp(t);
        case Shape::log: return 1.0 / (t * t);
        case Shape::power: return (p > 0.0 && p < 1.0 ? -1.0 : 1.0) * p * (p - 1.0) * std::pow(t, p - 2.0);
    }
    return 0.0;
}

CurvedRows::CurvedRows(const Rows& rows)
    : direction_(rows.lower.size()), linear_(rows.lower.size()) {}

void CurvedRows::add_row(const Sample& sample, Index i, double factor, Vector<double> to) {
    const double unscaled = factor / sample.scale[i];
    for (Slot e = sample.row[i].first; e < sample.row[i].last; ++e)
        to[sample.entry[e].column] += unscaled * sample.entry[e].coefficient;
}

double CurvedRows::value(const Sample& sample, const Curve& curve, const double* z) {
    if (curve.shape != Shape::squares && curve.shape != Shape::norm)
        return shape_value(curve, argument(sample, sample.rows.curves.argument[curve.first], z));
    double total = 0.0;
    for (Index a = curve.first; a < curve.last; ++a) {
        const double t = argument(sample, sample.rows.curves.argument[a], z);
        total += t * t;
    }
    return curve.shape == Shape::norm ? std::sqrt(total) : total;
}

double CurvedRows::excess(const Sample& sample, Index c, const double* z) {
    double total = linear_part(sample, c, z);
    for (Index k = sample.rows.curves.start[c]; k < sample.rows.curves.start[c + 1]; ++k)
        total += sample.rows.curves.curve[k].weight * value(sample, sample.rows.curves.curve[k], z);
    return total;
}

double CurvedRows::gradient(const Sample& sample, Index c, const double* z, Vector<double> to) {
    std::fill(to.begin(), to.end(), 0.0);
    add_row(sample, sample.rows.curves.row[c], 1.0, to);
    double total = linear_part(sample, c, z);
    for (Index k = sample.rows.curves.start[c]; k < sample.rows.curves.start[c + 1]; ++k) {
        const Curve& curve = sample.rows.curves.curve[k];
        const double found = value(sample, curve, z);
        total += curve.weight * found;
        for (Index a = curve.first; a < curve.last; ++a) {
            const double t = argument(sample, sample.rows.curves.argument[a], z);
            double slope = curve.shape == Shape::norm ? (found > 0.0 ? t / found : 0.0) : shape_slope(curve, t);
            add_row(sample, sample.rows.curves.argument[a], curve.weight * slope, to);
        }
    }
    return total;
}

bool CurvedRows::smooth(const Sample& sample, Index c, const double* z) {
    for (Index k = sample.rows.curves.start[c]; k < sample.rows.curves.start[c + 1]; ++k) {
        const Curve& curve = sample.rows.curves.curve[k];
        if (curve.shape == Shape::norm) {
            double size = 0.0;  // of what the arguments are made of
            for (Index a = curve.first; a < curve.last; ++a) {
                const Index i = sample.rows.curves.argument[a];
                size = std::max(size, std::abs(sample.row[i].rhs) / sample.scale[i]);
            }
            if (!(value(sample, curve, z) > kApex * std::max(1.0, size))) return false;
        } else if (curve.shape != Shape::squares) {
            const double t = argument(sample, sample.rows.curves.argument[curve.first], z);
            if (!std::isfinite(shape_slope(curve, t)) || !std::isfinite(shape_curvature(curve, t))) return false;
            if (from_zero(curve) && !(t > 0.0)) return false;
        }
    }
    return true;
}

void CurvedRows::add_curvature(const Sample& sample, Index c, const double* z, double factor, Vector<const Index> position,
                               Matrix<double> to) {
    const auto add_square = [&](Index i, double weight) {
        const double unscaled = weight / (sample.scale[i] * sample.scale[i]);
        for (Slot e = sample.row[i].first; e < sample.row[i].last; ++e) {
            const Index line = position[sample.entry[e].column];
            if (line < 0) continue;
            const double share = unscaled * sample.entry[e].coefficient;
            for (Slot f = sample.row[i].first; f < sample.row[i].last; ++f) {
                const Index across = position[sample.entry[f].column];
                if (across >= 0) to(line, across) += share * sample.entry[f].coefficient;
            }
        }
    };
    for (Index k = sample.rows.curves.start[c]; k < sample.rows.curves.start[c + 1]; ++k) {
        const Curve& curve = sample.rows.curves.curve[k];
        if (curve.shape == Shape::squares) {
            for (Index a = curve.first; a < curve.last; ++a) add_square(sample.rows.curves.argument[a], 2.0 * factor * curve.weight);
        } else if (curve.shape != Shape::norm) {
            const Index i = sample.rows.curves.argument[curve.first];
            add_square(i, factor * curve.weight * shape_curvature(curve, argument(sample, i, z)));
        } else {
            const double length = value(sample, curve, z);
            if (!(length > 0.0)) continue;
            std::fill(direction_.begin(), direction_.end(), 0.0);
            for (Index a = curve.first; a < curve.last; ++a) {
                const Index i = sample.rows.curves.argument[a];
                add_square(i, factor * curve.weight / length);
                add_row(sample, i, argument(sample, i, z) / length, direction_);
            }
            for (std::size_t j = 0; j < direction_.size(); ++j) {
                if (position[j] < 0 || direction_[j] == 0.0) continue;
                const double share = factor * curve.weight / length * direction_[j];
                for (std::size_t l = 0; l < direction_.size(); ++l)
                    if (position[l] >= 0) to(position[j], position[l]) -= share * direction_[l];
            }
        }
    }
}

// ---------------------------------------------------------------- cuts

double CurvedRows::cut(const Sample& sample, Index c, const double* z, Vector<double> to) {
    std::fill(to.begin(), to.end(), 0.0);
    if (sample.rows.curves.start[c + 1] - sample.rows.curves.start[c] == 1) {
        const Shape shape = sample.rows.curves.curve[sample.rows.curves.start[c]].shape;
        if (shape == Shape::squares) return cut_of_squares(sample, c, z, to);
        if (shape != Shape::norm) return cut_of_function(sample, c, z, to);
    }
    // Shapes that end at 0 are touched inside their domain, as near to its end as it takes.
    double right = 0.0;
    for (double least = 1e-2; least > kLeastArgument; least *= 1e-4) {
        std::fill(to.begin(), to.end(), 0.0);
        right = cut_by_tangents(sample, c, z, least, to);
        double total = 0.0;
        for (std::size_t j = 0; j < to.size(); ++j) total += to[j] * z[j];
        if (total > right) break;
    }
    return right;
}

// For every r > 0 and unit vector u, `2 r sqrt(weight) u t <= s + r^2`; r^2 is what s and weight |t|^2 are where it is a
// tangent.
double CurvedRows::cut_of_squares(const Sample& sample, Index c, const double* z, Vector<double> to) {
    const Curve& curve = sample.rows.curves.curve[sample.rows.curves.start[c]];
    const double root = std::sqrt(curve.weight), room = -linear_part(sample, c, z);
    const double length = std::sqrt(value(sample, curve, z));
    std::fill(linear_.begin(), linear_.end(), 0.0);
    add_row(sample, sample.rows.curves.row[c], 1.0, linear_);
    std::fill(direction_.begin(), direction_.end(), 0.0);
    double shift = 0.0;  // u t = direction z - shift
    for (Index a = curve.first; a < curve.last && length > 0.0; ++a) {
        const Index i = sample.rows.curves.argument[a];
        const double u = argument(sample, i, z) / length;
        add_row(sample, i, u, direction_);
        shift += u * (sample.row[i].rhs / sample.scale[i]);
    }
    const double across = dot(direction_, direction_), both = dot(direction_, linear_), along = dot(linear_, linear_);
    const double here = root * length;
    double best = here, deepest = -kInfinity;
    const auto consider = [&](double r) {
        const double size = 4.0 * r * r * curve.weight * across + 4.0 * r * root * both + along;
        const double depth = (2.0 * r * here - room - r * r) / std::sqrt(std::max(size, 1e-300));
        if (depth > deepest) deepest = depth, best = r;
    };
    if (along == 0.0) {
        // s is a number: the tangent of the norm, which is right for s = 0, too.
        if (length == 0.0) return room;  // 0 <= s
        std::copy(direction_.begin(), direction_.end(), to.begin());
        return std::sqrt(std::max(room, 0.0)) / root + shift;
    }
    consider(here);
    if (room > 0.0 && here > 0.0) {
        consider(std::sqrt(room));
        consider(0.5 * (std::sqrt(room) + here));
    }
    for (std::size_t j = 0; j < to.size(); ++j) to[j] = 2.0 * best * root * direction_[j] + linear_[j];
    return sample.row[sample.rows.curves.row[c]].rhs + best * best + 2.0 * best * root * shift;
}

double CurvedRows::cut_of_function(const Sample& sample, Index c, const double* z, Vector<double> to) {
    const Curve& curve = sample.rows.curves.curve[sample.rows.curves.start[c]];
    const Index i = sample.rows.curves.argument[curve.first];
    const double t = argument(sample, i, z), room = -linear_part(sample, c, z);
    const double boundary = argument_of(curve, room / curve.weight);
    add_row(sample, sample.rows.curves.row[c], 1.0, to);
    std::fill(direction_.begin(), direction_.end(), 0.0);
    add_row(sample, i, 1.0, direction_);
    const double across = dot(direction_, direction_), both = dot(direction_, to), along = dot(to, to);
    double best = std::numeric_limits<double>::quiet_NaN(), deepest = -kInfinity;
    const auto consider = [&](double at) {
        const double f = shape_value(curve, at), slope = shape_slope(curve, at);
        if (!std::isfinite(f) || !std::isfinite(slope) || (from_zero(curve) && !(at > 0.0) && !at_flat_end(curve, at))) return;
        const double rate = curve.weight * slope;
        const double size = rate * rate * across + 2.0 * rate * both + along;
        const double depth = (curve.weight * f + rate * (t - at) - room) / std::sqrt(std::max(size, 1e-300));
        if (depth > deepest) deepest = depth, best = at;
    };
    consider(t);
    if (std::isfinite(boundary)) {
        consider(boundary);
        consider(0.5 * (boundary + t));
        if (t <= 0.0 && is_even(curve.exponent) && curve.shape == Shape::power) {
            consider(-boundary);
            consider(0.5 * (t - boundary));
        }
    }
    if (!(deepest > 0.0) && from_zero(curve) && !(t > 0.0)) {
        if (flat_at_zero(curve)) {  // nothing but the end of the domain
            for (std::size_t j = 0; j < to.size(); ++j) to[j] = -direction_[j];
            return -sample.row[i].rhs / sample.scale[i];
        }
        for (double at = 1e-2; !(deepest > 0.0) && at > kLeastArgument; at *= 1e-4) consider(at);
    }
    if (std::isnan(best)) return kInfinity;
    const double rate = curve.weight * shape_slope(curve, best);
    for (std::size_t j = 0; j < to.size(); ++j) to[j] += rate * direction_[j];
    const double shift = sample.row[i].rhs / sample.scale[i];
    return sample.row[sample.rows.curves.row[c]].rhs - curve.weight * shape_value(curve, best) + rate * (best + shift);
}

double CurvedRows::cut_by_tangents(const Sample& sample, Index c, const double* z, double least, Vector<double> to) {
    add_row(sample, sample.rows.curves.row[c], 1.0, to);
    double right = sample.row[sample.rows.curves.row[c]].rhs;
    for (Index k = sample.rows.curves.start[c]; k < sample.rows.curves.start[c + 1]; ++k) {
        const Curve& curve = sample.rows.curves.curve[k];
        double f = value(sample, curve, z);
        for (Index a = curve.first; a < curve.last; ++a) {
            const Index i = sample.rows.curves.argument[a];
            double t = argument(sample, i, z), slope;
            if (curve.shape == Shape::norm) {
                slope = f > 0.0 ? t / f : 0.0;
            } else {
                if (from_zero(curve) && !(t > 0.0)) {
                    if (has_zero(curve) && curve.exponent >= 1.0) {
                        if (t < -kAccepted) {  // the end of the domain is all there is to say
                            std::fill(to.begin(), to.end(), 0.0);
                            add_row(sample, i, -1.0, to);
                            return -sample.row[i].rhs / sample.scale[i];
                        }
                        t = 0.0;
                    } else {
                        t = least;
                    }
                    f = shape_value(curve, t);
                }
                if (curve.shape == Shape::exp) f = std::exp(t = std::min(t, 200.0));
                slope = shape_slope(curve, t);
            }
            const double rate = curve.weight * slope;
            add_row(sample, i, rate, to);
            right += rate * (t + sample.row[i].rhs / sample.scale[i]);
        }
        right -= curve.weight * (curve.shape == Shape::squares ? value(sample, curve, z) : f);
    }
    return right;
}

}  // namespace gdpnet
