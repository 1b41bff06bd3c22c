// A model from its pieces of text: used by the TOML reader and by C++ programs that have no file.
//
//   Model m = ModelBuilder("Dry-friction oscillator")
//                 .equations("y' = v\n v' = -y + sin(omega*t) - F*sign(v)")
//                 .parameter("F", 0.4).parameter("omega", "1/3")
//                 .initial("y", 1).initial("v", 2)
//                 .section_every("strobe", "2*pi/omega")
//                 .build();
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/source.hpp"
#include "expr/interpolant.hpp"
#include "model/model.hpp"

namespace saltus {

struct UserFunction;

/// A name with the formula given to it; both know their place.
struct NamedText {
  Fragment name;
  Fragment value;
};

struct ConstraintText {
  Fragment name;
  Fragment gap;
  std::optional<Fragment> restitution{};
  std::optional<Fragment> range{};  ///< "i = 1..N": as many constraints
};

/// Either `on` or `every`.
struct JumpText {
  Fragment name;
  std::optional<Fragment> on{}, every{}, phase{}, when{};
  Direction direction = Direction::any;
  std::vector<NamedText> set{};
  std::optional<Fragment> range{};
};

struct SectionText {
  Fragment name;
  std::optional<Fragment> every{}, on{};
  Direction direction = Direction::any;
  bool stop = false;
  std::optional<Fragment> range{};
};

struct TableText {
  Fragment name;
  PointTable table;
};

struct ModelText {
  std::string name;
  std::string ref;
  Fragment equations;
  std::vector<NamedText> parameters{}, initial{}, labels{};
  std::vector<ConstraintText> constraints{};
  std::vector<JumpText> jumps{};
  std::vector<SectionText> sections{};
  std::vector<TableText> tables{};
  std::optional<Fragment> from{}, until{};
  std::optional<double> tolerance{}, dt{};
  std::optional<std::string> engine{};
};

/// What a table is in formulas: road(x).
UserFunction table_function(const PointTable& table);

/// Parses, resolves and lowers. Throws Error(model) at the first mistake.
Model build_model(const ModelText& text);

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
