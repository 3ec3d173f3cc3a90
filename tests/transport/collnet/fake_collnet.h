// A network within the process that reduces and gathers, and does what is wrong with such networks: it is slow,
// refuses, fails, does not come back. It also watches what is asked of it.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "plugin/network/collnet.h"

namespace tutti::test {

/// Of one node.
struct FakeCollNetKnobs {
  unsigned seed = 1;
  unsigned refuse = 0;       ///< percent of calls that are refused
  unsigned delay = 0;        ///< a request takes up to so many tests
  bool neverEnds = false;    ///< no request does
  std::string failing = {};  ///< the call that fails …
  unsigned failAfter = 0;    ///< … when it has worked so often
  std::size_t mostBytes = 1 << 20;
  bool connectsToNothing = false;
  bool connectHangs = false;   ///< until FakeSwitch::release()
  bool flushesAtOnce = false;  ///< iflush gives no request
  bool takesDmaBuf = true;
  int refusesKinds = 0;  ///< of memory, bits of plugin::PtrKind …
  int takesFirst = 0;    ///< … when it has taken so many
};

class FakeCollNet;

/// What joins the nodes. Any thread.
class FakeSwitch {
 public:
  /// Ends all connects that wait, with an error unless all nodes are there.
  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    joined_.notify_all();
  }
  /// What no caller may do, of all nodes.
  unsigned faults() {
    const std::lock_guard lock(mutex_);
    return faults_;
  }
  std::string firstFault() {
    const std::lock_guard lock(mutex_);
    return firstFault_;
  }
  /// Listeners, connections, registrations that have not been given back.
  std::size_t leftOpen() {
    const std::lock_guard lock(mutex_);
    return listeners_.size() + ends_.size() + registrations_.size();
  }

 private:
  friend class FakeCollNet;
  /// What all nodes have to say alike.
  struct Header {
    std::string call;
    int type = 0, op = 0;
    std::uint64_t bytes = 0, perNode = 0, offset = 0;
    friend bool operator==(const Header&, const Header&) = default;
  };
  struct Call {
    Header header;
    std::vector<plugin::CollNetBuffer> send, recv;  ///< by node
    std::size_t arrived = 0;
    bool done = false;
  };
  struct Group {
    std::size_t nodes = 0;
    std::size_t joined = 0;
    std::map<std::uint64_t, std::shared_ptr<Call>> calls;  ///< that have begun
  };
  struct End {
    std::shared_ptr<Group> group;
    std::size_t node = 0;
    std::uint64_t calls = 0;
    unsigned open = 0;
    bool closed = false;
  };
  struct Registration {
    End* end;
    std::byte* data;
    std::size_t bytes;
    plugin::PtrKind kind;
  };
  struct Request {
    End* end;
    std::shared_ptr<Call> call;  ///< null: a flush
    unsigned delay;
  };

  void fault(const std::string& what) {
    if (faults_++ == 0) firstFault_ = what;
  }

  std::mutex mutex_;
  std::condition_variable joined_;
  bool released_ = false;
  unsigned faults_ = 0;
  std::string firstFault_;
  unsigned lastId_ = 0;
  std::map<unsigned, std::shared_ptr<Group>> groups_;  ///< by the first handle
  std::set<void*> listeners_;
  std::set<End*> ends_;
  std::set<Registration*> registrations_;
  std::set<Request*> requests_;
};

/// A node's. Any thread.
class FakeCollNet final : public plugin::CollNet {
 public:
  explicit FakeCollNet(std::shared_ptr<FakeSwitch> fabric, FakeCollNetKnobs knobs = {})
      : fabric_(std::move(fabric)), knobs_(std::move(knobs)), dice_(knobs_.seed) {}

  FakeCollNetKnobs& knobs() { return knobs_; }
  /// "iallreduce 2/0 of 4096": every call that was taken, in order.
  std::vector<std::string> taken() {
    const std::lock_guard lock(fabric_->mutex_);
    return taken_;
  }
  unsigned mostOpen = 0;  ///< requests at a time
  unsigned flushes = 0;
  std::size_t flushedBytes = 0;
  unsigned onDevice = 0;  ///< registrations of device memory …
  unsigned dmaBufs = 0;   ///< … as such
  unsigned refused = 0;

  std::string_view name() const override { return "Fake"; }
  Result<int> devices() override { return 1; }
  Result<plugin::NetProperties> properties(int) override {
    const std::lock_guard lock(fabric_->mutex_);
    TRY(step("properties"));
    plugin::NetProperties properties;
    properties.name = "fake0";
    properties.maxCollBytes = knobs_.mostBytes;
    return properties;
  }
  bool fuses() const override { return false; }
  plugin::NetFusion makeVirtual(std::span<const int>) override { return {-1, "Fake: no"}; }

