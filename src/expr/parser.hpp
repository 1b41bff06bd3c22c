// Shunting-yard: operators wait on one stack, finished formulas on another; no recursion (but for sums in sums, a few),
// so no depth limit.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/source.hpp"
#include "expr/expr.hpp"
#include "expr/functions.hpp"
#include "expr/indices.hpp"
#include "expr/lexer.hpp"
#include "expr/names.hpp"

namespace saltus {

/// The purpose for which a formula is read: its value, whether it holds, or which index it is.
enum class Wanted { number, truth, index };

struct FormulaContext {
  const Names& names;
  const Indices& indices;
  Wanted wanted = Wanted::number;
  int depth = 0;  ///< of sums in sums
};

/// The whole numbers written between two places of a text, separated by a comma; how many there are.
size_t index_values(const Fragment& text, size_t begin, size_t end, const FormulaContext& context,
                    std::array<long, 2>& values);
void for_each_index(const Fragment& text, const FormulaContext& context,
                    const std::function<void(const Indices&)>& action);
/// x[3], T[1,2]
std::string indexed_text(std::string_view stem, const std::array<long, 2>& index, size_t dimensions);

class Parser {
 public:
  Parser(const Fragment& formula, const FormulaContext& context)
      : formula_(formula), context_(context), names_(context.names), lexer_(formula, !context.indices.empty()) {}

  Expr run();

 private:
  struct Value {
    Expr expr;
    size_t begin = 0, end = 0;
    double size = 1;                                 ///< numbers, names and operations in it
    std::shared_ptr<const Error> trouble = nullptr;  ///< x[0]: a mistake unless an `if` on the index leaves it out
  };
  struct Waiting {
    enum { operation, bracket } kind = operation;
    Op op = Op::number;
    bool equality = false;  // == or != of indices
    size_t begin = 0, end = 0;
    const FormulaFunction* function = nullptr;  // of a bracket that is a call
    const UserFunction* user = nullptr;         // likewise
    size_t name_begin = 0;
    int arguments = 1;
    int before_ratio = 0;  // of unit(a, b; ratio): how many; 0 without a ratio
  };

  // ---- values and operators (parser.cpp)
  Value value();
  bool operand();
  bool continuation();
  [[noreturn]] void missing_operator(const Token& token);
  void push(Value value);
  void reduce(int level);
  Expr equality(const Waiting& w, const Value& left, const Value& right) const;
  void close(const Token& token);
  void need_number(const Value& v) const;
  void need_truth(const Value& v, std::string_view where) const;
  [[noreturn]] void missing_bracket(const Waiting& w) const;

  // ---- names (parser_names.cpp)
  bool name(const Token& token);
  std::optional<double> whole_number(const std::string& text) const;
  [[noreturn]] void unknown_name(const Token& token, const std::string& text) const;
  bool indexed(const Token& token, size_t begin, size_t end);
  Value primed(size_t begin, size_t end, const std::string& name, size_t primes) const;
  std::shared_ptr<const Error> unknown_index(const Token& token, size_t end, const std::string& stem,
                                             const std::string& text, size_t dimensions) const;

  // ---- calls of functions, and sums (parser_calls.cpp)
  bool open_call(const Token& token, const std::string& text, const Token& open);
  [[noreturn]] void unknown_function(const Token& token, const std::string& text, size_t inside);
  void call(const Waiting& w, const Token& token);
  bool is_unit(const Waiting& w) const;
  void call_user(const Waiting& w, const Token& token);
  [[noreturn]] void wrong_arguments(const Waiting& w, int given, size_t end) const;
  std::optional<double> decide(const Value& condition) const;
  std::optional<double> with_whole_parameters(const Expr& e) const;
  bool mentions_index(const Value& v) const;
  bool sum(const Token& token, const Token& open);
  size_t closing_bracket(const Token& open) const;
  void check_size(const Value& v) const;

  const Fragment& formula_;
  const FormulaContext context_;
  const Names& names_;
  Lexer lexer_;
  Token token_;
  std::vector<Value> values_;
  std::vector<Waiting> waiting_;
};

}  // namespace saltus
