// One sample: its rows, and a lane's point in and out.
#pragma once

#include <cmath>

#include "gdpnet/blocks/work.hpp"

namespace gdpnet::blocks {

// Of a row of the rules, for a sample with these coefficients.
template <class V>
inline double coefficient(const Shape& shape, const Batch& batch, const double* varying, Index r, Index j) {
    const Index v = shape.varying[r];
    const Index columns = shape.outputs + shape.auxiliaries;
    return v < 0 ? shape.shared[r * columns + j] : varying[v * batch.columns + shape.columns[j]];
}

// A row of the table before scaling: of the rules, of a bound, or the range of an eta.
template <class V>
inline void write_row(const Shape& shape, const Batch& batch, Index s, Index r, V* row, int lane) {
    const Index d = shape.outputs, n = d + shape.auxiliaries, m = shape.rules;
    const double* yhat = batch.yhat + s * batch.outputs;
    if (r < m) {
        const double* varying = batch.varying + s * batch.varying_lines * batch.columns;
        double rest = batch.bound[s * batch.bounds + shape.source[r]];
        for (Index j = 0; j < n; ++j) {
            const double a = coefficient<V>(shape, batch, varying, r, j);
            if (j < d) {
                row[j].set(lane, a);
                row[d + j].set(lane, -a);
                rest -= a * yhat[shape.columns[j]];
            } else {
                row[d + 1 + j].set(lane, a);
            }
        }
        row[2 * d].set(lane, -rest);
    } else if (r < m + 2 * n) {
        const Index j = (r - m) / 2;
        const bool above = (r - m) % 2 == 0;
        const double sign = above ? 1.0 : -1.0;
        double side = above ? shape.upper[j] : shape.lower[j];
        if (j < d) {
            row[j].set(lane, sign);
            row[d + j].set(lane, -sign);
            side -= yhat[shape.columns[j]];
        } else {
            row[d + 1 + j].set(lane, sign);
        }
        row[2 * d].set(lane, -sign * side);
    } else {
        const Index j = r - m - 2 * n;
        row[j].set(lane, 1.0);
        row[d + j].set(lane, 1.0);
        row[2 * d].set(lane, shape.lower[j] - shape.upper[j]);
    }
}

// Rows of a sample over (p, q, lambda, a), scaled to a largest coefficient of 1.
template <class V>
inline void write_table(const Shape& shape, const Batch& batch, Index s, Work<V>& work, int lane) {
    for (Index r = 0; r < shape.lines; ++r) {
        V* row = work.table + r * shape.width;
        for (Index j = 0; j < shape.width; ++j) row[j].set(lane, 0.0);
        write_row(shape, batch, s, r, row, lane);
        double largest = 0.0;
        for (Index j = 0; j < shape.width; ++j) {
            const double size = std::fabs(row[j].get(lane));
            if (size > largest) largest = size;
        }
        const bool usable = largest > 0.0 && largest < kInfinity;
        const double unit = usable ? 1.0 / largest : 1.0;
        work.unit[r].set(lane, unit);
        for (Index j = 0; j < shape.width; ++j) row[j].set(lane, row[j].get(lane) * unit);
    }
}

// The slope of the objective: weights of p and q, 0 of the others.
template <class V>
inline double cost(const Shape& shape, const Batch& batch, Index j) {
    return j < 2 * shape.outputs ? batch.weights[shape.columns[j % shape.outputs]] : 0.0;
}

// What the products of sample k of a call cost. The weights of a block add up to 1, so what all cost is left out.
template <class V>
inline void write_prices(const Shape& shape, const Batch& batch, Index k, Work<V>& work, int lane) {
    for (Index c = 0; c < shape.blocks; ++c) {
        double cheapest = kInfinity;
        const auto price = [&](Index copy) { return batch.price == nullptr ? 0.0 : batch.price[k * shape.copies + copy]; };
        for (Index copy = shape.first_copy[c]; copy < shape.first_copy[c + 1]; ++copy)
            if (price(copy) < cheapest) cheapest = price(copy);
        for (Index copy = shape.first_copy[c]; copy < shape.first_copy[c + 1]; ++copy)
            work.price[copy].set(lane, price(copy) - cheapest);
    }
}

// The table of sample k of a call, and a point inside.
template <class V>
inline void begin(const Shape& shape, const Batch& batch, Index k, Work<V>& work, int lane) {
    write_table(shape, batch, batch.samples[k], work, lane);
    write_prices(shape, batch, k, work, lane);
    const Index width = shape.width, fixed = 2 * shape.outputs;
    const double blocks = double(shape.blocks);
    for (Index j = 0; j < width; ++j) work.shared[j].set(lane, j < fixed ? 0.1 : 0.0);
    work.shared[fixed].set(lane, 1.0);
    for (Index c = 0; c < shape.blocks; ++c) {
        const double count = double(shape.first_copy[c + 1] - shape.first_copy[c]);
        for (Index j = 0; j < width; ++j) work.sums[c * width + j].set(lane, cost<V>(shape, batch, j) / blocks);
        for (Index copy = shape.first_copy[c]; copy < shape.first_copy[c + 1]; ++copy) {
            V* x = work.x + copy * width;
            for (Index j = 0; j < width; ++j) {
                const double slope = j == fixed ? work.price[copy].get(lane) : cost<V>(shape, batch, j) / blocks;
                x[j].set(lane, work.shared[j].get(lane) / count);
                work.lower[copy * width + j].set(lane, j > fixed ? 0.0 : slope > 0.1 ? slope : 0.1);
            }
            for (Index e = shape.first_place[copy]; e < shape.first_place[copy + 1]; ++e) {
                const Index r = shape.row[e];
                double activity = 0.0;
                for (Index a = shape.start[r]; a < shape.start[r + 1]; ++a)
                    activity += work.table[r * width + shape.entry[a]].get(lane) * x[shape.entry[a]].get(lane);
                work.slack[e].set(lane, 0.1 > -activity ? 0.1 : -activity);
                work.multiplier[e].set(lane, shape.equality[r] ? 0.0 : 0.1);
            }
        }
    }
    work.missing.set(lane, 1.0);
    work.rounds[lane] = 0;
}

// Calls `visit(number of the path, vector of the memory)` for all that stays of sample k.
template <class V, class Visit>
inline void each_of_path(const Shape& shape, const Batch& batch, Index k, Work<V>& work, Visit visit) {
    const Index copies = shape.copies * shape.width;
    double* line = batch.path + k * 2 * (copies + shape.places);
    for (Index i = 0; i < copies; ++i) visit(line[i], work.x[i]);
    line += copies;
    for (Index i = 0; i < copies; ++i) visit(line[i], work.lower[i]);
    line += copies;
    for (Index e = 0; e < shape.places; ++e) visit(line[e], work.slack[e]);
    line += shape.places;
    for (Index e = 0; e < shape.places; ++e) visit(line[e], work.multiplier[e]);
}

// Writes the point of a lane, which stays.
template <class V>
inline void keep(const Shape& shape, const Batch& batch, Index k, Work<V>& work, int lane) {
    each_of_path(shape, batch, k, work, [lane](double& number, V& lanes) { number = lanes.get(lane); });
}

// Reads such a point back.
template <class V>
inline void restore(const Shape& shape, const Batch& batch, Index k, Work<V>& work, int lane) {
    each_of_path(shape, batch, k, work, [lane](double& number, V& lanes) { lanes.set(lane, number); });
}

}  // namespace gdpnet::blocks
