// HTTP and WebSockets on 127.0.0.1: one thread that waits for whatever comes first.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "studio/gate.hpp"

namespace saltus {

/// To the page: may be called from any thread, also when the page has gone.
struct Outbox {
  std::function<void(std::string bytes, bool binary)> send;
  std::function<size_t()> waiting;  ///< bytes not yet taken by the page
};

/// One page. Destroyed when the page goes.
class Guest {
 public:
  virtual ~Guest() = default;
  virtual void receive(std::string text) = 0;
};

using Welcome = std::function<std::unique_ptr<Guest>(Outbox outbox)>;

class Server {
 public:
  /// Listens at once; port 0: any free one. Throws Error(usage) if the port is taken.
  Server(int port, const std::string& token, Welcome welcome);
  ~Server();

  int port() const;
  /// Until SIGINT, SIGTERM, SIGHUP or `stop`.
  void run();
  void stop();

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace saltus
