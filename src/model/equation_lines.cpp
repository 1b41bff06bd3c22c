#include "model/equation_lines.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "expr/indices.hpp"
#include "expr/letters.hpp"

namespace saltus {
namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)); }

Fragment without_comment(const Fragment& f) { return f.part(0, f.text.find('#')); }

/// Lines that start with an operator belong to the line above.
bool continues(std::string_view line) {
  if (std::string_view("+-*/^<>=),&|").find(line[0]) != std::string_view::npos) return true;
  const auto word = [&](std::string_view w) {
    return line.starts_with(w) && (line.size() == w.size() || !is_name_part(line[w.size()]));
  };
  return word("and") || word("or") || word("for");
}

void append(Fragment& head, const Fragment& tail) {
  head.offsets.back() = head.offsets[head.offsets.size() - 2] + 1;
  head.text += ' ';
  head.text += tail.text;
  head.offsets.insert(head.offsets.end(), tail.offsets.begin(), tail.offsets.end());
}

std::vector<Fragment> logical_lines(const Fragment& block) {
  std::vector<Fragment> lines;
  for (size_t at = 0; at <= block.text.size();) {
    size_t end = block.text.find('\n', at);
    if (end == std::string::npos) end = block.text.size();
    const Fragment line = trimmed(without_comment(block.part(at, end - at)));
    at = end + 1;
    if (line.text.empty()) continue;
    if (!lines.empty() && continues(line.text)) {
      append(lines.back(), line);
    } else {
      lines.push_back(line);
    }
  }
  return lines;
}

/// The '=' of an equation: the first outside of brackets (a sum has one of its own), or else the first.
size_t equal_sign(std::string_view line) {
  size_t inside = std::string_view::npos;
  int depth = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    depth += line[i] == '(' ? 1 : line[i] == ')' ? -1 : 0;
    if (line[i] != '=') continue;
    if (i > 0 && std::string_view("<>!=~").find(line[i - 1]) != std::string_view::npos) continue;
    if (i + 1 < line.size() && line[i + 1] == '=') continue;
    if (depth <= 0) return i;
    inside = std::min(inside, i);
  }
  return inside;
}

bool has_primes(std::string_view text) { return text.find('\'') != text.npos; }

/// `f(u, w)` apart; false if this is no head of a function.
bool split_function(EquationLine& line) {
  const std::string& left = line.left.text;
  const size_t open = left.find('(');
  if (open == left.npos || open == 0 || !left.ends_with(')') || left.find_first_of("()", open + 1) + 1 != left.size())
    return false;
  if (has_primes(left)) return false;
  const Fragment head = trimmed(line.left.part(0, open)), inside = line.left.part(open + 1, left.size() - open - 2);
  if (!is_name(head.text)) return false;
  for (size_t at = 0; at <= inside.text.size();) {
    const size_t comma = std::min(inside.text.find(',', at), inside.text.size());
    line.arguments.push_back(trimmed(inside.part(at, comma - at)));
    at = comma + 1;
  }
  line.kind = EquationLine::function;
  line.left = head;
  return true;
}

/// A single name stands on the left, perhaps with an index.
void check_left(const EquationLine& line) {
  const std::string& left = line.left.text;
  const size_t open = left.find('[');
  const std::string stem = trimmed(line.left.part(0, open)).text;
  if (is_name(stem) && (open == left.npos || left.ends_with(']'))) {
    if (is_reserved_name(stem))
      fail(line.left, fmt::format("'{}' is a reserved name", stem), std::string(reserved_hint));
    return;
  }
  std::string hint = "the left side is one name, with ' for a rate: x' = ...";
  if (left.size() > 4 && left.starts_with("d") && left.ends_with("/dt")) {
    const std::string state = left.substr(1, left.size() - 4);
    hint = fmt::format("the rate of {} is written {}'", state, state);
  }
  fail(line.left, fmt::format("'{}' is not a name", left), hint);
}

/// True for x or x[i+1].
bool is_plain_name(const Fragment& text) {
  const size_t open = text.text.find('[');
  return is_name(trimmed(text.part(0, open)).text) &&
         (open == text.text.npos || text.text.find(']') + 1 == text.text.size());
}

