// Calls in a formula: of functions, of those that the user has given, and sums over an index.
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "expr/letters.hpp"
#include "expr/parser.hpp"

namespace saltus {
namespace {

constexpr int deepest_sum = 8;
constexpr double largest_formula = 2e6;  ///< written out, in numbers, names and operations

Expr called(const FormulaFunction& f, bool holds, const std::vector<Expr>& a) {
  const auto one = [](Op op, const Expr& x) { return Expr::raw(op, std::array{x}); };
  switch (f.call) {
    case FormulaFunction::ceil: return one(Op::neg, one(Op::floor, one(Op::neg, a[0])));
    case FormulaFunction::round: return one(Op::floor, Expr::raw(Op::add, std::array{a[0], Expr(0.5)}));
    default: break;
  }
  if (a.size() <= 3 && static_cast<int>(a.size()) == op_arity(holds ? Op::hold_sign : f.op))
    return Expr::raw(holds ? Op::hold_sign : f.op, a);
  Expr result = a[0];  // max(a, b, c) is max(max(a, b), c)
  for (size_t i = 1; i < a.size(); ++i) result = Expr::raw(f.op, std::array{result, a[i]});
  return result;
}

/// unit(a), which is sign(a), unit(a, b) and unit(a, b, c), each with or without a ratio behind them.
Expr unit(std::vector<Expr> a, bool holds) {
  Expr ratio = 1.0;
  if (holds) {
    ratio = a.back();
    a.pop_back();
  }
  if (a.size() == 1) return holds ? Expr::raw(Op::hold_sign, std::array{a[0], ratio}) : Expr::raw(Op::sign, a);
  const Expr others = a.size() == 2 ? a[1] : Expr::raw(Op::components, std::array{a[1], a[2]});
  return Expr::raw(Op::unit, std::array{a[0], others, ratio});
}

/// True for 0*x and a*0*x as written: such a term stands for nothing.
bool has_zero_factor(Expr e) {
  while (e.op() == Op::mul || e.op() == Op::neg) {
    if (e.op() == Op::mul && e.argument(1).is_number(0)) return true;
    e = e.argument(0);
  }
  return e.is_number(0);
}

}  // namespace

/// A call of unit with one to three components, and no more than one number behind its semicolon.
bool Parser::is_unit(const Waiting& w) const {
  if (!w.function || w.function->op != Op::unit) return false;
  const int components = w.before_ratio > 0 ? w.before_ratio : w.arguments;
  return components <= 3 && w.arguments - components <= 1;
}

bool Parser::open_call(const Token& token, const std::string& text, const Token& open) {
  const FormulaFunction* function = find_function(token.text);
  const UserFunction* user = function ? nullptr : names_.find_function(text);
  if (!function && !user) unknown_function(token, text, open.end);
  if (function && function->call == FormulaFunction::sum) return sum(token, open);
  waiting_.push_back({.kind = Waiting::bracket,
                      .begin = open.begin,
                      .end = open.end,
                      .function = function,
                      .user = user,
                      .name_begin = token.begin});
  token_ = lexer_.next();
  if (token_.kind == TokenKind::close) wrong_arguments(waiting_.back(), 0, token_.end);
  return true;
}

void Parser::unknown_function(const Token& token, const std::string& text, size_t inside) {
  if (const Names::Entry* entry = names_.find(text)) {
    if (!entry->forbidden.empty())
      lexer_.fail(token.begin, token.end, fmt::format("'{}' cannot be used here", token.text), entry->forbidden);
    const std::string_view argument = std::string_view(formula_.text).substr(inside);
    std::string hint = fmt::format("multiplication is written out: {}*(...)", token.text);
    if (argument.starts_with("t)"))
      hint = fmt::format("write {} alone: states and names depend on time by themselves", token.text);
    if (argument.starts_with("t-") || argument.starts_with("t -"))
      hint = "there are no delays: rates depend on the present state";
    lexer_.fail(token.begin, token.end, fmt::format("'{}' is not a function", token.text), hint);
  }
  std::string hint = hint_for_foreign(token.text);
  if (hint.empty()) {
    std::vector<std::string> known = names_.function_names();
    const std::string own = nearest_name(token.text, known);
    known = formula_function_names();
    const std::string near = own.empty() ? nearest_name(token.text, known) : own;
    hint = near.empty() ? fmt::format("functions: {}", fmt::join(known, " ")) : fmt::format("did you mean '{}'?", near);
  }
  lexer_.fail(token.begin, token.end, fmt::format("unknown function '{}'", token.text), hint);
}

void Parser::call(const Waiting& w, const Token& token) {
  if (w.user) return call_user(w, token);
  const FormulaFunction& f = *w.function;
  const bool holds = f.op == Op::sign && w.arguments == 2;
  const bool any_number = ((f.op == Op::min || f.op == Op::max) && w.arguments > 2) || is_unit(w);
  if (w.arguments != op_arity(f.op) && !holds && !any_number) wrong_arguments(w, w.arguments, token.end);
  const size_t n = static_cast<size_t>(w.arguments);
  std::vector<Expr> a;
  Value result{Expr(0.0), w.name_begin, token.end};
  for (size_t i = 0; i < n; ++i) {
    const Value& v = values_[values_.size() - n + i];
    if (f.op == Op::select && i == 0) {
      need_truth(v, "if");
    } else {
      need_number(v);
    }
    a.push_back(v.expr);
    result.size += v.size;
    if (!result.trouble) result.trouble = v.trouble;
  }
  // An `if` on the index is decided here: what it leaves out may be nonsense, such as x[0].
  const auto decided = f.op == Op::select ? decide(values_[values_.size() - n]) : std::nullopt;
  if (decided) {
    const Value& chosen = values_[values_.size() - (*decided != 0 ? 2 : 1)];
    result = {chosen.expr, w.name_begin, token.end, chosen.size, chosen.trouble};
  } else {
    result.expr = f.op == Op::unit ? unit(a, w.before_ratio > 0) : called(f, holds, a);
  }
  values_.resize(values_.size() - n);
  values_.push_back(std::move(result));
}

/// The truth of a condition on an index, which may also use parameters: i < N.
std::optional<double> Parser::decide(const Value& condition) const {
  return mentions_index(condition) ? with_whole_parameters(condition.expr) : std::nullopt;
}

/// The value of a formula of numbers and parameters alone; NaN where one of them is no whole number.
std::optional<double> Parser::with_whole_parameters(const Expr& e) const {
  for (const Expr& node : postorder(std::span(&e, 1))) {
    if (node.is_symbol() && !node.is_symbol(SymbolKind::parameter)) return std::nullopt;
  }
  return evaluate(e, [&](const Symbol& s) {
    const double* value = names_.find_whole(s.name);
    return value ? *value : NAN;
  });
}

bool Parser::mentions_index(const Value& v) const {
  const std::string_view text = std::string_view(formula_.text).substr(v.begin, v.end - v.begin);
  for (size_t i = 0; i < text.size() && !context_.indices.empty();) {
    const size_t begin = i++;
    if (!is_name_part(text[begin])) continue;
    while (i < text.size() && is_name_part(text[i])) ++i;
    const std::string_view word = text.substr(begin, i - begin);
    for (const auto& [name, value] : context_.indices) {
      if (name == word) return true;
    }
  }
  return false;
}

void Parser::call_user(const Waiting& w, const Token& token) {
  const size_t n = w.user->arguments.size();
  if (static_cast<size_t>(w.arguments) != n) wrong_arguments(w, w.arguments, token.end);
  ExprMap<Expr> given;
  ExprMap<double> sizes;
  Value result{Expr(0.0), w.name_begin, token.end};
  for (size_t i = 0; i < n; ++i) {
    const Value& v = values_[values_.size() - n + i];
    need_number(v);
    given.emplace(w.user->arguments[i], v.expr);
    sizes.emplace(w.user->arguments[i], v.size);
    if (!result.trouble) result.trouble = v.trouble;
  }
  for (const Expr& e : postorder(std::span(&w.user->body, 1))) {
    double size = 1;
    for (size_t i = 0; i < e.size(); ++i) size += sizes.at(e.argument(i));
    sizes.emplace(e, size);
  }
  result.size = sizes.at(w.user->body);
  check_size(result);
  result.expr = insert(w.user->body, given);
  values_.resize(values_.size() - n);
  values_.push_back(std::move(result));
}

void Parser::wrong_arguments(const Waiting& w, int given, size_t end) const {
  static constexpr std::array<std::string_view, 4> counts{"no argument", "one argument", "two arguments",
                                                          "three arguments"};
  const auto count = [](size_t n) {
    return n < counts.size() ? std::string(counts[n]) : fmt::format("{} arguments", n);
  };
  const std::string name = formula_.text.substr(w.name_begin, w.begin - w.name_begin);
  const size_t wanted = w.user ? w.user->arguments.size() : static_cast<size_t>(op_arity(w.function->op));
  std::vector<std::string> arguments;
  if (w.user) {
    for (const Expr& a : w.user->arguments) arguments.push_back(a.symbol().name);
  }
  lexer_.fail(w.name_begin, end,
              fmt::format("'{}' has {} here instead of {}", w.user ? name : std::string(w.function->name),
                          count(static_cast<size_t>(given)), count(wanted).substr(0, count(wanted).find(' '))),
              w.user ? fmt::format("write {}({})", name, fmt::join(arguments, ", "))
                     : fmt::format("write {}", usage_of(*w.function)));
}

/// sum(term for j = 1..N)
bool Parser::sum(const Token& token, const Token& open) {
  const size_t close = closing_bracket(open);
  const std::string_view inside = std::string_view(formula_.text).substr(open.end, close - open.end);
  const size_t word = find_for(inside);
  if (word == inside.npos) lexer_.fail(token.begin, close + 1, "this sum has no range", "write sum(x[j] for j = 1..N)");
  if (context_.depth >= deepest_sum)
    lexer_.fail(token.begin, close + 1, "too many sums in each other", "give the inner ones a name of their own");
  const Fragment range = formula_.part(open.end + word + 3, inside.size() - word - 3);
  const Fragment term = formula_.part(open.end, word);
  Value total{Expr(0.0), token.begin, close + 1};
  for_each_index(range, context_, [&](const Indices& indices) {
    Value next = Parser(term, {names_, indices, context_.wanted, context_.depth + 1}).value();
    if (!next.trouble && has_zero_factor(next.expr)) return;  // an entry of a matrix
    total.size += next.size + 1;
    check_size(total);
    if (!total.trouble) total.trouble = next.trouble;
    total.expr = total.expr.is_number(0) ? next.expr : Expr::raw(Op::add, std::array{total.expr, next.expr});
  });
  values_.push_back(std::move(total));
  lexer_.go_to(close + 1);
  token_ = lexer_.next();
  return false;
}

size_t Parser::closing_bracket(const Token& open) const {
  int depth = 0;
  for (size_t i = open.begin; i < formula_.text.size(); ++i) {
    depth += formula_.text[i] == '(' ? 1 : formula_.text[i] == ')' ? -1 : 0;
    if (depth == 0) return i;
  }
  missing_bracket({.begin = open.begin, .end = open.end});
}

void Parser::check_size(const Value& v) const {
  if (v.size <= largest_formula) return;
  lexer_.fail(v.begin, v.end, fmt::format("this stands for a formula of more than {:.0f} terms", largest_formula),
              "give parts of it a name (name = ...) and use the names");
}

}  // namespace saltus
