#include "expr/parse.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace saltus {
namespace {

/// How a call becomes a formula: as its operation, or as one made of others.
enum class Call { operation, ceil, round, sum };

struct Function {
  std::string_view name;
  Op op;
  Call call = Call::operation;
};

constexpr std::array<Function, 31> functions{{
    {"sin", Op::sin},
    {"cos", Op::cos},
    {"tan", Op::tan},
    {"asin", Op::asin},
    {"acos", Op::acos},
    {"atan", Op::atan},
    {"atan2", Op::atan2},
    {"sinh", Op::sinh},
    {"cosh", Op::cosh},
    {"tanh", Op::tanh},
    {"exp", Op::exp},
    {"log", Op::log},
    {"sqrt", Op::sqrt},
    {"cbrt", Op::cbrt},
    {"sign", Op::sign},
    {"abs", Op::abs},
    {"min", Op::min},
    {"max", Op::max},
    {"sat", Op::sat},
    {"step", Op::step},
    {"if", Op::select},
    {"mod", Op::mod},
    {"floor", Op::floor},
    {"hypot", Op::hypot},
    {"log10", Op::log10},
    {"log2", Op::log2},
    {"expm1", Op::expm1},
    {"log1p", Op::log1p},
    {"ceil", Op::floor, Call::ceil},
    {"round", Op::floor, Call::round},
    {"sum", Op::add, Call::sum},
}};

const Function* find_function(std::string_view name) {
  const auto it = std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.name == name; });
  return it == functions.end() ? nullptr : &*it;
}

/// What people write who come from other languages, and what it is called here.
std::string_view foreign_function(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 19> table{{
      {"sgn", "sign"},       {"ceiling", "ceil"},   {"signum", "sign"}, {"ln", "log"},      {"fabs", "abs"},
      {"heaviside", "step"}, {"Heaviside", "step"}, {"arcsin", "asin"}, {"arccos", "acos"}, {"arctan", "atan"},
      {"arctan2", "atan2"},  {"fmod", "mod"},       {"rem", "mod"},     {"clamp", "sat"},   {"ifelse", "if"},
      {"where", "if"},       {"Abs", "abs"},        {"Sign", "sign"},   {"pow", "^"},
  }};
  for (const auto& [foreign, ours] : table) {
    if (foreign == name) return ours;
  }
  return {};
}

