#include "studio/server.hpp"

#include <utility>  // before asio of Boost 1.74, which needs it and does not say so

#include <atomic>
#include <chrono>
#include <csignal>
#include <deque>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>

#include "base/error.hpp"
#include "studio/assets.hpp"

namespace saltus {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using tcp = asio::ip::tcp;
using beast::error_code;

constexpr int most_connections = 32;
constexpr size_t most_pages = 4;
constexpr unsigned longest_header = 8192;
constexpr size_t longest_message = 1 << 20;
constexpr std::chrono::seconds patience{10};

class Page;

struct House {
  Gate gate;
  Welcome welcome;
  int connections = 0;
  std::set<Page*> pages = {};
};

/// Counts itself as long as it lives.
class Seat {
 public:
  explicit Seat(int& taken) : taken_(&taken) { ++taken; }
  Seat(Seat&& other) noexcept : taken_(std::exchange(other.taken_, nullptr)) {}
  Seat& operator=(Seat&&) = delete;
  ~Seat() {
    if (taken_) --*taken_;
  }

 private:
  int* taken_;
};

// ---- a page --------------------------------------------------------------------------------------------------------

class Page : public std::enable_shared_from_this<Page> {
 public:
  Page(beast::tcp_stream stream, Seat seat, House& house)
      : socket_(std::move(stream)), seat_(std::move(seat)), house_(house) {
    house.pages.insert(this);
  }
  ~Page() { house_.pages.erase(this); }

  void greet(const http::request<http::empty_body>& request) {
    beast::get_lowest_layer(socket_).expires_never();  // the socket has timeouts of its own
    socket_.set_option(websocket::stream_base::timeout{patience, std::chrono::seconds(40), true});
    socket_.set_option(websocket::stream_base::decorator([](websocket::response_type& response) {
      response.set(http::field::sec_websocket_protocol, std::string(Gate::protocol));
      response.set(http::field::cache_control, "no-store");
    }));
    socket_.read_message_max(longest_message);
    socket_.auto_fragment(false);
    socket_.async_accept(request, [self = shared_from_this()](error_code trouble) {
      if (!trouble) self->begin();
    });
  }

  /// Nobody computes for it any more.
  void leave() { guest_.reset(); }

 private:
  void begin() {
    const std::weak_ptr<Page> page = weak_from_this();
    const auto waiting = waiting_;
    auto post = [page, waiting, executor = socket_.get_executor()](std::string bytes, bool binary) {
      *waiting += bytes.size();
      asio::post(executor, [page, waiting, binary, text = std::move(bytes)]() mutable {
        const auto self = page.lock();
        if (self) {
          self->write({std::move(text), binary});
        } else {
          *waiting -= text.size();
        }
      });
    };
    guest_ = house_.welcome({std::move(post), [waiting] { return waiting->load(); }});
    read();
  }

  void read() {
    socket_.async_read(buffer_, [self = shared_from_this()](error_code trouble, size_t) {
      if (trouble) return self->leave();
      if (self->socket_.got_text()) self->guest_->receive(beast::buffers_to_string(self->buffer_.data()));
      self->buffer_.consume(self->buffer_.size());
      self->read();
    });
  }

  struct Letter {
    std::string bytes;
    bool binary;
  };

  void write(Letter letter) {
    queue_.push_back(std::move(letter));
    if (queue_.size() == 1) write_next();
  }

  void write_next() {
    socket_.binary(queue_.front().binary);
    socket_.async_write(asio::buffer(queue_.front().bytes), [self = shared_from_this()](error_code trouble, size_t) {
      *self->waiting_ -= self->queue_.front().bytes.size();
      self->queue_.pop_front();
      if (trouble) self->queue_.clear();
      if (!self->queue_.empty()) self->write_next();
    });
  }

  websocket::stream<beast::tcp_stream> socket_;
  Seat seat_;
  House& house_;
  beast::flat_buffer buffer_;
  std::deque<Letter> queue_;
  std::shared_ptr<std::atomic<size_t>> waiting_ = std::make_shared<std::atomic<size_t>>(0);
  std::unique_ptr<Guest> guest_;
};

// ---- a request -----------------------------------------------------------------------------------------------------

class Visitor : public std::enable_shared_from_this<Visitor> {
 public:
  Visitor(tcp::socket socket, House& house) : stream_(std::move(socket)), seat_(house.connections), house_(house) {
    parser_.header_limit(longest_header);
    parser_.body_limit(0);
  }

  void begin() {
    stream_.expires_after(patience);
    http::async_read_header(stream_, buffer_, parser_, [self = shared_from_this()](error_code trouble, size_t) {
      if (!trouble) return self->answer();
      if (trouble.category() == http::make_error_code(http::error::end_of_stream).category() &&
          trouble != http::error::end_of_stream)
        self->refuse(Verdict::bad_request);
    });
  }

 private:
  std::string field(beast::string_view name) const {
    const auto found = parser_.get().find(name);
    return found == parser_.get().end() ? "" : std::string(found->value());
  }

