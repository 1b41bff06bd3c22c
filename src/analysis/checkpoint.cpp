#include "analysis/checkpoint.hpp"

#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"

namespace saltus {
namespace {

constexpr std::string_view kind = "saltus checkpoint ";  // the version of the file follows, and a line's end
constexpr std::string_view version = "1";
constexpr size_t head = 3 * sizeof(std::int64_t);  // of a record: item, length, checksum

[[noreturn]] void trouble(const std::filesystem::path& path, int reason) {
  const bool full = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
  throw Error(ErrorKind::file,
              fmt::format("cannot write '{}': {}", path.string(), std::generic_category().message(reason)), {},
              full ? "free some space, then go on with 'saltus again': what was finished before is kept"
                   : "choose another folder with `folder` DIR");
}

/// Item and length take part, so that bytes never pass for those of another item.
std::int64_t record_sum(std::size_t item, std::string_view bytes) {
  const Bytes place = Packer().integer(static_cast<std::int64_t>(item)).take();
  return static_cast<std::int64_t>(checksum(place) ^ (checksum(bytes) * 31));
}

/// Reads exactly `size` bytes; nothing if the file ends before.
std::optional<Bytes> read_bytes(int fd, size_t size, const std::filesystem::path& path) {
  Bytes bytes(size, '\0');
  size_t have = 0;
  while (have < size) {
    const ssize_t n = ::read(fd, bytes.data() + have, size - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) trouble(path, errno);
    if (n == 0) return std::nullopt;
    have += static_cast<size_t>(n);
  }
  return bytes;
}

Bytes header_of(const std::string& identity) {
  return fmt::format("{}{}\n", kind, version) + Packer().text(identity).take();
}

/// The version a checkpoint says it has; empty if this is none.
std::string version_of(std::string_view start) {
  if (!start.starts_with(kind)) return "";
  const std::string_view rest = start.substr(kind.size());
  const size_t end = rest.find('\n');
  return end == rest.npos || end > 20 ? "" : std::string(rest.substr(0, end));
}

/// True if the whole header is there. Throws if another one is.
bool read_header(int fd, const Bytes& header, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) trouble(path, errno);
  const auto start = read_bytes(fd, std::min(header.size(), static_cast<size_t>(status.st_size)), path);
  if (const std::string found = start ? version_of(*start) : ""; !found.empty() && found != version)
    throw Error(
        ErrorKind::file,
        fmt::format("'{}' has version {} of its kind; this saltus writes version {}", path.string(), found, version),
        {}, "finish the computation with the saltus that began it, or remove its folder and begin again");
  if (!start || !header.starts_with(*start))
    throw Error(ErrorKind::file, fmt::format("'{}' belongs to another computation", path.string()), {},
                "finish that one with `again`, choose another folder with `folder` DIR, or remove the file");
  return start->size() == header.size();
}

}  // namespace

void check_checkpoint(const std::filesystem::path& path, const std::string& identity) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;  // what else is wrong with it is told when it is written
  try {
    read_header(fd, header_of(identity), path);
  } catch (...) {
    ::close(fd);
    throw;
  }
  ::close(fd);
}

Checkpoint::Checkpoint(const std::filesystem::path& path, const std::string& identity,
                       const std::function<void(std::size_t, Bytes)>& found)
    : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (fd_ < 0) trouble(path_, errno);
  try {
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0)
      throw Error(ErrorKind::file, fmt::format("another saltus is working on '{}'", path_.string()), {},
                  "wait for it, or choose another folder with `folder` DIR");
    const Bytes header = header_of(identity);
    struct stat status {};
    if (::fstat(fd_, &status) != 0) trouble(path_, errno);
    if (!read_header(fd_, header, path_)) {  // new, or killed while it was made
      if (::ftruncate(fd_, 0) != 0 || ::lseek(fd_, 0, SEEK_SET) != 0) trouble(path_, errno);
      write_all(header);
    } else {
      size_ = static_cast<long long>(header.size());
      while (const auto record = read_bytes(fd_, head, path_)) {
        Unpacker unpack(*record);
        const auto item = static_cast<std::size_t>(unpack.integer());
        const std::int64_t length = unpack.integer(), sum = unpack.integer();
        if (length < 0 || length > status.st_size - size_) break;
        auto bytes = read_bytes(fd_, static_cast<size_t>(length), path_);
        if (!bytes || record_sum(item, *bytes) != sum) break;
        size_ += static_cast<long long>(head) + length;
        found(item, std::move(*bytes));
      }
      if (::ftruncate(fd_, size_) != 0 || ::lseek(fd_, size_, SEEK_SET) < 0) trouble(path_, errno);
    }
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

Checkpoint::~Checkpoint() { ::close(fd_); }

void Checkpoint::append(std::size_t item, const Bytes& bytes) {
  write_all(Packer()
                .integer(static_cast<std::int64_t>(item))
                .integer(static_cast<std::int64_t>(bytes.size()))
                .integer(record_sum(item, bytes))
                .take() +
            bytes);
}

void Checkpoint::write_all(const Bytes& bytes) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int reason = errno;
      if (::ftruncate(fd_, size_) == 0) ::lseek(fd_, size_, SEEK_SET);  // else the next opening cuts it off
      trouble(path_, reason);
    }
    rest.remove_prefix(static_cast<size_t>(n));
  }
  size_ += static_cast<long long>(bytes.size());
  flushed_ = false;
}

void Checkpoint::flush(bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (flushed_ || (!now && time - last_flush_ < std::chrono::seconds(1))) return;
  if (::fdatasync(fd_) != 0 && errno != EINVAL) trouble(path_, errno);
  flushed_ = true;
  last_flush_ = time;
}

}  // namespace saltus
