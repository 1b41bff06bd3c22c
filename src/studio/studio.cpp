#include "studio/studio.hpp"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>

#include <fmt/format.h>

#include "analysis/work.hpp"
#include "app/options.hpp"
#include "studio/browser.hpp"
#include "studio/gate.hpp"
#include "studio/server.hpp"
#include "studio/session.hpp"

namespace saltus {
namespace {

StudioModel find_studio_model(const std::string& name) {
  ModelSource source = find_model(name);
  std::optional<std::string> file;
  if (!source.text) {
    std::ifstream in(name, std::ios::binary);
    if (!in) System::from_file(name);  // says why it cannot be opened
    source.text = std::string(std::istreambuf_iterator<char>(in), {});
    file = name;
  }
  const System system(source, {}, short_name(name));  // what is wrong with it is told in the terminal
  std::vector<std::string> tables;
  for (const PointTable& table : system.model().tables) {
    if (!table.file.empty()) tables.push_back(table.file);
  }
  return {std::move(source), name, std::move(file), std::move(tables)};
}

}  // namespace

Outcome studio(const StudioOptions& options) {
  const StudioModel model = find_studio_model(options.model);
  const int threads = options.solve.threads > 0 ? options.solve.threads : std::max(1, default_threads() - 1);
  const std::string token = make_token();
  Server server(options.port, token, [&](Outbox outbox) -> std::unique_ptr<Guest> {
    return std::make_unique<Session>(model, threads, std::move(outbox));
  });
  const std::string link = fmt::format("http://127.0.0.1:{}/#{}", server.port(), token);
  std::cout << link << std::endl;
  std::cerr << fmt::format(
      "Open this link in a browser of this machine; Ctrl-C ends the studio.\n"
      "From another machine: ssh -L {0}:127.0.0.1:{0} HOST, then the same link there.\n",
      server.port());
  const Browser browser = options.browser ? Browser(link) : Browser();
  server.run();
  return {};
}

}  // namespace saltus
