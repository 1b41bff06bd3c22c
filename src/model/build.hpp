// A model from its pieces of text, each of which knows its place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/source.hpp"
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
  Fragment gap;  ///< or what a joint keeps at zero
  bool joint = false;
  std::optional<Fragment> restitution{};
  std::optional<Fragment> range{};  ///< "i = 1..N": as many constraints
};

/// Either `on` or `every`.
struct JumpText {
  Fragment name;
  std::optional<Fragment> on{}, every{}, phase{}, when{};
  Direction direction = Direction::any;
  bool level = false;
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

/// A table as a function of formulas: road(x).
UserFunction table_function(const PointTable& table);

/// Parses, resolves and lowers. Throws Error(model) at the first mistake.
Model build_model(const ModelText& text);

}  // namespace saltus
