#include "trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/log.h"

namespace tutti::tool {

namespace {

using trace::FileHeader;
using trace::NoteHead;
using trace::NoteType;
using trace::Record;

template <class T>
std::optional<T> load(std::span<const std::byte> bytes, std::uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return {};
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

template <std::size_t N>
std::string textIn(const std::array<char, N>& chars) {
  return {chars.begin(), std::find(chars.begin(), chars.end(), '\0')};
}

/// Whether the header says where things lie that can lie there.
bool makesSense(const FileHeader& header) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40U;
  if (header.notesOffset != trace::kHeaderBytes || header.notesBytes > kMost || header.fileBytes > kMost) return false;
  if (header.ringOffset != header.notesOffset + header.notesBytes || header.ringRecords == 0) return false;
  return header.ringOffset <= header.fileBytes &&
         header.ringRecords <= (header.fileBytes - header.ringOffset) / sizeof(Record);
}

/// One whole note; whether it was understood.
bool takeNote(ProcessTrace& trace, std::span<const std::byte> note, NoteType type, std::uint32_t id) {
  switch (type) {
    case NoteType::Text: {
      const auto text = load<trace::TextNote>(note, 0);
      if (!text || text->length > note.size() - sizeof(*text)) return false;
      trace.texts[id] = std::string(reinterpret_cast<const char*>(note.data() + sizeof(*text)), text->length);
      return true;
    }
    case NoteType::Thread: {
      const auto thread = load<trace::ThreadNote>(note, 0);
      if (!thread) return false;
      trace.threads[static_cast<std::uint16_t>(thread->number)] = {thread->tid, textIn(thread->name)};
      return true;
    }
    case NoteType::Comm: {
      const auto comm = load<trace::CommNote>(note, 0);
      if (!comm) return false;
      trace.comms[static_cast<std::uint16_t>(comm->number)] = {comm->hash, comm->rank, comm->nRanks, comm->device,
                                                               trace.text(comm->name)};
      return true;
    }
    case NoteType::Clock: {
      const auto clock = load<trace::ClockNote>(note, 0);
      if (clock) trace.clocks.push_back(*clock);
      return clock.has_value();
    }
  }
  return true;  // a later version of the same format may have more
}

void takeNotes(ProcessTrace& trace, std::span<const std::byte> notes, std::uint64_t used) {
  const std::uint64_t end = std::min<std::uint64_t>(used, notes.size());
  if (used > notes.size()) trace.remarks.emplace_back("its texts are cut off");
  std::uint64_t at = 0;
  while (at < end) {
    const auto head = load<NoteHead>(notes.first(end), at);
    if (!head || head->bytes < sizeof(NoteHead) || head->bytes % 8 != 0 || head->bytes > end - at ||
        !takeNote(trace, notes.subspan(at, head->bytes), head->type, static_cast<std::uint32_t>(at + 1))) {
      trace.remarks.push_back(fmt::format("its texts are damaged from byte {} on", at));
      return;
    }
    at += head->bytes;
  }
}

/// Whether the words of a record can be what a point wrote.
bool isRecord(const Record& record) {
  constexpr std::uint64_t kLatest = std::uint64_t{1} << 62U;
  const auto kind = static_cast<std::uint16_t>(record.kind);
  return kind != 0 && kind <= trace::kLastKind && record.begin <= record.end && record.end < kLatest &&
         record.begin != 0;
}

void takeRecords(ProcessTrace& trace, std::span<const std::byte> ring, const FileHeader& header) {
  const std::uint64_t there = std::min<std::uint64_t>(header.ringRecords, ring.size() / sizeof(Record));
  if (there < header.ringRecords) {
    trace.remarks.push_back(
        fmt::format("it is cut off: {} of {} places for events are there", there, header.ringRecords));
  }
  for (std::uint64_t i = 0; i < there; ++i) {
    const Record record = *load<Record>(ring, i * sizeof(Record));
    if (record.sequence == 0) continue;
    const bool inPlace = (record.sequence - 1) % header.ringRecords == i;
    if (inPlace && isRecord(record)) {
      trace.records.push_back(record);
    } else {
      ++trace.damaged;
    }
  }
  std::sort(trace.records.begin(), trace.records.end(),
            [](const Record& a, const Record& b) { return a.sequence < b.sequence; });
  if (header.next > header.ringRecords) trace.lost = header.next - header.ringRecords;
  if (trace.lost > 0) {
    trace.remarks.push_back(
        fmt::format("its oldest {} events were replaced by newer ones (TUTTI_TRACE_MB)", trace.lost));
  }
  if (trace.damaged > 0) trace.remarks.push_back(fmt::format("{} events in it are damaged", trace.damaged));
}

std::optional<std::vector<std::byte>> readWhole(const std::string& path, std::string& why) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file.valid() || ::fstat(file.get(), &facts) != 0) {
    why = errnoText(errno);
    return {};
  }
  if (!S_ISREG(facts.st_mode)) {
    why = "it is no regular file";
    return {};
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(facts.st_size));
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t n = ::read(file.get(), bytes.data() + got, bytes.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      why = errnoText(errno);
      return {};
    }
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  bytes.resize(got);
  return bytes;
}

}  // namespace

