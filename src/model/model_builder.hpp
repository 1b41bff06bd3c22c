// A model written in C++, for programs that have no file.
//
//   Model m = ModelBuilder("Dry-friction oscillator")
//                 .equations("y' = v\n v' = -y + sin(omega*t) - F*sign(v)")
//                 .parameter("F", 0.4).parameter("omega", "1/3")
//                 .initial("y", 1).initial("v", 2)
//                 .section_every("strobe", "2*pi/omega")
//                 .build();
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expr/interpolant.hpp"
#include "model/build.hpp"
#include "model/model.hpp"

namespace saltus {

class ModelBuilder {
 public:
  explicit ModelBuilder(std::string_view name);
  ModelBuilder& ref(std::string_view source);
  ModelBuilder& equations(std::string_view lines);  ///< as in a model file; may be called repeatedly
  ModelBuilder& parameter(std::string_view name, double value);
  ModelBuilder& parameter(std::string_view name, std::string_view constant);
  ModelBuilder& initial(std::string_view state, double value);
  ModelBuilder& initial(std::string_view state, std::string_view formula);
  ModelBuilder& constraint(std::string_view name, std::string_view gap, std::string_view restitution = {});
  ModelBuilder& jump(std::string_view name, std::string_view on, Direction direction,
                     const std::vector<std::pair<std::string, std::string>>& set, std::string_view when = {});
  /// A jump at the times phase + k*every, where `when` holds (empty: always).
  ModelBuilder& jump_every(std::string_view name, std::string_view every,
                           const std::vector<std::pair<std::string, std::string>>& set, std::string_view when = {},
                           std::string_view phase = {});
  ModelBuilder& section_every(std::string_view name, std::string_view interval);
  ModelBuilder& section_on(std::string_view name, std::string_view formula, Direction direction = Direction::any,
                           bool stop = false);
  /// A function given by points.
  ModelBuilder& table(std::string_view name, Interpolant curve);
  Model build() const;

 private:
  ModelText text_;
  std::string lines_;
};

}  // namespace saltus
