#include "expr/parse.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace saltus {
namespace {

struct Function {
  std::string_view name;
  Op op;
};

constexpr std::array<Function, 23> functions{{
    {"sin", Op::sin},   {"cos", Op::cos},     {"tan", Op::tan},     {"asin", Op::asin}, {"acos", Op::acos},
    {"atan", Op::atan}, {"atan2", Op::atan2}, {"sinh", Op::sinh},   {"cosh", Op::cosh}, {"tanh", Op::tanh},
    {"exp", Op::exp},   {"log", Op::log},     {"sqrt", Op::sqrt},   {"cbrt", Op::cbrt}, {"sign", Op::sign},
    {"abs", Op::abs},   {"min", Op::min},     {"max", Op::max},     {"sat", Op::sat},   {"step", Op::step},
    {"if", Op::select}, {"mod", Op::mod},     {"floor", Op::floor},
}};

const Function* find_function(std::string_view name) {
  const auto it = std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.name == name; });
  return it == functions.end() ? nullptr : &*it;
}

/// What people write who come from other languages, and what it is called here.
std::string_view foreign_function(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 18> table{{
      {"sgn", "sign"},
      {"signum", "sign"},
      {"ln", "log"},
      {"fabs", "abs"},
      {"heaviside", "step"},
      {"Heaviside", "step"},
      {"arcsin", "asin"},
      {"arccos", "acos"},
      {"arctan", "atan"},
      {"arctan2", "atan2"},
      {"fmod", "mod"},
      {"rem", "mod"},
      {"clamp", "sat"},
      {"ifelse", "if"},
      {"where", "if"},
      {"Abs", "abs"},
      {"Sign", "sign"},
      {"pow", "^"},
  }};
  for (const auto& [foreign, ours] : table) {
    if (foreign == name) return ours;
  }
  return {};
}

/// Signs that come with text copied from papers and word processors, and how they are typed.
const std::pair<std::string_view, std::string_view>* printed_sign(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 16> table{{
      {"\u2212", "-"},
      {"\u2013", "-"},
      {"\u2014", "-"},
      {"\u00d7", "*"},
      {"\u00b7", "*"},
      {"\u22c5", "*"},
      {"\u00f7", "/"},
      {"\u00b2", "^2"},
      {"\u00b3", "^3"},
      {"\u2264", "<="},
      {"\u2265", ">="},
      {"\u2032", "'"},
      {"\u2019", "'"},
      {"\u201c", "\""},
      {"\u201d", "\""},
      {"\u00a0", " "},
  }};
  const auto it =
      std::find_if(table.begin(), table.end(), [&](const auto& sign) { return text.starts_with(sign.first); });
  return it == table.end() ? nullptr : &*it;
}

enum class Kind { number, name, op, open, close, comma, end };

struct Token {
  Kind kind = Kind::end;
  size_t begin = 0, end = 0;
  double value = 0;
  std::string_view text{};
};

/// Cuts a formula into tokens, complaining about what no formula contains.
class Lexer {
 public:
  explicit Lexer(const Fragment& formula) : formula_(formula), text_(formula.text) {}

