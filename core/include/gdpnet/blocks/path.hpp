// The regularised program of several blocks: an interior-point method over small copies.
//
// A block c is a disjunction with products k, and a copy of product k is
//
//     x = (p, q, lambda, a),   z = p - q,   eta = p + q,   p, q, lambda >= 0.
//
// With `|z|^2 + |eta|^2 = 2 (p^2 + q^2)` the program of a part is
//
//     minimise    w.(P + Q) + sum_ck c_k lambda + eps sum_ck (p^2 + q^2 + 1/2 lambda^2 + 1/2 a^2)
//     subject to  rows of each copy:  g.x <= 0  or  == 0,  homogeneous in (p, q, lambda, a),
//                 bounds, and eta <= (upper - lower) lambda among them
//                 sum_k x_ck = sigma = (P, Q, 1, A)  for every block
//
// where c_k is what the product costs. All blocks share sigma. Several samples are on their way at a time, one
// in each lane; one that is at the end of its central path makes room for the next. In the steps, equalities
// are rows with a small compliance, whose multipliers are iterated.
#pragma once

#include "gdpnet/blocks/newton.hpp"
#include "gdpnet/blocks/sample.hpp"

namespace gdpnet::blocks {

// Mean product of slacks and multipliers after a step of some length.
template <class V>
inline V gap_after(const Shape& shape, V length, const Work<V>& work) {
    V total = 0.0;
    Index count = 0;
    for (Index copy = 0; copy < shape.copies; ++copy) {
        for (Index j = 0; j <= 2 * shape.outputs; ++j) {
            const Index at = copy * shape.width + j;
            const V x = work.x[at] + length * work.d_x[at];
            total += x * (work.lower[at] + length * work.d_lower[at]);
            ++count;
        }
    }
    for (Index e = 0; e < shape.places; ++e) {
        if (shape.equality[shape.row[e]]) continue;
        const V slack = work.slack[e] + length * work.d_slack[e];
        total += slack * (work.multiplier[e] + length * work.d_multiplier[e]);
        ++count;
    }
    return total / double(count);
}

// Writes the mean product of slacks and multipliers.
template <class V>
inline void measure_gap(const Shape& shape, Work<V>& work) {
    V total = 0.0;
    Index count = 0;
    for (Index copy = 0; copy < shape.copies; ++copy) {
        for (Index j = 0; j <= 2 * shape.outputs; ++j) {
            total += work.x[copy * shape.width + j] * work.lower[copy * shape.width + j];
            ++count;
        }
    }
    for (Index e = 0; e < shape.places; ++e) {
        if (shape.equality[shape.row[e]]) continue;
        total += work.slack[e] * work.multiplier[e];
        ++count;
    }
    work.gap = total / double(count);
}

// Writes `sum x - sigma` of every block, and what the multipliers of the sums are short of.
template <class V>
inline void write_residuals(const Shape& shape, const Batch& batch, Work<V>& work) {
    const Index width = shape.width;
    for (Index j = 0; j < width; ++j) {
        V rest = cost<V>(shape, batch, j);
        for (Index c = 0; c < shape.blocks; ++c) {
            V total = 0.0 - work.shared[j];
            for (Index copy = shape.first_copy[c]; copy < shape.first_copy[c + 1]; ++copy)
                total += work.x[copy * width + j];
            work.d_sums[c * width + j] = total;
            rest -= work.sums[c * width + j];
        }
        work.vector[j] = rest;
    }
}

// Writes the right sides of the copies, for a step towards `aim`.
template <class V>
inline void write_right_sides(const Shape& shape, double eps, Work<V>& work) {
    const Index width = shape.width, fixed = 2 * shape.outputs;
    for (Index c = 0; c < shape.blocks; ++c) {
        for (Index copy = shape.first_copy[c]; copy < shape.first_copy[c + 1]; ++copy) {
            V* right = work.right + copy * width;
            for (Index j = 0; j < width; ++j) {
                const Index at = copy * width + j;
                V total = curvature<V>(shape, j, eps) * work.x[at] + work.sums[c * width + j];
                if (j == fixed) total += work.price[copy];
                if (j <= fixed) total += work.aim_lower[at] * work.per_x[at];
                right[j] = 0.0 - total;
            }
            for (Index e = shape.first_place[copy]; e < shape.first_place[copy + 1]; ++e) {
                const Index r = shape.row[e];
                const V multiplier = work.multiplier[e], missing = work.activity[e];
                V pull;
                if (shape.equality[r]) {
                    pull = multiplier + missing / kCompliance;
                } else {
                    const V wrong = multiplier * (missing - kRoom) - work.aim[e];
                    pull = multiplier + wrong * work.per_slack[e];
                }
                take_row(shape, work, r, pull, right);
            }
        }
    }
}

// Changes of slacks and multipliers from those of x; writes the longest step inside.
template <class V>
inline void finish_step(const Shape& shape, Work<V>& work) {
    V blocking = kInside;  // the reciprocal of the step to the boundary
    for (Index copy = 0; copy < shape.copies; ++copy) {
        for (Index j = 0; j <= 2 * shape.outputs; ++j) {
            const Index at = copy * shape.width + j;
            const V lower = work.lower[at], d_x = work.d_x[at], reciprocal = work.per_x[at];
            const V fall = lower + (work.aim_lower[at] + lower * d_x) * reciprocal;
            work.d_lower[at] = 0.0 - fall;
            blocking = most(blocking, 0.0 - d_x * reciprocal);
            blocking = most(blocking, fall * work.per_lower[at]);
        }
        for (Index e = shape.first_place[copy]; e < shape.first_place[copy + 1]; ++e) {
            const Index r = shape.row[e];
            const V activity = work.activity[e] + along(shape, work, r, work.d_x + copy * shape.width);
            if (shape.equality[r]) {
                work.d_multiplier[e] = activity / kCompliance;
                continue;
            }
            const V multiplier = work.multiplier[e], reciprocal = work.per_slack[e];
            const V d_slack = kRoom - activity - work.slack[e];
            const V fall = multiplier + (work.aim[e] + multiplier * d_slack) * reciprocal;
            work.d_slack[e] = d_slack;
            work.d_multiplier[e] = 0.0 - fall;
            blocking = most(blocking, 0.0 - d_slack * reciprocal);
            blocking = most(blocking, fall * work.per_multiplier[e]);
        }
    }
    work.length = kInside / blocking;
}

// The aim of the predictor: all products 0.
template <class V>
inline void aim_at_boundary(const Shape& shape, Work<V>& work) {
    for (Index i = 0; i < shape.copies * shape.width; ++i) work.aim_lower[i] = 0.0;
    for (Index e = 0; e < shape.places; ++e) work.aim[e] = 0.0;
}

// The aim of the corrector: products as far down as the predictor came, to second order.
template <class V>
inline void aim_at_path(const Shape& shape, Work<V>& work) {
    const V reached = gap_after(shape, work.length, work) / work.gap;
    V share = least(V(1.0), reached * reached * reached);
    // Below 0.1 the boundary is too near for a second-order step.
    share = where_less(work.length, 0.1, 0.3, share);
    const V second = where_less(work.length, 0.1, 0.0, 1.0);
    const V target = most(V(0.1 * kEnd), work.gap * share);
    for (Index copy = 0; copy < shape.copies; ++copy) {
        for (Index j = 0; j <= 2 * shape.outputs; ++j) {
            const Index at = copy * shape.width + j;
            work.aim_lower[at] = second * (work.d_x[at] * work.d_lower[at]) - target;
        }
    }
    for (Index e = 0; e < shape.places; ++e)
        if (!shape.equality[shape.row[e]]) work.aim[e] = second * (work.d_slack[e] * work.d_multiplier[e]) - target;
}

// Takes the step.
template <class V>
inline void move(const Shape& shape, Work<V>& work) {
    const Index width = shape.width;
    const V length = work.length;
    work.missing = work.missing * (1.0 - length);
    for (Index copy = 0; copy < shape.copies; ++copy) {
        for (Index j = 0; j < width; ++j) {
            const Index at = copy * width + j;
            work.x[at] += length * work.d_x[at];
            if (j <= 2 * shape.outputs) work.lower[at] += length * work.d_lower[at];
        }
    }
    for (Index e = 0; e < shape.places; ++e) {
        work.multiplier[e] += length * work.d_multiplier[e];
        if (!shape.equality[shape.row[e]]) work.slack[e] += length * work.d_slack[e];
    }
    for (Index j = 0; j < width; ++j) work.shared[j] += length * work.d_shared[j];
    for (Index i = 0; i < shape.blocks * width; ++i) work.sums[i] += length * work.d_sums[i];
}

// A step along the central path in every lane: a predictor, and from it the corrector.
template <class V>
inline void step(const Shape& shape, const Batch& batch, Work<V>& work) {
    factor_all(shape, batch.eps, kAnyStiffness, work);
    for (Index copy = 0; copy < shape.copies; ++copy)
        for (Index e = shape.first_place[copy]; e < shape.first_place[copy + 1]; ++e)
            work.activity[e] = along(shape, work, shape.row[e], work.x + copy * shape.width);
    for (int corrected = 0; corrected < 2; ++corrected) {
        if (corrected)
            aim_at_path(shape, work);
        else
            aim_at_boundary(shape, work);
        write_residuals(shape, batch, work);
        write_right_sides(shape, batch.eps, work);
        solve_all(shape, work);
        finish_step(shape, work);
    }
    move(shape, work);
    for (int lane = 0; lane < V::kLanes; ++lane) ++work.rounds[lane];
}

// Writes y of the sample in a lane, which is at the end of its path.
template <class V>
inline void write_point(const Shape& shape, const Batch& batch, const Work<V>& work, int lane, Index s, Points points) {
    const Index d = shape.outputs;
    for (Index j = 0; j < d; ++j) {
        const Index at = s * batch.outputs + shape.columns[j];
        points.y[at] = batch.yhat[at] + (work.shared[j].get(lane) - work.shared[d + j].get(lane));
    }
}

// Solves samples first .. last - 1 of a call.
template <class V>
void solve(const Shape& shape, const Batch& batch, Index first, Index last, Points points, double* memory, Stop stop) {
    Work<V> work;
    lay_out(shape, reinterpret_cast<V*>(memory), work);
    Index running = last - first < V::kLanes ? last - first : V::kLanes;
    Index waiting = first + running;
    if (running <= 0) return;
    for (int lane = 0; lane < V::kLanes; ++lane) {  // lanes to spare begin as a sample that is there
        const bool own = lane < running;
        begin(shape, batch, own ? first + lane : last - 1, work, lane);
        work.sample[lane] = own ? first + lane : -1;
    }
    while (!stop.asked(stop.context)) {
        measure_gap(shape, work);
        bool begun = false;
        for (int lane = 0; lane < V::kLanes; ++lane) {
            const Index k = work.sample[lane];
            const double gap = work.gap.get(lane);
            const bool there = gap <= kEnd && work.missing.get(lane) <= kResidual;
            const bool lost = !(gap < kInfinity) || work.rounds[lane] >= kRounds;
            if (k < 0 || (!there && !lost)) continue;
            keep(shape, batch, k, work, lane);
            if (there)
                write_point(shape, batch, work, lane, batch.samples[k], points);
            else
                points.solved[batch.samples[k]] = false;
            work.sample[lane] = -1;
            if (waiting < last) {
                begin(shape, batch, waiting, work, lane);
                work.sample[lane] = waiting++;
                begun = true;
            } else {
                --running;
            }
        }
        if (running == 0) return;
        if (begun) measure_gap(shape, work);
        step(shape, batch, work);
    }
}

}  // namespace gdpnet::blocks
