// Memory of one thread: a point of each lane, and the step from there.
#pragma once

#include <limits>

#include "gdpnet/blocks/lanes.hpp"
#include "gdpnet/blocks/shape.hpp"

namespace gdpnet::blocks {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <int N>
struct Work {
    Lanes<N>* table;           // (lines, D)
    Lanes<N>* unit;            // (lines,): by which the rows were scaled
    Lanes<N>* x;               // (copies, D)
    Lanes<N>* lower;           // (copies, D): multipliers of their signs
    Lanes<N>* slack;           // (places,)
    Lanes<N>* multiplier;      // (places,)
    Lanes<N>* shared;          // (D,): sigma
    Lanes<N>* sums;            // (blocks, D): multipliers of `sum x = sigma`
    Lanes<N>* per_x;           // (copies, D): 1 / x
    Lanes<N>* per_lower;       // (copies, D)
    Lanes<N>* per_slack;       // (places,)
    Lanes<N>* per_multiplier;  // (places,)
    Lanes<N>* inverse;         // (copies, D, D): M^-1
    Lanes<N>* block;           // (blocks, D, D): W^-1
    Lanes<N>* joined;          // (D, D): the matrix of sigma, factored
    Lanes<N>* factor;          // (D, D)
    Lanes<N>* right;           // (copies, D)
    Lanes<N>* pull;            // (blocks, D)
    Lanes<N>* d_x;             // (copies, D)
    Lanes<N>* d_lower;         // (copies, D)
    Lanes<N>* d_slack;         // (places,)
    Lanes<N>* d_multiplier;    // (places,)
    Lanes<N>* d_shared;        // (D,)
    Lanes<N>* d_sums;          // (blocks, D)
    Lanes<N>* activity;        // (places,): g.x
    Lanes<N>* aim;             // (places,): the step leads to `slack * multiplier = - aim`, linearised
    Lanes<N>* aim_lower;       // (copies, D)
    Lanes<N>* vector;          // (D,)
    Lanes<N>* rest;            // (D,)

    // Of the derivative, in memory that only steps need: 1 for what is tight, and by how much it holds.
    Lanes<N>* tight_sign;  // (copies, D), instead of per_lower
    Lanes<N>* stiff_sign;  // (copies, D), instead of aim_lower
    Lanes<N>* tight;       // (places,), instead of per_multiplier
    Lanes<N>* stiff;       // (places,), instead of activity

    Index* idle;          // (copies,): 1 for those that take part in the equations of no lane
    Index* holding;       // (places,): of the rows that hold something in some lane, copy by copy
    Index* last_holding;  // (copies,): where those of a copy end

    Lanes<N> gap;      // mean product of slacks and multipliers
    Lanes<N> missing;  // what is left of the linear equations' residual at the start
    Lanes<N> length;   // of the step

    Index sample[N];  // -1 where a lane rests
    Index rounds[N];  // steps taken
};

// Shares memory out; how many vectors are needed. Without memory it only counts.
template <int N>
Index lay_out(const Shape& shape, Lanes<N>* memory, Work<N>& work) {
    const Index width = shape.width, copies = shape.copies * width, blocks = shape.blocks * width;
    Index taken = 0;
    const auto room = [&](Lanes<N>*& array, Index count) {
        array = memory == nullptr ? nullptr : memory + taken;
        taken += count;
    };
    for (auto* array : {&work.x, &work.lower, &work.per_x, &work.per_lower, &work.right, &work.d_x, &work.d_lower,
                        &work.aim_lower})
        room(*array, copies);
    for (auto* array : {&work.slack, &work.multiplier, &work.per_slack, &work.per_multiplier, &work.d_slack,
                        &work.d_multiplier, &work.activity, &work.aim})
        room(*array, shape.places);
    for (auto* array : {&work.shared, &work.d_shared, &work.vector, &work.rest}) room(*array, width);
    for (auto* array : {&work.sums, &work.pull, &work.d_sums}) room(*array, blocks);
    for (auto* array : {&work.joined, &work.factor}) room(*array, width * width);
    room(work.table, shape.lines * width);
    room(work.unit, shape.lines);
    room(work.inverse, copies * width);
    room(work.block, blocks * width);
    work.tight_sign = work.per_lower;
    work.stiff_sign = work.aim_lower;
    work.tight = work.per_multiplier;
    work.stiff = work.activity;
    const auto indices = [&](Index*& array, Index count) {
        Lanes<N>* place;
        room(place, (count + N - 1) / N);
        array = reinterpret_cast<Index*>(place);
    };
    indices(work.idle, shape.copies);
    indices(work.holding, shape.places);
    indices(work.last_holding, shape.copies);
    return taken;
}

}  // namespace gdpnet::blocks