  Token next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    if (at_ == text_.size()) return {Kind::end, at_, at_, 0, {}};
    const char c = text_[at_];
    if (const auto* sign = printed_sign(text_.substr(at_))) {
      fail(at_, at_ + sign->first.size(), fmt::format("'{}' is not used in formulas", sign->first),
           sign->second == " " ? "this is a special space: write a plain one"
                               : fmt::format("type it as {}", sign->second));
    }
    if (std::isdigit(static_cast<unsigned char>(c)) ||
        (c == '.' && at_ + 1 < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_ + 1])))) {
      return number();
    }
    if (is_name_start(c)) return word();
    return mark();
  }

  [[noreturn]] void fail(size_t begin, size_t end, std::string message, std::string hint = {}) const {
    throw Error(ErrorKind::model, std::move(message), formula_.place(begin, end - begin), std::move(hint));
  }

 private:
  Token number() {
    Token token{.kind = Kind::number, .begin = at_};
    const char* first = text_.data() + at_;
    const auto [last, problem] = std::from_chars(first, text_.data() + text_.size(), token.value);
    at_ += static_cast<size_t>(last - first);
    token.end = at_;
    token.text = text_.substr(token.begin, at_ - token.begin);
    if (problem == std::errc::result_out_of_range) {  // from_chars does not say on which side
      token.value = std::strtod(std::string(token.text).c_str(), nullptr);
      if (std::isinf(token.value)) {
        fail(token.begin, at_, fmt::format("the number '{}' is too large", token.text), "numbers reach up to 1.7e308");
      }
    }
    if (at_ < text_.size() && is_name_part(text_[at_])) {
      size_t end = at_;
      while (end < text_.size() && is_name_part(text_[end])) ++end;
      fail(token.begin, end,
           fmt::format("'{}' is neither a number nor a name", text_.substr(token.begin, end - token.begin)),
           fmt::format("multiplication is written out: {}*{}", token.text, text_.substr(at_, end - at_)));
    }
    return token;
  }

  Token word() {
    Token token{.kind = Kind::name, .begin = at_};
    while (at_ < text_.size() && is_name_part(text_[at_]) && !printed_sign(text_.substr(at_))) ++at_;
    token.end = at_;
    token.text = text_.substr(token.begin, at_ - token.begin);
    if (token.text == "and" || token.text == "or" || token.text == "not") token.kind = Kind::op;
    return token;
  }

  Token mark() {
    const size_t begin = at_;
    const char c = text_[at_];
    const std::string_view two = text_.substr(at_, 2);
    const auto token = [&](Kind kind, size_t length) {
      at_ += length;
      return Token{kind, begin, at_, 0, text_.substr(begin, length)};
    };
    if (two == "**") fail(begin, begin + 2, "'**' is not an operator", "power is written '^'");
    if (two == "&&") fail(begin, begin + 2, "'&&' is not an operator", "write 'and'");
    if (two == "||") fail(begin, begin + 2, "'||' is not an operator", "write 'or'");
    if (two == "==" || two == "!=" || two == "~=") {
      fail(begin, begin + 2, fmt::format("'{}' is not an operator", two),
           "a surface separates two sides: compare with '<' or '>'");
    }
    if (two == "<=" || two == ">=") return token(Kind::op, 2);
    switch (c) {
      case '+':
      case '-':
      case '*':
      case '/':
      case '^':
      case '<':
      case '>': return token(Kind::op, 1);
      case '(': return token(Kind::open, 1);
      case ')': return token(Kind::close, 1);
      case ',': return token(Kind::comma, 1);
      case '!': fail(begin, begin + 1, "'!' is not an operator", "write 'not'");
      case '=': fail(begin, begin + 1, "'=' inside a formula", "an equation has one '='; compare with '<' or '>'");
      case '\'':
        fail(begin, begin + 1, "a rate cannot be used inside a formula",
             "give its right side a name (name = ...) and use the name in both places");
      case '[':
      case ']':
      case '{':
      case '}': fail(begin, begin + 1, fmt::format("'{}' is not used in formulas", c), "use round brackets ( )");
      case '%': fail(begin, begin + 1, "'%' is not an operator", "write mod(a, b); comments start with '#'");
      case ';': fail(begin, begin + 1, "';' is not used in formulas", "write each equation on its own line");
      default: break;
    }
    size_t end = at_ + 1;
    while (end < text_.size() && (text_[end] & 0xC0) == 0x80) ++end;
    const bool printable = static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) != 0x7f;
    fail(begin, end,
         printable ? fmt::format("unexpected character '{}'", text_.substr(begin, end - begin))
                   : fmt::format("unexpected character with code {}", static_cast<int>(static_cast<unsigned char>(c))));
  }

  const Fragment& formula_;
  std::string_view text_;
  size_t at_ = 0;
};

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

/// Shunting-yard: operators wait on one stack, finished formulas on another; no recursion, so no depth limit.
class Parser {
 public:
  Parser(const Fragment& formula, const Names& names) : formula_(formula), names_(names), lexer_(formula) {}

