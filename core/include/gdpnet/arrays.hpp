// Views of memory that somebody else owns: contiguous, last index fastest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace gdpnet {

using Index = std::int64_t;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
using Vector = std::span<T>;

// A matrix; `m[i]` is line i.
template <class T>
struct Matrix {
    T* data = nullptr;
    Index lines = 0;
    Index width = 0;

    Vector<T> operator[](Index i) const { return {data + i * width, static_cast<std::size_t>(width)}; }
    T& operator()(Index i, Index j) const { return data[i * width + j]; }
    operator Matrix<const T>() const { return {data, lines, width}; }
};

// A stack of matrices; `t[s]` is matrix s.
template <class T>
struct Tensor {
    T* data = nullptr;
    Index size = 0;
    Index lines = 0;
    Index width = 0;

    Matrix<T> operator[](Index s) const { return {data + s * lines * width, lines, width}; }
    operator Tensor<const T>() const { return {data, size, lines, width}; }
};

// A matrix that owns its memory.
template <class T>
struct Table {
    std::vector<T> values;
    Index lines = 0;
    Index width = 0;

    Table() = default;
    Table(Index lines, Index width, T value = T())
        : values(static_cast<std::size_t>(lines * width), value), lines(lines), width(width) {}

    Vector<T> operator[](Index i) { return {values.data() + i * width, static_cast<std::size_t>(width)}; }
    T& operator()(Index i, Index j) { return values[static_cast<std::size_t>(i * width + j)]; }
    operator Matrix<T>() { return {values.data(), lines, width}; }
};

}  // namespace gdpnet
