// Memory of one thread: a point of each lane, and the step from there.
#pragma once


#include "gdpnet/blocks/lanes.hpp"
#include "gdpnet/blocks/shape.hpp"

namespace gdpnet::blocks {

template <class V>
struct Work {
    V* table;           // (lines, D)
    V* unit;            // (lines,): by which the rows were scaled
    V* price;           // (copies,): of a product, above the least of its block
    V* x;               // (copies, D)
    V* lower;           // (copies, D): multipliers of their signs
    V* slack;           // (places,)
    V* multiplier;      // (places,)
    V* shared;          // (D,): sigma
    V* sums;            // (blocks, D): multipliers of `sum x = sigma`
    V* per_x;           // (copies, D): 1 / x
    V* per_lower;       // (copies, D)
    V* per_slack;       // (places,)
    V* per_multiplier;  // (places,)
    V* inverse;         // (copies, D, D): M^-1
    V* block;           // (blocks, D, D): W^-1
    V* joined;          // (D, D): the matrix of sigma, factored
    V* factor;          // (D, D)
    V* right;           // (copies, D)
    V* pull;            // (blocks, D)
    V* d_x;             // (copies, D)
    V* d_lower;         // (copies, D)
    V* d_slack;         // (places,)
    V* d_multiplier;    // (places,)
    V* d_shared;        // (D,)
    V* d_sums;          // (blocks, D)
    V* activity;        // (places,): g.x
    V* aim;             // (places,): the step leads to `slack * multiplier = - aim`, linearised
    V* aim_lower;       // (copies, D)
    V* vector;          // (D,)
    V* rest;            // (D,)

    // Of the derivative, in memory that only steps need: 1 for what is tight, and by how much it holds.
    V* tight_sign;  // (copies, D), instead of per_lower
    V* stiff_sign;  // (copies, D), instead of aim_lower
    V* tight;       // (places,), instead of per_multiplier
    V* stiff;       // (places,), instead of activity

    Index* idle;          // (copies,): 1 for those that take part in the equations of no lane
    Index* holding;       // (places,): of the rows that hold something in some lane, copy by copy
    Index* last_holding;  // (copies,): where those of a copy end

    V gap;      // mean product of slacks and multipliers
    V missing;  // what is left of the linear equations' residual at the start
    V length;   // of the step

    Index sample[V::kLanes];  // -1 where a lane rests
    Index rounds[V::kLanes];  // steps taken
};

// Shares memory out; how many vectors are needed. Without memory it only counts.
template <class V>
Index lay_out(const Shape& shape, V* memory, Work<V>& work) {
    const Index width = shape.width, copies = shape.copies * width, blocks = shape.blocks * width;
    Index taken = 0;
    const auto room = [&](V*& array, Index count) {
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
    room(work.price, shape.copies);
    room(work.inverse, copies * width);
    room(work.block, blocks * width);
    work.tight_sign = work.per_lower;
    work.stiff_sign = work.aim_lower;
    work.tight = work.per_multiplier;
    work.stiff = work.activity;
    const auto indices = [&](Index*& array, Index count) {
        V* place;
        room(place, (count + V::kLanes - 1) / V::kLanes);
        array = reinterpret_cast<Index*>(place);
    };
    indices(work.idle, shape.copies);
    indices(work.holding, shape.places);
    indices(work.last_holding, shape.copies);
    return taken;
}

}  // namespace gdpnet::blocks