std::string ProcessTrace::text(std::uint32_t id) const {
  const auto found = texts.find(id);
  return found == texts.end() ? std::string() : found->second;
}

const TracedComm* ProcessTrace::comm(std::uint16_t number) const {
  const auto found = comms.find(number);
  return found == comms.end() ? nullptr : &found->second;
}

const TracedComm* ProcessTrace::largest() const {
  const TracedComm* found = nullptr;
  for (const auto& [number, comm] : comms) {
    if (found == nullptr || comm.nRanks > found->nRanks || (comm.hash == found->hash && comm.rank < found->rank)) {
      found = &comm;
    }
  }
  return found;
}

int ProcessTrace::rank() const {
  return largest() == nullptr ? -1 : largest()->rank;
}

std::string ProcessTrace::title() const {
  const std::string where = fmt::format("host {}, pid {}", host, pid);
  if (rank() < 0) return where;
  int last = rank();
  for (const auto& [number, comm] : comms) {
    if (comm.hash == largest()->hash) last = std::max(last, comm.rank);
  }
  return last == rank() ? fmt::format("rank {} ({})", rank(), where)
                        : fmt::format("ranks {} to {} ({})", rank(), last, where);
}

std::optional<ProcessTrace> parseTrace(std::span<const std::byte> file, std::string& why) {
  const auto header = load<FileHeader>(file, 0);
  if (!header || header->magic != trace::kMagic) {
    why = "it is no trace of tutti, or its process ended while it was made";
    return {};
  }
  if (header->version == 0 || header->version > trace::kVersion) {
    why = fmt::format(
        "it is of version {} of the format, and this tutti-info knows versions 1 to {}: use the one of "
        "the library that wrote it ({})",
        header->version, trace::kVersion, textIn(header->library));
    return {};
  }
  if (!makesSense(*header)) {
    why = "its header is damaged";
    return {};
  }
  ProcessTrace trace;
  trace.host = textIn(header->host);
  trace.library = textIn(header->library);
  trace.pid = header->pid;
  trace.hostHash = header->hostHash;
  trace.openedMonotonic = header->openedMonotonic;
  trace.openedRealtime = header->openedRealtime;
  trace.closed = header->closed;
  const auto from = [&](std::uint64_t at) { return file.subspan(std::min<std::uint64_t>(at, file.size())); };
  const std::span<const std::byte> notes = from(header->notesOffset);
  takeNotes(trace, notes.first(std::min<std::uint64_t>(notes.size(), header->notesBytes)), header->notesUsed);
  takeRecords(trace, from(header->ringOffset), *header);
  return trace;
}

std::optional<ProcessTrace> readTrace(const std::string& path, std::string& why) {
  const auto bytes = readWhole(path, why);
  if (!bytes) return {};
  auto trace = parseTrace(*bytes, why);
  if (trace) trace->path = path;
  return trace;
}

}  // namespace tutti::tool