/// Signs that come with text copied from papers and word processors, and how they are typed.
const std::pair<std::string_view, std::string_view>* printed_sign(std::string_view text) {
  if (text.empty() || static_cast<unsigned char>(text[0]) < 0x80) return nullptr;
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

/// Bytes of a character that is no letter of any script (an arrow, a root sign, a picture), or 0.
size_t foreign_character(std::string_view text) {
  const auto byte = [&](size_t i) -> unsigned { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  if (byte(0) < 0xC2) return 0;
  if (byte(0) < 0xE0) {
    const unsigned code = (byte(0) & 0x1Fu) << 6 | (byte(1) & 0x3Fu);
    return code < 0xAA || code == 0xAB || code == 0xAC || code == 0xB1 || code == 0xBF || code == 0xD7 || code == 0xF7
               ? 2
               : 0;
  }
  if (byte(0) < 0xF0) {
    const unsigned code = (byte(0) & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    const bool letterlike = (code >= 0x2070 && code <= 0x209F) || (code >= 0x2100 && code <= 0x214F);
    return (code >= 0x2000 && code <= 0x2BFF && !letterlike) || (code >= 0x3000 && code <= 0x3004) ? 3 : 0;
  }
  const unsigned code = (byte(0) & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
  return code >= 0x1F000 && code <= 0x1FBFF ? 4 : 0;
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
  /// `indexed`: indices are numbers that may also be equal.
  Lexer(const Fragment& formula, bool indexed) : formula_(formula), text_(formula.text), indexed_(indexed) {}

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
    if (is_name_start(c) && foreign_character(text_.substr(at_)) == 0) return word();
    return mark();
  }

  /// The places between [ and ] if that is what follows.
  std::optional<std::pair<size_t, size_t>> index() {
    size_t open = at_;
    while (open < text_.size() && std::isspace(static_cast<unsigned char>(text_[open]))) ++open;
    if (open == text_.size() || text_[open] != '[') return std::nullopt;
    const size_t close = text_.find_first_of("[]", open + 1);
    if (close == text_.npos || text_[close] == '[')
      fail(open, open + 1, "this index is not closed", "an index is written x[i], x[i-1] or x[3]");
    at_ = close + 1;
    return std::pair(open + 1, close);
  }

  size_t at() const { return at_; }
  void go_to(size_t at) { at_ = at; }

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
    const auto goes_on = [&] {
      if (static_cast<unsigned char>(text_[at_]) < 0x80) return is_name_part(text_[at_]);
      return !printed_sign(text_.substr(at_)) && foreign_character(text_.substr(at_)) == 0;
    };
    while (at_ < text_.size() && goes_on()) ++at_;
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
    if (indexed_ && (two == "==" || two == "!=")) return token(Kind::op, 2);
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
        fail(begin, begin + 1, fmt::format("'{}' stands only after a name", c),
             "an index is written x[i]; elsewhere use round brackets ( )");
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
  bool indexed_;
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

/// What a formula is read for: its value, whether it holds, or which index it is.
enum class Wanted { number, truth, index };

struct Context {
  const Names& names;
  const Indices& indices;
  Wanted wanted = Wanted::number;
  int depth = 0;  ///< of sums in sums
};

constexpr int deepest_sum = 8;
constexpr double largest_formula = 2e6;  ///< written out, in numbers, names and operations

/// Shunting-yard: operators wait on one stack, finished formulas on another; no recursion (but for sums in sums, a
/// few), so no depth limit.
class Parser {
 public:
  Parser(const Fragment& formula, const Context& context)
      : formula_(formula), context_(context), names_(context.names), lexer_(formula, !context.indices.empty()) {}

  Expr run() {
    Value result = value();
    if (result.trouble) throw *result.trouble;
    return result.expr;
  }

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
    const Function* function = nullptr;  // of a bracket that is a call
    const UserFunction* user = nullptr;  // likewise
    size_t name_begin = 0;
    int arguments = 1;
  };

  Value value() {
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
    context_.wanted == Wanted::truth ? need_truth(result, "when") : need_number(result);
    return result;
  }

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
    if (const auto inside = lexer_.index()) return indexed(token, inside->first, inside->second);
    const std::string text(token.text);
    const Token following = lexer_.next();
    if (following.kind == Kind::open) return open_call(token, text, following);
    token_ = following;
    if (const auto whole = whole_number(text)) {
      values_.push_back({Expr(*whole), token.begin, token.end});
      return false;
    }
    const Names::Entry* entry = names_.find(text);
    if (!entry || context_.wanted == Wanted::index) unknown_name(token, text);
    if (!entry->forbidden.empty())
      lexer_.fail(token.begin, token.end, fmt::format("'{}' cannot be used here", token.text), entry->forbidden);
    values_.push_back({entry->meaning, token.begin, token.end});
    return false;
  }

  bool open_call(const Token& token, const std::string& text, const Token& open) {
    const Function* function = find_function(token.text);
    const UserFunction* user = function ? nullptr : names_.find_function(text);
    if (!function && !user) unknown_function(token, text, open.end);
    if (function && function->call == Call::sum) return sum(token, open);
    waiting_.push_back({.kind = Waiting::bracket,
                        .begin = open.begin,
                        .end = open.end,
                        .function = function,
                        .user = user,
                        .name_begin = token.begin});
    token_ = lexer_.next();
    if (token_.kind == Kind::close) wrong_arguments(waiting_.back(), 0, token_.end);
    return true;
  }

  /// What an index name stands for; in an index also a parameter that is a whole number.
  std::optional<double> whole_number(const std::string& text) const {
    for (const auto& [name, value] : context_.indices) {
      if (name == text) return static_cast<double>(value);
    }
    const double* whole = context_.wanted == Wanted::index ? names_.find_whole(text) : nullptr;
    return whole ? std::optional(*whole) : std::nullopt;
  }

  [[noreturn]] void unknown_name(const Token& token, const std::string& text) const {
    if (find_function(text)) {
      lexer_.fail(token.begin, token.end, fmt::format("'{}' is a function", text), fmt::format("write {}(...)", text));
    }
    if (names_.find_function(text))
      lexer_.fail(token.begin, token.end, fmt::format("'{}' is a function", text), fmt::format("write {}(...)", text));
    if (context_.wanted == Wanted::index)
      lexer_.fail(token.begin, token.end, fmt::format("'{}' cannot stand in an index", text),
                  "indices are made of whole numbers, index names (for i = 1..N) and parameters");
    if (const auto* range = names_.find_indexed(text))
      lexer_.fail(token.begin, token.end, fmt::format("'{}' needs an index", text),
                  fmt::format("write {}[{}] up to {}[{}], or {}[i] with 'for i = ...'", text, range->first, text,
                              range->last, text));
    if (const auto why = names_.why_not(text); !why.empty())
      lexer_.fail(token.begin, token.end, fmt::format("'{}' cannot be used here", text), std::string(why));
    lexer_.fail(token.begin, token.end, fmt::format("unknown name '{}'", text), names_.suggestion(text));
  }

  /// x[i-1]
  bool indexed(const Token& token, size_t begin, size_t end) {
    const size_t close = end + 1;
    const std::string stem(token.text);
    token_ = lexer_.next();
    const std::string text = fmt::format("{}[{}]", stem, index_value(formula_, begin, end, context_));
    Value value{Expr(0.0), token.begin, close};
    if (const Names::Entry* entry = context_.wanted == Wanted::index ? nullptr : names_.find(text)) {
      if (!entry->forbidden.empty())
        lexer_.fail(token.begin, close, fmt::format("'{}' cannot be used here", text), entry->forbidden);
      value.expr = entry->meaning;
    } else {
      value.trouble = unknown_index(token, close, stem, text);
    }
    values_.push_back(std::move(value));
    return false;
  }

  std::shared_ptr<const Error> unknown_index(const Token& token, size_t end, const std::string& stem,
                                             const std::string& text) const {
    const auto error = [&](std::string message, std::string hint) {
      return std::make_shared<const Error>(ErrorKind::model, std::move(message),
                                           formula_.place(token.begin, end - token.begin), std::move(hint));
    };
    if (context_.wanted == Wanted::index)
      return error(fmt::format("'{}' cannot stand in an index", text), "an index is a number that does not change");
    if (const auto why = names_.why_not(text); !why.empty())
      return error(fmt::format("'{}' cannot be used here", text), std::string(why));
    if (const auto* range = names_.find_indexed(stem))
      return error(
          fmt::format("there is no {}", text),
          fmt::format("{} has the indices {} to {}: let other lines say what holds at the ends, or choose with "
                      "if(i > {}, ..., ...)",
                      stem, range->first, range->last, range->first));
    if (names_.find(stem)) return error(fmt::format("'{}' has no index", stem), fmt::format("write {} alone", stem));
    return error(fmt::format("unknown name '{}'", text),
                 names_.suggestion(stem).starts_with("did you mean")
                     ? names_.suggestion(stem)
                     : fmt::format("give it an equation: {}[i]' = ... for i = 1..N", stem));
  }

 public:
  /// The whole number written between two places of a text.
  static long index_value(const Fragment& text, size_t begin, size_t end, const Context& context) {
    if (const auto simple = simple_index(std::string_view(text.text).substr(begin, end - begin), context))
      return *simple;
    const Fragment part = text.part(begin, end - begin);
    const Expr index = Parser(part, {context.names, context.indices, Wanted::index, context.depth}).run();
    const double value = evaluate(index, [](const Symbol&) { return NAN; });
    if (!(std::abs(value) <= 1e9) || value != std::floor(value))
      throw Error(ErrorKind::model, fmt::format("the index is {}", value), part.place(0, part.text.size()),
                  "an index is a whole number");
    return static_cast<long>(value);
  }

 private:
  /// 3, i, i-1 and i+1, as nearly all are.
  static std::optional<long> simple_index(std::string_view text, const Context& context) {
    long shift = 0;
    size_t length = text.size();
    if (const size_t sign = text.find_first_of("+-"); sign != text.npos && sign > 0) {
      const char* last = text.data() + text.size();
      if (std::from_chars(text.data() + sign + 1, last, shift).ptr != last || shift < 0) return std::nullopt;
      if (text[sign] == '-') shift = -shift;
      length = sign;
    }
    text = text.substr(0, length);
    for (const auto& [name, value] : context.indices) {
      if (name == text) return value + shift;
    }
    long value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || end != text.data() + text.size() || value > 1'000'000'000) return std::nullopt;
    return value + shift;
  }

  /// sum(term for j = 1..N)
  bool sum(const Token& token, const Token& open) {
    const size_t close = closing_bracket(open);
    const std::string_view inside = std::string_view(formula_.text).substr(open.end, close - open.end);
    const size_t word = find_for(inside);
    if (word == inside.npos)
      lexer_.fail(token.begin, close + 1, "this sum has no range", "write sum(x[j] for j = 1..N)");
    if (context_.depth >= deepest_sum)
      lexer_.fail(token.begin, close + 1, "too many sums in each other", "give the inner ones a name of their own");
    const IndexRange range = parse_range(formula_.part(open.end + word + 3, inside.size() - word - 3), context_);
    const Fragment term = formula_.part(open.end, word);
    Value total{Expr(0.0), token.begin, close + 1};
    Indices indices = context_.indices;
    indices.emplace_back(range.name, 0);
    for (long k = range.first; k <= range.last; ++k) {
      indices.back().second = k;
      Value next = Parser(term, {names_, indices, context_.wanted, context_.depth + 1}).value();
      total.size += next.size + 1;
      check_size(total);
      if (!total.trouble) total.trouble = next.trouble;
      total.expr = k == range.first ? next.expr : Expr::raw(Op::add, std::array{total.expr, next.expr});
    }
    values_.push_back(std::move(total));
    lexer_.go_to(close + 1);
    token_ = lexer_.next();
    return false;
  }

  size_t closing_bracket(const Token& open) const {
    int depth = 0;
    for (size_t i = open.begin; i < formula_.text.size(); ++i) {
      depth += formula_.text[i] == '(' ? 1 : formula_.text[i] == ')' ? -1 : 0;
      if (depth == 0) return i;
    }
    missing_bracket({.begin = open.begin, .end = open.end});
  }

  void check_size(const Value& v) const {
    if (v.size <= largest_formula) return;
    lexer_.fail(v.begin, v.end, fmt::format("this stands for a formula of more than {:.0f} terms", largest_formula),
                "give parts of it a name (name = ...) and use the names");
  }

 public:
  static IndexRange parse_range(const Fragment& text, const Context& context) {
    const size_t equals = text.text.find('='), dots = text.text.find("..", equals == text.text.npos ? 0 : equals);
    const auto fail = [&](size_t begin, size_t length, std::string message, std::string hint) {
      throw Error(ErrorKind::model, std::move(message), text.place(begin, std::max<size_t>(length, 1)),
                  std::move(hint));
    };
    if (equals == text.text.npos || dots == text.text.npos)
      fail(0, text.text.size(), "this is no range of an index", "write i = 1..N");
    size_t begin = 0, end = equals;
    while (begin < end && std::isspace(static_cast<unsigned char>(text.text[begin]))) ++begin;
    while (end > begin && std::isspace(static_cast<unsigned char>(text.text[end - 1]))) --end;
    IndexRange range{.name = text.text.substr(begin, end - begin)};
    if (!is_name(range.name) || is_reserved_name(range.name))
      fail(begin, end - begin, fmt::format("'{}' cannot be the name of an index", range.name), "write i = 1..N");
    bool known = context.names.find(range.name) || context.names.find_indexed(range.name);
    for (const auto& [name, value] : context.indices) known = known || name == range.name;
    if (known)
      fail(begin, end - begin, fmt::format("'{}' has a meaning already", range.name),
           "choose another name for the index");
    range.first = index_value(text, equals + 1, dots, context);
    range.last = index_value(text, dots + 2, text.text.size(), context);
    if (range.last - range.first >= 10'000'000)
      fail(equals + 1, text.text.size() - equals - 1, "this range is too long", "10 000 000 indices are the most");
    return range;
  }

 private:
  [[noreturn]] void unknown_function(const Token& token, const std::string& text, size_t inside) {
    if (names_.find(text)) {
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
      std::vector<std::string> known = names_.function_names();
      const std::string own = nearest_name(token.text, known);
      known.clear();
      for (const Function& f : functions) known.emplace_back(f.name);
      const std::string near = own.empty() ? nearest_name(token.text, known) : own;
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
        waiting_.push_back(
            {.op = op, .equality = token.text[0] == '!' || token.text == "==", .begin = token.begin, .end = token.end});
        token_ = lexer_.next();
        return true;
      }
      case Kind::close:
        close(token);
        token_ = lexer_.next();
        return false;
      case Kind::comma:
        reduce(0);
        if (waiting_.empty() || !(waiting_.back().function || waiting_.back().user)) {
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
    if (text == "==" || text == "!=") return Op::less;  // of indices: decided when both sides are known
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

  /// Indices may be equal; anything else that changes is compared with < or >.
  Expr equality(const Waiting& w, const Value& left, const Value& right) const {
    const auto a = known_value(left.expr), b = known_value(right.expr);
    const std::string text = formula_.text.substr(w.begin, w.end - w.begin);
    if (!a || !b)
      lexer_.fail(w.begin, w.end, fmt::format("'{}' is not an operator", text),
                  "only indices are equal or not; a surface separates two sides: compare with '<' or '>'");
    const bool holds = (*a == *b) == (text == "==");
    return Expr::raw(Op::less, std::array{Expr(0.0), Expr(holds ? 1.0 : 0.0)});
  }

  /// The value of a formula of numbers alone.
  static std::optional<double> known_value(const Expr& e) {
    for (const Expr& node : postorder(std::span(&e, 1))) {
      if (node.is_symbol()) return std::nullopt;
    }
    return evaluate(e, [](const Symbol&) { return NAN; });
  }

  void close(const Token& token) {
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

  void call(const Waiting& w, const Token& token) {
    if (w.user) return call_user(w, token);
    const Function& f = *w.function;
    const bool holds = f.op == Op::sign && w.arguments == 2;
    const bool any_number = (f.op == Op::min || f.op == Op::max) && w.arguments > 2;
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
      result.expr = called(f, holds, a);
    }
    values_.resize(values_.size() - n);
    values_.push_back(std::move(result));
  }

  /// The truth of a condition on an index, which may also use parameters: i < N.
  std::optional<double> decide(const Value& condition) const {
    if (!mentions_index(condition)) return std::nullopt;
    for (const Expr& node : postorder(std::span(&condition.expr, 1))) {
      if (node.is_symbol() && !node.is_symbol(SymbolKind::parameter)) return std::nullopt;
    }
    return evaluate(condition.expr, [&](const Symbol& s) {
      const double* value = names_.find_whole(s.name);
      return value ? *value : NAN;
    });
  }

  bool mentions_index(const Value& v) const {
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

  static Expr called(const Function& f, bool holds, const std::vector<Expr>& a) {
    const auto one = [](Op op, const Expr& x) { return Expr::raw(op, std::array{x}); };
    switch (f.call) {
      case Call::ceil: return one(Op::neg, one(Op::floor, one(Op::neg, a[0])));
      case Call::round: return one(Op::floor, Expr::raw(Op::add, std::array{a[0], Expr(0.5)}));
      default: break;
    }
    if (a.size() <= 3 && static_cast<int>(a.size()) == op_arity(holds ? Op::hold_sign : f.op))
      return Expr::raw(holds ? Op::hold_sign : f.op, a);
    Expr result = a[0];  // max(a, b, c) is max(max(a, b), c)
    for (size_t i = 1; i < a.size(); ++i) result = Expr::raw(f.op, std::array{result, a[i]});
    return result;
  }

  void call_user(const Waiting& w, const Token& token) {
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

  [[noreturn]] void wrong_arguments(const Waiting& w, int given, size_t end) const {
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
                       : fmt::format("write {}", usage(*w.function)));
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
  const Context context_;
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
    if (!is_name_part(text[i]) || printed_sign(text.substr(i)) || foreign_character(text.substr(i)) > 0) return false;
  }
  return true;
}

bool is_function_name(std::string_view name) { return find_function(name) != nullptr; }

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

void Names::add_indexed(std::string_view stem, long first, long last) {
  indexed_.insert_or_assign(std::string(stem), Range{first, last});
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

Expr parse(const Fragment& formula, const Names& names, const Indices& indices) {
  return Parser(formula, {names, indices}).run();
}
Expr parse_condition(const Fragment& formula, const Names& names, const Indices& indices) {
  return Parser(formula, {names, indices, Wanted::truth}).run();
}

std::string IndexedName::text() const { return fmt::format("{}[{}]", stem.text, index); }

std::optional<IndexedName> parse_indexed_name(const Fragment& text, const Names& names, const Indices& indices) {
  const size_t open = text.text.find('['), close = text.text.find_last_not_of(" \t");
  if (open == text.text.npos || open == 0 || text.text[close] != ']' ||
      text.text.find_first_of("[]", open + 1) != close)
    return std::nullopt;
  const size_t end = text.text.find_last_not_of(" \t", open - 1);
  if (end == text.text.npos || !is_name(std::string_view(text.text).substr(0, end + 1))) return std::nullopt;
  return IndexedName{text.part(0, end + 1), Parser::index_value(text, open + 1, close, {names, indices})};
}

IndexRange parse_index_range(const Fragment& text, const Names& names, const Indices& indices) {
  return Parser::parse_range(text, {names, indices});
}

size_t find_for(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth != 0 || !text.substr(i).starts_with("for")) continue;
    const bool begins = i == 0 || !is_name_part(text[i - 1]);
    const bool ends = i + 3 == text.size() || !is_name_part(text[i + 3]);
    if (begins && ends) return i;
  }
  return text.npos;
}

std::vector<std::string> called_functions(std::string_view formula) {
  std::vector<std::string> names;
  for (size_t i = 0; i < formula.size();) {
    if (!is_name_start(formula[i])) {
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < formula.size() && is_name_part(formula[i])) ++i;
    const size_t next = formula.find_first_not_of(" \t", i);
    if (next != formula.npos && formula[next] == '(') names.emplace_back(formula.substr(begin, i - begin));
  }
  return names;
}

}  // namespace saltus