/// The kind of an equation by its left side: x' and x'' are rates, f(u) is a function, x a name; else it is a balance.
void split_left(EquationLine& line) {
  const std::string& left = line.left.text;
  size_t stem = left.size();
  while (stem > 0 && left[stem - 1] == '\'') --stem;
  line.primes = static_cast<int>(left.size() - stem);
  if (line.primes > 2)
    fail(line.left, fmt::format("'{}' is a derivative of order {}", left, line.primes),
         "derivatives go up to the second: give the acceleration a state of its own");
  const Fragment name = trimmed(line.left.part(0, stem));
  if (line.primes > 0 && is_plain_name(name)) {
    line.kind = EquationLine::rate;
    line.left = name;
  } else if (split_function(line)) {
    return;
  } else if (line.primes > 0 && name.text.find_first_of("+-*/^(), ") == name.text.npos) {
    line.left = name;  // one word that is no name
  } else if (!is_plain_name(line.left) && (has_primes(left) || has_primes(line.right.text))) {
    line.kind = EquationLine::balance;
    line.primes = 0;
    return;
  }
  check_left(line);
}

EquationLine split_equation(const Fragment& text) {
  const size_t equals = equal_sign(text.text);
  if (equals == std::string::npos) {
    fail(text, "this line is not an equation",
         "write name' = rate or name = formula; a line that continues the one above starts with an operator");
  }
  EquationLine line{.left = trimmed(text.part(0, equals)), .right = trimmed(text.part(equals + 1, std::string::npos))};
  if (line.left.text.empty())
    fail(text.part(equals, 1), "an equation without a left side", "write name' = rate or name = formula");
  if (const size_t word = find_for(line.right.text); word != std::string::npos) {
    line.range = trimmed(line.right.part(word + 3, std::string::npos));
    if (line.range->text.empty()) line.range = line.right.part(word, 3);
    line.right = trimmed(line.right.part(0, word));
  }
  if (line.right.text.empty())
    fail(text.part(equals, 1), "nothing follows '='", "write the right side of the equation");
  split_left(line);
  return line;
}

/// The line below is no equation: it continues this one if this one ends with an operator.
void check_line_end(const Fragment& line) {
  const char last = line.text.back();
  if (std::string_view("+-*/^<>").find(last) == std::string_view::npos) return;
  fail(line.part(line.text.size() - 1, 1), fmt::format("nothing follows '{}'", last),
       "to continue on the next line, start that line with the operator");
}

}  // namespace

std::vector<std::string> primed_names(std::string_view formula, size_t primes) {
  std::vector<std::string> names;
  for (size_t i = 0; i < formula.size();) {
    if (!is_name_start(formula[i])) {
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < formula.size() && is_name_part(formula[i])) ++i;
    size_t end = i;
    while (end < formula.size() && formula[end] == ' ') ++end;
    if (end < formula.size() && formula[end] == '[') {
      end = formula.find(']', end);
      end = end == formula.npos ? formula.size() : end + 1;
    } else {
      end = i;
    }
    const size_t last = std::min(formula.find_first_not_of('\'', end), formula.size());
    if (last - end == primes) names.emplace_back(formula.substr(begin, i - begin));
  }
  return names;
}

Fragment trimmed(const Fragment& f) {
  size_t begin = 0, end = f.text.size();
  while (begin < end && is_space(f.text[begin])) ++begin;
  while (end > begin && is_space(f.text[end - 1])) --end;
  return f.part(begin, end - begin);
}

void fail(const Fragment& at, std::string message, std::string hint) {
  throw Error(ErrorKind::model, std::move(message), at.place(0, std::max<size_t>(at.text.size(), 1)), std::move(hint));
}

std::vector<EquationLine> split_equations(const Fragment& block) {
  std::vector<EquationLine> lines;
  for (const Fragment& line : logical_lines(block)) {
    if (!lines.empty() && equal_sign(line.text) == std::string::npos) check_line_end(lines.back().right);
    lines.push_back(split_equation(line));
  }
  return lines;
}

}  // namespace saltus
