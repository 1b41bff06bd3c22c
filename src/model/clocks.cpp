#include "model/clocks.hpp"

#include <cmath>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "expr/print.hpp"

namespace saltus {
namespace {

constexpr double most_ticks = 1e8;

using Check =
    std::function<void(std::string_view what, const std::string& name, const Expr& every, const Place& place)>;

void for_each_clock(const Model& model, const Check& check) {
  for (const Section& s : model.sections) {
    if (s.kind == Section::Kind::every) check("section", s.name, s.value, s.place);
  }
  for (const Jump& j : model.jumps) {
    if (j.every) check("jump", j.name, *j.every, j.place);
  }
}

}  // namespace

void check_clocks(const Model& model, std::span<const double> parameters) {
  const std::vector<double> values(parameters.begin(), parameters.end());
  for_each_clock(model, [&](std::string_view what, const std::string& name, const Expr& every, const Place& place) {
    const double interval = constant_value(every, values);
    if (interval > 0 && std::isfinite(interval)) return;
    throw Error(ErrorKind::model, fmt::format("the interval of the {} '{}' is {}", what, name, print_number(interval)),
                place, fmt::format("{} must be a positive time under these parameters", print(every)));
  });
}

void check_ticks(const Model& model, std::span<const double> parameters, double from, double until) {
  const std::vector<double> values(parameters.begin(), parameters.end());
  for_each_clock(model, [&](std::string_view what, const std::string& name, const Expr& every, const Place& place) {
    const double interval = constant_value(every, values), ticks = std::abs(until - from) / interval;
    if (ticks <= most_ticks) return;
    throw Error(ErrorKind::model,
                fmt::format("the {} '{}' comes {:.3g} times until t = {}: its interval is {}", what, name, ticks,
                            print_number(until), print_number(interval)),
                place, fmt::format("at most {:.0e} times: choose a longer interval, or an earlier end", most_ticks));
  });
}

}  // namespace saltus
