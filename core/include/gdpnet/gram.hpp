// Normals of a sample's rows and bounds, and their products: all that a Euclidean projection onto them asks for.
//
// With columns x_j = w_j (z_j - yhat_j) the projection is the least norm. A *side* is a row, or column j itself (side
// m + j), of which bounds speak. Normals of rows are scaled by powers of two to a length in [1, 2). Products depend on
// the sample through coefficients alone: where these are the same for all samples they are computed once.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "gdpnet/blocks/lanes.hpp"
#include "gdpnet/sample.hpp"
#include "gdpnet/sums.hpp"

namespace gdpnet {

// Four numbers side by side, as two registers of any CPU: sums run in fours, so memory is a multiple of it.
struct Four {
    using Pair = blocks::Register<2>::Numbers;
    Pair low, high;

    static Four all(double value) { return {Pair{value, value}, Pair{value, value}}; }
    static Four at(const double* from) { return {pair_at(from), pair_at(from + 2)}; }
    void to(double* target) const {
        std::memcpy(target, &low, sizeof low);
        std::memcpy(target + 2, &high, sizeof high);
    }
    double sum() const { return (low[0] + low[1]) + (high[0] + high[1]); }
    double largest() const { return std::max(std::max(low[0], low[1]), std::max(high[0], high[1])); }

    friend Four operator*(const Four& one, const Four& other) { return {one.low * other.low, one.high * other.high}; }
    friend Four operator+(const Four& one, const Four& other) { return {one.low + other.low, one.high + other.high}; }
    friend Four operator-(const Four& one, const Four& other) { return {one.low - other.low, one.high - other.high}; }

    // The larger of two; the first if the second is NaN.
    friend Four larger(const Four& one, const Four& other) { return {larger(one.low, other.low), larger(one.high, other.high)}; }

    static Pair larger(const Pair& one, const Pair& other) {
#if defined(__GNUC__)
        return one < other ? other : one;
#else
        return Pair::each(one, other, [](double x, double y) { return x < y ? y : x; });
#endif
    }
    static Pair pair_at(const double* from) {
        Pair found;
        std::memcpy(&found, from, sizeof found);
        return found;
    }
};

constexpr Index kAbreast = 4;
inline Index in_fours(Index count) { return (count + kAbreast - 1) / kAbreast * kAbreast; }

// The sum of products of `count` numbers, a multiple of four.
inline double dot(const double* one, const double* other, Index count) {
    Four sum = Four::all(0.0);
    for (Index j = 0; j < count; j += kAbreast) sum = sum + Four::at(one + j) * Four::at(other + j);
    return sum.sum();
}

// Copies the fours that hold `count` numbers.
template <class T>
inline void copy_fours(const T* from, T* to, Index count) {
    for (Index j = 0; j < count; j += kAbreast) std::memcpy(to + j, from + j, kAbreast * sizeof(T));
}

// Adds `share` times some numbers to others; `count` is a multiple of four.
inline void add(double share, const double* of, double* to, Index count) {
    const Four times = Four::all(share);
    for (Index j = 0; j < count; j += kAbreast) (Four::at(to + j) + times * Four::at(of + j)).to(to + j);
}

class Gram {
public:
    explicit Gram(const Rows& rows);

    const Index n, m;
    const Index width;  // of a normal: n in fours, zeros behind it

    // Takes over a sample's coefficients. False where they are those of the sample before.
    bool load(const Sample& sample, Vector<const double> weights);

    const double* normal(Index p) const { return normal_.data() + p * width; }

    // Products of all rows with a point of n columns, less `right` sides; both in fours of rows.
    void excess(const double* at, const double* right, double* found) const;

    // Products of side p with all sides, computed when first asked for.
    const double* line(Index p) {
        if (made_[p] != now_) make_line(p);
        return product_.data() + p * length_;
    }

    double square(Index p) const { return square_[p]; }           // of its length
    double factor(Index i) const { return factor_[i]; }           // from the sample's row to these units
    double least(Index i) const { return least_[i]; }             // of a row's terms over the bounds, in these units
    std::uint64_t columns(Index p) const { return columns_[p]; }  // that have an entry, as a bit mask

private:
    void make_normal(const Sample& sample, Index i);
    void make_line(Index p);

    const Rows& rows_;
    const Sums& sums_;
    const Index length_;                   // of a line: rows and columns in fours
    const Index height_;                   // rows in fours
    std::vector<double> weight_;           // (n,)
    std::vector<double> normal_;           // (sides, width)
    std::vector<double> column_;           // (n, height): those of rows, by column
    std::vector<double> product_;          // (sides, length)
    std::vector<double> square_;           // (sides,)
    std::vector<double> factor_, least_;   // (m,)
    std::vector<std::uint64_t> columns_;   // (sides,)
    std::vector<long> made_;               // by side: when its line was made
    long now_ = 0;
};

}  // namespace gdpnet
