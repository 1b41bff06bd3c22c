#include <cstdio>

#include <saltus.hpp>

int main() {
  const saltus::System friction(saltus::ModelBuilder("Dry friction")
                                    .equations("y' = v\nv' = -y + sin(omega*t) - F*sign(v)")
                                    .parameter("F", 0.4)
                                    .parameter("omega", "1/3")
                                    .initial("y", 1)
                                    .initial("v", 2)
                                    .build());
  const saltus::RunAnswer path = ask(saltus::RunQuestion{.system = friction, .solve = {.until = 60}});
  for (const saltus::Event& e : path.trajectory.events)
    std::printf("%.17g %s %s\n", e.t, std::string(kind_name(e.kind)).c_str(), e.after.text().c_str());
  std::printf("y(30) = %.17g\n", path.trajectory(30)[0]);
}
