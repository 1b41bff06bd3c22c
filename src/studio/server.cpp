#include "studio/server.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.hpp"
#include "studio/assets.hpp"
#include "studio/http.hpp"
#include "studio/websocket.hpp"

namespace saltus {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t most_connections = 32;
constexpr size_t most_pages = 4;
constexpr size_t longest_header = 8192;
constexpr size_t longest_message = 1 << 20;
constexpr std::chrono::seconds patience{10};  // with a request, or with its answer
constexpr std::chrono::seconds silence{20};   // of a page, after which it is asked whether it is there
constexpr std::chrono::seconds parting{1};    // for the other side to hang up first

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

/// Wakes the thread that serves; may be rung from any thread and by signals.
class Bell {
 public:
  Bell() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(event_.number(), &one, sizeof one);  // full: it rings already
  }
  void silence() const {
    std::uint64_t times = 0;
    [[maybe_unused]] const ssize_t got = ::read(event_.number(), &times, sizeof times);
  }
  int number() const { return event_.number(); }

 private:
  Descriptor event_;
};

/// Frames that other threads want to send to a page.
struct Letters {
  explicit Letters(std::shared_ptr<Bell> to_ring) : bell(std::move(to_ring)) {}

  std::shared_ptr<Bell> bell;
  std::atomic<size_t> waiting = 0;
  std::mutex mutex;
  std::deque<std::pair<std::string, bool>> in;
  bool gone = false;

  void put(std::string bytes, bool binary) {
    {
      const std::lock_guard lock(mutex);
      if (gone) return;
      waiting += bytes.size();
      in.emplace_back(std::move(bytes), binary);
    }
    bell->ring();
  }
};

struct House {
  Gate gate;
  Welcome welcome;
  std::shared_ptr<Bell> bell = std::make_shared<Bell>();
  size_t pages = 0;
};

// ---- a connection: a request, and then its answer or a page ---------------------------------------------------------

class Connection {
 public:
  Connection(Descriptor socket, House& house)
      : socket_(std::move(socket)), house_(house), until_(Clock::now() + patience) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { leave(); }

  /// Nobody computes for it any more.
  void leave() {
    if (!letters_) return;
    guest_.reset();
    {
      const std::lock_guard lock(letters_->mutex);
      letters_->gone = true;
      letters_->in.clear();
      letters_->waiting = 0;
    }
    letters_.reset();
    --house_.pages;
  }

  bool is_over() const { return stage_ == Stage::over; }
  Clock::time_point until() const { return until_; }
  pollfd wish() {
    if (stage_ == Stage::page) take_letters();
    return {socket_.number(), static_cast<short>(POLLIN | (out_.empty() ? 0 : POLLOUT)), 0};
  }

  void act(int events) {
    try {
      if (events & (POLLIN | POLLHUP | POLLERR)) read();
    } catch (const std::exception&) {  // no memory or thread for this page: the others stay
      leave();
      say_farewell();
    }
    if (!is_over() && !out_.empty()) write();
    if (!is_over() && Clock::now() >= until_) late();
  }

 private:
  enum class Stage { request, page, farewell, over };

  struct Letter {
    std::string bytes;
    size_t counted;  ///< of what letters_ counts as waiting
  };

  void read() {
    char some[65536];
    const ssize_t got = ::recv(socket_.number(), some, sizeof some, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      if (got == 0 && stage_ == Stage::request && !head_.empty()) return refuse(Verdict::bad_request);
      return end();
    }
    const std::string_view bytes(some, static_cast<size_t>(got));
    if (stage_ == Stage::request)
      read_head(bytes);
    else if (stage_ == Stage::page)
      read_messages(bytes);
  }

  // ---- a request

  void read_head(std::string_view bytes) {
    head_ += bytes;
    const size_t end = head_.find("\r\n\r\n");
    if (end == head_.npos ? head_.size() > longest_header : end + 4 > longest_header)
      return refuse(Verdict::bad_request);
    if (end == head_.npos) return;
    const auto request = parse_request(std::string_view(head_).substr(0, end + 4));
    if (!request) return refuse(Verdict::bad_request);
    answer(*request);
    if (stage_ == Stage::page) read_messages(std::string_view(head_).substr(end + 4));  // what came right behind it
  }

