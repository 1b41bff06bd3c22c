// A model to ask about: read from a file, from text or built by calls, with values of one's own.
//
//     const System friction = System::from_file("friction.toml");
//     const System rough = friction.with({{"F", "0.6"}}, {{"v", "0"}});
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ask/past.hpp"
#include "ask/value.hpp"
#include "model/model.hpp"

namespace saltus {

class Program;

/// Where a model comes from: text, read once, or a file, to be opened by its name.
struct ModelSource {
  std::string name;                    ///< of the file, for complaints
  std::optional<std::string> text{};   ///< nothing: a file
  std::optional<Past::Start> start{};  ///< of a past search for an orbit: where runs start
};

/// Values that differ from the source.
struct ModelSettings {
  std::vector<Setting> parameters;   ///< in constants and other parameters
  std::vector<Setting> initial;      ///< may use parameters
  bool as_given = false;             ///< not from the orbit that a past search has found
  std::optional<Formula> from = {};  ///< when runs start, if not at the time of the model's [run]
};

/// Reads the model, puts the settings in, lowers it, and checks that a run can start from it. Throws Error.
Model make_model(const ModelSource& source, const ModelSettings& settings);

/// Immutable; copies share what they hold. Safe to use from many threads.
class System {
 public:
  /// A model file, or the run.toml of a past result.
  static System from_file(const std::string& path);
  /// The text of a model file; `name` stands for the file in complaints.
  static System from_text(std::string_view text, std::string_view name = "model");
  /// A model of the gallery.
  static System example(std::string_view name);
  /// A model built by calls: System(ModelBuilder("Oscillator").equations(...).build()).
  explicit System(const Model& model);
  /// Any of these, with settings; `name` is how the model is called where it has no name of its own.
  explicit System(ModelSource source, ModelSettings settings = {}, const std::string& name = {});

  /// A system with other values, checked as those of a file; `from`: the time at which runs start. A value set before
  /// stays, unless it is set again.
  System with(const std::vector<Setting>& parameters, const std::vector<Setting>& initial = {},
              const std::optional<Formula>& from = {}) const;

  const Model& model() const;
  /// The program that engines evaluate; made on first use. `attract`: as in Solve.
  const Program& program(double attract = 0) const;
  /// Where it comes from.
  const ModelSource& source() const;
  /// A model file that reads to the same model.
  std::string text() const;

 private:
  struct Content;
  std::shared_ptr<const Content> content_;
};

}  // namespace saltus