  Result<void*> listen(int, plugin::NetHandle& handle) override {
    const std::lock_guard lock(fabric_->mutex_);
    TRY(step("listen"));
    auto* const listener = new unsigned(++fabric_->lastId_);
    fabric_->listeners_.insert(listener);
    std::memcpy(handle.data(), listener, sizeof(*listener));
    return static_cast<void*>(listener);
  }
  Result<void*> connect(std::span<plugin::NetHandle> handles, int rank, void* listener) override {
    std::unique_lock lock(fabric_->mutex_);
    TRY(step("connect"));
    if (!fabric_->listeners_.contains(listener)) fabric_->fault("connect without a listener");
    unsigned id = 0, own = 0;
    std::memcpy(&id, handles[0].data(), sizeof(id));
    std::memcpy(&own, handles[static_cast<std::size_t>(rank)].data(), sizeof(own));
    if (own != *static_cast<unsigned*>(listener)) fabric_->fault("connect as somebody else");
    auto& group = fabric_->groups_[id];
    if (group == nullptr) group = std::make_shared<FakeSwitch::Group>();
    const std::shared_ptr<FakeSwitch::Group> mine = group;
    mine->nodes = handles.size();
    if (!knobs_.connectHangs) ++mine->joined;
    fabric_->joined_.notify_all();
    fabric_->joined_.wait(lock,
                          [&] { return fabric_->released_ || (!knobs_.connectHangs && mine->joined == mine->nodes); });
    // The listener is looked at to the end.
    if (!fabric_->listeners_.contains(listener)) fabric_->fault("listener closed under a connect");
    if (knobs_.connectHangs) ++mine->joined;
    if (mine->joined != mine->nodes) return fail(ncclRemoteError, "Fake: nobody came");
    if (knobs_.connectsToNothing) return static_cast<void*>(nullptr);
    auto* const end = new FakeSwitch::End{mine, static_cast<std::size_t>(rank), 0, 0, false};
    fabric_->ends_.insert(end);
    return static_cast<void*>(end);
  }
  Status closeListen(void* listener) override {
    const std::lock_guard lock(fabric_->mutex_);
    if (fabric_->listeners_.erase(listener) == 0) fabric_->fault("closeListen twice");
    delete static_cast<unsigned*>(listener);
    return step("closeListen");
  }
  Status close(void* connection) override {
    const std::lock_guard lock(fabric_->mutex_);
    auto* const end = static_cast<FakeSwitch::End*>(connection);
    for (const auto* registration : fabric_->registrations_) {
      if (registration->end == end) fabric_->fault("close before deregistration");
    }
    std::erase_if(fabric_->requests_, [&](FakeSwitch::Request* request) {
      const bool its = request->end == end;
      if (its) delete request;
      return its;
    });
    if (fabric_->ends_.erase(end) == 0) fabric_->fault("close twice");
    // What has not been matched never will be.
    for (auto& [number, call] : end->group->calls) call->send[end->node].data = nullptr;
    delete end;
    return {};
  }

  Result<bool> reduces(plugin::CollNetReduction) override { return true; }
  Result<void*> registerMemory(void* connection, void* data, std::size_t bytes, plugin::PtrKind kind) override {
    const std::lock_guard lock(fabric_->mutex_);
    TRY(step("registerMemory"));
    if ((knobs_.refusesKinds & static_cast<int>(kind)) != 0 && knobs_.takesFirst-- <= 0) {
      return fail(ncclSystemError, "Fake: no such memory");
    }
    auto* const registration = new FakeSwitch::Registration{static_cast<FakeSwitch::End*>(connection),
                                                            static_cast<std::byte*>(data), bytes, kind};
    fabric_->registrations_.insert(registration);
    if (kind != plugin::PtrKind::Host) ++onDevice;
    return static_cast<void*>(registration);
  }
  bool takesDmaBuf() const override { return knobs_.takesDmaBuf; }
  Result<void*> registerDmaBuf(void* connection, void* data, std::size_t bytes, std::uint64_t, int fd) override {
    if (fd >= 0) ++dmaBufs;
    return registerMemory(connection, data, bytes, plugin::PtrKind::DmaBuf);
  }
  Status deregisterMemory(void* connection, void* registration) override {
    const std::lock_guard lock(fabric_->mutex_);
    auto* const known = static_cast<FakeSwitch::Registration*>(registration);
    if (!fabric_->ends_.contains(static_cast<FakeSwitch::End*>(connection)))
      fabric_->fault("deregistration after close");
    if (fabric_->registrations_.erase(known) == 0) fabric_->fault("deregistration twice");
    static_cast<void>(*static_cast<volatile std::byte*>(known->data));  // it must be there as long as it is registered
    delete known;
    return {};
  }

