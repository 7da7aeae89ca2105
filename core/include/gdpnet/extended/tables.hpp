// The rows of the rules and the layouts of relaxations, as flat arrays. A layout has parts, a part
// blocks, a block products: each is a span of the next.
#pragma once

#include <cstdint>
#include <vector>

#include "gdpnet/arrays.hpp"
#include "gdpnet/component.hpp"

namespace gdpnet::extended {

// The rows of the rules; those that do not depend on x are scaled by powers of two.
struct Sources {
    Index outputs = 0;
    std::vector<double> lower, upper;  // (n,)
    std::vector<Index> start;          // entries of each row, (m + 1,)
    std::vector<Index> column;         // (entries,)
    std::vector<double> coefficient;   // (entries,), scaled
    std::vector<double> scale;         // (m,), 1 for rows that depend on x
    Flags equality;                    // (m,)
    std::vector<Index> varying;        // place among the rows whose coefficients depend on x, or -1, (m,)
};

// Layouts, parts, blocks and products.
struct Tables {
    std::vector<Index> layout_part;    // (layouts + 1,)
    std::vector<Index> part_column;    // (parts + 1,) into `column`
    std::vector<Index> part_row;       // (parts + 1,) into `row`
    std::vector<Index> part_global;    // how many of a part's rows are global: the first, (parts,)
    std::vector<Index> part_block;     // (parts + 1,)
    std::vector<Index> block_product;  // (blocks + 1,)
    std::vector<Index> product_row;    // (products + 1,) into `member`
    std::vector<Index> column;         // columns of the rules, those of outputs first in each part
    std::vector<Index> row;            // rows of the rules
    std::vector<Index> member;         // rows of a product, as places among the rows of its part
};

// The most that a sample needs.
struct Extent {
    Index columns = 0;   // of a part's program
    Index rows = 0;      // of a part's program
    Index entries = 0;   // of a part's program
    Index blocks = 0;    // of a part
    Index products = 0;  // of a layout
};

// Products of a block, counted from the first product of the layout.
struct Span {
    Index begin, end;
};

// A part of a layout.
struct Part {
    const Tables& tables;
    Index number;
    Index n;        // columns
    Index d;        // of them outputs: the first
    Index offset;   // the first product of the layout
    Index globals;  // rows that all products have: the first
    Index blocks;

    Part(const Sources& sources, const Tables& tables, Index number, Index offset);

    Index column(Index k) const { return tables.column[std::size_t(tables.part_column[std::size_t(number)] + k)]; }
    Index row(Index r) const { return tables.row[std::size_t(tables.part_row[std::size_t(number)] + r)]; }
    Index rows() const { return tables.part_row[std::size_t(number) + 1] - tables.part_row[std::size_t(number)]; }
    Span products(Index block) const {
        const auto b = std::size_t(tables.part_block[std::size_t(number)] + block);
        return {tables.block_product[b] - offset, tables.block_product[b + 1] - offset};
    }
    // Rows of a product that are its own, as places among the part's rows.
    Vector<const Index> members(Index product) const {
        const auto k = std::size_t(offset + product);
        const auto begin = std::size_t(tables.product_row[k]), end = std::size_t(tables.product_row[k + 1]);
        return {tables.member.data() + begin, end - begin};
    }
    // Columns of the program that all blocks share: what outputs gain, what they lose, auxiliaries.
    Index base() const { return d + n; }
};

}  // namespace gdpnet::extended
