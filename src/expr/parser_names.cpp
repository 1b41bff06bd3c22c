// Names in a formula: what they stand for, and what is said about those that stand for nothing.
#include <fmt/format.h>

#include "expr/parser.hpp"

namespace saltus {

bool Parser::name(const Token& token) {
  if (const auto inside = lexer_.index()) return indexed(token, inside->first, inside->second);
  if (const size_t primes = lexer_.primes(); primes > 0) {
    token_ = lexer_.next();
    values_.push_back(primed(token.begin, token.end + primes, std::string(token.text), primes));
    return false;
  }
  const std::string text(token.text);
  const Token following = lexer_.next();
  if (following.kind == TokenKind::open) return open_call(token, text, following);
  token_ = following;
  if (const auto whole = whole_number(text)) {
    values_.push_back({Expr(*whole), token.begin, token.end});
    return false;
  }
  const Names::Entry* entry = names_.find(text);
  if (!entry && names_.accepts_all() && context_.wanted != Wanted::index) {
    values_.push_back({Expr::symbol(SymbolKind::argument, 0, text), token.begin, token.end});
    return false;
  }
  if (!entry || context_.wanted == Wanted::index) unknown_name(token, text);
  if (!entry->forbidden.empty())
    lexer_.fail(token.begin, token.end, fmt::format("'{}' cannot be used here", token.text), entry->forbidden);
  values_.push_back({entry->meaning, token.begin, token.end});
  return false;
}

/// x' or x[3]'': the speed or rate of a state. Complains later about an index that an `if` may leave out.
Parser::Value Parser::primed(size_t begin, size_t end, const std::string& name, size_t primes) const {
  const std::string text = name + std::string(primes, '\'');
  Value value{Expr(0.0), begin, end};
  const Names::Entry* entry = context_.wanted == Wanted::index ? nullptr : names_.find(text);
  if (entry && !entry->forbidden.empty())
    lexer_.fail(begin, end, fmt::format("'{}' cannot be used here", text), entry->forbidden);
  if (entry) {
    value.expr = entry->meaning;
  } else if (names_.accepts_all()) {
    value.expr = Expr::symbol(SymbolKind::argument, static_cast<int>(primes), text);
  } else {
    const Error error(ErrorKind::model, fmt::format("there is no {}", text), formula_.place(begin, end - begin),
                      names_.hint_for_primes(name, primes));
    if (name.find('[') == name.npos) throw error;
    value.trouble = std::make_shared<const Error>(error);
  }
  return value;
}

/// The number that an index name stands for; in an index also a parameter that is a whole number.
std::optional<double> Parser::whole_number(const std::string& text) const {
  for (const auto& [name, value] : context_.indices) {
    if (name == text) return static_cast<double>(value);
  }
  const double* whole = context_.wanted == Wanted::index ? names_.find_whole(text) : nullptr;
  return whole ? std::optional(*whole) : std::nullopt;
}

void Parser::unknown_name(const Token& token, const std::string& text) const {
  if (find_function(text) || names_.find_function(text))
    lexer_.fail(token.begin, token.end, fmt::format("'{}' is a function", text), fmt::format("write {}(...)", text));
  if (context_.wanted == Wanted::index)
    lexer_.fail(token.begin, token.end, fmt::format("'{}' cannot stand in an index", text),
                "indices are made of whole numbers, index names (for i = 1..N) and parameters");
  if (const auto* range = names_.find_indexed(text))
    lexer_.fail(
        token.begin, token.end, fmt::format("'{}' needs an index", text),
        fmt::format("write {} up to {}, or {}[{}] with 'for i = ...'",
                    indexed_text(text, range->first, range->dimensions),
                    indexed_text(text, range->last, range->dimensions), text, range->dimensions == 1 ? "i" : "i,j"));
  if (const auto why = names_.why_not(text); !why.empty())
    lexer_.fail(token.begin, token.end, fmt::format("'{}' cannot be used here", text), std::string(why));
  lexer_.fail(token.begin, token.end, fmt::format("unknown name '{}'", text),
              text == "π" ? "it is called 'pi' here" : names_.suggestion(text));
}

/// x[i-1]
bool Parser::indexed(const Token& token, size_t begin, size_t end) {
  const size_t close = end + 1;
  const std::string stem(token.text);
  const size_t primes = lexer_.primes();
  token_ = lexer_.next();
  std::array<long, 2> index{};
  const size_t dimensions = index_values(formula_, begin, end, context_, index);
  const std::string text = indexed_text(stem, index, dimensions);
  if (primes > 0) {
    values_.push_back(primed(token.begin, close + primes, text, primes));
    return false;
  }
  Value value{Expr(0.0), token.begin, close};
  if (const Names::Entry* entry = context_.wanted == Wanted::index ? nullptr : names_.find(text)) {
    if (!entry->forbidden.empty())
      lexer_.fail(token.begin, close, fmt::format("'{}' cannot be used here", text), entry->forbidden);
    value.expr = entry->meaning;
  } else if (names_.accepts_all() && context_.wanted != Wanted::index) {
    value.expr = Expr::symbol(SymbolKind::argument, 0, text);
  } else if (const auto* range = names_.find_indexed(stem);
             range && range->zeros && range->contains(index, dimensions)) {
    value.expr = 0.0;
  } else {
    value.trouble = unknown_index(token, close, stem, text, dimensions);
  }
  values_.push_back(std::move(value));
  return false;
}

std::shared_ptr<const Error> Parser::unknown_index(const Token& token, size_t end, const std::string& stem,
                                                   const std::string& text, size_t dimensions) const {
  const auto error = [&](std::string message, std::string hint) {
    return std::make_shared<const Error>(ErrorKind::model, std::move(message),
                                         formula_.place(token.begin, end - token.begin), std::move(hint));
  };
  if (context_.wanted == Wanted::index)
    return error(fmt::format("'{}' cannot stand in an index", text), "an index is a number that does not change");
  if (const auto why = names_.why_not(text); !why.empty())
    return error(fmt::format("'{}' cannot be used here", text), std::string(why));
  if (const auto* range = names_.find_indexed(stem)) {
    if (range->dimensions != dimensions)
      return error(fmt::format("'{}' has {} here", stem, dimensions == 1 ? "one index" : "two indices"),
                   fmt::format("it has {}: {}", range->dimensions == 1 ? "one" : "two",
                               indexed_text(stem, range->first, range->dimensions)));
    if (range->dimensions == 2)
      return error(
          fmt::format("there is no {}", text),
          fmt::format("{} goes from {} to {}: choose with if(i > {}, ..., ...), or give sizes that fit", stem,
                      indexed_text(stem, range->first, 2), indexed_text(stem, range->last, 2), range->first[0]));
    return error(fmt::format("there is no {}", text),
                 fmt::format("{} has the indices {} to {}: let other lines say what holds at the ends, or choose with "
                             "if(i > {}, ..., ...)",
                             stem, range->first[0], range->last[0], range->first[0]));
  }
  if (names_.find(stem)) return error(fmt::format("'{}' has no index", stem), fmt::format("write {} alone", stem));
  return error(fmt::format("unknown name '{}'", text),
               names_.suggestion(stem).starts_with("did you mean")
                   ? names_.suggestion(stem)
                   : fmt::format("give it an equation: {}[i]' = ... for i = 1..N", stem));
}

}  // namespace saltus
