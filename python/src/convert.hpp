// Between C++ and Python: arrays that own what an answer has computed, options by name, runs as dictionaries.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <pybind11/complex.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "ask/run.hpp"
#include "ask/solve.hpp"

namespace saltus::python {

namespace py = pybind11;

template <class T>
py::array array_of(std::vector<T>&& values, std::vector<py::ssize_t> shape = {}) {
  auto* owner = new std::vector<T>(std::move(values));
  const py::capsule base(owner, [](void* p) { delete static_cast<std::vector<T>*>(p); });
  if (shape.empty()) shape = {static_cast<py::ssize_t>(owner->size())};
  py::array_t<T> array(shape, owner->data(), base);
  array.attr("flags").attr("writeable") = false;
  return array;
}

/// A matrix by rows.
py::array rows_of(std::vector<double>&& values, size_t width);
py::array complex_of(const std::vector<std::complex<double>>& values);
using Columns = py::array_t<double, py::array::c_style | py::array::forcecast>;

/// An option of a question, where it is given.
template <class T>
void take(const py::dict& options, const char* name, T& value) {
  if (options.contains(name)) value = options[name].cast<T>();
}

template <class T>
void take(const py::dict& options, const char* name, std::optional<T>& value) {
  if (options.contains(name)) value = options[name].cast<T>();
}

std::vector<Setting> settings(const py::dict& values);
/// Options by name: texts, and settings as dictionaries of texts.
Solve solve_of(const py::dict& options);

py::dict end_of(const End& end);
void add_run(py::dict& d, const Trajectory& run, const Model& model);
/// A run with its events.
py::dict path_of(const Trajectory& run, const std::vector<std::string>& notes, const Model& model);
/// The dense output as one block: [piece, state, power]; it leaves the trajectory.
py::dict pieces_of(Trajectory& trajectory, const Model& model);
void add_rows(py::dict& d, Rows& rows);

// What the module offers, a file each.
void add_models(py::module_& m);
void add_runs(py::module_& m);
void add_saving(py::module_& m);
void add_many(py::module_& m);
void add_orbits(py::module_& m);
void add_derivatives(py::module_& m);

}  // namespace saltus::python
