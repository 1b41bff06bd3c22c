// Table: named columns of numbers or texts, all of the same length; what every analysis returns and every file holds.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace saltus {

using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

/// One column. NaN is a number that does not exist; a row of NaN is a gap (a jump is a gap, not a line).
struct Column {
  std::string name = {};
  std::variant<Numbers, Texts> values = {};
  std::string description = {};  ///< one sentence for people; may be empty

  bool is_text() const { return std::holds_alternative<Texts>(values); }
  size_t size() const;
};

/// One value of a mixed row.
using Cell = std::variant<double, std::string>;

/// Columns of equal length under distinct names. Storage is by column, so ten million rows cost what their numbers
/// cost.
class Table {
 public:
  /// `name` becomes the file name (data.csv) or the group in an HDF5 file.
  explicit Table(std::string name = "data", std::string description = {});

  const std::string& name() const { return name_; }
  const std::string& description() const { return description_; }
  size_t rows() const { return rows_; }
  const std::vector<Column>& columns() const { return columns_; }

  /// The column of that name; an Error that names the nearest one if there is none (or none of that type).
  const Column& column(std::string_view name) const;
  const Numbers& numbers(std::string_view name) const;
  const Texts& texts(std::string_view name) const;
  bool has(std::string_view name) const;

  /// A further column; its length must be that of the table, unless it is the first.
  Table& add_numbers(std::string name, Numbers values = {}, std::string description = {});
  Table& add_texts(std::string name, Texts values = {}, std::string description = {});
  /// A column with a name that the user gave: it keeps that name, and a column of the table that is called so has an
  /// underscore behind its own, whichever comes first.
  Table& add_own(std::string name, Numbers values = {}, std::string description = {});
  /// The name of the table's own column beside a column of the user that has the same name.
  std::string beside_own(std::string_view name) const;

  /// A further row of a table that holds numbers only.
  void append(std::span<const double> row);
  /// A further row of any table, one cell per column: `table.append({0.5, "slide"})`.
  void append(std::initializer_list<Cell> row);
  void append_cells(std::span<const Cell> row);
  /// A row of NaN and empty texts: lines are interrupted here.
  void append_gap();
  void reserve(size_t rows);

 private:
  Table& add(Column column);
  void insist_on_free(std::string_view name) const;

  std::string name_;
  std::string description_;
  std::vector<Column> columns_;
  std::map<std::string, size_t, std::less<>> places_;  // of columns by name: some tables have ten thousands
  std::set<std::string, std::less<>> own_;             // names that the user gave
  size_t rows_ = 0;
};

/// The table of that name, or an Error that names the nearest one.
const Table& find_table(std::span<const Table> tables, std::string_view name);

}  // namespace saltus
