#include "base/table.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace saltus {
namespace {

std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(wrong, known);
  if (!nearest.empty()) return fmt::format("did you mean '{}'?", nearest);
  return known.empty() ? "there is none yet" : fmt::format("known: {}", fmt::join(known, ", "));
}

[[noreturn]] void wrong_length(const Table& table, std::string_view what, size_t found, size_t expected) {
  throw Error(ErrorKind::usage,
              fmt::format("table '{}': {} has {} values where {} are needed", table.name(), what, found, expected));
}

}  // namespace

size_t Column::size() const {
  return std::visit([](const auto& v) { return v.size(); }, values);
}

Table::Table(std::string name, std::string description)
    : name_(std::move(name)), description_(std::move(description)) {}

bool Table::has(std::string_view name) const { return places_.find(name) != places_.end(); }

const Column& Table::column(std::string_view name) const {
  if (const auto place = places_.find(name); place != places_.end()) return columns_[place->second];
  std::vector<std::string> known;
  for (const Column& c : columns_) known.push_back(c.name);
  throw Error(ErrorKind::usage, fmt::format("table '{}' has no column '{}'", name_, name), {},
              did_you_mean(name, known));
}

const Numbers& Table::numbers(std::string_view name) const {
  if (const auto* values = std::get_if<Numbers>(&column(name).values)) return *values;
  throw Error(ErrorKind::usage, fmt::format("column '{}' of table '{}' holds texts, not numbers", name, name_));
}

const Texts& Table::texts(std::string_view name) const {
  if (const auto* values = std::get_if<Texts>(&column(name).values)) return *values;
  throw Error(ErrorKind::usage, fmt::format("column '{}' of table '{}' holds numbers, not texts", name, name_));
}

void Table::insist_on_free(std::string_view name) const {
  if (has(name)) throw Error(ErrorKind::usage, fmt::format("table '{}' has a column '{}' already", name_, name));
}

std::string Table::beside_own(std::string_view name) const {
  std::string free(name);
  while (own_.contains(free)) free += '_';
  return free;
}

Table& Table::add_own(std::string name, Numbers values, std::string description) {
  if (own_.contains(name)) insist_on_free(name);
  own_.insert(name);
  if (const auto place = places_.find(name); place != places_.end()) {
    const size_t at = place->second;
    places_.erase(place);
    std::string free = beside_own(name);
    while (has(free)) free += '_';
    columns_[at].name = free;
    places_.emplace(std::move(free), at);
  }
  return add({std::move(name), std::move(values), std::move(description)});
}

Table& Table::add(Column column) {
  insist_on_free(column.name);
  if (!columns_.empty() && column.size() != rows_) {
    wrong_length(*this, fmt::format("column '{}'", column.name), column.size(), rows_);
  }
  rows_ = column.size();
  places_.emplace(column.name, columns_.size());
  columns_.push_back(std::move(column));
  return *this;
}

Table& Table::add_numbers(std::string name, Numbers values, std::string description) {
  return add({beside_own(name), std::move(values), std::move(description)});
}

Table& Table::add_texts(std::string name, Texts values, std::string description) {
  return add({beside_own(name), std::move(values), std::move(description)});
}

void Table::append(std::span<const double> row) {
  if (row.size() != columns_.size()) wrong_length(*this, "a row", row.size(), columns_.size());
  for (const Column& c : columns_) {
    if (c.is_text()) numbers(c.name);  // complains
  }
  for (size_t i = 0; i < row.size(); ++i) std::get_if<Numbers>(&columns_[i].values)->push_back(row[i]);
  ++rows_;
}

void Table::append(std::initializer_list<Cell> row) { append_cells(std::span(row.begin(), row.size())); }

void Table::append_cells(std::span<const Cell> row) {
  if (row.size() != columns_.size()) wrong_length(*this, "a row", row.size(), columns_.size());
  for (size_t i = 0; i < row.size(); ++i) {
    const bool is_text = std::holds_alternative<std::string>(row[i]);
    if (is_text && !columns_[i].is_text()) texts(columns_[i].name);    // complains
    if (!is_text && columns_[i].is_text()) numbers(columns_[i].name);  // complains
  }
  for (size_t i = 0; i < row.size(); ++i) {
    if (auto* values = std::get_if<Numbers>(&columns_[i].values)) {
      values->push_back(std::get<double>(row[i]));
    } else {
      std::get<Texts>(columns_[i].values).push_back(std::get<std::string>(row[i]));
    }
  }
  ++rows_;
}

void Table::append_gap() {
  for (Column& c : columns_) {
    if (auto* values = std::get_if<Numbers>(&c.values)) {
      values->push_back(std::numeric_limits<double>::quiet_NaN());
    } else {
      std::get<Texts>(c.values).emplace_back();
    }
  }
  ++rows_;
}

void Table::reserve(size_t rows) {
  for (Column& c : columns_) std::visit([rows](auto& v) { v.reserve(rows); }, c.values);
}

const Table& find_table(std::span<const Table> tables, std::string_view name) {
  for (const Table& t : tables) {
    if (t.name() == name) return t;
  }
  std::vector<std::string> known;
  for (const Table& t : tables) known.push_back(t.name());
  throw Error(ErrorKind::usage, fmt::format("there is no table '{}'", name), {}, did_you_mean(name, known));
}

}  // namespace saltus
