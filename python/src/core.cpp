// The binding: questions and answers as dictionaries of NumPy arrays. Only this folder knows pybind11; what makes it
// pleasant to use is in saltus/*.py.
//
// Arrays own what the answer has computed: nothing is copied.
#include "ask/option_table.hpp"
#include "ask/past.hpp"
#include "ask/solve.hpp"
#include "convert.hpp"
#include "expr/print.hpp"

namespace py = pybind11;
using namespace saltus;

PYBIND11_MODULE(_core, m) {
  m.doc() = "What saltus.py is made of; import saltus instead.";
  python::add_models(m);
  python::add_runs(m);
  python::add_saving(m);
  python::add_many(m);
  python::add_orbits(m);
  python::add_derivatives(m);

  // Errors become the classes of saltus/_errors.py, with their parts as attributes.
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const Error& e) {
      const py::module_ errors = py::module_::import("saltus._errors");
      const char* name = e.kind() == ErrorKind::usage   ? "UsageError"
                         : e.kind() == ErrorKind::model ? "ModelError"
                                                        : "FileError";
      const py::object value =
          errors.attr(name)(e.report(), e.message(), e.hint(), e.place().file, e.place().line, e.place().column);
      PyErr_SetObject(errors.attr(name).ptr(), value.ptr());
    }
  });

  m.def("option_table", [] {
    py::list rows;
    for (const OptionFact& o : option_table()) {
      if (!o.sentence.empty())
        rows.append(py::make_tuple(std::string(o.name), std::string(o.type), o.words(), std::string(o.commands)));
    }
    return rows;
  });
  m.def("solve_options", [] {
    py::list options;
    for (const SolveOption& o : solve_options()) options.append(py::make_tuple(o.name, std::string(o.kind)));
    return options;
  });
  m.def("nearest",
        [](const std::string& word, const std::vector<std::string>& known) { return nearest_name(word, known); });
  m.def("number", [](double v) { return print_number(v); });
  m.def("version", &this_version);
}
