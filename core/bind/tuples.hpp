// Arrays that come as tuples, and what is expected of their shapes.
#pragma once

#include <nanobind/nanobind.h>

#include <stdexcept>

#include "bind/views.hpp"

namespace gdpnet::bind {

// Entry k of a tuple of arrays.
template <class T, int N>
Array<T, N> entry(nanobind::handle tuple, Py_ssize_t k) {
    PyObject* object = PyTuple_GetItem(tuple.ptr(), k);  // borrowed
    if (object == nullptr) throw nanobind::python_error();
    Array<T, N> array;
    if (!array.load(object)) throw nanobind::type_error("an array of another type, number of dimensions or layout was expected");
    return array;
}

inline void expect(bool right, const char* what) {
    if (!right) throw std::invalid_argument(what);
}

}  // namespace gdpnet::bind