  void answer(const HttpRequest& request) {
    const Visit visit{.method = request.method,
                      .target = request.target,
                      .host = request.field("Host"),
                      .origin = request.field("Origin"),
                      .fetch_site = request.field("Sec-Fetch-Site"),
                      .protocols = request.field("Sec-WebSocket-Protocol"),
                      .upgrade = request.is_upgrade(),
                      .body = request.has_body()};
    const bool twice = request.count("Host") != 1 || request.count("Origin") > 1;
    const Verdict verdict = twice ? Verdict::forbidden : house_.gate.judge(visit);
    if (verdict == Verdict::asset) {
      const Asset& asset = *find_asset(visit.target);
      return reply(200, asset.type, content_of(asset), visit.method == "HEAD",
                   fmt::format("Content-Security-Policy: {}\r\n", content_policy(visit.host)));
    }
    if (verdict != Verdict::socket) return refuse(verdict);
    if (house_.pages >= most_pages) return reply(503, "text/plain; charset=utf-8", "too many pages are open\n");
    greet(request.field("Sec-WebSocket-Key"));
  }

  void refuse(Verdict verdict) {
    const int status = static_cast<int>(verdict);
    reply(status, "text/plain; charset=utf-8", fmt::format("{}\n", reason_of(status)));
  }

