#include <cstdio>

#include <saltus.hpp>

int main() {
  const saltus::FollowQuestion question{
      .start = {.system = saltus::System::example("impact_oscillator"), .section = "strobe"}, .ranges = {{"w", 2, 4}}};
  const saltus::Observer observer{.on_special = [](const saltus::SpecialPoint& s) {
    std::fprintf(stderr, "%s at %g\n", s.type.c_str(), s.values[0]);
  }};
  const saltus::FollowAnswer answer = ask(question, observer);
  for (const saltus::SpecialPoint& s : answer.branches[0].special)
    std::printf("%s %s %.17g\n", s.label.c_str(), s.type.c_str(), s.values[0]);
}
