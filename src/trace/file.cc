#include "trace/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/log.h"
#include "trace/on.h"

namespace tutti::trace {

namespace {

constexpr std::size_t kWords = sizeof(Record) / sizeof(std::uint64_t);

std::uint64_t realtime() {
  timespec time{};
  static_cast<void>(::clock_gettime(CLOCK_REALTIME, &time));
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

template <std::size_t N>
void copyText(std::array<char, N>& to, std::string_view text) {
  to = {};
  text.copy(to.data(), N - 1);
}

/// Notes take a sixteenth.
void layOut(FileHeader& header, std::uint64_t bytes) {
  header.fileBytes = bytes;
  header.notesOffset = kHeaderBytes;
  header.notesBytes = bytes / 16 / kHeaderBytes * kHeaderBytes;
  header.ringOffset = header.notesOffset + header.notesBytes;
  header.ringRecords = (bytes - header.ringOffset) / sizeof(Record);
}

std::string whyNotOpened(int error) {
  switch (error) {
    case ENOENT:
      return "its folder does not exist; make it first";
    case EACCES:
    case EPERM:
      return errnoText(error) + "; name a place that this user may write to";
    case EISDIR:
      return "it is a folder; name a file in it, as trace-%p";
    default:
      return errnoText(error);
  }
}

/// A descriptor of the empty, locked file; invalid: `why` says the cause.
Fd openLocked(const std::string& path, std::string& why) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644));
  if (!file.valid()) {
    why = whyNotOpened(errno);
    return {};
  }
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    why = "it is no regular file";
    return {};
  }
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    why = errno == EWOULDBLOCK ? "another process is writing it; put %p (pid) or %r (rank) into the name"
                               : errnoText(errno);
    return {};
  }
  if (::ftruncate(file.get(), 0) != 0) {
    why = errnoText(errno);
    return {};
  }
  return file;
}

}  // namespace

std::unique_ptr<TraceFile> TraceFile::create(const std::string& path, std::uint64_t bytes, const Writer& writer,
                                             std::string& why) {
  Fd file = openLocked(path, why);
  if (!file.valid()) return nullptr;
  if (const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); error != 0) {
    why = fmt::format("its {} bytes are not to be had: {}; free some space, or set TUTTI_TRACE_MB to less", bytes,
                      errnoText(error));
    if (::ftruncate(file.get(), 0) != 0) why += fmt::format("; what there was stays: {}", errnoText(errno));
    return nullptr;
  }
  // With its pages, so that operations do not pay for them.
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (memory == MAP_FAILED) {
    why = fmt::format("it cannot be mapped: {}", errnoText(errno));
    return nullptr;
  }
  FileHeader& header = *static_cast<FileHeader*>(memory);
  layOut(header, bytes);
  header.version = kVersion;
  header.pid = writer.pid;
  header.hostHash = writer.hostHash;
  copyText(header.host, writer.host);
  copyText(header.library, writer.library);
  header.openedMonotonic = now();
  header.openedRealtime = realtime();
  std::atomic_thread_fence(std::memory_order_release);
  header.magic = kMagic;
  return std::unique_ptr<TraceFile>(new TraceFile(std::move(file), static_cast<std::byte*>(memory), bytes));
}

TraceFile::TraceFile(Fd file, std::byte* memory, std::uint64_t bytes)
    : file_(std::move(file)),
      memory_(memory),
      bytes_(bytes),
      ring_(reinterpret_cast<std::uint64_t*>(memory + header().ringOffset)),
      records_(header().ringRecords) {}

TraceFile::~TraceFile() {
  forget();
}

void TraceFile::forget() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
  memory_ = nullptr;
  file_.reset();
}

void TraceFile::write(const Record& record) {
  const std::uint64_t place = std::atomic_ref(header().next).fetch_add(1, std::memory_order_relaxed);
  std::uint64_t* const to = ring_ + place % records_ * kWords;
  std::array<std::uint64_t, kWords> words;
  std::memcpy(words.data(), &record, sizeof(record));
  std::atomic_ref(to[0]).store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);  // nobody takes what follows for the record that was there
  for (std::size_t i = 1; i < kWords; ++i) std::atomic_ref(to[i]).store(words[i], std::memory_order_relaxed);
  std::atomic_ref(to[0]).store(place + 1, std::memory_order_release);
}

std::uint32_t TraceFile::note(NoteType type, std::span<const std::byte> payload) {
  const std::lock_guard lock(notes_);
  const std::uint64_t used = std::atomic_ref(header().notesUsed).load(std::memory_order_relaxed);
  const std::uint64_t bytes = (sizeof(NoteHead) + payload.size() + 7) / 8 * 8;
  if (bytes > header().notesBytes - used) return 0;
  std::byte* const to = memory_ + header().notesOffset + used;
  const NoteHead head{static_cast<std::uint32_t>(bytes), type};
  std::memcpy(to, &head, sizeof(head));
  std::copy(payload.begin(), payload.end(), to + sizeof(head));
  std::atomic_ref(header().notesUsed).store(used + bytes, std::memory_order_release);
  return static_cast<std::uint32_t>(used + 1);
}

std::uint32_t TraceFile::text(std::string_view text) {
  constexpr std::size_t kLongest = 4000;
  text = text.substr(0, kLongest);
  std::array<std::byte, kLongest + 2 * sizeof(std::uint32_t)> payload;
  const std::array<std::uint32_t, 2> front{static_cast<std::uint32_t>(text.size()), 0};
  std::memcpy(payload.data(), front.data(), sizeof(front));
  std::memcpy(payload.data() + sizeof(front), text.data(), text.size());
  return note(NoteType::Text, std::span(payload).first(sizeof(front) + text.size()));
}

void TraceFile::close(std::uint64_t when) {
  std::atomic_ref(header().closed).store(when, std::memory_order_release);
}

}  // namespace tutti::trace
