#include "expr/lexer.hpp"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "expr/letters.hpp"

namespace saltus {

Token Lexer::next() {
  while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  if (at_ == text_.size()) return {TokenKind::end, at_, at_, 0, {}};
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

std::optional<std::pair<size_t, size_t>> Lexer::index() {
  size_t open = at_;
  while (open < text_.size() && std::isspace(static_cast<unsigned char>(text_[open]))) ++open;
  if (open == text_.size() || text_[open] != '[') return std::nullopt;
  const size_t close = text_.find_first_of("[]", open + 1);
  if (close == text_.npos || text_[close] == '[')
    fail(open, open + 1, "this index is not closed", "an index is written x[i], x[i-1] or x[3]");
  at_ = close + 1;
  return std::pair(open + 1, close);
}

size_t Lexer::primes() {
  const size_t begin = at_;
  while (at_ < text_.size() && text_[at_] == '\'') ++at_;
  return at_ - begin;
}

void Lexer::fail(size_t begin, size_t end, std::string message, std::string hint) const {
  throw Error(ErrorKind::model, std::move(message), formula_.place(begin, end - begin), std::move(hint));
}

Token Lexer::number() {
  Token token{.kind = TokenKind::number, .begin = at_};
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
  if (at_ < text_.size() && is_name_part(text_[at_]) && !printed_sign(text_.substr(at_))) {
    size_t end = at_;
    while (end < text_.size() && is_name_part(text_[end])) ++end;
    fail(token.begin, end,
         fmt::format("'{}' is neither a number nor a name", text_.substr(token.begin, end - token.begin)),
         fmt::format("multiplication is written out: {}*{}", token.text, text_.substr(at_, end - at_)));
  }
  return token;
}

Token Lexer::word() {
  Token token{.kind = TokenKind::name, .begin = at_};
  const auto goes_on = [&] {
    if (static_cast<unsigned char>(text_[at_]) < 0x80) return is_name_part(text_[at_]);
    return !printed_sign(text_.substr(at_)) && foreign_character(text_.substr(at_)) == 0;
  };
  while (at_ < text_.size() && goes_on()) ++at_;
  token.end = at_;
  token.text = text_.substr(token.begin, at_ - token.begin);
  if (token.text == "and" || token.text == "or" || token.text == "not") token.kind = TokenKind::op;
  return token;
}

Token Lexer::mark() {
  refuse_mark();
  const size_t begin = at_;
  const auto token = [&](TokenKind kind, size_t length) {
    at_ += length;
    return Token{kind, begin, at_, 0, text_.substr(begin, length)};
  };
  const std::string_view two = text_.substr(at_, 2);
  if (two == "<=" || two == ">=" || two == "==" || two == "!=") return token(TokenKind::op, 2);
  switch (text_[at_]) {
    case '(': return token(TokenKind::open, 1);
    case ')': return token(TokenKind::close, 1);
    case ';':
    case ',': return token(TokenKind::comma, 1);
    default: return token(TokenKind::op, 1);
  }
}

/// Complains about a mark that no formula contains.
void Lexer::refuse_mark() const {
  const size_t begin = at_;
  const char c = text_[at_];
  const std::string_view two = text_.substr(at_, 2);
  if (two == "**") fail(begin, begin + 2, "'**' is not an operator", "power is written '^'");
  if (two == "&&") fail(begin, begin + 2, "'&&' is not an operator", "write 'and'");
  if (two == "||") fail(begin, begin + 2, "'||' is not an operator", "write 'or'");
  if (indexed_ && (two == "==" || two == "!=")) return;
  if (two == "==" || two == "!=" || two == "~=") {
    fail(begin, begin + 2, fmt::format("'{}' is not an operator", two),
         "a surface separates two sides: compare with '<' or '>'");
  }
  switch (c) {
    case '+':
    case '-':
    case '*':
    case '/':
    case '^':
    case '<':
    case '>':
    case '(':
    case ')':
    case ';':
    case ',': return;
    case '!': fail(begin, begin + 1, "'!' is not an operator", "write 'not'");
    case '=': fail(begin, begin + 1, "'=' inside a formula", "an equation has one '='; compare with '<' or '>'");
    case '\'':
      fail(begin, begin + 1, "a prime stands behind a name only", "the rate of x is x', that of x[i] is x[i]'");
    case '[':
    case ']':
      fail(begin, begin + 1, fmt::format("'{}' stands only after a name", c),
           "an index is written x[i]; elsewhere use round brackets ( )");
    case '{':
    case '}': fail(begin, begin + 1, fmt::format("'{}' is not used in formulas", c), "use round brackets ( )");
    case '%': fail(begin, begin + 1, "'%' is not an operator", "write mod(a, b); comments start with '#'");
    case '|':
      fail(begin, begin + 1, "'|' is not used in formulas", "write abs(x) for |x|, and 'or' between conditions");
    case '?': fail(begin, begin + 1, "'?' is not an operator", "write if(condition, a, b)");
    default: break;
  }
  size_t end = at_ + 1;
  while (end < text_.size() && (text_[end] & 0xC0) == 0x80) ++end;
  const bool printable = static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) != 0x7f;
  fail(begin, end,
       printable ? fmt::format("unexpected character '{}'", text_.substr(begin, end - begin))
                 : fmt::format("unexpected character with code {}", static_cast<int>(static_cast<unsigned char>(c))));
}

}  // namespace saltus