  Expr run(bool condition) {
    token_ = lexer_.next();
    if (token_.kind == Kind::end)
      lexer_.fail(0, std::max<size_t>(formula_.text.size(), 1), "a formula is missing here",
                  "write a number or a formula such as -x + sin(t)");
    bool expect_operand = true;
    while (token_.kind != Kind::end) {
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
    condition ? need_truth(result, "when") : need_number(result);
    return result.expr;
  }

 private:
  struct Value {
    Expr expr;
    size_t begin = 0, end = 0;
  };
  struct Waiting {
    enum { operation, bracket } kind = operation;
    Op op = Op::number;
    size_t begin = 0, end = 0;
    const Function* function = nullptr;  // of a bracket that is a call
    size_t name_begin = 0;
    int arguments = 1;
  };

  /// At a place where a value must start. Returns whether a value is still expected afterwards.
  bool operand() {
    const Token token = token_;
    switch (token.kind) {
      case Kind::number: push({Expr(token.value), token.begin, token.end}); return false;
      case Kind::name: return name(token);
      case Kind::open:
        waiting_.push_back({.kind = Waiting::bracket, .begin = token.begin, .end = token.end});
        token_ = lexer_.next();
        return true;
      case Kind::op:
        if (token.text == "-" || token.text == "not") {
          waiting_.push_back(
              {.op = token.text == "-" ? Op::neg : Op::negation, .begin = token.begin, .end = token.end});
          token_ = lexer_.next();
          return true;
        }
        if (token.text == "+" && (waiting_.empty() || waiting_.back().kind == Waiting::bracket)) {
          token_ = lexer_.next();  // a leading plus says nothing
          if (token_.kind == Kind::end) {
            lexer_.fail(token.begin, token.end, "nothing follows '+'", "a number, a name or a bracket belongs here");
          }
          return true;
        }
        [[fallthrough]];
      default:
        lexer_.fail(token.begin, token.end, fmt::format("a value is missing before '{}'", token.text),
                    "a number, a name or a bracket belongs here");
    }
  }

  bool name(const Token& token) {
    const Token following = lexer_.next();
    if (following.kind == Kind::open) {
      const Function* function = find_function(token.text);
      if (!function) unknown_function(token, following.end);
      waiting_.push_back({.kind = Waiting::bracket,
                          .begin = following.begin,
                          .end = following.end,
                          .function = function,
                          .name_begin = token.begin});
      token_ = lexer_.next();
      if (token_.kind == Kind::close) {
        wrong_arguments(*function, 0, token.begin, token_.end);
      }
      return true;
    }
    token_ = following;
    const Names::Entry* entry = names_.find(token.text);
    if (!entry) {
      if (find_function(token.text)) {
        lexer_.fail(token.begin, token.end, fmt::format("'{}' is a function", token.text),
                    fmt::format("write {}(...)", token.text));
      }
      lexer_.fail(token.begin, token.end, fmt::format("unknown name '{}'", token.text), names_.suggestion(token.text));
    }
    if (!entry->forbidden.empty())
      lexer_.fail(token.begin, token.end, fmt::format("'{}' cannot be used here", token.text), entry->forbidden);
    values_.push_back({entry->meaning, token.begin, token.end});
    return false;
  }

  [[noreturn]] void unknown_function(const Token& token, size_t inside) {
    if (names_.find(token.text)) {
      const bool of_time = std::string_view(formula_.text).substr(inside).starts_with("t)");
      lexer_.fail(token.begin, token.end, fmt::format("'{}' is not a function", token.text),
                  of_time ? fmt::format("write {} alone: states and names depend on time by themselves", token.text)
                          : fmt::format("multiplication is written out: {}*(...)", token.text));
    }
    std::string hint;
    if (const std::string_view ours = foreign_function(token.text); ours == "^") {
      hint = "power is written a^b";
    } else if (!ours.empty()) {
      hint = fmt::format("it is called '{}' here", ours);
    } else {
      std::vector<std::string> known;
      for (const Function& f : functions) known.emplace_back(f.name);
      const std::string near = nearest_name(token.text, known);
      hint =
          near.empty() ? fmt::format("functions: {}", fmt::join(known, " ")) : fmt::format("did you mean '{}'?", near);
    }
    lexer_.fail(token.begin, token.end, fmt::format("unknown function '{}'", token.text), hint);
  }

  /// After a complete value. Returns whether another value must follow.
  bool continuation() {
    const Token token = token_;
    switch (token.kind) {
      case Kind::op: {
        if (token.text == "not") missing_operator(token);
        const Op op = binary(token.text);
        reduce(op == Op::pow ? precedence(op) + 1 : precedence(op));
        if (precedence(op) == 4 && values_.back().expr.is_truth()) {
          lexer_.fail(values_.back().begin, token.end, "comparisons cannot be chained", "write a < b and b < c");
        }
        waiting_.push_back({.op = op, .begin = token.begin, .end = token.end});
        token_ = lexer_.next();
        return true;
      }
      case Kind::close:
        close(token);
        token_ = lexer_.next();
        return false;
      case Kind::comma:
        reduce(0);
        if (waiting_.empty() || !waiting_.back().function) {
          lexer_.fail(token.begin, token.end, "a comma outside of a function call",
                      "decimal numbers have a point: 0.5");
        }
        ++waiting_.back().arguments;
        token_ = lexer_.next();
        return true;
      default: missing_operator(token);
    }
  }

  [[noreturn]] void missing_operator(const Token& token) {
    const Value& left = values_.back();
    lexer_.fail(token.begin, token.end, fmt::format("an operator is missing before '{}'", token.text),
                left.end - left.begin < 40 ? fmt::format("multiplication is written out: {}*{}",
                                                         formula_.text.substr(left.begin, left.end - left.begin),
                                                         token.kind == Kind::open ? "(...)" : token.text)
                                           : "multiplication is written out: a*b");
  }

  static Op binary(std::string_view text) {
    if (text == "+") return Op::add;
    if (text == "-") return Op::sub;
    if (text == "*") return Op::mul;
    if (text == "/") return Op::div;
    if (text == "^") return Op::pow;
    if (text == "<") return Op::less;
    if (text == ">") return Op::greater;
    if (text == "<=") return Op::less_equal;
    if (text == ">=") return Op::greater_equal;
    if (text == "and") return Op::both;
    assert(text == "or");
    return Op::either;
  }

  void push(Value value) {
    values_.push_back(std::move(value));
    token_ = lexer_.next();
  }

  /// Finishes the waiting operations that bind at least as tightly as `level`, up to the last open bracket.
  void reduce(int level) {
    while (!waiting_.empty() && waiting_.back().kind == Waiting::operation && precedence(waiting_.back().op) >= level) {
      const Waiting w = waiting_.back();
      waiting_.pop_back();
      const bool wants_truth = w.op == Op::both || w.op == Op::either || w.op == Op::negation;
      if (op_arity(w.op) == 1) {
        Value& x = values_.back();
        wants_truth ? need_truth(x, op_name(w.op)) : need_number(x);
        x = {Expr::raw(w.op, std::array{x.expr}), w.begin, x.end};
        continue;
      }
      Value right = std::move(values_.back());
      values_.pop_back();
      Value& left = values_.back();
      for (const Value* v : {&left, &right}) wants_truth ? need_truth(*v, op_name(w.op)) : need_number(*v);
      left = {Expr::raw(w.op, std::array{left.expr, right.expr}), left.begin, right.end};
    }
  }

  void close(const Token& token) {
    reduce(0);
    if (waiting_.empty()) {
      lexer_.fail(token.begin, token.end, "a closing bracket without its opening one",
                  "remove it or open a bracket before it");
    }
    const Waiting w = waiting_.back();
    waiting_.pop_back();
    if (!w.function) {
      values_.back().begin = w.begin;
      values_.back().end = token.end;
      return;
    }
    call(w, token);
  }

  void call(const Waiting& w, const Token& token) {
    const Function& f = *w.function;
    const bool holds = f.op == Op::sign && w.arguments == 2;
    if (w.arguments != op_arity(f.op) && !holds) {
      wrong_arguments(f, w.arguments, w.name_begin, token.end);
    }
    std::array<Expr, 3> a;
    const size_t n = static_cast<size_t>(w.arguments);
    for (size_t i = 0; i < n; ++i) {
      const Value& v = values_[values_.size() - n + i];
      if (f.op == Op::select && i == 0) {
        need_truth(v, "if");
      } else {
        need_number(v);
      }
      a[i] = v.expr;
    }
    values_.resize(values_.size() - n);
    values_.push_back({Expr::raw(holds ? Op::hold_sign : f.op, std::span(a.data(), n)), w.name_begin, token.end});
  }

  [[noreturn]] void wrong_arguments(const Function& f, int given, size_t begin, size_t end) const {
    static constexpr std::array<std::string_view, 4> counts{"no argument", "one argument", "two arguments",
                                                            "three arguments"};
    const size_t wanted = static_cast<size_t>(op_arity(f.op)), n = static_cast<size_t>(given);
    lexer_.fail(begin, end,
                fmt::format("'{}' has {} here instead of {}", f.name,
                            n < counts.size() ? std::string(counts[n]) : fmt::format("{} arguments", n),
                            counts[wanted].substr(0, counts[wanted].find(' '))),
                fmt::format("write {}", usage(f)));
  }

  static std::string usage(const Function& f) {
    switch (f.op) {
      case Op::sign: return "sign(v), or sign(v, ratio) for static friction";
      case Op::select: return "if(condition, then, else)";
      case Op::sat: return "sat(e, low, high)";
      case Op::mod: return "mod(e, period)";
      case Op::atan2: return "atan2(y, x)";
      default: return fmt::format("{}({})", f.name, op_arity(f.op) == 1 ? "x" : "a, b");
    }
  }

  void need_number(const Value& v) const {
    if (!v.expr.is_truth()) return;
    lexer_.fail(v.begin, v.end, "a comparison where a number is needed", "choose the numbers with if(condition, a, b)");
  }

  void need_truth(const Value& v, std::string_view where) const {
    if (v.expr.is_truth()) return;
    lexer_.fail(v.begin, v.end, fmt::format("'{}' needs a comparison here", where), "for example v > 0");
  }

  [[noreturn]] void missing_bracket(const Waiting& w) const {
    size_t last = formula_.text.size();
    while (last > 0 && std::isspace(static_cast<unsigned char>(formula_.text[last - 1]))) --last;
    Error error(ErrorKind::model, "a closing bracket ')' is missing", formula_.place(last, 1),
                "close the bracket with ')' where it ends");
    error.also("the bracket opened here is never closed", formula_.place(w.begin, 1));
    throw error;
  }

  const Fragment& formula_;
  const Names& names_;
  Lexer lexer_;
  Token token_;
  std::vector<Value> values_;
  std::vector<Waiting> waiting_;
};

}  // namespace

bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_part(char c) { return is_name_start(c) || std::isdigit(static_cast<unsigned char>(c)); }

bool is_name(std::string_view text) {
  if (text.empty() || !is_name_start(text[0])) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_name_part(text[i]) || printed_sign(text.substr(i))) return false;
  }
  return true;
}

bool is_function_name(std::string_view name) { return find_function(name) != nullptr; }

bool is_reserved_name(std::string_view name) {
  return name == "t" || name == "pi" || name == "e" || name == "and" || name == "or" || name == "not" ||
         is_function_name(name);
}

Names::Names() {
  add("t", time_symbol(), "time");
  add("pi", pi(), "3.14159...");
  add("e", euler(), "2.71828...");
}

void Names::add(std::string_view name, Expr meaning, std::string_view role) {
  entries_.insert_or_assign(std::string(name), Entry{std::move(meaning), std::string(role), {}});
}

void Names::forbid(std::string_view name, std::string_view why) {
  entries_.insert_or_assign(std::string(name), Entry{0.0, "", std::string(why)});
}

const Names::Entry* Names::find(std::string_view name) const {
  const auto it = entries_.find(std::string(name));
  return it == entries_.end() ? nullptr : &it->second;
}

std::string Names::suggestion(std::string_view wrong) const {
  std::vector<std::string> known;
  for (const auto& [name, entry] : entries_) {
    if (entry.forbidden.empty()) known.push_back(name);
  }
  std::sort(known.begin(), known.end());
  const std::string near = nearest_name(wrong, known);
  if (near.empty()) return hint_;
  return fmt::format("did you mean '{}' ({})?", near, find(near)->role);
}

Expr parse(const Fragment& formula, const Names& names) { return Parser(formula, names).run(false); }
Expr parse_condition(const Fragment& formula, const Names& names) { return Parser(formula, names).run(true); }

}  // namespace saltus
