#include "expr/names.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "expr/functions.hpp"

namespace saltus {

bool is_function_name(std::string_view name) { return saltus::find_function(name) != nullptr; }

bool is_reserved_name(std::string_view name) {
  return name == "t" || name == "pi" || name == "e" || name == "and" || name == "or" || name == "not" ||
         name == "for" || is_function_name(name);
}

Names::Names() {
  add("t", time_symbol(), "time");
  add("pi", pi(), "3.14159...");
  add("e", euler(), "2.71828...");
}

void Names::add(std::string_view name, Expr meaning, std::string_view role) {
  entries_.insert_or_assign(std::string(name), Entry{std::move(meaning), role, {}});
}

void Names::forbid(std::string_view name, std::string_view why) {
  entries_.insert_or_assign(std::string(name), Entry{0.0, "", std::string(why)});
}

const Names::Entry* Names::find(const std::string& name) const {
  const auto it = entries_.find(name);
  return it != entries_.end() ? &it->second : base_ ? base_->find(name) : nullptr;
}

void Names::forbid_others(const Names& others, std::string_view why) {
  others_ = &others;
  why_not_others_ = why;
}

std::string_view Names::why_not(const std::string& name) const {
  if (find(name) || !others_) return {};
  return others_->find(name) || others_->find_indexed(name) ? why_not_others_ : std::string_view();
}

void Names::add_function(std::string_view name, UserFunction function) {
  functions_.insert_or_assign(std::string(name), std::move(function));
}

const UserFunction* Names::find_function(const std::string& name) const {
  const auto it = functions_.find(name);
  if (it != functions_.end()) return &it->second;
  const Names* further = base_ ? base_ : others_;
  return further ? further->find_function(name) : nullptr;
}

std::vector<std::string> Names::function_names() const {
  std::vector<std::string> out;
  for (const Names* names = this; names; names = names->base_ ? names->base_ : names->others_) {
    for (const auto& [name, function] : names->functions_) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

void Names::add_whole(std::string_view name, double value) {
  wholes_.insert_or_assign(std::string(name), Whole{value});
}

const double* Names::find_whole(const std::string& name) const {
  if (const auto it = wholes_.find(name); it != wholes_.end()) {
    it->second.used = true;
    return &it->second.value;
  }
  const Names* further = base_ ? base_ : others_;
  return further ? further->find_whole(name) : nullptr;
}

bool Names::whole_was_used(const std::string& name) const {
  const auto it = wholes_.find(name);
  return it != wholes_.end() && it->second.used;
}

void Names::add_indexed(std::string_view stem, const Range& range) {
  indexed_.insert_or_assign(std::string(stem), range);
}

const Names::Range* Names::find_indexed(const std::string& stem) const {
  const auto it = indexed_.find(stem);
  return it != indexed_.end() ? &it->second : base_ ? base_->find_indexed(stem) : nullptr;
}

std::string Names::suggestion(std::string_view wrong) const {
  std::vector<std::string> known;
  for (const Names* names = this; names; names = names->base_) {
    for (const auto& [name, entry] : names->entries_) {
      if (find(name)->forbidden.empty()) known.push_back(name);
    }
  }
  std::sort(known.begin(), known.end());
  const std::string near = nearest_name(wrong, known);
  if (near.empty()) return hint_;
  return fmt::format("did you mean '{}' ({})?", near, find(near)->role);
}

std::string Names::hint_for_primes(const std::string& name, size_t primes) const {
  if (primes > 2) return "derivatives go up to the second: give x'' a state of its own, a = x'' and a' = ...";
  if (find(name + "'"))
    return fmt::format("{0}' has an equation, {0}'' has none: write the balance of forces with {0}''", name);
  if (find(name)) return fmt::format("only states have rates: give {} an equation with {}' or {}''", name, name, name);
  return fmt::format("give it an equation: {}{} = ...", name, std::string(primes, '\''));
}

}  // namespace saltus
