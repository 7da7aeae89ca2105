// The final basis of a part, kept for derivatives.
#include <cmath>
#include <limits>

#include "gdpnet/extended/part.hpp"

namespace gdpnet::extended {

namespace {

// Whether a column that is not basic rests on its upper bound, and where the bound is from.
struct Active {
    bool upper;
    Small source;
};

Active active_bound(const Dictionary& dic, Index j) {
    if (dic.value[j] == dic.upper[j]) return {true, dic.upper_source[j]};
    return {false, dic.lower_source[j]};
}

Index keep_program_basis(const Workspace& work, const KeptBasis& kept) {
    const Dictionary& dic = work.dictionary;
    Index count = 0, rows = 0;
    for (Index j = 0; j < dic.n; ++j) {
        if (dic.place[j] < 0) continue;
        kept.column[count] = Small(j);
        kept.value[count++] = dic.value[j];
    }
    for (Index p = 0; p < dic.n; ++p) {
        if (is_row(dic.nonbasic[p])) kept.row[rows++] = row_of(dic.nonbasic[p]);
    }
    for (Index j = 0; j < dic.n; ++j) {
        if (dic.place[j] >= 0 || dic.value[j] == 0.0) continue;
        kept.column[count] = Small(j);
        kept.value[count] = dic.value[j];
        kept.row[count++] = active_bound(dic, j).source;
    }
    return count;
}

// The row of the program of a single product that comes from a source.
Small row_from(const Workspace& work, Index rows, Small source) {
    for (Index row = 0; row < rows; ++row) {
        if (work.source[row] == source) return Small(row);
    }
    return -1;
}

// Keeps the final basis of a product as one of the program of that product alone.
Index keep_product_basis(const Part& part, const Workspace& work, Index rows, const KeptBasis& kept) {
    const Dictionary& dic = work.dictionary;
    Index count = 0, tight = 0;
    // What an output gains and what it loses are two columns.
    const auto column = [&](Index j, bool gains) { return Small(j < part.d && gains ? j : part.d + j); };
    for (Index j = 0; j < part.n; ++j) {
        if (dic.place[j] < 0) continue;
        kept.column[count] = column(j, dic.slope[j] > 0.0);
        kept.value[count++] = std::abs(dic.value[j]);
    }
    for (Index p = 0; p < part.n; ++p) {
        if (is_row(dic.nonbasic[p])) kept.row[tight++] = row_from(work, rows, row_of(dic.nonbasic[p]));
    }
    for (Index j = 0; j < part.n; ++j) {
        if (dic.place[j] >= 0 || dic.value[j] == 0.0) continue;
        const Active active = active_bound(dic, j);
        const Small source = active.source < 0 ? bound_source(part.n, j, active.upper) : active.source;
        kept.column[count] = column(j, dic.value[j] > 0.0);
        kept.value[count] = std::abs(dic.value[j]);
        kept.row[count++] = row_from(work, rows, source);
    }
    return count;
}

}  // namespace

Index keep_basis(const Part& part, Workspace& work, Index columns, const KeptBasis& kept, Watch& watch) {
    Index single = -1;
    for (Index block = 0; block < part.blocks; ++block) {
        const auto b = std::size_t(block);
        const Span span = part.products(block);
        kept.rank[block] = work.rank[b];
        for (Index product = span.begin; product < span.end; ++product) {
            State& state = work.state[std::size_t(product)];
            if (work.rank[b] == 0) {
                state = State::absent;
            } else if (columns == 0) {
                single = work.nearest[b];
                state = product == single ? State::reference : State::absent;
            }
            kept.state[product] = std::int8_t(state);
        }
    }
    if (columns > 0) return keep_program_basis(work, kept);
    const Counts counts = write_program(part, work);
    solve_product(part, work, single, std::numeric_limits<double>::infinity(), watch);
    return keep_product_basis(part, work, counts.rows, kept);
}

}  // namespace gdpnet::extended