  Result<void*> iallreduce(void* connection, const plugin::CollNetBuffer& send, const plugin::CollNetBuffer& recv,
                           plugin::CollNetReduction reduction) override {
    const std::lock_guard lock(fabric_->mutex_);
    if (send.bytes != recv.bytes) fabric_->fault("iallreduce of different sizes");
    return post(connection, {"iallreduce", reduction.type, reduction.op, send.bytes, 0, 0}, send, recv);
  }
  bool gathers() const override { return true; }
  Result<void*> iallgather(void* connection, const plugin::CollNetBuffer& send, const plugin::CollNetBuffer& recv,
                           const plugin::CollNetWindow& window) override {
    const std::lock_guard lock(fabric_->mutex_);
    checkWindow(connection, send.bytes, recv.bytes, window);
    return post(connection, {"iallgather", 0, 0, window.bytes, window.bytesPerRank, window.offset}, send, recv);
  }
  bool scatters() const override { return true; }
  Result<void*> ireducescatter(void* connection, const plugin::CollNetBuffer& send, const plugin::CollNetBuffer& recv,
                               const plugin::CollNetWindow& window, plugin::CollNetReduction reduction) override {
    const std::lock_guard lock(fabric_->mutex_);
    checkWindow(connection, recv.bytes, send.bytes, window);
    return post(connection,
                {"ireducescatter", reduction.type, reduction.op, window.bytes, window.bytesPerRank, window.offset},
                send, recv);
  }
  Result<void*> iflush(void* connection, const plugin::CollNetBuffer& received) override {
    const std::lock_guard lock(fabric_->mutex_);
    TRY(step("iflush"));
    checkBuffer(static_cast<FakeSwitch::End*>(connection), received);
    if (received.bytes == 0) fabric_->fault("flush of nothing");
    ++flushes;
    flushedBytes += received.bytes;
    if (knobs_.flushesAtOnce) return static_cast<void*>(nullptr);
    return open(static_cast<FakeSwitch::End*>(connection), nullptr);
  }
  Result<bool> test(void* request, int*) override {
    const std::lock_guard lock(fabric_->mutex_);
    TRY(step("test"));
    auto* const asked = static_cast<FakeSwitch::Request*>(request);
    if (!fabric_->requests_.contains(asked)) {
      fabric_->fault("test of no request");
      return fail(ncclInternalError, "Fake: no such request");
    }
    const bool waits = asked->delay > 0;
    if (waits) --asked->delay;
    if (knobs_.neverEnds || waits || (asked->call != nullptr && !asked->call->done)) return false;
    --asked->end->open;
    fabric_->requests_.erase(asked);
    delete asked;
    return true;
  }

 private:
  static constexpr unsigned kMostRequests = 16;

  unsigned below(unsigned n) { return n <= 1 ? 0 : static_cast<unsigned>(dice_() % n); }
  Status step(const char* call) {
    if (knobs_.failing != call || knobs_.failAfter-- != 0) return {};
    knobs_.failAfter = 0;
    return fail(ncclSystemError, "Fake: the switch is on fire");
  }
  void* open(FakeSwitch::End* end, std::shared_ptr<FakeSwitch::Call> call) {
    auto* const request = new FakeSwitch::Request{end, std::move(call), below(knobs_.delay + 1)};
    fabric_->requests_.insert(request);
    mostOpen = std::max(mostOpen, ++end->open);
    return request;
  }
  void checkBuffer(const FakeSwitch::End* end, const plugin::CollNetBuffer& buffer) {
    auto* const registration = static_cast<FakeSwitch::Registration*>(buffer.registration);
    const auto* const data = static_cast<const std::byte*>(buffer.data);
    const bool inside = fabric_->registrations_.contains(registration) && registration->end == end &&
                        data >= registration->data && data + buffer.bytes <= registration->data + registration->bytes &&
                        data != registration->data + registration->bytes;
    if (!inside) fabric_->fault("memory that was not registered");
  }
  /// Of a block [number * per, + per) what lies in the window.
  static std::pair<std::uint64_t, std::uint64_t> overlap(std::uint64_t number, std::uint64_t per, std::uint64_t begin,
                                                         std::uint64_t bytes) {
    const std::uint64_t from = std::max(begin, number * per), to = std::min(begin + bytes, (number + 1) * per);
    return {from, from < to ? to - from : 0};
  }
  void checkWindow(void* connection, std::size_t own, std::size_t all, const plugin::CollNetWindow& window) {
    const auto* const end = static_cast<const FakeSwitch::End*>(connection);
    if (window.offset + window.bytes > window.bytesPerRank * end->group->nodes) fabric_->fault("window outside");
    if (all != window.bytes) fabric_->fault("a part of another size than the window");
    if (own != overlap(end->node, window.bytesPerRank, window.offset, window.bytes).second) fabric_->fault("own part");
  }

