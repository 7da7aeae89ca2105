// Small dense matrices of lanes.
//
// Every entry is a sum with one order of its terms, and each term waits for the one before. Entries
// that do not need each other are therefore summed together, in tiles of as many as four registers hold.
#pragma once

#include "gdpnet/arrays.hpp"
#include "gdpnet/blocks/lanes.hpp"

namespace gdpnet::blocks {

template <int T>
struct Tile {
    static constexpr int kSize = T;
};

// Calls `work(tile, i)` for tiles that begin at i and cover first .. last - 1.
template <class V, class Work>
inline void in_tiles(Index first, Index last, Work work) {
    constexpr int whole = V::kRegisters < 2 ? 4 : 2;
    Index i = first;
    for (; i + whole <= last; i += whole) work(Tile<whole>(), i);
    if (i + 2 <= last) {
        work(Tile<2>(), i);
        i += 2;
    }
    if (i < last) work(Tile<1>(), i);
}

// Entries (i .. i + T - 1, k) of a matrix less the products of columns before k of their rows with
// what stands above (k, k); they are written across the diagonal, into line k.
template <int T, class V>
inline void reduce(V* matrix, Index size, Index i, Index k) {
    const V* line[T];
    V sum[T];
    for (int t = 0; t < T; ++t) {
        line[t] = matrix + (i + t) * size;
        sum[t] = line[t][k];
    }
    for (Index e = 0; e < k; ++e) {
        const V above = matrix[e * size + k];
        for (int t = 0; t < T; ++t) sum[t] -= line[t][e] * above;
    }
    for (int t = 0; t < T; ++t) matrix[k * size + i + t] = sum[t];
}

// L D L' of a symmetric matrix, whose lower triangle is given, without pivots below a number.
// L stands below the diagonal, 1 / D on it, and D L' above it.
template <class V>
inline void factorise(V* matrix, Index size, double smallest) {
    for (Index k = 0; k < size; ++k) {
        in_tiles<V>(k, size, [&](auto tile, Index i) { reduce<tile.kSize>(matrix, size, i, k); });
        const V pivot = 1.0 / most(V(smallest), matrix[k * size + k]);
        matrix[k * size + k] = pivot;
        for (Index i = k + 1; i < size; ++i) matrix[i * size + k] = matrix[k * size + i] * pivot;
    }
}

// Entries (k .. k + T - 1, i) of the transpose of L^-1, from those left of column i.
template <int T, class V>
inline void invert_entries(const V* matrix, Index size, Index i, Index k, V* target) {
    const V* factors = matrix + i * size;
    V* line[T];
    V sum[T];
    for (int t = 0; t < T; ++t) {
        line[t] = target + (k + t) * size;
        sum[t] = 0.0 - factors[k + t];
        for (Index e = k + t + 1; e < k + T; ++e) sum[t] -= factors[e] * line[t][e];
    }
    for (Index e = k + T; e < i; ++e) {
        const V factor = factors[e];
        for (int t = 0; t < T; ++t) sum[t] -= factor * line[t][e];
    }
    const V pivot = factors[i];
    for (int t = 0; t < T; ++t) {
        line[t][i] = sum[t];
        target[i * size + k + t] = sum[t] * pivot;
    }
}

// Entries (i .. i + T - 1, k) of the product of that transpose with D^-1 L^-1, in place.
template <int T, class V>
inline void multiply_entries(V* target, Index size, Index i, Index k) {
    const V pivot = target[k * size + k];
    V* line[T];
    V sum[T];
    for (int t = 0; t < T; ++t) {
        line[t] = target + (i + t) * size;
        sum[t] = i + t < k ? pivot * line[t][k] : pivot;
    }
    for (Index e = k + 1; e < size; ++e) {
        const V below = target[e * size + k];
        for (int t = 0; t < T; ++t) sum[t] += line[t][e] * below;
    }
    for (int t = 0; t < T; ++t) line[t][k] = sum[t];
}

// Inverse of such a matrix, which is overwritten by its factors.
template <class V>
inline void invert(V* matrix, Index size, double smallest, V* target) {
    factorise(matrix, size, smallest);
    for (Index i = 0; i < size; ++i) {  // K = L^-1: its transpose above the diagonal, D^-1 K on and below it
        target[i * size + i] = matrix[i * size + i];
        in_tiles<V>(0, i, [&](auto tile, Index k) { invert_entries<tile.kSize>(matrix, size, i, k, target); });
    }
    for (Index k = 0; k < size; ++k)
        in_tiles<V>(0, k + 1, [&](auto tile, Index i) { multiply_entries<tile.kSize>(target, size, i, k); });
    for (Index i = 0; i < size; ++i)
        for (Index k = 0; k < i; ++k) target[i * size + k] = target[k * size + i];
}

template <int T, class V>
inline void add_entries(const V* matrix, Index size, const V* vector, V* total) {
    V sum[T];
    for (int t = 0; t < T; ++t) sum[t] = total[t];
    for (Index k = 0; k < size; ++k) {
        const V factor = vector[k];
        for (int t = 0; t < T; ++t) sum[t] += matrix[t * size + k] * factor;
    }
    for (int t = 0; t < T; ++t) total[t] = sum[t];
}

// Adds `matrix vector` to `total`.
template <class V>
inline void add_product(const V* matrix, Index size, const V* vector, V* total) {
    in_tiles<V>(0, size, [&](auto tile, Index i) {
        add_entries<tile.kSize>(matrix + i * size, size, vector, total + i);
    });
}

// Solves with the factors, in place.
template <class V>
inline void back_solve(const V* factors, Index size, V* vector) {
    for (Index i = 0; i < size; ++i) {
        V total = vector[i];
        for (Index k = 0; k < i; ++k) total -= factors[i * size + k] * vector[k];
        vector[i] = total;
    }
    for (Index i = size - 1; i >= 0; --i) {
        V total = vector[i] * factors[i * size + i];
        for (Index k = i + 1; k < size; ++k) total -= factors[k * size + i] * vector[k];
        vector[i] = total;
    }
}

}  // namespace gdpnet::blocks
