// The derivative of the regularised program of several blocks.
//
// It is that of the equations that hold at the end of the central path: those of the rows and signs
// whose multipliers are large beside their slacks. They are held by a moderate stiffness and by
// multipliers that are iterated until nothing gives way, as in an augmented Lagrangian: an enormous
// stiffness in all copies of a block loses what they share in rounding, and dependent rows do no harm
// this way. The multipliers that the steps end with may be wrong for the same reason, though the point
// is right: those of the point are found first, in the same way. On a kink, where slack and multiplier
// are equally small, the derivative is a mean of those beside it, and it is finite always. Copies
// without weight take no part in it.
#pragma once

#include "gdpnet/blocks/newton.hpp"
#include "gdpnet/blocks/sample.hpp"

namespace gdpnet::blocks {

// How an iteration went.
template <class V>
struct Hold {
    V least;    // below which no change is worth measuring against
    V going;    // 0 for lanes that are done
    V given;    // how far what is tight gives way
    V largest;  // the largest change, its measure
};

// Writes what is tight, and by how much rows and signs hold; and lists the rows that do. Most rows and
// whole copies hold nothing in any lane: leaving them out saves most of the iterations' time, and
// changes nothing, as they would add zeros.
template <class V>
inline void list_holding(const Shape& shape, double eps, Work<V>& work) {
    const double stiffest = kStiffest * eps;
    Index listed = 0;
    for (Index copy = 0; copy < shape.copies; ++copy) {
        for (Index j = 0; j <= 2 * shape.outputs; ++j) {
            const Index at = copy * shape.width + j;
            const V ratio = work.lower[at] * work.per_x[at];
            work.tight_sign[at] = held(ratio, eps);
            work.stiff_sign[at] = stiffness(ratio, eps, stiffest);
        }
        for (Index e = shape.first_place[copy]; e < shape.first_place[copy + 1]; ++e) {
            work.tight[e] = 1.0;
            work.stiff[e] = stiffest;
            if (!shape.equality[shape.row[e]]) {
                const V ratio = work.multiplier[e] * work.per_slack[e];
                work.tight[e] = held(ratio, eps);
                work.stiff[e] = stiffness(ratio, eps, stiffest);
            }
            if (!work.idle[copy] && !all_zero(work.stiff[e])) work.holding[listed++] = e;
        }
        work.last_holding[copy] = listed;
    }
}

// Writes the right sides of the copies: what the multipliers hold so far. `share` of the slopes of the
// quadratic term and of prices is in them: 1 for the multipliers of the point, 0 for the derivative.
template <class V>
inline void write_holds(const Shape& shape, double eps, double share, Work<V>& work) {
    const Index width = shape.width;
    for (Index i = 0; i < shape.blocks * width; ++i) work.d_sums[i] = 0.0;
    Index h = 0;
    for (Index copy = 0; copy < shape.copies; ++copy) {
        if (work.idle[copy]) continue;
        V* right = work.right + copy * width;
        for (Index j = 0; j < width; ++j) {
            const Index at = copy * width + j;
            V hold = share * curvature<V>(shape, j, eps) * work.x[at];
            if (j == 2 * shape.outputs) hold += share * work.price[copy];
            if (j <= 2 * shape.outputs) hold += work.tight_sign[at] * work.d_lower[at];
            right[j] = 0.0 - hold;
        }
        for (; h < work.last_holding[copy]; ++h) {
            const Index e = work.holding[h];
            take_row(shape, work, shape.row[e], work.tight[e] * work.d_multiplier[e], right);
        }
    }
}

// Multipliers that go with `d_x`; writes how far what is tight gives way, and its measure. What lanes
// have that are done must not depend on those beside them: it stays.
template <class V>
inline void raise_holds(const Shape& shape, Work<V>& work, Hold<V>& state) {
    const V going = state.going, none = 0.0;
    V given = 0.0, largest = state.least;
    Index h = 0;
    for (Index copy = 0; copy < shape.copies; ++copy) {
        if (work.idle[copy]) continue;
        const V* d_x = work.d_x + copy * shape.width;
        for (Index j = 0; j < shape.width; ++j) {
            const Index at = copy * shape.width + j;
            largest = most(most(largest, d_x[j]), 0.0 - d_x[j]);
            if (j > 2 * shape.outputs) continue;
            const V tight = work.tight_sign[at], before = work.d_lower[at];
            const V after = work.stiff_sign[at] * d_x[j] + tight * before;
            work.d_lower[at] = where_less(none, going, after, before);
            given = most(most(given, tight * d_x[j]), 0.0 - tight * d_x[j]);
        }
        for (; h < work.last_holding[copy]; ++h) {
            const Index e = work.holding[h];
            const V change = along(shape, work, shape.row[e], d_x);
            const V tight = work.tight[e], before = work.d_multiplier[e];
            const V after = work.stiff[e] * change + tight * before;
            work.d_multiplier[e] = where_less(none, going, after, before);
            given = most(most(given, tight * change), 0.0 - tight * change);
        }
    }
    state.given = given;
    state.largest = largest;
}

// Solves with what is tight held in place; `d_multiplier` becomes the rows' part. Given are the
// matrices, and in `vector` what the multipliers of the sums must add up to; `measure` is the least that
// changes are measured against.
template <class V>
inline void hold(const Shape& shape, double eps, double share, V measure, Work<V>& work) {
    for (Index i = 0; i < shape.copies * shape.width; ++i) work.d_lower[i] = 0.0;
    for (Index e = 0; e < shape.places; ++e) work.d_multiplier[e] = 0.0;
    Hold<V> state;
    state.least = measure;
    state.going = 1.0;
    bool still = false;
    for (Index round = 0; round < kHolds && !still; ++round) {
        write_holds(shape, eps, share, work);
        solve_all(shape, work);
        raise_holds(shape, work, state);
        still = true;
        for (int lane = 0; lane < V::kLanes; ++lane) {
            if (!(state.given.get(lane) > kHeld * state.largest.get(lane)))
                state.going.set(lane, 0.0);
            else if (state.going.get(lane) > 0.0)
                still = false;
        }
    }
    write_holds(shape, eps, share, work);
    solve_all(shape, work);
}

// Writes what prices of sample k of a call do: each is a slope in the weight of its product.
template <class V>
inline void write_price_gradients(const Shape& shape, const Work<V>& work, int lane, Index k, Adjoints adjoints) {
    for (Index copy = 0; copy < shape.copies; ++copy)
        adjoints.price[k * shape.copies + copy] = work.d_x[copy * shape.width + 2 * shape.outputs].get(lane);
}

// Adds what the rows of a sample contribute; their multipliers are in `aim`.
template <class V>
inline void add_gradients(const Shape& shape, const Batch& batch, const Work<V>& work, int lane, Index s,
                          Adjoints adjoints) {
    const Index d = shape.outputs, n = d + shape.auxiliaries, m = shape.rules;
    const double* yhat = batch.yhat + s * batch.outputs;
    const double* varying = batch.varying + s * batch.varying_lines * batch.columns;
    double* to_yhat = adjoints.yhat + s * batch.outputs;
    double* to_bound = adjoints.bound + s * batch.bounds;
    double* to_varying = adjoints.varying + s * batch.varying_lines * batch.columns;
    for (Index copy = 0; copy < shape.copies; ++copy) {
        const V*x = work.x + copy * shape.width, *adjoint = work.d_x + copy * shape.width;
        for (Index e = shape.first_place[copy]; e < shape.first_place[copy + 1]; ++e) {
            const Index r = shape.row[e];
            const double dual = work.d_multiplier[e].get(lane) * work.unit[r].get(lane);
            const double multiplier = work.aim[e].get(lane) * work.unit[r].get(lane);
            const double weight = multiplier * adjoint[2 * d].get(lane) + dual * x[2 * d].get(lane);
            if (r >= m) {  // a bound: only the prediction moves
                const Index j = (r - m) / 2;
                if (j < d && r < m + 2 * n) to_yhat[shape.columns[j]] += (r - m) % 2 == 0 ? weight : -weight;
                continue;
            }
            to_bound[shape.source[r]] -= weight;
            for (Index j = 0; j < d; ++j)
                to_yhat[shape.columns[j]] += coefficient<V>(shape, batch, varying, r, j) * weight;
            const Index v = shape.varying[r];
            if (v < 0) continue;
            double* line = to_varying + v * batch.columns;
            for (Index j = 0; j < d; ++j)
                line[shape.columns[j]] += multiplier * (adjoint[j].get(lane) - adjoint[d + j].get(lane)) +
                                          dual * (x[j].get(lane) - x[d + j].get(lane)) +
                                          weight * yhat[shape.columns[j]];
            for (Index j = d; j < n; ++j)
                line[shape.columns[j]] += multiplier * adjoint[d + 1 + j].get(lane) + dual * x[d + 1 + j].get(lane);
        }
    }
}

// Gradients of samples first .. last - 1 of a call, from where they left the central path.
template <class V>
void vjp(const Shape& shape, const Batch& batch, Index first, Index last, Adjoints adjoints, double* memory,
         Stop stop) {
    Work<V> work;
    lay_out(shape, reinterpret_cast<V*>(memory), work);
    const Index d = shape.outputs;
    for (; first < last && !stop.asked(stop.context); first += V::kLanes) {
        const Index own = last - first < V::kLanes ? last - first : V::kLanes;
        for (int lane = 0; lane < V::kLanes; ++lane) {
            const Index k = lane < own ? first + lane : last - 1;
            write_table(shape, batch, batch.samples[k], work, lane);
            write_prices(shape, batch, k, work, lane);
            restore(shape, batch, k, work, lane);
        }
        for (Index j = 0; j < shape.width; ++j) work.vector[j] = cost<V>(shape, batch, j);
        factor_all(shape, batch.eps, kStiffest * batch.eps, work);
        list_holding(shape, batch.eps, work);
        hold(shape, batch.eps, 1.0, V(1.0), work);
        for (Index e = 0; e < shape.places; ++e) work.aim[e] = work.d_multiplier[e];
        for (int lane = 0; lane < V::kLanes; ++lane) {
            const Index s = batch.samples[lane < own ? first + lane : last - 1];
            for (Index j = 0; j < d; ++j) {
                const double slope = adjoints.y[s * batch.outputs + shape.columns[j]];
                work.vector[j].set(lane, slope);
                work.vector[d + j].set(lane, -slope);
            }
        }
        // Where rows hold all that the gradient pulls at, nothing changes but by rounding: that is not to
        // be measured against itself, but against what the gradient would do to the stiffness alone.
        V measure = kTiny;
        for (Index j = 0; j < 2 * d; ++j) measure = most(measure, work.vector[j] / (kStiffest * batch.eps));
        hold(shape, batch.eps, 0.0, measure, work);
        for (int lane = 0; lane < own; ++lane) {
            add_gradients(shape, batch, work, lane, batch.samples[first + lane], adjoints);
            if (adjoints.price != nullptr) write_price_gradients(shape, work, lane, first + lane, adjoints);
        }
    }
}

}  // namespace gdpnet::blocks
