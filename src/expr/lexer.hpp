// Cuts a formula into tokens, complaining about what no formula contains.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/source.hpp"

namespace saltus {

enum class TokenKind { number, name, op, open, close, comma, end };

struct Token {
  TokenKind kind = TokenKind::end;
  size_t begin = 0, end = 0;  ///< places in the formula
  double value = 0;
  std::string_view text{};
};

class Lexer {
 public:
  /// `indexed`: indices are numbers that may also be equal.
  Lexer(const Fragment& formula, bool indexed) : formula_(formula), text_(formula.text), indexed_(indexed) {}

  Token next();
  /// The places between [ and ] if that is what follows.
  std::optional<std::pair<size_t, size_t>> index();

  /// Takes the primes that follow without a space: 2 after x in x''.
  size_t primes();

  size_t at() const { return at_; }
  void go_to(size_t at) { at_ = at; }

  [[noreturn]] void fail(size_t begin, size_t end, std::string message, std::string hint = {}) const;

 private:
  Token number();
  Token word();
  Token mark();
  void refuse_mark() const;

  const Fragment& formula_;
  std::string_view text_;
  bool indexed_;
  size_t at_ = 0;
};

}  // namespace saltus
