// A network within the process that does everything wrong that networks do: it is slow, refuses, completes late and out
// of order, cuts messages short, fails. It also watches what is asked of it.
//
// With `maxRecvs` above 1 it matches as networks for RDMA do: a message goes into a place of its tag in the oldest
// receive that has not got all of its messages, or is refused; and nothing moves before a receive has got them all.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "plugin/network/net.h"

namespace tutti::test {

struct FakeKnobs {
  unsigned seed = 1;
  unsigned refuse = 0;      ///< percent of isend and irecv that are refused
  unsigned delay = 0;       ///< a request takes up to so many tests
  bool rendezvous = false;  ///< a send ends only when a receive has taken it
  unsigned polls = 0;       ///< connect and accept say "not yet" so often
  bool neverAccepts = false;
  bool neverEnds = false;     ///< no request does
  bool undelivered = false;   ///< what was sent has not come to the peer's host
  std::string failing = {};   ///< the call that fails …
  unsigned failAfter = 0;     ///< … when it has worked so often
  bool saysOnce = false;      ///< why it fails, the first time alone
  unsigned cutBy = 0;         ///< bytes that the end of every message lacks
  unsigned spoilAt = 0;       ///< 1-based byte of every message that is changed
  int maxRecvs = 1;           ///< of every device
  int refusesKinds = 0;       ///< of memory, bits of plugin::PtrKind: registrations of them fail
  bool keepsSizes = false;    ///< test does not say how much has come
  bool wantsAnswers = false;  ///< of what is posted, before a connection is closed
  bool wantsOrder = false;    ///< test of another request than the oldest of its end is a fault
};

/// What may begin and end while the network is used, by any thread.
struct FakeTroubles {
  std::atomic<bool> full{false};   ///< isend is refused
  std::atomic<bool> hangs{false};  ///< isend does not return
};

/// One process, both ends. Any thread.
class FakeNet final : public plugin::Net {
 public:
  explicit FakeNet(FakeKnobs knobs = {}) : knobs_(std::move(knobs)), dice_(knobs_.seed) {}
  ~FakeNet() override {
    for (auto* listener : listeners_) delete listener;
    for (auto* end : ends_) delete end;
    for (auto* registration : registrations_) delete registration;
    for (auto* request : requests_) delete request;
  }

  FakeKnobs& knobs() { return knobs_; }
  FakeTroubles troubles;
  std::string_view name() const override { return "Fake"; }
  Result<int> devices() override { return 2; }
  Result<plugin::NetProperties> properties(int device) override {
    const std::lock_guard lock(mutex_);
    TRY(step("properties"));
    plugin::NetProperties properties;
    properties.name = "fake" + std::to_string(device);
    properties.maxP2pBytes = maxBytes;
    properties.maxRecvs = knobs_.maxRecvs;
    return properties;
  }

  Result<void*> listen(int device, plugin::NetHandle& handle) override {
    const std::lock_guard lock(mutex_);
    TRY(step("listen"));
    auto* listener = new Listener{++lastId_, device, {}, 0};
    listeners_.insert(listener);
    std::memcpy(handle.data(), &listener->id, sizeof(listener->id));
    return static_cast<void*>(listener);
  }
  Result<void*> connect(int, plugin::NetHandle& handle) override {
    const std::lock_guard lock(mutex_);
    TRY(step("connect"));
    unsigned state[2];  // the listener, and how often we have been here
    std::memcpy(state, handle.data(), sizeof(state));
    if (state[1]++ < knobs_.polls || knobs_.neverAccepts) {
      std::memcpy(handle.data(), state, sizeof(state));
      return static_cast<void*>(nullptr);
    }
    for (Listener* listener : listeners_) {
      if (listener->id != state[0]) continue;
      auto wire = std::make_shared<Wire>();
      listener->waiting.push_back(wire);
      return open(wire, true);
    }
    return fail(ncclRemoteError, "Fake: nobody listens");
  }
  void abandonConnect(plugin::NetHandle&) override {
    const std::lock_guard lock(mutex_);
    ++abandoned;
  }
  Result<void*> accept(void* listener) override {
    const std::lock_guard lock(mutex_);
    TRY(step("accept"));
    auto* waiting = static_cast<Listener*>(listener);
    if (waiting->polls++ < knobs_.polls || waiting->waiting.empty()) return static_cast<void*>(nullptr);
    auto wire = waiting->waiting.front();
    waiting->waiting.pop_front();
    return open(wire, false);
  }
  Status closeListen(void* listener) override {
    const std::lock_guard lock(mutex_);
    listeners_.erase(static_cast<Listener*>(listener));
    delete static_cast<Listener*>(listener);
    return {};
  }
  bool closesPosted() const override { return !knobs_.wantsAnswers; }
  Status closeSend(void* connection) override { return close(connection, true); }
  Status closeRecv(void* connection) override { return close(connection, false); }

