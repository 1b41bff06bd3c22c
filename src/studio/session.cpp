#include "studio/session.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "studio/frame.hpp"

namespace saltus {

// ---- lanes ---------------------------------------------------------------------------------------------------------

RequestLane::RequestLane(Work work)
    : work_(std::move(work)), thread_([this](const std::stop_token& ended) { loop(ended); }) {}

RequestLane::~RequestLane() {
  stop([](const PageRequest&) { return true; });
  thread_.request_stop();
  thread_.join();
}

std::vector<PageRequest> RequestLane::put(PageRequest message,
                                          const std::function<bool(const PageRequest&)>& gives_way) {
  std::vector<PageRequest> dropped;
  {
    const std::scoped_lock lock(mutex_);
    std::deque<PageRequest> kept;
    for (PageRequest& m : waiting_) {
      if (gives_way(m)) {
        dropped.push_back(std::move(m));
      } else {
        kept.push_back(std::move(m));
      }
    }
    kept.push_back(std::move(message));
    waiting_ = std::move(kept);
  }
  changed_.notify_one();
  return dropped;
}

void RequestLane::stop(const std::function<bool(const PageRequest&)>& meant) {
  const std::scoped_lock lock(mutex_);
  if (current_ && meant(*current_)) stop_.request_stop();
}

void RequestLane::loop(const std::stop_token& ended) {
  while (true) {
    std::stop_token stop;
    {
      std::unique_lock lock(mutex_);
      current_.reset();
      if (!changed_.wait(lock, ended, [&] { return !waiting_.empty(); }) || ended.stop_requested()) return;
      current_ = std::move(waiting_.front());
      waiting_.pop_front();
      stop_ = std::stop_source();
      stop = stop_.get_token();
    }
    work_(*current_, stop);
  }
}

// ---- the session ---------------------------------------------------------------------------------------------------

namespace {

bool is_job(const PageRequest& m) {
  return m.verb == "section" || m.verb == "sweep" || m.verb == "basins" || m.verb == "orbit" || m.verb == "branch";
}

/// True if a newer request of this kind makes an older one useless.
bool is_fleeting(const PageRequest& m) {
  return m.verb == "run" || m.verb == "window" || m.verb == "plane" || m.verb == "check";
}

/// Options by their names, as the page calls them.
std::string in_words(const std::string& message) {
  return spell_options(message, [](std::string_view name) { return std::string(name); });
}

void write_error(JsonWriter& json, const Error& error) {
  const Place& place = error.place();
  json.key("error").object().member("message", in_words(error.message())).member("hint", in_words(error.hint()));
  json.member("report", error.report());
  if (place.known()) json.member("line", place.line).member("column", place.column).member("length", place.length);
  json.end();
}

}  // namespace

Session::Session(const StudioModel& model, int threads, Outbox outbox)
    : outbox_(outbox),
      desk_(model, threads, std::move(outbox)),
      quick_([this](const PageRequest& m, const std::stop_token& stop) { answer(m, stop); }),
      jobs_([this](const PageRequest& m, const std::stop_token& stop) { answer(m, stop); }) {}

void Session::receive(std::string text) {
  try {
    take(read_message(text));
  } catch (const Error& error) {
    outbox_.send(note_to_page(0, "error", [&](JsonWriter& json) { write_error(json, error); }), false);
  }
}

void Session::take(PageRequest message) {
  if (message.verb == "stop") {
    const auto meant = [of = message.of](const PageRequest& m) { return m.id == of; };
    jobs_.stop(meant);
    quick_.stop(meant);
    return;
  }
  std::vector<PageRequest> dropped;
  const std::string verb = message.verb;
  const auto is_older = [id = message.id](const PageRequest& m) { return m.id != id; };
  if (is_job(message)) {
    dropped = jobs_.put(std::move(message), [](const PageRequest&) { return true; });
    jobs_.stop(is_older);
  } else {
    dropped = quick_.put(std::move(message), [&](const PageRequest& m) { return m.verb == verb && is_fleeting(m); });
    if (verb == "run" || verb == "open")
      quick_.stop([&](const PageRequest& m) { return m.verb == "run" && !m.drag && is_older(m); });
  }
  for (const PageRequest& m : dropped) outbox_.send(note_to_page(m.id, "dropped"), false);
}

void Session::answer(const PageRequest& message, const std::stop_token& stop) {
  const auto complain = [&](const Error& error) {
    outbox_.send(note_to_page(message.id, "error", [&](JsonWriter& json) { write_error(json, error); }), false);
  };
  try {
    desk_.answer(message, stop);
  } catch (const Error& error) {
    complain(error);
  } catch (const std::bad_alloc&) {
    complain(Error(ErrorKind::usage, "there is not enough memory for this", {}, "ask for less"));
  } catch (const std::exception& error) {
    complain(Error(ErrorKind::usage, fmt::format("saltus failed: {}", error.what()), {},
                   "this is a mistake in saltus, not yours: please report it"));
  }
}

}  // namespace saltus
