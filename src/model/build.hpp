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

/// A[1,2], or b[3] of a vector.
std::string entry_name(const ParameterArray& array, int row, int column);

struct ConstraintText {
  Fragment name;
  Fragment gap;  ///< or what a joint keeps at zero
  bool joint = false;
  std::optional<Fragment> restitution{};
  std::optional<Fragment> range{};  ///< "i = 1..N": as many constraints
  std::optional<Fragment> friction{}, tangential{};
  std::vector<Fragment> slip{};
};

/// The table [mechanics].
struct MechanicsText {
  Fragment lagrangian;
  std::vector<NamedText> forces{};
  std::optional<Fragment> dissipation{};
};

/// A parameter that is a vector or a matrix: its entries row by row, those that are 0 left out.
struct ArrayText {
  Fragment name;
  ParameterArray shape;
  struct Entry {
    int row = 0, column = 0;
    Fragment value;
  };
  std::vector<Entry> entries{};
};
inline std::string entry_name(const ArrayText& array, const ArrayText::Entry& e) {
  return entry_name(array.shape, e.row, e.column);
}

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
  std::vector<ArrayText> arrays{};
  std::optional<MechanicsText> mechanics{};
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