  Result<void*> registerMemory(void* connection, void* data, std::size_t bytes, plugin::PtrKind kind) override {
    const std::lock_guard lock(mutex_);
    TRY(step("registerMemory"));
    if ((knobs_.refusesKinds & static_cast<int>(kind)) != 0) return fail(ncclSystemError, "Fake: no such memory");
    auto* registration = new Registration{static_cast<End*>(connection), static_cast<std::byte*>(data), bytes, kind};
    registrations_.insert(registration);
    if (kind == plugin::PtrKind::Cuda) ++onDevice;
    return static_cast<void*>(registration);
  }
  bool takesDmaBuf() const override { return true; }
  Result<void*> registerDmaBuf(void* connection, void* data, std::size_t bytes, std::uint64_t offset, int fd) override {
    if (fd >= 0) ++dmaBufs;
    dmaBufBegin = static_cast<std::byte*>(data) - offset;
    return registerMemory(connection, data, bytes, plugin::PtrKind::DmaBuf);
  }
  Status deregisterMemory(void*, void* registration) override {
    const std::lock_guard lock(mutex_);
    registrations_.erase(static_cast<Registration*>(registration));
    delete static_cast<Registration*>(registration);
    return {};
  }

  Result<void*> isend(void* connection, const plugin::NetBuffer& message) override {
    while (troubles.hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (troubles.full) return static_cast<void*>(nullptr);
    const std::lock_guard lock(mutex_);
    return post("isend", connection, std::span(&message, 1));
  }
  Result<void*> irecv(void* connection, std::span<const plugin::NetBuffer> messages) override {
    const std::lock_guard lock(mutex_);
    if (onReceive) onReceive();
    if (messages.empty() || messages.size() > static_cast<std::size_t>(knobs_.maxRecvs)) ++faults;
    auto posted = post("irecv", connection, messages);
    if (posted.ok() && posted.value() != nullptr) {
      ++receives;
      mostAtOnce = std::max(mostAtOnce, static_cast<unsigned>(messages.size()));
    }
    return posted;
  }
  Result<void*> iflush(void* connection, std::span<const plugin::NetBuffer> messages) override {
    const std::lock_guard lock(mutex_);
    TRY(step("iflush"));
    ++flushes;
    flushed += static_cast<unsigned>(messages.size());
    auto* end = static_cast<End*>(connection);
    auto* request = new Request{end, ++numbers_, {}, below(knobs_.delay + 1), true, {}, {}};
    requests_.insert(request);
    ++end->open;
    return static_cast<void*>(request);
  }
  Result<bool> test(void* request, std::span<int> sizes) override {
    const std::lock_guard lock(mutex_);
    TRY(step("test"));
    auto* asked = static_cast<Request*>(request);
    if (requests_.count(asked) == 0) {
      ++faults;
      return fail(ncclInternalError, "Fake: no such request");
    }
    for (const Request* other : requests_) {
      if (knobs_.wantsOrder && other->end == asked->end && other->number < asked->number) ++faults;
    }
    match(*asked->end->wire);
    const bool waits = asked->delay > 0;
    if (waits) --asked->delay;
    if (knobs_.neverEnds || waits || !asked->over) return false;
    for (std::size_t i = 0; !knobs_.keepsSizes && i < std::min(sizes.size(), asked->received.size()); ++i) {
      sizes[i] = static_cast<int>(asked->received[i]);
    }
    --asked->end->open;
    requests_.erase(asked);
    delete asked;
    return true;
  }
  Result<bool> delivered(void*) override {
    const std::lock_guard lock(mutex_);
    TRY(step("delivered"));
    return !knobs_.undelivered;
  }
  bool fuses() const override { return false; }
  plugin::NetFusion makeVirtual(std::span<const int>) override { return {-1, "Fake: no"}; }

  std::size_t connections() {
    const std::lock_guard lock(mutex_);
    return ends_.size() / 2;
  }
  /// Listeners, connections and registrations that have not been given back.
  std::size_t leftOpen() {
    const std::lock_guard lock(mutex_);
    return listeners_.size() + ends_.size() + registrations_.size();
  }

  std::function<void()> onReceive;  ///< called by every irecv; must not use the network
  unsigned faults = 0;              ///< what no caller may do
  unsigned mostOpen = 0;            ///< requests of one end at a time
  unsigned closedBusy = 0;          ///< ends that were closed with requests under way
  unsigned flushes = 0;
  unsigned flushed = 0;                  ///< messages in them
  unsigned sendsMade = 0;                ///< that were posted
  unsigned receives = 0;                 ///< the same …
  unsigned mostAtOnce = 0;               ///< … with so many messages
  unsigned abandoned = 0;                ///< connects
  unsigned onDevice = 0;                 ///< registrations of device memory
  unsigned dmaBufs = 0;                  ///< registrations of such
  std::byte* dmaBufBegin = nullptr;      ///< of the last one: where the first byte of the dma-buf lies
  unsigned unregistered = 0;             ///< messages of memory without registration
  std::atomic<std::size_t> maxBytes{0};  ///< of a message

 private:
  struct Request;
  struct Wire {
    std::deque<Request*> sends, recvs;
    std::deque<std::vector<std::byte>> sent;  ///< whose senders have been told that they are gone
  };
  struct End {
    std::shared_ptr<Wire> wire;
    bool sends;
    unsigned open = 0;
  };
  struct Request {
    End* end;
    std::uint64_t number;
    std::vector<plugin::NetBuffer> buffers;
    unsigned delay;
    bool over;
    std::vector<std::size_t> received;
    std::vector<Request*> senders;  ///< what came for each of a receive's places
  };
  struct Listener {
    unsigned id;
    int device;
    std::deque<std::shared_ptr<Wire>> waiting;
    unsigned polls;
  };
  struct Registration {
    End* end;
    std::byte* data;
    std::size_t bytes;
    plugin::PtrKind kind;
  };

  unsigned below(unsigned n) { return n <= 1 ? 0 : static_cast<unsigned>(dice_() % n); }

  Status step(const char* call) {
    if (knobs_.failing != call || knobs_.failAfter-- != 0) return {};
    knobs_.failAfter = 0;
    if (knobs_.saysOnce && std::exchange(said_, true)) return Status(ncclSystemError);
    return fail(ncclSystemError, "Fake: the cable is cut");
  }

  Result<void*> open(std::shared_ptr<Wire> wire, bool sends) {
    auto* end = new End{std::move(wire), sends, 0};
    ends_.insert(end);
    return static_cast<void*>(end);
  }

  Status close(void* connection, bool sends) {
    const std::lock_guard lock(mutex_);
    auto* end = static_cast<End*>(connection);
    if (end->sends != sends) ++faults;
    if (end->open != 0) ++closedBusy;
    for (const Registration* registration : registrations_) {
      if (registration->end == end) ++faults;
    }
    for (auto* queue : {&end->wire->sends, &end->wire->recvs}) {
      std::erase_if(*queue, [&](const Request* r) { return r->end == end; });
    }
    for (Request* request : requests_) {
      for (Request*& sender : request->senders) sender = sender != nullptr && sender->end == end ? nullptr : sender;
    }
    for (auto it = requests_.begin(); it != requests_.end();) {
      Request* const request = *it;
      it = request->end == end ? requests_.erase(it) : std::next(it);
      if (request->end == end) delete request;
    }
    ends_.erase(end);
    delete end;
    return {};
  }

  Result<void*> post(const char* call, void* connection, std::span<const plugin::NetBuffer> buffers) {
    TRY(step(call));
    auto* end = static_cast<End*>(connection);
    for (const plugin::NetBuffer& buffer : buffers) check(*end, buffer);
    if (below(100) < knobs_.refuse) return static_cast<void*>(nullptr);
    if (knobs_.maxRecvs > 1) matchTags(*end->wire);
    Request** const place = end->sends && knobs_.maxRecvs > 1 ? placeFor(*end->wire, buffers[0].tag) : nullptr;
    if (end->sends && knobs_.maxRecvs > 1 && place == nullptr) return static_cast<void*>(nullptr);
    auto* request =
        new Request{end, ++numbers_, {buffers.begin(), buffers.end()}, below(knobs_.delay + 1), false, {}, {}};
    request->received.resize(buffers.size());
    request->senders.resize(buffers.size());
    requests_.insert(request);
    if (end->sends) ++sendsMade;
    if (place != nullptr) *place = request;
    if (place == nullptr) (end->sends ? end->wire->sends : end->wire->recvs).push_back(request);
    mostOpen = std::max(mostOpen, ++end->open);
    return static_cast<void*>(request);
  }

  /// In the oldest receive that has not got all its messages; null: it has none of this tag.
  static Request** placeFor(Wire& wire, int tag) {
    if (wire.recvs.empty()) return nullptr;
    Request& oldest = *wire.recvs.front();
    for (std::size_t i = 0; i < oldest.buffers.size(); ++i) {
      if (oldest.buffers[i].tag == tag && oldest.senders[i] == nullptr) return &oldest.senders[i];
    }
    return nullptr;
  }

  void check(const End& end, const plugin::NetBuffer& buffer) {
    if (buffer.registration == nullptr) {
      ++unregistered;
      return;
    }
    const auto* registration = static_cast<const Registration*>(buffer.registration);
    const auto* data = static_cast<const std::byte*>(buffer.data);
    const bool inside = registrations_.count(const_cast<Registration*>(registration)) == 1 &&
                        registration->end == &end && data >= registration->data &&
                        data + buffer.bytes <= registration->data + registration->bytes;
    if (!inside) ++faults;
  }

  std::vector<std::byte> contentOf(const Request& send) const {
    const auto* data = static_cast<const std::byte*>(send.buffers[0].data);
    std::vector<std::byte> bytes(data, data + send.buffers[0].bytes);
    bytes.resize(bytes.size() - std::min<std::size_t>(knobs_.cutBy, bytes.size()));
    if (knobs_.spoilAt > 0 && bytes.size() >= knobs_.spoilAt) bytes[knobs_.spoilAt - 1] ^= std::byte{0xff};
    return bytes;
  }
  void put(Request& recv, std::size_t place, const std::vector<std::byte>& bytes) {
    const plugin::NetBuffer& buffer = recv.buffers[place];
    if (bytes.size() > buffer.bytes) ++faults;
    if (!bytes.empty()) std::memcpy(buffer.data, bytes.data(), std::min(bytes.size(), buffer.bytes));
    recv.received[place] = bytes.size();
  }

  /// Data are read as late as a sender has to bear it.
  void match(Wire& wire) {
    if (knobs_.maxRecvs > 1) return matchTags(wire);
    while (!wire.sends.empty() && (!knobs_.rendezvous || wire.recvs.size() > wire.sent.size())) {
      wire.sent.push_back(contentOf(*wire.sends.front()));
      wire.sends.front()->over = true;
      wire.sends.pop_front();
    }
    while (!wire.sent.empty() && !wire.recvs.empty()) {
      put(*wire.recvs.front(), 0, wire.sent.front());
      wire.recvs.front()->over = true;
      wire.recvs.pop_front();
      wire.sent.pop_front();
    }
  }
  void matchTags(Wire& wire) {
    while (!wire.recvs.empty()) {
      Request& oldest = *wire.recvs.front();
      if (std::find(oldest.senders.begin(), oldest.senders.end(), nullptr) != oldest.senders.end()) return;
      for (std::size_t i = 0; i < oldest.senders.size(); ++i) {
        put(oldest, i, contentOf(*oldest.senders[i]));
        oldest.senders[i]->over = true;
      }
      oldest.senders.clear();
      oldest.over = true;
      wire.recvs.pop_front();
    }
  }

  FakeKnobs knobs_;
  bool said_ = false;  ///< why a call fails
  std::mutex mutex_;
  std::minstd_rand dice_;
  unsigned lastId_ = 0;
  std::uint64_t numbers_ = 0;
  std::set<Listener*> listeners_;
  std::set<End*> ends_;
  std::set<Registration*> registrations_;
  std::set<Request*> requests_;
};

}  // namespace tutti::test
