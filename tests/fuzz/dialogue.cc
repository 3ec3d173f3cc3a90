#include "dialogue.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/log.h"
#include "ras/network/network.h"

namespace tutti::fuzz {

namespace {

using bootstrap::Frame;
using bootstrap::FrameHeader;
using bootstrap::FrameType;
using ras::ByteReader;
using ras::Bytes;
using ras::Message;

// How an item of a script begins: what is to be said, and a number of bytes (2, the lower one first) that follow.
constexpr std::uint8_t kOperation = 0x0f;
constexpr std::uint8_t kSealed = 0x10;  ///< the bytes are entries whose keys are to be sealed
constexpr std::uint8_t kRaw = 0x20;     ///< they are no payload: nothing is put in front of them
constexpr std::uint8_t kTyped = 0x40;   ///< the first of them is the type of the frame

/// What a process makes of a stream of frames, worked out beside it.
class Judge {
 public:
  void came(std::span<const std::byte> bytes) {
    stream_.insert(stream_.end(), bytes.begin(), bytes.end());
    while (!over_ && next()) {
    }
  }
  /// The connection ends.
  bool over() const { return over_; }
  /// That is because of what was said.
  bool nonsense() const { return nonsense_; }
  /// It was a frame, and the log tells of it.
  bool told() const { return told_; }
  /// Who it is was known before.
  bool introduced() const { return introduced_; }

 private:
  bool next() {
    FrameHeader header;
    if (stream_.size() < sizeof(header)) return false;
    std::memcpy(&header, stream_.data(), sizeof(header));
    if (header.type == 0 || header.type > bootstrap::kLastFrameType || header.bytes > ras::kMaxMessage) {
      return refuse(false);
    }
    if (stream_.size() < sizeof(header) + header.bytes) return false;
    const Bytes payload(stream_.begin() + sizeof(header), stream_.begin() + sizeof(header) + header.bytes);
    stream_.erase(stream_.begin(), stream_.begin() + sizeof(header) + header.bytes);
    return frame(header, payload) ? !over_ : refuse(true);
  }

  bool refuse(bool told) {
    over_ = true;
    nonsense_ = true;
    told_ = told;
    return false;
  }

  bool frame(const FrameHeader& header, const Bytes& payload) {
    if (static_cast<FrameType>(header.type) != FrameType::Ras) return false;
    const auto message = static_cast<Message>(header.op);
    const bool alone = message == Message::Intro || message == Message::Query || message == Message::Rewire;
    if (!alone && !introduced_) return false;
    if (message == Message::Query) return true;
    if (message == Message::Rewire) return over_ = true;
    if (message == Message::KeepAlive) return payload.size() == sizeof(std::uint64_t);
    const auto table = ras::decodeTable(payload, fuzzedProcess().key);
    if (message == Message::Intro) return table && intro(*table);
    if (message == Message::Goodbye) over_ = table.has_value();
    return (message == Message::Table || message == Message::Goodbye) && table;
  }

  bool intro(const std::vector<ras::Member>& table) {
    if (introduced_ || table.size() != 1 || table.front().facts.id == fuzzedProcess().facts.id) return false;
    introduced_ = table.front().facts.state == ras::ProcessState::Alive;
    over_ = !introduced_;
    return true;
  }

  Bytes stream_;
  bool introduced_ = false;
  bool over_ = false;
  bool nonsense_ = false;
  bool told_ = false;
};

/// Lines of the log that say that somebody was not understood.
int complaints = 0;

void listenToLog() {
  static const bool asked = [] {
    ::setenv("NCCL_DEBUG", "INFO", 1);
    ::setenv("NCCL_DEBUG_SUBSYS", "RAS", 1);
    resetLog();
    return true;
  }();
  static_cast<void>(asked);
  complaints = 0;
  setLogSink([](void*, bool, std::string_view line) { complaints += line.find("makes no sense") != line.npos; },
             nullptr);
}

/// The connection, seen from both ends.
class FrameDialogue {
 public:
  explicit FrameDialogue(bootstrap::Poller poller)
      : poller_(std::move(poller)),
        network_(poller_, Listener(), fuzzedProcess(), ras::Timers(),
                 {[] { return std::vector<ras::CommFacts>(); }, [this](const ras::Event& event) { happened(event); }}) {
  }

  std::string run(std::string_view script, bool shaken) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) return "no sockets";
    const bootstrap::Key& key = fuzzedProcess().key;
    client_ = std::make_unique<bootstrap::Link>(
        Socket(Fd(ends[0]), {}), bootstrap::ClientHandshake(key, bootstrap::Purpose::Ras, 0, 0), ras::kMaxMessage);
    network_.letIn({std::make_unique<bootstrap::Link>(Socket(Fd(ends[1]), {}), bootstrap::ServerHandshake(key, 0),
                                                      ras::kMaxMessage),
                    {}});
    if (!shaken) return strange(script);
    client_->flush();
    pump();
    if (!client_->open()) return "who has the key is not let in";
    while (!script.empty() && !judge_.over() && wrong_.empty()) script.remove_prefix(play(script));
    return wrong_.empty() ? verdict() : wrong_;
  }

 private:
  /// Who does not prove that it has the key is told nothing, and is nobody.
  std::string strange(std::string_view bytes) {
    send(viewOf(bytes));
    pump();
    if (network_.members().size() != 1) return "a stranger has made itself known";
    return frames_.empty() ? "" : "a stranger is answered";
  }