  Result<void*> post(void* connection, const FakeSwitch::Header& header, const plugin::CollNetBuffer& send,
                     const plugin::CollNetBuffer& recv) {
    TRY(step(header.call.c_str()));
    auto* const end = static_cast<FakeSwitch::End*>(connection);
    checkBuffer(end, send);
    checkBuffer(end, recv);
    if (header.bytes == 0 || header.bytes > knobs_.mostBytes) fabric_->fault("a call of too much, or nothing");
    if (end->open == kMostRequests || below(100) < knobs_.refuse) {
      ++refused;
      return static_cast<void*>(nullptr);
    }
    auto& call = end->group->calls[end->calls++];
    if (call == nullptr) {
      call = std::make_shared<FakeSwitch::Call>(FakeSwitch::Call{header, {}, {}, 0, false});
      call->send.resize(end->group->nodes);
      call->recv.resize(end->group->nodes);
    }
    if (call->header != header)
      fabric_->fault("nodes make different calls: " + text(header) + " and " + text(call->header));
    taken_.push_back(text(header));
    call->send[end->node] = send;
    call->recv[end->node] = recv;
    void* const request = open(end, call);
    if (++call->arrived == end->group->nodes) {
      execute(*call);
      end->group->calls.erase(end->calls - 1);
    }
    return request;
  }
  static std::string text(const FakeSwitch::Header& header) {
    return fmt::format("{} {}/{} of {} from {} of {}", header.call, header.type, header.op, header.bytes, header.offset,
                       header.perNode);
  }

  template <class T>
  static T combined(int op, T a, T b) {
    if (op == ncclProd) return static_cast<T>(a * b);
    if (op == ncclMax) return std::max(a, b);
    return op == ncclMin ? std::min(a, b) : static_cast<T>(a + b);
  }
  template <class T>
  static void reduce(const FakeSwitch::Call& call, std::vector<std::byte>& result) {
    for (std::size_t i = 0; i < result.size() / sizeof(T); ++i) {
      T sum{};
      for (std::size_t n = 0; n < call.send.size(); ++n) {
        T value;
        std::memcpy(&value, static_cast<const std::byte*>(call.send[n].data) + i * sizeof(T), sizeof(T));
        sum = n == 0 ? value : combined(call.header.op, sum, value);
      }
      std::memcpy(result.data() + i * sizeof(T), &sum, sizeof(T));
    }
  }
  static void reduceAny(const FakeSwitch::Call& call, std::vector<std::byte>& result) {
    switch (call.header.type) {
      case ncclFloat32:
        return reduce<float>(call, result);
      case ncclFloat64:
        return reduce<double>(call, result);
      case ncclInt32:
        return reduce<std::int32_t>(call, result);
      case ncclInt64:
        return reduce<std::int64_t>(call, result);
      default:
        return reduce<std::uint8_t>(call, result);
    }
  }
  void execute(FakeSwitch::Call& call) {
    for (const auto& send : call.send) {
      if (send.data == nullptr) return;  // its node has closed
    }
    const FakeSwitch::Header& header = call.header;
    std::vector<std::byte> result(header.bytes);
    if (header.call != "iallgather") reduceAny(call, result);
    for (std::size_t n = 0; n < call.send.size() && header.call == "iallgather"; ++n) {
      const auto [from, bytes] = overlap(n, header.perNode, header.offset, header.bytes);
      if (bytes > 0) std::memcpy(result.data() + (from - header.offset), call.send[n].data, bytes);
    }
    for (std::size_t n = 0; n < call.recv.size(); ++n) {
      std::uint64_t from = 0, bytes = header.bytes;
      if (header.call == "ireducescatter") {
        std::tie(from, bytes) = overlap(n, header.perNode, header.offset, header.bytes);
        from -= header.offset;
      }
      if (bytes > 0) std::memcpy(call.recv[n].data, result.data() + from, bytes);
    }
    call.done = true;
  }

  const std::shared_ptr<FakeSwitch> fabric_;
  FakeCollNetKnobs knobs_;
  std::minstd_rand dice_;
  std::vector<std::string> taken_;
};

}  // namespace tutti::test