  void reply(int status, std::string_view type, const std::string& body, bool head_only = false,
             const std::string& more_fields = {}) {
    std::string text = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\n{}X-Frame-Options: DENY\r\nX-Content-Type-Options: nosniff\r\n"
        "Referrer-Policy: no-referrer\r\nCross-Origin-Opener-Policy: same-origin\r\n"
        "Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\nConnection: close\r\n"
        "Content-Length: {}\r\n\r\n",
        status, reason_of(status), type, more_fields, body.size());
    if (!head_only) text += body;
    out_.push_back({std::move(text), 0});
    say_farewell();
  }

  // ---- a page

  void greet(const std::string& key) {
    const int at_once = 1;
    ::setsockopt(socket_.number(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    out_.push_back(
        {fmt::format("HTTP/1.1 101 {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     "Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: {}\r\nCache-Control: no-store\r\n\r\n",
                     reason_of(101), accept_key(key), Gate::protocol),
         0});
    stage_ = Stage::page;
    ++house_.pages;
    until_ = Clock::now() + silence;
    letters_ = std::make_shared<Letters>(house_.bell);
    guest_ = house_.welcome(
        {[letters = letters_](std::string bytes, bool binary) { letters->put(std::move(bytes), binary); },
         [letters = letters_] { return letters->waiting.load(); }});
  }

  void read_messages(std::string_view bytes) {
    reader_.feed(bytes);
    until_ = Clock::now() + silence;
    asked_ = false;
    try {
      while (const auto message = reader_.next()) {
        if (message->code == SocketCode::close) return close(answer_to_close(message->bytes));
        if (message->code == SocketCode::ping) out_.push_back({socket_frame(SocketCode::pong, message->bytes), 0});
        if (message->code == SocketCode::text) guest_->receive(message->bytes);
      }
    } catch (CloseReason reason) {
      close(reason);
    }
  }

  void take_letters() {
    std::deque<std::pair<std::string, bool>> letters;
    {
      const std::lock_guard lock(letters_->mutex);
      letters.swap(letters_->in);
    }
    for (const auto& [bytes, binary] : letters) {
      out_.push_back({socket_frame(binary ? SocketCode::binary : SocketCode::text, bytes), bytes.size()});
    }
  }

  void close(CloseReason reason) {
    const bool between = written_ == 0;
    out_.erase(out_.begin() + (between ? 0 : 1), out_.end());  // a frame that has begun is ended
    leave();
    out_.push_back({close_frame(reason), 0});
    say_farewell();
  }

  // ---- both

  void write() {
    while (!out_.empty()) {
      const std::string& bytes = out_.front().bytes;
      const ssize_t done =
          ::send(socket_.number(), bytes.data() + written_, bytes.size() - written_, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (done < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (done < 0) return end();
      written_ += static_cast<size_t>(done);
      if (written_ < bytes.size()) continue;
      if (letters_) letters_->waiting -= out_.front().counted;
      out_.pop_front();
      written_ = 0;
    }
    if (stage_ == Stage::farewell) {
      ::shutdown(socket_.number(), SHUT_WR);
      until_ = Clock::now() + parting;
    }
  }

  /// Writes what is queued and closes; input in the meantime is not read.
  void say_farewell() {
    stage_ = Stage::farewell;
    until_ = Clock::now() + patience;
  }

  void end() {
    leave();
    stage_ = Stage::over;
  }

  void late() {
    if (stage_ != Stage::page || asked_) return end();
    asked_ = true;
    until_ = Clock::now() + silence;
    out_.push_back({socket_frame(SocketCode::ping, ""), 0});
  }

  Descriptor socket_;
  House& house_;
  Stage stage_ = Stage::request;
  Clock::time_point until_;  // when patience ends
  std::string head_;
  MessageReader reader_{longest_message};
  bool asked_ = false;  // a ping is on its way
  std::deque<Letter> out_;
  size_t written_ = 0;  // of the first
  std::shared_ptr<Letters> letters_;
  std::unique_ptr<Guest> guest_;
};

// ---- signals --------------------------------------------------------------------------------------------------------

std::atomic<const Bell*> signal_bell = nullptr;
std::atomic<bool> signalled = false;

void on_signal(int) {
  signalled = true;
  if (const Bell* bell = signal_bell) bell->ring();
}

/// SIGINT, SIGTERM and SIGHUP, unless that is ignored (nohup), ring the bell as long as it lives.
class SignalWatch {
 public:
  explicit SignalWatch(const Bell& bell) {
    signalled = false;
    signal_bell = &bell;
    struct sigaction ours {};
    ours.sa_handler = on_signal;
    ::sigaction(SIGINT, &ours, &interrupt_);
    ::sigaction(SIGTERM, &ours, &terminate_);
    ::sigaction(SIGHUP, nullptr, &hang_up_);
    if (hang_up_.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &ours, nullptr);
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
    ::sigaction(SIGHUP, &hang_up_, nullptr);
    signal_bell = nullptr;
  }

 private:
  struct sigaction interrupt_, terminate_, hang_up_;
};

/// A socket listening at a port of 127.0.0.1; errno says why not.
Descriptor listen_at(int port) {
  Descriptor out(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int again = 1;
  ::setsockopt(out.number(), SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  here.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::bind(out.number(), reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0 &&
      ::listen(out.number(), SOMAXCONN) == 0)
    return out;
  return Descriptor(-1);
}

}  // namespace

struct Server::Inside {
  House house;
  Descriptor listener;
  SignalWatch signals{*house.bell};
  std::atomic<bool> stopped = false;
  std::list<Connection> connections = {};
  Clock::time_point open_again = Clock::time_point::min();  // there were no descriptors left

  Inside(House h, Descriptor l) : house(std::move(h)), listener(std::move(l)) {}

  void accept() {
    for (;;) {
      Descriptor socket(::accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (socket.number() < 0) {
        const bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (full) open_again = Clock::now() + std::chrono::milliseconds(100);  // who knocks meanwhile waits
        return;
      }
      if (connections.size() < most_connections) connections.emplace_back(std::move(socket), house);
    }
  }

  /// Waits for what comes first, and does it.
  void turn() {
    const bool full = Clock::now() < open_again;
    std::vector<pollfd> wishes = {{full ? -1 : listener.number(), POLLIN, 0}, {house.bell->number(), POLLIN, 0}};
    Clock::time_point until = full ? open_again : Clock::time_point::max();
    for (Connection& c : connections) {
      wishes.push_back(c.wish());
      until = std::min(until, c.until());
    }
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    ::poll(wishes.data(), wishes.size(),
           connections.empty() && !full ? -1 : static_cast<int>(std::clamp<long>(wait, 0, 60000)));
    if (wishes[1].revents) house.bell->silence();
    auto wish = wishes.begin() + 2;
    for (Connection& c : connections) c.act((wish++)->revents);
    connections.remove_if([](const Connection& c) { return c.is_over(); });
    if (wishes[0].revents) accept();
  }
};

Server::Server(int port, const std::string& token, Welcome welcome) {
  Descriptor listener = listen_at(port);
  if (listener.number() < 0)
    throw Error(ErrorKind::usage, fmt::format("--port {}: {}", port, std::strerror(errno)), {},
                "choose another port, or leave out --port: then a free one is taken");
  inside_ = std::make_unique<Inside>(House{.gate = Gate(0, token), .welcome = std::move(welcome)}, std::move(listener));
  if (inside_->house.bell->number() < 0)
    throw Error(ErrorKind::usage, fmt::format("the studio cannot start: {}", std::strerror(errno)), {},
                "it needs files and memory: end other programs, or raise the limits ('ulimit -a' lists them)");
  inside_->house.gate = Gate(this->port(), token);
}

Server::~Server() = default;

int Server::port() const {
  sockaddr_in here{};
  socklen_t size = sizeof here;
  ::getsockname(inside_->listener.number(), reinterpret_cast<sockaddr*>(&here), &size);
  return ntohs(here.sin_port);
}

void Server::run() {
  while (!inside_->stopped && !signalled) inside_->turn();
  inside_->connections.clear();
}

void Server::stop() {
  inside_->stopped = true;
  inside_->house.bell->ring();
}

}  // namespace saltus
