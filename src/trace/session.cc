#include "trace/session.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "base/host.h"
#include "base/log.h"
#include "base/never_destroyed.h"
#include "trace/file.h"
#include "trace/on.h"

namespace tutti::trace {

namespace {

constexpr std::uint64_t kMegabyte = 1U << 20U;
constexpr std::size_t kStatic = 512;  ///< places for static texts, a power of two

/// By address, for texts that stay where they are.
struct StaticText {
  std::atomic<const char*> address{nullptr};
  std::atomic<std::uint32_t> id{0};
};

struct Session {
  std::mutex mutex;  ///< all but what is atomic
  std::unique_ptr<TraceFile> file;
  std::atomic<TraceFile*> writing{nullptr};
  bool tried = false;
  std::map<std::string, std::uint32_t, std::less<>> texts;
  std::array<StaticText, kStatic> statics;
  std::atomic<std::uint32_t> generation{1};  ///< of the file: thread numbers are its own
  std::uint32_t threads = 0;
  std::uint32_t comms = 0;
  std::atomic<std::uint32_t> numbers{0};

  void forgetAll() {
    detail::gOn.store(false, std::memory_order_relaxed);
    writing.store(nullptr);
    tried = false;
    texts.clear();
    for (StaticText& one : statics) {
      one.address.store(nullptr, std::memory_order_relaxed);
      one.id.store(0, std::memory_order_relaxed);
    }
    generation.fetch_add(1);
    threads = comms = 0;
  }
};

Session& session() {
  static NeverDestroyed<Session> one;
  return one.get();
}

/// The parent's file is none of the child's.
void watchForks() {
  static const int registered = ::pthread_atfork([] { session().mutex.lock(); }, [] { session().mutex.unlock(); },
                                                 [] {
                                                   Session& s = session();
                                                   s.forgetAll();
                                                   // Its mutex may be held by a thread that the child does not have.
                                                   if (s.file) s.file.release()->forget();
                                                   s.mutex.unlock();
                                                 });
  static_cast<void>(registered);
}

/// Tells the file that the process ended in order.
struct Closer {
  ~Closer() {
    if (TraceFile* const file = session().writing.load(); file != nullptr) file->close(now());
  }
};

template <class Note>
std::uint32_t addNote(TraceFile& file, NoteType type, const Note& note) {
  const auto bytes = std::as_bytes(std::span(&note, 1));
  return file.note(type, bytes.subspan(sizeof(NoteHead)));
}

std::uint16_t threadNumber(Session& s, TraceFile& file) {
  struct Own {
    std::uint32_t generation = 0;
    std::uint16_t number = 0;
  };
  thread_local constinit Own own;
  const std::uint32_t generation = s.generation.load(std::memory_order_relaxed);
  if (own.generation == generation) return own.number;
  const std::lock_guard lock(s.mutex);
  own = {generation, 0};
  if (s.threads == UINT16_MAX) return 0;
  ThreadNote note{};
  note.number = ++s.threads;
  note.tid = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  static_cast<void>(::pthread_getname_np(::pthread_self(), note.name.data(), note.name.size()));
  addNote(file, NoteType::Thread, note);
  own.number = static_cast<std::uint16_t>(note.number);
  return own.number;
}

}  // namespace

std::string expandPattern(std::string_view pattern, std::string_view host, long pid, int rank) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h') {
      path += host;
    } else if (next == 'p') {
      path += std::to_string(pid);
    } else if (next == 'r') {
      path += std::to_string(rank);
    } else {
      path += pattern[i];
      if (next != '%') continue;
    }
    ++i;
  }
  return path;
}

void start(const Wishes& wishes, std::string_view library, int rank) {
  if (wishes.pattern.empty()) return;
  watchForks();
  Session& s = session();
  const std::lock_guard lock(s.mutex);
  const bool namesRank = expandPattern(wishes.pattern, "", 0, 0) != expandPattern(wishes.pattern, "", 0, 1);
  if (s.tried || (rank < 0 && namesRank)) return;
  s.tried = true;
  static const Closer closer;
  Writer writer{hostName(), 0, static_cast<std::uint32_t>(::getpid()), std::string(library)};
  if (const auto identity = hostIdentity(wishes.hostId); identity.ok()) writer.hostHash = identity.value().hash;
  const std::string path = expandPattern(wishes.pattern, writer.host, ::getpid(), rank);
  std::string why;
  s.file = TraceFile::create(path, wishes.megabytes * kMegabyte, writer, why);
  if (s.file == nullptr) {
    warn("TUTTI_TRACE={}: {} cannot be written: {}. This process goes on without a trace", wishes.pattern, path, why);
    return;
  }
  info(kInit | kProfile, "TUTTI_TRACE: this process writes what it does to {}", path);
  s.writing.store(s.file.get());
  detail::gOn.store(true, std::memory_order_release);
}

void stop() {
  Session& s = session();
  const std::lock_guard lock(s.mutex);
  s.forgetAll();
  if (s.file) s.file->close(now());
  s.file.reset();
}

std::uint32_t text(std::string_view text) {
  Session& s = session();
  const std::lock_guard lock(s.mutex);
  if (s.file == nullptr) return 0;
  if (const auto known = s.texts.find(text); known != s.texts.end()) return known->second;
  const std::uint32_t id = s.file->text(text);
  // Without room for it, nobody need try again; the table of those that are there stays small.
  if (id != 0) s.texts.emplace(text, id);
  return id;
}

std::uint32_t staticText(const char* text) {
  Session& s = session();
  std::size_t place = std::hash<const void*>()(text) / 8;
  for (std::size_t tries = 0; tries < 8; ++tries, ++place) {
    StaticText& one = s.statics[place % kStatic];
    const char* address = one.address.load(std::memory_order_acquire);
    if (address == text) {
      if (const std::uint32_t id = one.id.load(std::memory_order_acquire); id != 0) return id;
      break;
    }
    if (address != nullptr) continue;
    const std::uint32_t id = trace::text(text);
    if (one.address.compare_exchange_strong(address, text)) one.id.store(id, std::memory_order_release);
    return id;
  }
  return trace::text(text);
}

std::uint16_t addComm(std::uint64_t hash, int rank, int nRanks, int device, std::string_view name) {
  CommNote note{};
  note.name = name.empty() ? 0 : text(name);
  Session& s = session();
  const std::lock_guard lock(s.mutex);
  if (s.file == nullptr || s.comms == UINT16_MAX) return 0;
  note.number = ++s.comms;
  note.rank = rank;
  note.nRanks = nRanks;
  note.device = device;
  note.hash = hash;
  addNote(*s.file, NoteType::Comm, note);
  return static_cast<std::uint16_t>(note.number);
}

void addClock(std::uint64_t hostHash, std::int64_t offset, std::uint64_t error) {
  TraceFile* const file = session().writing.load();
  if (file != nullptr) addNote(*file, NoteType::Clock, ClockNote{{}, hostHash, offset, error, now()});
}

std::uint32_t nextNumber() {
  return session().numbers.fetch_add(1, std::memory_order_relaxed) + 1;
}

void write(Record record) {
  Session& s = session();
  TraceFile* const file = s.writing.load(std::memory_order_acquire);
  if (file == nullptr) return;
  record.thread = threadNumber(s, *file);
  file->write(record);
}

}  // namespace tutti::trace
