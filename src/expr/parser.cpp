#include "expr/parser.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

namespace saltus {
namespace {

/// Precedence from loose to tight; a unary minus binds looser than '^' and tighter than '*'.
int precedence(Op op) {
  switch (op) {
    case Op::either: return 1;
    case Op::both: return 2;
    case Op::negation: return 3;
    case Op::less:
    case Op::greater:
    case Op::less_equal:
    case Op::greater_equal: return 4;
    case Op::add:
    case Op::sub: return 5;
    case Op::mul:
    case Op::div: return 6;
    case Op::neg: return 7;
    case Op::pow: return 8;
    default: return 0;
  }
}

Op binary(std::string_view text) {
  if (text == "+") return Op::add;
  if (text == "-") return Op::sub;
  if (text == "*") return Op::mul;
  if (text == "/") return Op::div;
  if (text == "^") return Op::pow;
  if (text == "<") return Op::less;
  if (text == ">") return Op::greater;
  if (text == "<=") return Op::less_equal;
  if (text == ">=") return Op::greater_equal;
  if (text == "==" || text == "!=") return Op::less;  // of indices: decided when both sides are known
  if (text == "and") return Op::both;
  assert(text == "or");
  return Op::either;
}

/// The value of a formula of numbers alone.
std::optional<double> known_value(const Expr& e) {
  for (const Expr& node : postorder(std::span(&e, 1))) {
    if (node.is_symbol()) return std::nullopt;
  }
  return evaluate(e, [](const Symbol&) { return NAN; });
}

}  // namespace

Expr Parser::run() {
  Value result = value();
  if (result.trouble) throw *result.trouble;
  return result.expr;
}

Parser::Value Parser::value() {
  token_ = lexer_.next();
  if (token_.kind == TokenKind::end)
    lexer_.fail(0, std::max<size_t>(formula_.text.size(), 1), "a formula is missing here",
                "write a number or a formula such as -x + sin(t)");
  bool expect_operand = true;
  while (token_.kind != TokenKind::end) {
    expect_operand = expect_operand ? operand() : continuation();
  }
  if (expect_operand) {
    const Waiting& last = waiting_.back();
    if (last.kind == Waiting::bracket) missing_bracket(last);
    lexer_.fail(last.begin, last.end,
                fmt::format("nothing follows '{}'", formula_.text.substr(last.begin, last.end - last.begin)),
                "to continue on the next line, start that line with the operator");
  }
  reduce(0);
  if (!waiting_.empty()) missing_bracket(waiting_.back());
  Value result = std::move(values_.back());
  context_.wanted == Wanted::truth ? need_truth(result, "when") : need_number(result);
  return result;
}

/// At a place where a value must start. Returns whether a value is still expected afterwards.
bool Parser::operand() {
  const Token token = token_;
  switch (token.kind) {
    case TokenKind::number: push({Expr(token.value), token.begin, token.end}); return false;
    case TokenKind::name: return name(token);
    case TokenKind::open:
      waiting_.push_back({.kind = Waiting::bracket, .begin = token.begin, .end = token.end});
      token_ = lexer_.next();
      return true;
    case TokenKind::op:
      if (token.text == "-" || token.text == "not") {
        waiting_.push_back({.op = token.text == "-" ? Op::neg : Op::negation, .begin = token.begin, .end = token.end});
        token_ = lexer_.next();
        return true;
      }
      if (token.text == "+" && (waiting_.empty() || waiting_.back().kind == Waiting::bracket)) {
        token_ = lexer_.next();  // a leading plus says nothing
        if (token_.kind == TokenKind::end) {
          lexer_.fail(token.begin, token.end, "nothing follows '+'", "a number, a name or a bracket belongs here");
        }
        return true;
      }
      [[fallthrough]];
    default:
      if (token.text == ";")
        lexer_.fail(token.begin, token.end, "';' is not used in formulas", "write each equation on its own line");
      lexer_.fail(token.begin, token.end, fmt::format("a value is missing before '{}'", token.text),
                  "a number, a name or a bracket belongs here");
  }
}

/// After a complete value. Returns whether another value must follow.
bool Parser::continuation() {
  const Token token = token_;
  switch (token.kind) {
    case TokenKind::op: {
      if (token.text == "not") missing_operator(token);
      const Op op = binary(token.text);
      reduce(op == Op::pow ? precedence(op) + 1 : precedence(op));
      if (precedence(op) == 4 && values_.back().expr.is_truth()) {
        lexer_.fail(values_.back().begin, token.end, "comparisons cannot be chained", "write a < b and b < c");
      }
      waiting_.push_back(
          {.op = op, .equality = token.text[0] == '!' || token.text == "==", .begin = token.begin, .end = token.end});
      token_ = lexer_.next();
      return true;
    }
    case TokenKind::close:
      close(token);
      token_ = lexer_.next();
      return false;
    case TokenKind::comma:
      reduce(0);
      if (token.text == ";") {
        const bool of_unit = !waiting_.empty() && waiting_.back().function && waiting_.back().function->op == Op::unit;
        if (!of_unit || waiting_.back().before_ratio > 0)
          lexer_.fail(token.begin, token.end, "';' is not used in formulas", "write each equation on its own line");
        waiting_.back().before_ratio = waiting_.back().arguments;
      }
      if (waiting_.empty() || !(waiting_.back().function || waiting_.back().user)) {
        if (context_.wanted == Wanted::index)
          lexer_.fail(token.begin, token.end, "a name has one index",
                      "number the places of a grid in a row: x[N*(i-1) + j]");
        lexer_.fail(token.begin, token.end, "a comma outside of a function call", "decimal numbers have a point: 0.5");
      }
      ++waiting_.back().arguments;
      token_ = lexer_.next();
      return true;
    default: missing_operator(token);
  }
}

void Parser::missing_operator(const Token& token) {
  const Value& left = values_.back();
  if (token.text == "if") lexer_.fail(token.begin, token.end, "'if' is a function", "write if(condition, a, b)");
  lexer_.fail(token.begin, token.end, fmt::format("an operator is missing before '{}'", token.text),
              left.end - left.begin < 40 ? fmt::format("multiplication is written out: {}*{}",
                                                       formula_.text.substr(left.begin, left.end - left.begin),
                                                       token.kind == TokenKind::open ? "(...)" : token.text)
                                         : "multiplication is written out: a*b");
}

void Parser::push(Value value) {
  values_.push_back(std::move(value));
  token_ = lexer_.next();
}

/// Finishes the waiting operations that bind at least as tightly as `level`, up to the last open bracket.
void Parser::reduce(int level) {
  while (!waiting_.empty() && waiting_.back().kind == Waiting::operation && precedence(waiting_.back().op) >= level) {
    const Waiting w = waiting_.back();
    waiting_.pop_back();
    const bool wants_truth = w.op == Op::both || w.op == Op::either || w.op == Op::negation;
    if (op_arity(w.op) == 1) {
      Value& x = values_.back();
      wants_truth ? need_truth(x, op_name(w.op)) : need_number(x);
      x = {Expr::raw(w.op, std::array{x.expr}), w.begin, x.end, x.size + 1, x.trouble};
      continue;
    }
    Value right = std::move(values_.back());
    values_.pop_back();
    Value& left = values_.back();
    for (const Value* v : {&left, &right}) wants_truth ? need_truth(*v, op_name(w.op)) : need_number(*v);
    left = {w.equality ? equality(w, left, right) : Expr::raw(w.op, std::array{left.expr, right.expr}), left.begin,
            right.end, left.size + right.size + 1, left.trouble ? left.trouble : right.trouble};
  }
}

/// Indices may be equal, to parameters as well; anything else that changes is compared with < or >.
Expr Parser::equality(const Waiting& w, const Value& left, const Value& right) const {
  const bool of_index = mentions_index(left) || mentions_index(right);
  const auto value = [&](const Value& v) { return of_index ? with_whole_parameters(v.expr) : known_value(v.expr); };
  const std::optional<double> a = value(left), b = value(right);
  const std::string text = formula_.text.substr(w.begin, w.end - w.begin);
  if (!a || !b || std::isnan(*a) || std::isnan(*b))
    lexer_.fail(w.begin, w.end, fmt::format("'{}' is not an operator", text),
                "only indices are equal or not; a surface separates two sides: compare with '<' or '>'");
  const bool holds = (*a == *b) == (text == "==");
  return Expr::raw(Op::less, std::array{Expr(0.0), Expr(holds ? 1.0 : 0.0)});
}

void Parser::close(const Token& token) {
  reduce(0);
  if (waiting_.empty()) {
    lexer_.fail(token.begin, token.end, "a closing bracket without its opening one",
                "remove it or open a bracket before it");
  }
  const Waiting w = waiting_.back();
  waiting_.pop_back();
  if (!w.function && !w.user) {
    values_.back().begin = w.begin;
    values_.back().end = token.end;
    return;
  }
  call(w, token);
}

void Parser::need_number(const Value& v) const {
  if (!v.expr.is_truth()) return;
  lexer_.fail(v.begin, v.end, "a comparison where a number is needed", "choose the numbers with if(condition, a, b)");
}

void Parser::need_truth(const Value& v, std::string_view where) const {
  if (v.expr.is_truth()) return;
  lexer_.fail(v.begin, v.end, fmt::format("'{}' needs a comparison here", where), "for example v > 0");
}

void Parser::missing_bracket(const Waiting& w) const {
  size_t last = formula_.text.size();
  while (last > 0 && std::isspace(static_cast<unsigned char>(formula_.text[last - 1]))) --last;
  Error error(ErrorKind::model, "a closing bracket ')' is missing", formula_.place(last, 1),
              "close the bracket with ')' where it ends");
  error.also("the bracket opened here is never closed", formula_.place(w.begin, 1));
  throw error;
}

}  // namespace saltus
