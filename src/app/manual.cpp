#include "app/manual.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace saltus {
namespace {

/// A text that roff takes as it is: no line begins with a control character, hyphens stay hyphens.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool begins = out.empty() || out.back() == '\n';
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '~' || c == '^')
      out += c == '~' ? "\\(ti" : "\\(ha";
    else
      out += c;
  }
  return out;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string head(const std::string& name, const std::string& version, const std::string& summary) {
  return fmt::format(".TH {} 1 \"\" \"saltus {}\" \"User commands\"\n.SH NAME\n{} \\- {}\n", upper(plain(name)),
                     version, plain(name), plain(summary));
}

const char* const endings = R"(.SH EXIT STATUS
.TP
.B 0
done
.TP
.B 1
computed, but the run did not reach its end; results are kept
.TP
.B 2
the command line is wrong
.TP
.B 3
the model is wrong
.TP
.B 4
a file cannot be read or written
.TP
.B 130
interrupted; results are kept
)";

std::string option_entry(const KnownOption& o) {
  std::string left;
  if (!o.place.empty()) left = "\\fI" + plain(o.place) + "\\fR";
  for (const std::string& flag : o.flags) left += (left.empty() ? "" : ", ") + ("\\fB" + plain(flag) + "\\fR");
  if (!o.type.empty()) left += " \\fI" + plain(o.type) + "\\fR";
  return ".TP\n" + left + "\n" + plain(o.sentence) + "\n";
}

}  // namespace

std::string manual_page(const std::vector<KnownCommand>& commands, const std::string& version) {
  std::string out = head("saltus", version, "simulates and analyses nonsmooth dynamical systems");
  out +=
      ".SH SYNOPSIS\n.B saltus\n.I COMMAND\n.RI [ ARGUMENTS ]\n.SH DESCRIPTION\n"
      "Dry friction, relays, impacts, diodes, switching controllers: from equations written as on paper.\n.SH "
      "COMMANDS\n";
  for (const KnownCommand& c : commands)
    out += fmt::format(".TP\n\\fBsaltus\\-{}\\fR(1)\n{}\n", c.name, plain(c.summary));
  out +=
      ".TP\n\\fBsaltus help\\fR \\fICOMMAND\\fR\nthe options of a command; \\fBsaltus help options\\fR lists all of "
      "them\n";
  out += endings;
  out +=
      ".SH EXAMPLES\n.nf\nsaltus examples\nsaltus run dry_friction\nsaltus sweep buck Vin=12:40:1200 \\-\\-show v\n"
      "saltus again dry_friction\\-run\\-001\n.fi\n.SH SEE ALSO\n";
  for (size_t i = 0; i < commands.size(); ++i)
    out += fmt::format(".BR saltus\\-{} (1){}\n", commands[i].name, i + 1 < commands.size() ? "," : "");
  return out;
}

std::string manual_page(const KnownCommand& c, const std::string& version) {
  std::string out = head("saltus-" + c.name, version, c.summary);
  out += fmt::format(".SH SYNOPSIS\n.B saltus {}\n.I {}\n.RI [ OPTIONS ]\n.SH OPTIONS\n", c.name, plain(c.arguments));
  for (const KnownOption& o : c.options)
    if (o.listed) out += option_entry(o);
  return out + endings + ".SH SEE ALSO\n.BR saltus (1)\n";
}

}  // namespace saltus
