// Model files: TOML <-> Model.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "model/model.hpp"

namespace saltus {

/// Parameters with the formulas that replace those of the file, before anything is made of them.
using Replacements = std::vector<std::pair<std::string, std::string>>;

/// Reads a model file. Throws Error(file) if it cannot be read, Error(model) at the first mistake in it.
Model read_model(const std::string& path, const Replacements& parameters = {});

/// Reads a model from text; `name` stands for the file in messages.
Model read_model_text(std::string_view text, std::string_view name = "model", const Replacements& parameters = {});

/// All that a file or pipe, called `name` in messages, holds. Throws Error(file) if it cannot be read, or does not end.
std::string read_all(std::istream& in, const std::string& name);

/// A model file that reads to the same model.
std::string write_model(const Model& model);

}  // namespace saltus
