// Classes whose objects never change: a copy is the object itself, as that of a number is.
#pragma once

#include <nanobind/nanobind.h>

namespace gdpnet::bind {

template <class T>
nanobind::class_<T> unchanging(nanobind::module_& module, const char* name, const char* doc) {
    namespace nb = nanobind;
    return nb::class_<T>(module, name, doc)
        .def("__copy__", [](nb::object self) { return self; })
        .def("__deepcopy__", [](nb::object self, nb::handle) { return self; }, nb::arg("memo"));
}

}  // namespace gdpnet::bind
