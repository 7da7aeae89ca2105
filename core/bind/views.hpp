// Arrays of Python as views: any object with a contiguous buffer of the right type and number of
// dimensions. Nothing is copied, and numpy's headers are not needed.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "gdpnet/arrays.hpp"

namespace gdpnet::bind {

// A buffer held for as long as the call takes.
template <class T, int N>
struct Array {
    Array() = default;
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    Array(Array&& other) noexcept { *this = std::move(other); }
    Array& operator=(Array&& other) noexcept {
        std::swap(buffer_, other.buffer_);
        std::swap(held_, other.held_);
        return *this;
    }
    ~Array() {
        if (held_) PyBuffer_Release(&buffer_);
    }

    // False, without an exception, where the object is something else.
    bool load(PyObject* object) noexcept {
        const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (std::is_const_v<T> ? 0 : PyBUF_WRITABLE);
        if (PyObject_GetBuffer(object, &buffer_, flags) != 0) {
            PyErr_Clear();
            return false;
        }
        held_ = true;
        return buffer_.ndim == N && buffer_.itemsize == Py_ssize_t(sizeof(T)) && right_type(buffer_.format);
    }

    T* data() const { return static_cast<T*>(buffer_.buf); }
    Index extent(int axis) const { return Index(buffer_.shape[axis]); }

    operator Vector<T>() const
        requires(N == 1)
    {
        return {data(), std::size_t(extent(0))};
    }
    operator Matrix<T>() const
        requires(N == 2)
    {
        return {data(), extent(0), extent(1)};
    }
    operator Tensor<T>() const
        requires(N == 3)
    {
        return {data(), extent(0), extent(1), extent(2)};
    }

private:
    static bool right_type(const char* format) {
        using U = std::remove_const_t<T>;
        const char code = format == nullptr ? 'B' : format[0];
        if (std::is_same_v<U, double>) return code == 'd';
        if (std::is_same_v<U, bool>) return code == '?';
        if (std::is_same_v<U, std::int8_t>) return code == 'b';
        if (std::is_same_v<U, std::int32_t>) return code == 'i' || code == 'l';
        if (std::is_same_v<U, std::int64_t>) return code == 'l' || code == 'q';
        return false;
    }

    Py_buffer buffer_{};
    bool held_ = false;
};

template <class T>
std::vector<std::remove_const_t<T>> copied(const Array<T, 1>& array) {
    return {array.data(), array.data() + array.extent(0)};
}

}  // namespace gdpnet::bind

namespace nanobind::detail {

template <class T, int N>
struct type_caster<gdpnet::bind::Array<T, N>> {
    using Held = gdpnet::bind::Array<T, N>;
    NB_TYPE_CASTER(Held, const_name("numpy.typing.NDArray"))

    bool from_python(handle source, uint32_t, cleanup_list*) noexcept { return value.load(source.ptr()); }
};

}  // namespace nanobind::detail