  void answer() {
    const auto& request = parser_.get();
    const Visit visit{.method = std::string(request.method_string()),
                      .target = std::string(request.target()),
                      .host = field("Host"),
                      .origin = field("Origin"),
                      .fetch_site = field("Sec-Fetch-Site"),
                      .protocols = field("Sec-WebSocket-Protocol"),
                      .upgrade = websocket::is_upgrade(request),
                      .body = parser_.chunked() || parser_.content_length().value_or(0) > 0};
    const bool twice = request.count("Host") != 1 || request.count("Origin") > 1;
    const Verdict verdict = twice ? Verdict::forbidden : house_.gate.judge(visit);
    if (verdict == Verdict::asset) return serve(*find_asset(visit.target), visit);
    if (verdict != Verdict::socket) return refuse(verdict);
    if (house_.pages.size() >= most_pages) return reply(http::status::service_unavailable, "too many pages are open\n");
    std::make_shared<Page>(std::move(stream_), std::move(seat_), house_)->greet(parser_.release());
  }

  void refuse(Verdict verdict) {
    const auto status = static_cast<http::status>(verdict);
    reply(status, std::string(http::obsolete_reason(status)) + "\n");
  }

  void reply(http::status status, std::string text) {
    response_.result(status);
    response_.set(http::field::content_type, "text/plain; charset=utf-8");
    response_.body() = std::move(text);
    send(false);
  }

  void serve(const Asset& asset, const Visit& visit) {
    response_.result(http::status::ok);
    response_.set(http::field::content_type, std::string(asset.type));
    response_.set("Content-Security-Policy", content_policy(visit.host));
    response_.body() = content_of(asset);
    send(visit.method == "HEAD");
  }

  void send(bool head) {
    response_.set("X-Frame-Options", "DENY");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set("Cross-Origin-Opener-Policy", "same-origin");
    response_.set("Cross-Origin-Resource-Policy", "same-origin");
    response_.set(http::field::cache_control, "no-store");
    response_.keep_alive(false);
    response_.prepare_payload();
    const auto done = [self = shared_from_this()](error_code, size_t) {
      error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    };
    stream_.expires_after(patience);
    if (!head) return http::async_write(stream_, response_, done);
    serializer_.emplace(response_);
    http::async_write_header(stream_, *serializer_, done);
  }

  beast::tcp_stream stream_;
  Seat seat_;
  House& house_;
  beast::flat_buffer buffer_{longest_header + 1024};
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
};

}  // namespace

struct Server::Inside {
  House house;  // outlives what the context still holds
  asio::io_context context{1};
  asio::signal_set signals{context, SIGINT, SIGTERM};
  tcp::acceptor acceptor{context};

  explicit Inside(House h) : house(std::move(h)) {
    struct sigaction now {};
    if (::sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) signals.add(SIGHUP);  // nohup means it
  }

  void accept() {
    acceptor.async_accept([this](error_code trouble, tcp::socket socket) {
      if (!acceptor.is_open()) return;
      accept();
      if (!trouble && house.connections < most_connections)
        std::make_shared<Visitor>(std::move(socket), house)->begin();
    });
  }
};

Server::Server(int port, const std::string& token, Welcome welcome) {
  try {
    inside_ = std::make_unique<Inside>(House{Gate(0, token), std::move(welcome)});
  } catch (const boost::system::system_error& error) {
    throw Error(ErrorKind::usage, fmt::format("the studio cannot start: {}", error.code().message()), {},
                "it needs files and memory: end other programs, or raise the limits ('ulimit -a' lists them)");
  }
  tcp::acceptor& acceptor = inside_->acceptor;
  const tcp::endpoint here(asio::ip::address_v4::loopback(), static_cast<unsigned short>(port));
  error_code trouble;
  acceptor.open(here.protocol(), trouble);
  if (!trouble) acceptor.set_option(tcp::acceptor::reuse_address(true), trouble);
  if (!trouble) acceptor.bind(here, trouble);
  if (!trouble) acceptor.listen(asio::socket_base::max_listen_connections, trouble);
  if (trouble)
    throw Error(ErrorKind::usage, fmt::format("--port {}: {}", port, trouble.message()), {},
                "choose another port, or leave out --port: then a free one is taken");
  inside_->house.gate = Gate(this->port(), token);
  inside_->accept();
}

Server::~Server() = default;

int Server::port() const { return inside_->acceptor.local_endpoint().port(); }

void Server::run() {
  inside_->signals.async_wait([this](error_code trouble, int) {
    if (!trouble) inside_->context.stop();
  });
  while (!inside_->context.stopped()) {
    try {
      inside_->context.run();
    } catch (const std::exception&) {  // no memory or thread for one page: its connection is gone, the others stay
    }
  }
  for (Page* page : std::set<Page*>(inside_->house.pages)) page->leave();
}

void Server::stop() { inside_->context.stop(); }

}  // namespace saltus
