// Curved rows at a point: values, gradients, curvature, and cuts.
//
//     g(z) = a z - b + sum_k weight_k shape_k(t_k),    t = the arguments, `a z - b` of other rows,    g convex
//
// Outside the domain of a logarithm or a power g is infinite.
//
// A cut is a row that every point with g <= 0 satisfies, and z does not: shapes are replaced by their tangents. Each
// shape may be touched at a point of its own, and a tangent at z itself is seldom the deepest cut. For
//
//     weight |t|^2 <= s = b - a z      or      weight shape(t) <= s
//
// one is tried at z, one at the point with the same s on the boundary, and one between; the deepest is taken. At a
// point on the boundary all are the tangent there.
#pragma once

#include <vector>

#include "gdpnet/sample.hpp"

namespace gdpnet {

class CurvedRows {
public:
    explicit CurvedRows(const Rows& rows);

    // g of the curved row at place c, infinite outside the domain.
    static double excess(const Sample& sample, Index c, const double* z);

    // Writes the gradient of g, (n,), zero at the apex of a norm, and returns g.
    double gradient(const Sample& sample, Index c, const double* z, Vector<double> to);

    // Whether g has second derivatives at z.
    static bool smooth(const Sample& sample, Index c, const double* z);

    // Adds `factor` times the second derivatives between columns, to lines and columns `position[j] >= 0`.
    void add_curvature(const Sample& sample, Index c, const double* z, double factor, Vector<const Index> position,
                       Matrix<double> to);

    // Writes a cut of row c at z: coefficients by column, (n,), and returns its right side.
    double cut(const Sample& sample, Index c, const double* z, Vector<double> to);

private:
    using Curve = Curves::Curve;

    static double argument(const Sample& sample, Index i, const double* z) {
        return sample.excess(i, z) / sample.scale[i];
    }
    // Adds `factor` times the coefficients of a row, in the user's units.
    static void add_row(const Sample& sample, Index i, double factor, Vector<double> to);
    static double value(const Sample& sample, const Curve& curve, const double* z);
    static double linear_part(const Sample& sample, Index c, const double* z) {
        return sample.excess(sample.rows.curves.row[c], z);
    }
    double cut_of_squares(const Sample& sample, Index c, const double* z, Vector<double> to);
    double cut_of_function(const Sample& sample, Index c, const double* z, Vector<double> to);
    double cut_by_tangents(const Sample& sample, Index c, const double* z, double least, Vector<double> to);

    std::vector<double> direction_, linear_;  // (n,)
};

// Whether row i holds at z, curved or not, within `tolerance` of its size; curved ones of at least 1.
inline bool holds_within(const Sample& sample, Index i, const double* z, double tolerance) {
    if (!sample.rows.curved(i)) return sample.violation(i, z) <= tolerance * sample.size(i) * sample.scale[i];
    return CurvedRows::excess(sample, sample.rows.curves.place[i], z) <= tolerance * std::max(1.0, sample.size(i));
}

// A shape of one argument: its value and its first and second derivative, infinite or NaN outside its domain.
double shape_value(const Curves::Curve& curve, double t);
double shape_slope(const Curves::Curve& curve, double t);
double shape_curvature(const Curves::Curve& curve, double t);

}  // namespace gdpnet