  /// How many bytes the first item has.
  std::size_t play(std::string_view script) {
    const auto at = [script](std::size_t i) { return i < script.size() ? static_cast<std::uint8_t>(script[i]) : 0; };
    const std::size_t length =
        std::min<std::size_t>(at(1) | at(2) << 8, script.size() - std::min<std::size_t>(3, script.size()));
    std::string_view text = script.size() > 3 ? script.substr(3, length) : "";
    const std::uint8_t how = at(0);
    FrameHeader header{0, static_cast<std::uint8_t>(FrameType::Ras), static_cast<std::uint8_t>(how & kOperation)};
    if ((how & kTyped) != 0 && !text.empty()) {
      header.type = static_cast<std::uint8_t>(text.front());
      text.remove_prefix(1);
    }
    Bytes payload(viewOf(text).begin(), viewOf(text).end());
    if ((how & kSealed) != 0) payload = sealed(plainEntries(payload));
    header.bytes = static_cast<std::uint32_t>(payload.size());
    if ((how & kRaw) == 0) {
      const Bytes head = bootstrap::encodeValue(header);
      payload.insert(payload.begin(), head.begin(), head.end());
    }
    judge_.came(payload);
    send(payload);
    pump();
    compare();
    return std::min(script.size(), 3 + length);
  }

  void send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(client_->fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
      pump();
      if (sent <= 0) return;
    }
  }

  void pump() {
    for (int quiet = 0; quiet < 2; ++quiet) {
      static_cast<void>(poller_.wait(events_, milliseconds(0)));
      for (const bootstrap::Poller::Event& event : events_) network_.onEvent(event);
      if (!events_.empty()) quiet = 0;
      const std::size_t before = frames_.size();
      client_->receive(frames_);
      client_->flush();
      if (frames_.size() > before) quiet = 0;
    }
  }

  void happened(const ras::Event& event) {
    if (event.kind == ras::EventKind::PeerDisconnected) farewells_ += event.details == "sent what makes no sense";
  }

  void compare() {
    if (judge_.over() != client_->end().has_value()) {
      wrong_ = judge_.over() ? "the connection goes on" : "the connection ends";
    }
    if (complaints != (judge_.told() ? 1 : 0)) wrong_ = "what makes no sense is not told apart from the rest";
  }

  std::string verdict() {
    for (const Frame& frame : frames_) {
      if (frame.type() != FrameType::Ras || !sensible(frame)) return "a process says what makes no sense";
    }
    if (judge_.nonsense() && judge_.introduced() && farewells_ != 1) return "nobody is told why a connection ends";
    return network_.roster().processes.size() == network_.members().size() ? "" : "the roster is not the table";
  }

  static bool sensible(const Frame& frame) {
    switch (static_cast<Message>(frame.header.op)) {
      case Message::KeepAlive:
        return frame.payload.size() == sizeof(std::uint64_t);
      case Message::Table:
        return ras::decodeTable(frame.payload, fuzzedProcess().key).has_value();
      case Message::Answer:
        return ras::decodeAnswer(frame.payload, fuzzedProcess().facts.id).has_value();
      case Message::Heard:
        return frame.payload.empty();
      case Message::Intro:
      case Message::Query:
      case Message::Goodbye:
      case Message::Rewire:
        return false;
    }
    return false;
  }

  bootstrap::Poller poller_;
  ras::Network network_;
  std::unique_ptr<bootstrap::Link> client_;
  std::vector<bootstrap::Poller::Event> events_;
  std::vector<Frame> frames_;  ///< that the client has heard
  Judge judge_;
  int farewells_ = 0;
  std::string wrong_;
};

}  // namespace

const ras::Member& fuzzedProcess() {
  static const ras::Member process = [] {
    static_cast<void>(bootstrap::initCrypto());
    ras::Member self;
    self.key.fill(std::byte{1});
    self.facts.id = ras::idOf(self.key);
    self.facts.address = Address::loopback(AF_INET, 4711);
    self.facts.pid = 4711;
    return self;
  }();
  return process;
}

std::vector<ras::Member> plainEntries(std::span<const std::byte> bytes) {
  constexpr std::size_t kEntry = 104;
  std::vector<ras::Member> entries;
  for (; bytes.size() >= kEntry; bytes = bytes.subspan(kEntry)) {
    ByteReader in(bytes);
    ras::Member entry;
    entry.facts.address = in.take<Address>();
    entry.facts.pid = in.take<std::int32_t>();
    in.take<std::uint64_t>();
    entry.facts.hostHash = in.take<std::uint64_t>();
    entry.facts.cudaDevices = in.take<std::uint64_t>();
    entry.facts.nvmlDevices = in.take<std::uint64_t>();
    entry.key = in.take<bootstrap::Key>();
    entry.facts.state = static_cast<ras::ProcessState>(in.take<std::uint64_t>());
    entry.facts.id = ras::idOf(entry.key);
    entries.push_back(entry);
  }
  return entries;
}

Bytes sealed(const std::vector<ras::Member>& entries) {
  std::vector<const ras::Member*> list;
  for (const ras::Member& entry : entries) list.push_back(&entry);
  return ras::encodeTable(list, fuzzedProcess().key);
}

std::string playFrames(std::string_view script) {
  static_cast<void>(fuzzedProcess());
  listenToLog();
  auto poller = bootstrap::Poller::create();
  if (!poller.ok()) return "no poller";
  FrameDialogue dialogue(std::move(poller).value());
  const bool shaken = !script.starts_with('\0');  // else no handshake goes before it
  return dialogue.run(script.substr(std::min<std::size_t>(1, script.size())), shaken);
}

}  // namespace tutti::fuzz
